"""Decisions: which are taken, which are refused, and that a refused one spends nothing."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, Field, computed_field

from runs.engine import (
    END,
    START,
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalPending,
    ApprovalStore,
    Call,
    DeferredApproval,
    Executor,
    Flow,
    FlowError,
    FlowResult,
    FlowRunner,
    Gate,
    Map,
    MemoryStore,
    tool,
)

from .support import KEY, State, World, approve, deny, fails, flow_of, side_by_side

ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(confirm=True)
def pay(amount: int) -> int:
    ran.append(amount)
    return amount


class Order(BaseModel):
    amount: int


@tool(confirm=True)
def buy(order: Order) -> int:
    ran.append(order.amount)
    return order.amount


@tool(confirm=True, editable=True)
def transfer(amount: int, fee: int = 1) -> int:
    ran.append((amount, fee))
    return amount


async def one(state: State, ctx: Any) -> dict[str, Any]:
    return {"number": await ctx.call(pay, amount=1)}


async def two(state: State, ctx: Any) -> dict[str, Any]:
    return {"value": await ctx.call(pay, amount=2)}


async def three(state: State, ctx: Any) -> dict[str, Any]:
    return {"text": str(await ctx.call(transfer, amount=3))}


ALL = side_by_side(one, two, three)
ONE = flow_of(one)
EDIT = flow_of(three)


@pytest.mark.parametrize("answer", [None, "", "yes", "approve", 1, True, 0, object(), {}, [], ()])
def test_what_is_no_decision_is_refused_and_spends_nothing(answer: Any) -> None:
    world = World()
    paused = world.run(ONE)
    with fails("invalid-decision"):
        world.resume(ONE, paused, answer)
    assert ran == []
    assert world.resume(ONE, paused, approve()).status == "completed"


@pytest.mark.parametrize("verb", [None, "", "yes", "approved", 1, 0, [], object(), "False"])
def test_a_verb_that_is_neither_true_nor_false_makes_no_decision(verb: Any) -> None:
    with fails("invalid-decision"):
        ApprovalDecision(verb, "reviewer")
    with fails("invalid-decision"):
        replace(approve(), approved=verb)


@pytest.mark.parametrize("by", [None, "", " ", "\n", 5, b"reviewer", True])
def test_a_decision_names_who_made_it(by: Any) -> None:
    with fails("invalid-decision"):
        ApprovalDecision.approve(by)
    with fails("invalid-decision"):
        ApprovalDecision.deny(by)


@pytest.mark.parametrize("request_id", ["", "nobody", 5, [], {}, b"x", True])
def test_a_decision_for_a_request_that_is_not_open_is_refused(request_id: Any) -> None:
    world = World()
    paused = world.run(ONE)
    with pytest.raises(FlowError) as caught:
        world.resume(ONE, paused, ApprovalDecision.approve("reviewer", request_id=request_id))
    assert caught.value.code in ("unknown-request", "invalid-decision")
    assert ran == []
    assert world.resume(ONE, paused, approve()).status == "completed"


def test_no_decision_at_all_is_refused_and_says_what_is_missing() -> None:
    world = World()
    paused = world.run(ONE)
    with fails("unknown-request") as caught:
        world.resume(ONE, paused)
    assert "decision" in str(caught.value)


def test_a_decision_may_leave_its_request_out_where_one_is_open_only() -> None:
    world = World()
    paused = world.run(ALL)
    with fails("unknown-request") as caught:
        world.resume(ALL, paused, approve())
    for request in paused.requests:
        assert request.id in str(caught.value)
    assert ran == []


def test_one_request_answered_twice_is_refused() -> None:
    world = World()
    paused = world.run(ALL)
    first = paused.requests[0]
    for pair in ((approve(first), approve(first)), (approve(first), deny(first))):
        with fails("invalid-decision"):
            world.resume(ALL, paused, *pair)
    with fails("invalid-decision"):
        world.resume(ONE, world.run(ONE), approve(), approve())
    assert ran == []
    assert world.resume(ALL, paused, approve(first)).status == "paused"


def test_open_requests_are_answered_together() -> None:
    world = World()
    paused = world.run(ALL)
    assert [request.node for request in paused.requests] == ["one", "two", "three"]
    assert paused.pending is paused.requests[0]
    done = world.resume(ALL, paused, *map(approve, reversed(paused.requests)))
    assert (done.state.number, done.state.value, done.state.text) == (1, 2, "3")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_open_requests_are_answered_one_by_one_in_any_order(order: tuple[int, ...]) -> None:
    world = World()
    paused = world.run(ALL)
    requests = paused.requests
    left = {request.id for request in requests}
    for place in order:
        assert paused.status == "paused"
        assert {request.id for request in paused.requests} == left
        paused = world.resume(ALL, paused, approve(requests[place]))
        left.remove(requests[place].id)
    assert paused.status == "completed"
    assert sorted(map(str, ran)) == ["(3, 1)", "1", "2"]


def test_one_bad_decision_among_several_spends_none() -> None:
    world = World()
    paused = world.run(ALL)
    good, other, edited = paused.requests
    for bad in (
        ApprovalDecision.approve("reviewer", request_id="nobody"),
        approve(other, arguments={"amount": 5}),
        approve(edited, arguments={"amount": "many"}),
    ):
        with pytest.raises(FlowError):
            world.resume(ALL, paused, approve(good), bad)
    assert ran == []
    assert len(world.store.pending()) == 3
    done = world.resume(ALL, paused, *map(approve, paused.requests))
    assert done.status == "completed"


def test_a_settle_that_is_refused_for_one_answer_spends_none() -> None:
    world = World()
    paused = world.run(ALL)
    first, second, third = paused.requests
    world.store.decide(second.id, deny(second))
    with pytest.raises(ApprovalAlreadyDecided):
        world.resume(ALL, paused, approve(first), approve(second), approve(third))
    assert ran == []
    assert {request.id for request in world.store.pending()} == {first.id, third.id}
    with fails("approval-denied"):
        world.resume(ALL, paused, approve(first), deny(second), approve(third))


def test_a_decision_on_record_is_the_one_to_resume_with() -> None:
    world = World()
    paused = world.run(ONE)
    assert paused.pending is not None
    decision = approve(paused.pending, reason="checked")
    world.store.decide(paused.pending.id, decision)
    with pytest.raises(ApprovalAlreadyDecided) as caught:
        world.resume(ONE, paused, deny(paused.pending))
    assert "approved by reviewer" in str(caught.value)
    assert world.resume(ONE, paused, decision).status == "completed"


def test_a_decision_is_not_made_twice_on_record() -> None:
    world = World()
    paused = world.run(ONE)
    assert paused.pending is not None
    world.store.decide(paused.pending.id, deny())
    with pytest.raises(ApprovalAlreadyDecided, match="rejected by reviewer"):
        world.store.decide(paused.pending.id, approve())


@pytest.mark.parametrize("again", [approve, deny])
def test_a_second_resume_runs_nothing(again: Any) -> None:
    world = World()
    paused = world.run(ONE)
    world.resume(ONE, paused, approve())
    with pytest.raises(ApprovalAlreadyDecided) as caught:
        world.resume(ONE, paused, again())
    assert caught.value.code == "already-decided"
    assert ran == [1]


def test_a_store_that_cannot_be_reached_spends_nothing() -> None:
    class Away(MemoryStore):
        away = False

        async def settle(self, *answers: Any) -> set[str]:
            if self.away:
                raise ConnectionError("away")
            return await super().settle(*answers)

    store = Away()
    runner = FlowRunner(Executor(DeferredApproval(store)), checkpoint_key=KEY)
    paused = runner.run_sync(ONE, State())
    assert paused.checkpoint is not None
    store.away = True
    with pytest.raises(ConnectionError):
        runner.resume_sync(ONE, paused.checkpoint, approve())
    store.away = False
    assert runner.resume_sync(ONE, paused.checkpoint, approve()).status == "completed"
    assert ran == [1]


class Storeless:
    """A port that asks and keeps nothing."""

    store: ApprovalStore | None = None

    async def request(self, request: Any) -> Any:
        raise ApprovalPending(request)


def test_a_port_without_a_store_is_resumed_once_by_the_memory_of_the_process() -> None:
    first, second = (FlowRunner(Executor(Storeless()), checkpoint_key=KEY) for _ in range(2))
    paused = first.run_sync(ONE, State())
    assert paused.checkpoint is not None
    first.resume_sync(ONE, paused.checkpoint, approve())
    for runner in (first, second):
        with pytest.raises(ApprovalAlreadyDecided):
            runner.resume_sync(ONE, paused.checkpoint, approve())
    assert ran == [1]


def test_a_second_runner_with_a_store_of_its_own_does_not_run_it_again() -> None:
    first, second = World(), World()
    paused = first.run(ONE)
    first.resume(ONE, paused, approve())
    with pytest.raises(ApprovalAlreadyDecided):
        second.resume(ONE, paused, approve())
    assert ran == [1]


def outcomes_of_threads(resumes: list[Any]) -> list[Any]:
    """Each resume in a thread of its own, all begun at the same instant."""
    together = threading.Barrier(len(resumes))
    outcomes: list[Any] = []

    def resume(work: Any) -> None:
        together.wait(30)
        try:
            outcomes.append(work())
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=resume, args=(work,)) for work in resumes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("port", ["one store", "no store", "own stores"])
def test_of_runners_in_several_threads_with_one_checkpoint_one_runs(port: str) -> None:
    store = MemoryStore()

    def runner() -> FlowRunner:
        ports: dict[str, Any] = {
            "one store": lambda: DeferredApproval(store),
            "no store": Storeless,
            "own stores": DeferredApproval,
        }
        return FlowRunner(Executor(ports[port]()), checkpoint_key=KEY)

    paused = runner().run_sync(ONE, State())
    assert paused.checkpoint is not None
    text = runner().dump_checkpoint(paused.checkpoint)

    def resuming() -> Any:
        own = runner()
        return lambda: own.resume_sync(ONE, own.load_checkpoint(ONE, text), approve())

    outcomes = outcomes_of_threads([resuming() for _ in range(8)])
    assert ran == [1]
    assert sum(isinstance(outcome, FlowResult) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, ApprovalAlreadyDecided) for outcome in outcomes) == 7


def test_a_denied_call_is_an_error_in_the_node_that_names_who_and_why() -> None:
    world = World()
    with fails("approval-denied") as caught:
        world.resume(ONE, world.run(ONE), deny(reason="too much"))
    assert caught.value.node == "node"
    assert "reviewer" in str(caught.value)
    assert "too much" in str(caught.value)
    assert ran == []


def test_edited_arguments_run_and_what_was_proposed_is_kept_apart() -> None:
    world = World()
    paused = world.run(EDIT)
    assert paused.pending is not None
    assert paused.pending.editable
    done = world.resume(EDIT, paused, approve(arguments={"amount": "30"}))
    assert ran == [(30, 1)]
    assert done.state.text == "30"
    assert paused.pending.arguments == {"amount": 3, "fee": 1}


def test_an_edited_call_is_replayed_to_the_caller_that_passed_the_first_arguments() -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        amount = await ctx.call(transfer, amount=3)
        await ctx.call(pay, amount=1)
        return {"number": amount}

    world, flow = World(), flow_of(node)
    paused = world.resume(flow, world.run(flow), approve(arguments={"amount": 30, "fee": 2}))
    assert world.resume(flow, paused, approve()).state.number == 30
    assert ran == [(30, 2), 1]


def test_arguments_of_a_tool_that_is_not_editable_are_not_edited() -> None:
    world = World()
    paused = world.run(ONE)
    with fails("invalid-answer") as caught:
        world.resume(ONE, paused, approve(arguments={"amount": 1}))
    assert "editable" in str(caught.value)
    assert caught.value.node == "node"
    assert world.resume(ONE, paused, approve()).status == "completed"


@pytest.mark.parametrize(
    "arguments",
    [{"amount": "hunter2"}, {}, {"amount": 1, "more": 2}, {"fee": 1}, {1: 2}],
    ids=str,
)
def test_edited_arguments_that_the_tool_does_not_take_spend_nothing(arguments: Any) -> None:
    world = World()
    paused = world.run(EDIT)
    with fails("invalid-answer") as caught:
        world.resume(EDIT, paused, approve(arguments=arguments))
    assert caught.value.node == "node"
    assert "hunter2" not in str(caught.value)
    assert ran == []
    assert world.resume(EDIT, paused, approve()).status == "completed"


@pytest.mark.parametrize("arguments", [[], "text", 5, [("amount", 1)], True], ids=str)
def test_edited_arguments_that_are_no_mapping_make_no_decision(arguments: Any) -> None:
    with fails("invalid-decision"):
        approve(arguments=arguments)


def test_a_denial_with_edited_arguments_or_content_is_still_a_denial() -> None:
    world = World()
    with fails("approval-denied"):
        world.resume(EDIT, world.run(EDIT), replace(deny(), arguments={"amount": 5}, content={}))
    assert ran == []


def test_what_runs_is_what_was_shown_although_the_node_changed_it_since() -> None:
    shown: list[Any] = []

    class Showing(DeferredApproval):
        async def request(self, request: Any) -> Any:
            shown.append(request.canonical_arguments())
            return await super().request(request)

    async def node(state: State, ctx: Any) -> None:
        order = Order(amount=1)
        try:
            await ctx.call(buy, order=order)
        finally:
            order.amount = 999

    runner, flow = FlowRunner(Executor(Showing()), checkpoint_key=KEY), flow_of(node)
    paused = runner.run_sync(flow, State())
    assert paused.checkpoint is not None
    (request,) = paused.requests
    assert [request.canonical_arguments()] == shown
    runner.resume_sync(flow, paused.checkpoint, approve())
    assert ran == [1]


def test_a_default_made_anew_on_the_re_run_is_not_what_runs() -> None:
    made = iter(range(100))

    @tool(confirm=True)
    def store(what: Any, key: int = Field(default_factory=made.__next__)) -> None:
        ran.append(key)

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(store, what=Order(amount=1))

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert paused.pending is not None
    assert paused.pending.arguments is not None
    shown = paused.pending.arguments["key"]
    try:
        world.resume(flow, paused, approve())
    except FlowError as error:
        assert error.code == "state-not-sealable"  # noqa: PT017  refused, and nothing ran
        assert ran == []
    else:
        assert ran == [shown]


def test_two_equal_calls_at_once_take_one_answer_each() -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        return {"items": await asyncio.gather(*(ctx.call(pay, amount=1) for _ in range(3)))}

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert len(paused.requests) == 3
    paused = world.resume(flow, paused, approve(paused.requests[1]))
    assert ran == [1]
    assert len(paused.requests) == 2
    assert world.resume(flow, paused, *map(approve, paused.requests)).state.items == [1, 1, 1]
    assert ran == [1, 1, 1]


def test_other_requests_of_an_answered_function_node_are_superseded_and_asked_again() -> None:
    async def node(state: State, ctx: Any) -> None:
        await asyncio.gather(ctx.call(pay, amount=1), ctx.call(pay, amount=2))

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    first, second = paused.requests
    later = world.resume(flow, paused, approve(first))
    (again,) = later.requests
    assert again.arguments == {"amount": 2}
    assert again.id != second.id
    assert [request.id for request in world.store.pending()] == [again.id]


def test_an_answer_on_record_is_not_lost_when_another_one_comes_first() -> None:
    """The one recorded meanwhile is used by the next resume, or the early resume is refused."""

    async def node(state: State, ctx: Any) -> None:
        await asyncio.gather(ctx.call(pay, amount=1), ctx.call(pay, amount=2))

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    first, second = paused.requests
    world.store.decide(second.id, approve(second))
    try:
        later = world.resume(flow, paused, approve(first))
    except ApprovalAlreadyDecided:
        later = world.resume(flow, paused, approve(first), approve(second))
    assert later.status == "completed"
    assert sorted(ran) == [1, 2]


class Note(BaseModel):
    text: str = Field(alias="free-text")
    secret: str = Field("", repr=False)

    model_config = {"extra": "forbid"}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> int:
        return len(self.text)


def gated(seen: list[Any]) -> Flow:
    async def node(state: State, ctx: Any) -> None:
        seen.append(ctx.answer)
        await ctx.call(pay, amount=1)

    return flow_of(node, gate=Gate(form=Note))


@pytest.mark.parametrize(
    "content", [{"free-text": "a"}, Note.model_validate({"free-text": "a"})], ids=["data", "model"]
)
def test_content_reaches_the_node_as_data_or_as_an_instance_of_the_form(content: Any) -> None:
    seen: list[Any] = []
    world, flow = World(), gated(seen)
    paused = world.resume(flow, world.run(flow), approve(content=content))
    assert world.resume(flow, paused, approve()).status == "completed"
    assert [note.text for note in seen] == ["a", "a"]


def test_a_run_that_was_begun_starts_by_resume_without_a_decision() -> None:
    world = World()
    checkpoint = world.runner.begin(ONE, State(), run_id="mine")
    paused = world.runner.resume_sync(ONE, checkpoint)
    assert (paused.status, paused.run_id) == ("paused", "mine")
    flow = Flow("flow", state=State)
    flow.node("a", lambda state, ctx: {"text": "a"})
    flow.edge(START, "a")
    flow.edge("a", END)
    assert world.runner.resume_sync(flow, world.runner.begin(flow, State())).state.text == "a"


async def asks_for_each(item: int, state: State, ctx: Any) -> str:
    return str(await ctx.call(pay, amount=1))


def test_an_answer_that_an_item_of_a_map_used_answers_no_other_item() -> None:
    flow = Flow("flow", state=State)
    flow.node("each", Map(over=lambda state: [1, 2], into="items", fn=asks_for_each, concurrency=1))
    flow.edge(START, "each")
    world = World()
    first = world.run(flow)
    assert len(first.requests) == 2
    second = world.resume(flow, first, approve(first.requests[0]))
    assert second.status == "paused"
    assert len(ran) == 1
    with pytest.raises(ApprovalDenied):
        world.resume(flow, second, deny())
    assert len(ran) == 1


def test_an_answer_that_a_nested_flow_used_does_not_answer_its_second_run() -> None:
    inner = Flow("inner", state=State)
    inner.node("pay", Call(pay, args={"amount": 1}))
    inner.edge(START, "pay")

    async def twice(state: State, ctx: Any) -> None:
        await ctx.run_flow(inner, State())
        await ctx.run_flow(inner, State())

    world, flow = World(), flow_of(twice)
    second = world.resume(flow, world.run(flow), approve())
    assert second.status == "paused"
    with pytest.raises(ApprovalDenied):
        world.resume(flow, second, deny())
    assert len(ran) == 1
