"""Calls of a node: each runs once, and a pause is never swallowed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from runs.engine import (
    AdapterError,
    ApprovalDenied,
    ApprovalPending,
    BudgetGuard,
    CallCountGuard,
    DeferredApproval,
    Executor,
    FlowError,
    FlowRunner,
    Interrupted,
    MemoryStore,
    SummingLedger,
    tool,
)

from .support import KEY, State, World, approve, deny, fails, flow_of

ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool
async def look(number: int = 0) -> int:
    ran.append(("look", number))
    return number


@tool
async def slow(number: int = 0) -> int:
    await asyncio.sleep(0.05)
    ran.append(("slow", number))
    return number


@tool(confirm=True)
async def pay(amount: int) -> int:
    ran.append(("pay", amount))
    return amount


@tool(confirm=True)
async def send() -> str:
    ran.append("send")
    return "sent"


async def swallows_exception(state: State, ctx: Any) -> dict[str, Any]:
    try:
        return {"number": await ctx.call(pay, amount=1)}
    except Exception:
        return {"number": -1}


async def swallows_everything(state: State, ctx: Any) -> dict[str, Any]:
    try:
        return {"number": await ctx.call(pay, amount=1)}
    except:  # noqa: E722
        return {"number": -1}


async def returns_in_finally(state: State, ctx: Any) -> dict[str, Any]:
    number: int = -1
    try:
        number = await ctx.call(pay, amount=1)
    finally:
        return {"number": number}  # noqa: B012


async def gathers(state: State, ctx: Any) -> dict[str, Any]:
    found = await asyncio.gather(ctx.call(pay, amount=1), return_exceptions=True)
    number: Any = found[0]
    return {"number": number if isinstance(number, int) else -1}


async def groups(state: State, ctx: Any) -> dict[str, Any]:
    async with asyncio.TaskGroup() as group:
        paying = group.create_task(ctx.call(pay, amount=1))
        looking = group.create_task(ctx.call(look, number=1))
    return {"number": paying.result() * looking.result()}


async def groups_inside_a_group(state: State, ctx: Any) -> dict[str, Any]:
    async with asyncio.TaskGroup() as outer:

        async def inner() -> int:
            async with asyncio.TaskGroup() as group:
                paying = group.create_task(ctx.call(pay, amount=1))
            return int(paying.result())

        paid = outer.create_task(inner())
    return {"number": paid.result()}


async def waits_with_a_time_out(state: State, ctx: Any) -> dict[str, Any]:
    try:
        return {"number": await asyncio.wait_for(ctx.call(pay, amount=1), 30)}
    except Exception:
        return {"number": -1}


async def waits_under_a_time_out(state: State, ctx: Any) -> dict[str, Any]:
    try:
        async with asyncio.timeout(30):
            return {"number": await ctx.call(pay, amount=1)}
    except Exception:
        return {"number": -1}


async def uses_wait(state: State, ctx: Any) -> dict[str, Any]:
    done, _ = await asyncio.wait({asyncio.create_task(ctx.call(pay, amount=1))})
    (task,) = done
    return {"number": -1 if task.exception() else task.result()}


async def never_looks(state: State, ctx: Any) -> dict[str, Any]:
    task = asyncio.create_task(ctx.call(pay, amount=1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return {"number": task.result() if task.done() and not task.exception() else 1}


async def in_a_context_manager(state: State, ctx: Any) -> dict[str, Any]:
    @asynccontextmanager
    async def swallowing() -> AsyncIterator[None]:
        with suppress(BaseException):
            yield

    number = -1
    async with swallowing():
        number = await ctx.call(pay, amount=1)
    return {"number": number}


def plain(state: State, ctx: Any) -> dict[str, Any]:
    try:
        return {"number": ctx.call_sync(pay, amount=1)}
    except Exception:
        return {"number": -1}


def plain_swallows_everything(state: State, ctx: Any) -> dict[str, Any]:
    try:
        return {"number": ctx.call_sync(pay, amount=1)}
    except BaseException:
        return {"number": -1}


@pytest.mark.parametrize(
    "node",
    [
        swallows_exception,
        swallows_everything,
        returns_in_finally,
        gathers,
        groups,
        groups_inside_a_group,
        waits_with_a_time_out,
        waits_under_a_time_out,
        uses_wait,
        never_looks,
        in_a_context_manager,
        plain,
        plain_swallows_everything,
    ],
    ids=lambda node: node.__name__,
)
def test_a_pause_is_never_swallowed_and_is_no_failure(node: Any) -> None:
    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert paused.status == "paused"
    assert "node.suspended" in world.kinds()
    assert not {"node.failed", "call.failed", "node.finished"} & set(world.kinds())
    done = world.resume(flow, paused, approve())
    assert (done.status, done.state.number) == ("completed", 1)
    assert ran.count(("pay", 1)) == 1


def test_a_pause_beside_a_failure_in_a_group_is_a_failure_without_open_requests() -> None:
    async def node(state: State, ctx: Any) -> None:
        async def broken() -> None:
            await asyncio.sleep(0)
            raise LookupError("gone")

        async with asyncio.TaskGroup() as group:
            group.create_task(broken())
            group.create_task(ctx.call(pay, amount=1))

    world = World()
    try:
        paused = world.run(flow_of(node))
    except FlowError:
        assert world.store.pending() == []
    else:
        assert paused.pending is not None
        assert [r.id for r in world.store.pending()] == [paused.pending.id]


def test_a_node_that_turns_its_pause_into_an_error_fails_without_open_requests() -> None:
    async def node(state: State, ctx: Any) -> None:
        try:
            await ctx.call(pay, amount=1)
        finally:
            raise LookupError("clean-up failed")

    world = World()
    with fails("node-failed"):
        world.run(flow_of(node))
    assert world.store.pending() == []


def test_a_pause_is_no_exception() -> None:
    assert not issubclass(ApprovalPending, Exception)
    assert not issubclass(Interrupted, Exception)


def test_finished_calls_are_replayed_and_not_run_again() -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        found = [await ctx.call(look, number=number) for number in (1, 2, 1)]
        await ctx.call(pay, amount=1)
        return {"items": found}

    world, flow = World(), flow_of(node)
    done = world.resume(flow, world.run(flow), approve())
    assert done.state.items == [1, 2, 1]
    assert ran == [("look", 1), ("look", 2), ("look", 1), ("pay", 1)]
    assert world.kinds().count("call.started") == 4


def test_the_same_call_three_times_gives_its_three_results_in_order() -> None:
    numbers = iter(range(1, 100))

    @tool
    def following() -> int:
        return next(numbers)

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        found = [await ctx.call(following) for _ in range(3)]
        await ctx.call(pay, amount=1)
        return {"items": [*found, await ctx.call(following)]}

    world, flow = World(), flow_of(node)
    assert world.resume(flow, world.run(flow), approve()).state.items == [1, 2, 3, 4]


def test_calls_at_once_are_replayed_by_start_whatever_order_they_ended_in() -> None:
    ended: list[int] = []
    turns = iter((3, 2, 1))

    @tool
    async def late() -> int:
        mine = next(turns)
        while len(ended) < 3 - mine:
            await asyncio.sleep(0)
        ended.append(mine)
        return mine

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        found = await asyncio.gather(*(ctx.call(late) for _ in range(3)))
        await ctx.call(pay, amount=1)
        return {"items": list(found)}

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    first = list(ended)
    assert sorted(first) == [1, 2, 3]
    assert world.resume(flow, paused, approve()).state.items == [3, 2, 1]
    assert ended == first


def test_a_call_with_other_arguments_than_before_runs_and_the_left_over_is_told() -> None:
    numbers = iter((1, 2))

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        found = await ctx.call(look, number=next(numbers))
        await ctx.call(pay, amount=1)
        return {"number": found}

    world, flow = World(), flow_of(node)
    done = world.resume(flow, world.run(flow), approve())
    assert done.state.number == 2
    assert ran == [("look", 1), ("look", 2), ("pay", 1)]
    (left,) = [event for event in world.events if event.kind == "call.left_over"]
    assert left.tool == "look"


def test_an_answer_is_not_given_to_a_call_with_other_arguments() -> None:
    amounts = iter((1, 2))

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(pay, amount=next(amounts))

    world, flow = World(), flow_of(node)
    later = world.resume(flow, world.run(flow), approve())
    assert later.status == "paused"
    assert later.pending is not None
    assert later.pending.arguments == {"amount": 2}
    assert ran == []


async def times_out(ctx: Any) -> None:
    with suppress(TimeoutError):  # a replay is in time
        await asyncio.wait_for(ctx.call(slow, number=1), 0.001)


async def cancels(ctx: Any) -> None:
    task = asyncio.create_task(ctx.call(slow, number=1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def takes_the_first(ctx: Any) -> None:
    tasks = {
        asyncio.create_task(ctx.call(slow, number=1)),
        asyncio.create_task(ctx.call(look, number=1)),
    }
    _, late = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()


async def lets_it_run(ctx: Any) -> None:
    task = asyncio.create_task(ctx.call(slow, number=1))
    await asyncio.sleep(0)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())


@pytest.mark.parametrize(
    "leaves", [times_out, cancels, takes_the_first, lets_it_run], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("calls_again", [False, True], ids=["once", "calls it again"])
def test_a_call_whose_caller_left_has_its_effect_once_and_is_journaled(
    leaves: Callable[[Any], Any], calls_again: bool
) -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        await leaves(ctx)
        await ctx.call(pay, amount=1)
        return {"number": await ctx.call(slow, number=1) if calls_again else 1}

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert ran.count(("slow", 1)) == 1
    done = world.resume(flow, paused, approve())
    assert done.state.number == 1
    assert ran.count(("slow", 1)) == (2 if calls_again else 1)


def test_the_walk_waits_for_calls_that_nobody_awaits() -> None:
    async def node(state: State, ctx: Any) -> None:
        await lets_it_run(ctx)

    assert World().run(flow_of(node)).status == "completed"
    assert ran == [("slow", 1)]


def test_a_call_after_the_node_ended_runs_nothing_and_says_so() -> None:
    said: list[FlowError] = []
    begun: list[asyncio.Task[Any]] = []

    async def node(state: State, ctx: Any) -> None:
        async def outlives() -> None:
            await asyncio.sleep(0)
            try:
                await ctx.call(look)
            except FlowError as error:
                said.append(error)

        begun.append(asyncio.create_task(outlives()))

    async def scenario() -> None:
        runner = FlowRunner(Executor(), checkpoint_key=KEY)
        await runner.run(flow_of(node), State())
        await begun[0]

    asyncio.run(scenario())
    assert ran == []
    assert "had ended" in str(said[0])
    assert said[0].node == "node"


def test_guards_see_what_really_runs_and_no_replay() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(look, number=1)
        await ctx.call(pay, amount=2)

    world = World(guards=[lambda call: seen.append((call.tool.name, dict(call.arguments)))])
    flow = flow_of(node)
    paused = world.run(flow)
    assert seen == [("look", {"number": 1})]
    world.resume(flow, paused, approve())
    assert seen == [("look", {"number": 1}), ("pay", {"amount": 2})]


def test_a_guard_that_raises_stops_the_call_and_the_node_sees_why() -> None:
    def no(call: Any) -> None:
        raise LookupError("not today")

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(look)

    world = World(guards=[no])
    with fails("node-failed") as caught:
        world.run(flow_of(node))
    assert isinstance(caught.value.__cause__, LookupError)
    assert ran == []
    assert "call.started" not in world.kinds()


def test_counters_of_guards_go_on_over_a_resume() -> None:
    async def node(state: State, ctx: Any) -> None:
        await ctx.call(look, number=1)
        await ctx.call(pay, amount=1)
        await ctx.call(look, number=2)

    world, flow = World(guards=[CallCountGuard(2)]), flow_of(node)
    paused = world.run(flow)
    with fails("guard-refused"):
        world.resume(flow, paused, approve())
    assert ran == [("look", 1), ("pay", 1)]


def test_a_budget_is_not_passed_and_not_counted_for_replays() -> None:
    async def node(state: State, ctx: Any) -> None:
        await ctx.call(look, number=6)
        await ctx.call(pay, amount=3)
        await ctx.call(look, number=2)

    world = World(guards=[BudgetGuard(10, lambda tool, arguments: sum(arguments.values()))])  # type: ignore[arg-type]
    flow = flow_of(node)
    with fails("guard-refused") as caught:
        world.resume(flow, world.run(flow), approve())
    assert "10" in str(caught.value)
    assert ran == [("look", 6), ("pay", 3)]


def test_the_ledger_is_told_of_every_call_that_ran_and_of_no_replay() -> None:
    ledger = SummingLedger()
    runner = FlowRunner(Executor(ledger=ledger), checkpoint_key=KEY)

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(look, number=1)
        await ctx.call(pay, amount=1)

    flow = flow_of(node)
    paused = runner.run_sync(flow, State())
    assert paused.checkpoint is not None
    runner.resume_sync(flow, paused.checkpoint, approve())
    assert {name: sums.calls for name, sums in ledger.by_tool.items()} == {"look": 1, "pay": 1}


KINDS = [
    "node.started",
    "call.started",
    "call.finished",
    "call.failed",
    "approval.requested",
    "node.suspended",
    "node.resumed",
    "node.finished",
]


@tool
async def broken() -> None:
    raise LookupError("gone")


async def eventful(state: State, ctx: Any) -> dict[str, Any]:
    for call, arguments in ((look, {}), (broken, {}), (pay, {"amount": 1})):
        with suppress(BaseException):  # whatever it is, it must not let the node go on
            await ctx.call(call, **arguments)
    return {"text": "went on"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_listener_that_raises_interrupts_and_no_node_goes_on_past_it(kind: str) -> None:
    store = MemoryStore()
    told: list[str] = []

    def listener(event: Any) -> None:
        told.append(event.kind)
        if event.kind == kind:
            raise ConnectionError("database gone")

    quiet = FlowRunner(Executor(DeferredApproval(store)), checkpoint_key=KEY)
    loud = FlowRunner(Executor(DeferredApproval(store), on_event=listener), checkpoint_key=KEY)
    flow = flow_of(eventful)
    paused = quiet.run_sync(flow, State())
    assert paused.checkpoint is not None
    with pytest.raises(Interrupted, match="database gone"):  # noqa: PT012  whichever comes to it
        loud.run_sync(flow, State())
        loud.resume_sync(flow, paused.checkpoint, approve())
    assert "node.failed" not in told
    assert "node.finished" not in told or kind == "node.finished"


def test_an_async_listener_is_awaited() -> None:
    told: list[str] = []

    async def listener(event: Any) -> None:
        await asyncio.sleep(0)
        told.append(event.kind)

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(look)

    FlowRunner(Executor(on_event=listener)).run_sync(flow_of(node), State())
    assert told == ["node.started", "call.started", "call.finished", "node.finished"]


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, GeneratorExit, SystemExit, Odd], ids=lambda e: e.__name__
)
@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize("swallows", [True, False], ids=["caught", "not caught"])
def test_a_tool_that_leaves_by_a_base_exception_has_failed_and_ran_once(
    error: type[BaseException], kind: str, swallows: bool
) -> None:
    def leave() -> None:
        ran.append("effect")
        raise error("out of the tool")

    async def leave_async() -> None:
        leave()

    leaving = tool(leave_async if kind == "async" else leave)
    caught: list[BaseException] = []

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        try:
            await ctx.call(leaving)
        except BaseException as failure:
            caught.append(failure)
            if not swallows:
                raise
        await ctx.call(pay, amount=1)
        return {"text": "done"}

    world, flow = World(), flow_of(node)
    if not swallows:
        with fails("node-failed") as failed:
            world.run(flow)
        assert failed.value.node == "node"
        assert world.store.pending() == []
        assert ran == ["effect"]
        return
    paused = world.run(flow)
    done = world.resume(flow, paused, approve())
    assert done.state.text == "done"
    assert ran == ["effect", ("pay", 1)]
    assert [type(failure) for failure in caught] == [AdapterError, AdapterError]
    assert error.__name__ in str(caught[0])
    assert str(caught[0]) == str(caught[1])


def test_a_cancelled_run_ends_after_the_call_that_runs_and_raises_the_cancellation() -> None:
    async def node(state: State, ctx: Any) -> None:
        await ctx.call(slow, number=1)

    async def scenario() -> None:
        runner = FlowRunner(Executor(), checkpoint_key=KEY)
        task = asyncio.create_task(runner.run(flow_of(node), State()))
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert ran == [("slow", 1)]


def test_a_result_that_cannot_be_replayed_fails_the_pause_and_names_the_call() -> None:
    @tool
    async def hand() -> object:
        ran.append("hand")
        return object()

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(hand)
        await ctx.call(pay, amount=1)

    world = World()
    with fails("state-not-sealable") as caught:
        world.run(flow_of(node))
    assert "hand" in str(caught.value)
    assert caught.value.node == "node"
    assert ran == ["hand"]
    assert world.store.pending() == []


def test_a_result_that_cannot_be_replayed_is_fine_where_nothing_pauses() -> None:
    @tool
    async def hand() -> Iterator[int]:
        return iter(())

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": await ctx.call(hand)}

    assert World().run(flow_of(node)).status == "completed"


def test_what_a_node_does_to_a_result_does_not_change_its_replay() -> None:
    @tool
    async def listed() -> list[int]:
        return [1]

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        found = await ctx.call(listed)
        found.append(2)
        await ctx.call(pay, amount=1)
        return {"items": found}

    world, flow = World(), flow_of(node)
    assert world.resume(flow, world.run(flow), approve()).state.items == [1, 2]


def test_a_denied_call_is_caught_and_the_node_goes_on_without() -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        try:
            await ctx.call(pay, amount=1)
        except ApprovalDenied as refusal:
            return {"text": f"{refusal.decision.by}: {refusal.request.tool}"}
        return {"text": "paid"}

    world, flow = World(), flow_of(node)
    done = world.resume(flow, world.run(flow), deny())
    assert done.state.text == "reviewer: pay"
    assert ran == []


def test_two_approvals_in_one_node_take_two_resumes_and_each_call_runs_once() -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        await ctx.call(look, number=1)
        await ctx.call(pay, amount=1)
        return {"text": await ctx.call(send)}

    world, flow = World(), flow_of(node)
    paused = world.resume(flow, world.run(flow), approve())
    assert paused.status == "paused"
    assert world.resume(flow, paused, approve()).state.text == "sent"
    assert ran == [("look", 1), ("pay", 1), "send"]
