"""What a node function is given beside the state."""

import asyncio
import contextvars
from typing import Any

import pytest

from runs.engine import START, ApprovalDenied, Executor, Flow, FlowError, FlowRunner, Gate, tool

from .support import KEY, State, World, approve, deny, fails, flow_of

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


@tool
def who() -> str:
    return user.get()


@tool
async def who_async() -> str:
    return user.get()


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


def run_as(name: str, flow: Flow) -> Any:
    context = contextvars.copy_context()
    context.run(user.set, name)
    runner = FlowRunner(Executor(), checkpoint_key=KEY)
    return context.run(runner.run_sync, flow, State()).state


async def node(state: State, ctx: Any) -> dict[str, Any]:
    return {"text": user.get(), "items": [await ctx.call(who), await ctx.call(who_async)]}


def plain(state: State, ctx: Any) -> dict[str, Any]:
    return {"text": user.get(), "items": [ctx.call_sync(who), ctx.call_sync(who_async)]}


@pytest.mark.parametrize("action", [node, plain])
def test_context_variables_of_the_runs_caller_reach_nodes_and_tools(action: Any) -> None:
    state = run_as("claims-desk", flow_of(action))
    assert (state.text, state.items) == ("claims-desk", ["claims-desk", "claims-desk"])
    assert user.get() == "nobody"


def test_a_context_variable_set_in_a_node_reaches_its_tools_and_nobody_else() -> None:
    async def sets(state: State, ctx: Any) -> dict[str, Any]:
        user.set("inside")
        return {"items": [await ctx.call(who), await ctx.call(who_async)]}

    def looks(state: State, ctx: Any) -> dict[str, Any]:
        return {"text": user.get()}

    flow = flow_of(sets)
    flow.node("looks", looks)
    flow.edge("node", "looks")
    state = run_as("outside", flow)
    assert state.items == ["inside", "inside"]
    assert state.text == "outside"


def test_the_run_id_is_the_runs_and_stays_over_a_resume() -> None:
    seen: list[str] = []

    async def asks(state: State, ctx: Any) -> None:
        seen.append(ctx.run_id)
        await ctx.call(pay, amount=1)

    world, flow = World(), flow_of(asks)
    paused = world.run(flow)
    world.resume(flow, paused, approve())
    assert seen == [paused.run_id, paused.run_id]


def test_call_sync_in_an_async_node_is_refused_and_says_what_to_use() -> None:
    async def wrong(state: State, ctx: Any) -> None:
        ctx.call_sync(who)

    with fails("node-failed") as caught:
        World().run(flow_of(wrong))
    assert "await" in str(caught.value)


def test_a_call_that_is_not_awaited_is_not_made() -> None:
    made: list[int] = []

    @tool
    def effect() -> None:
        made.append(1)

    async def forgets(state: State, ctx: Any) -> None:
        ctx.call(effect).close()

    World().run(flow_of(forgets))
    assert made == []


@pytest.mark.parametrize("wrong", [None, "pay", len, pay.fn])
def test_what_is_no_tool_is_not_called(wrong: Any) -> None:
    async def calls(state: State, ctx: Any) -> None:
        await ctx.call(wrong)

    with fails("node-failed") as caught:
        World().run(flow_of(calls))
    assert "@tool" in str(caught.value)


def test_a_callable_object_and_an_async_one_can_be_nodes() -> None:
    class Plain:
        def __call__(self, state: State, ctx: Any) -> dict[str, Any]:
            return {"text": "plain"}

    class Async:
        async def __call__(self, state: State, ctx: Any) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"text": "async"}

    assert World().run(flow_of(Plain())).state.text == "plain"
    assert World().run(flow_of(Async())).state.text == "async"
    assert World().run(flow_of(lambda state, ctx: Async()(state, ctx))).state.text == "async"


def test_the_answer_of_a_refused_gate_is_never_seen_by_the_node() -> None:
    seen: list[Any] = []

    def looks(state: State, ctx: Any) -> None:
        seen.append(ctx.answer)

    world, flow = World(), flow_of(looks, gate=Gate())
    with pytest.raises(ApprovalDenied):
        world.resume(flow, world.run(flow), deny())
    assert seen == []


def test_call_sync_after_the_node_ended_is_refused() -> None:
    kept: list[Any] = []
    refused: list[FlowError] = []

    def keeps(state: State, ctx: Any) -> None:
        kept.append(ctx)

    def uses(state: State, ctx: Any) -> None:
        try:
            kept[0].call_sync(pay, amount=1)
        except FlowError as error:
            refused.append(error)

    flow = flow_of(keeps)
    flow.node("uses", uses)
    flow.edge("node", "uses")
    world = World()
    assert world.run(flow).status == "completed"
    assert refused[0].node == "node"
    assert world.store.pending() == []


def test_an_executor_of_its_own_asks_its_own_store_and_the_answer_is_spent_there() -> None:
    own = World()

    async def uses_own(state: State, ctx: Any) -> dict[str, Any]:
        return {"number": await ctx.call_on(own.executor, pay, amount=5)}

    world, flow = World(), flow_of(uses_own)
    paused = world.run(flow)
    assert world.store.pending() == []
    assert len(own.store.pending()) == 1
    assert world.resume(flow, paused, approve()).state.number == 5
    assert own.store.pending() == []


def test_a_request_of_an_own_store_is_withdrawn_there_when_a_sibling_fails() -> None:
    own = World()

    async def uses_own(state: State, ctx: Any) -> None:
        await ctx.call_on(own.executor, pay, amount=5)

    async def failing(state: State, ctx: Any) -> None:
        raise LookupError("gone")

    flow = flow_of(uses_own)
    flow.node("failing", failing)
    flow.edge(START, "failing")
    with fails("node-failed"):
        World().run(flow)
    assert own.store.pending() == []


def test_other_requests_of_an_own_store_are_superseded_there() -> None:
    own = World()

    async def uses_own(state: State, ctx: Any) -> None:
        await asyncio.gather(*(ctx.call_on(own.executor, pay, amount=n) for n in (1, 2)))

    world, flow = World(), flow_of(uses_own)
    paused = world.run(flow)
    later = world.resume(flow, paused, approve(paused.requests[0]))
    (again,) = later.requests
    assert [request.id for request in own.store.pending()] == [again.id]
    assert world.resume(flow, later, approve()).status == "completed"
    assert own.store.pending() == []
