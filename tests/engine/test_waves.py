"""Nodes of one wave run side by side; what they change is merged, what they see is their own."""

import asyncio
import threading
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from runs.engine import END, START, Flow, FlowRunner, tool

from .support import State, World, approve, fails, flow_of, side_by_side


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


@tool(confirm=True)
def send(text: str) -> str:
    return text


async def paying(state: State, ctx: Any) -> dict[str, Any]:
    return {"number": await ctx.call(pay, amount=1)}


async def sending(state: State, ctx: Any) -> dict[str, Any]:
    return {"text": await ctx.call(send, text="x")}


def test_async_nodes_of_a_wave_run_at_the_same_time() -> None:
    met = asyncio.Barrier(3)

    async def one(state: State, ctx: Any) -> None:
        await met.wait()

    async def two(state: State, ctx: Any) -> None:
        await met.wait()

    async def three(state: State, ctx: Any) -> None:
        await met.wait()

    assert World().run(side_by_side(one, two, three)).status == "completed"


def test_plain_nodes_of_a_wave_run_at_the_same_time() -> None:
    met = threading.Barrier(2, timeout=30)

    def one(state: State, ctx: Any) -> None:
        met.wait()

    def two(state: State, ctx: Any) -> None:
        met.wait()

    assert World().run(side_by_side(one, two)).status == "completed"


def test_changes_are_merged_whoever_ends_first() -> None:
    ended: list[str] = []
    done = asyncio.Event()

    async def slow(state: State, ctx: Any) -> dict[str, Any]:
        await done.wait()
        ended.append("slow")
        return {"number": 1, "value": Decimal("1.0")}

    async def fast(state: State, ctx: Any) -> dict[str, Any]:
        ended.append("fast")
        done.set()
        return {"text": "fast", "value": Decimal("1.00")}

    state = World().run(side_by_side(slow, fast)).state
    assert ended == ["fast", "slow"]
    assert (state.number, state.text) == (1, "fast")
    assert str(state.value) == "1.00"  # of equal values the one declared last stands


def test_the_same_value_from_two_nodes_is_no_conflict() -> None:
    def one(state: State, ctx: Any) -> dict[str, Any]:
        return {"items": [1, {"a": 2}]}

    def two(state: State, ctx: Any) -> dict[str, Any]:
        return {"items": [1, {"a": 2}]}

    assert World().run(side_by_side(one, two)).state.items == [1, {"a": 2}]


class Uncomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, 2), (1, True), (1, 1.0), (None, 0), (float("nan"), float("nan"))],
    ids=str,
)
def test_different_values_for_one_field_are_an_error_that_names_both_nodes(
    first: Any, second: Any
) -> None:
    def one(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": first}

    def two(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": second}

    with fails("state-conflict") as caught:
        World().run(side_by_side(one, two))
    for named in ("'one'", "'two'", "'value'"):
        assert named in str(caught.value)
    assert caught.value.node == "two"


def test_values_that_cannot_be_compared_are_a_conflict_and_no_crash() -> None:
    def one(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": Uncomparable()}

    def two(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": Uncomparable()}

    with fails("state-conflict"):
        World().run(side_by_side(one, two))


def test_a_change_of_an_unknown_field_names_node_and_field() -> None:
    with fails("node-failed") as caught:
        World().run(flow_of(lambda state, ctx: {"nubmer": 1}))
    assert "'nubmer'" in str(caught.value)
    assert caught.value.node == "node"


class Strict(BaseModel):
    model_config = ConfigDict(validate_assignment=True)

    number: int = 0
    password: str = ""

    @field_validator("number")
    @classmethod
    def small(cls, number: int) -> int:
        if number > 10:
            raise ValueError("must be at most ten")
        return number


def test_a_state_that_its_model_refuses_names_the_node_and_quotes_no_value() -> None:
    flow = Flow("flow", state=Strict)
    flow.node("fine", lambda state, ctx: {"password": "hunter2"})
    flow.node("wrong", lambda state, ctx: {"number": 4711})
    flow.edge(START, "fine")
    flow.edge(START, "wrong")
    with fails("node-failed") as caught:
        World().run(flow, Strict())
    assert caught.value.node == "wrong"
    assert "number: " in str(caught.value)
    assert "4711" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    number: int = 0


def test_extra_fields_of_an_open_state_model_are_kept() -> None:
    flow = flow_of(lambda state, ctx: {"number": 1}, state=Open)
    done = World().run(flow, Open.model_validate({"number": 0, "more": 5}))
    assert done.state.model_dump() == {"number": 1, "more": 5}


@pytest.mark.parametrize("returned", [5, "text", [1], ["ab"], True, object()])
def test_a_node_returns_changes_and_nothing_else(returned: Any) -> None:
    with fails("node-failed") as caught:
        World().run(flow_of(lambda state, ctx: returned))
    assert type(returned).__name__ in str(caught.value)


def test_a_state_of_another_model_starts_nothing() -> None:
    world = World()
    with fails("invalid-arguments"):
        world.run(flow_of(paying), Open())
    assert world.events == []


def test_what_a_node_changes_in_place_is_seen_by_nobody_else() -> None:
    changed = asyncio.Event()

    async def spoils(state: State, ctx: Any) -> None:
        state.items.append("spoiled")
        state.number = 7
        changed.set()

    async def looks(state: State, ctx: Any) -> dict[str, Any]:
        await changed.wait()
        return {"text": f"{state.number} {state.items}"}

    given = State(items=["a"])
    done = World().run(side_by_side(spoils, looks), given)
    assert done.state.text == "0 ['a']"
    assert done.state.items == ["a"]
    assert done.state.number == 0
    assert given == State(items=["a"])


def test_a_node_that_changes_its_state_in_place_sees_it_unchanged_on_its_re_run() -> None:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        state.number += 1
        return {"number": await ctx.call(pay, amount=state.number)}

    world, flow = World(), flow_of(node)
    assert world.resume(flow, world.run(flow), approve()).state.number == 1


def test_an_attempt_that_was_refused_leaves_the_checkpoint_as_it_was() -> None:
    async def node(state: State, ctx: Any) -> None:
        state.items.append(1)
        await ctx.call(pay, amount=len(state.items))

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert paused.pending is not None
    assert paused.checkpoint is not None
    with fails("unknown-request"):
        world.runner.resume_sync(flow, paused.checkpoint)
    assert world.runner.resume_sync(flow, paused.checkpoint, approve()).status == "completed"


def test_a_result_is_not_changed_by_the_node_that_gave_it() -> None:
    kept: list[Any] = []

    def gives(state: State, ctx: Any) -> dict[str, Any]:
        kept.append({"a": []})
        return {"value": kept[0]}

    def spoils(state: State, ctx: Any) -> dict[str, Any]:
        kept[0]["a"].append("spoiled")
        state.value["a"].append("too")
        return {"number": 1}

    flow = Flow("flow", state=State)
    flow.node("gives", gives)
    flow.node("spoils", spoils)
    flow.edge(START, "gives")
    flow.edge("gives", "spoils")
    assert "too" not in World().run(flow).state.value["a"]


def test_when_one_node_fails_the_others_still_come_to_their_end() -> None:
    ended: list[str] = []
    failed = asyncio.Event()

    async def fails_first(state: State, ctx: Any) -> None:
        failed.set()
        raise LookupError("gone")

    async def slow(state: State, ctx: Any) -> None:
        await failed.wait()
        await asyncio.sleep(0)
        ended.append("slow")

    with fails("node-failed") as caught:
        World().run(side_by_side(fails_first, slow))
    assert ended == ["slow"]
    assert caught.value.node == "fails_first"
    assert isinstance(caught.value.__cause__, LookupError)


def test_of_two_failures_the_first_declared_is_raised() -> None:
    second = asyncio.Event()

    async def one(state: State, ctx: Any) -> None:
        await second.wait()
        raise LookupError("one")

    async def two(state: State, ctx: Any) -> None:
        second.set()
        raise LookupError("two")

    with fails("node-failed") as caught:
        World().run(side_by_side(one, two))
    assert caught.value.node == "one"


async def failing(state: State, ctx: Any) -> None:
    raise LookupError("gone")


async def cancelling(state: State, ctx: Any) -> None:
    raise asyncio.CancelledError("my own")


async def exiting(state: State, ctx: Any) -> None:
    raise GeneratorExit


async def grouped(state: State, ctx: Any) -> None:
    raise BaseExceptionGroup("several", [GeneratorExit()])


@pytest.mark.parametrize("bad", [failing, cancelling, exiting, grouped])
def test_no_request_stays_open_when_a_node_fails_whatever_it_raises(bad: Any) -> None:
    world = World()
    with fails("node-failed") as caught:
        world.run(side_by_side(paying, bad, sending))
    assert world.store.pending() == []
    assert caught.value.node == bad.__name__


def test_requests_of_earlier_waves_are_withdrawn_when_a_later_one_fails() -> None:
    world = World()
    flow = side_by_side(paying, lambda_free)
    flow.node("failing", failing)
    flow.edge("lambda_free", "failing")
    with fails("node-failed"):
        world.run(flow)
    assert world.store.pending() == []
    assert "approval.decided" in world.kinds()


def lambda_free(state: State, ctx: Any) -> None:
    return None


def test_requests_are_withdrawn_when_the_merge_or_the_route_fails() -> None:
    def conflicting(state: State, ctx: Any) -> dict[str, Any]:
        return {"unknown": 1}

    for flow in (side_by_side(paying, conflicting), side_by_side(paying, lambda_free)):
        if "lambda_free" in flow.nodes:
            flow.route("lambda_free", lambda state: "nowhere", {"on": END})
        world = World()
        with fails("node-failed"):
            world.run(flow)
        assert world.store.pending() == []


def test_requests_are_withdrawn_when_a_resume_fails() -> None:
    async def then_fails(state: State, ctx: Any) -> None:
        await ctx.call(send, text="x")
        raise LookupError("gone")

    world, flow = World(), side_by_side(paying, then_fails)
    paused = world.run(flow)
    (request,) = [r for r in paused.requests if r.tool == "send"]
    with fails("node-failed"):
        world.resume(flow, paused, approve(request))
    assert world.store.pending() == []


def test_a_suspended_node_is_untouched_while_others_go_on() -> None:
    entered: list[str] = []

    async def waits(state: State, ctx: Any) -> dict[str, Any]:
        entered.append("waits")
        return {"number": await ctx.call(pay, amount=1)}

    async def goes(state: State, ctx: Any) -> dict[str, Any]:
        entered.append("goes")
        return {"text": await ctx.call(send, text="x")}

    def after(state: State, ctx: Any) -> dict[str, Any]:
        entered.append("after")
        return {"value": state.text}

    world, flow = World(), side_by_side(waits, goes)
    flow.node("after", after)
    flow.edge("goes", "after")
    paused = world.run(flow)
    first, second = paused.requests
    paused = world.resume(flow, paused, approve(second))
    assert entered == ["waits", "goes", "goes", "after"]
    assert paused.status == "paused"
    assert [request.id for request in paused.requests] == [first.id]
    assert paused.state.value == "x"
    done = world.resume(flow, paused, approve(first))
    assert (done.state.number, done.state.text, done.state.value) == (1, "x", "x")
    assert entered[-1] == "waits"


def test_a_suspended_node_sees_the_state_it_was_begun_with() -> None:
    seen: list[str] = []

    async def waits(state: State, ctx: Any) -> None:
        seen.append(state.text)
        await ctx.call(pay, amount=1)

    def changes(state: State, ctx: Any) -> dict[str, Any]:
        return {"text": "later"}

    world, flow = World(), side_by_side(waits, changes)
    done = world.resume(flow, world.run(flow), approve())
    assert seen == ["", ""]
    assert done.state.text == "later"


def test_a_flow_that_never_pauses_may_hold_anything() -> None:
    lock = threading.Lock()

    def hands_on(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": state.value, "number": 1}

    done = World().run(flow_of(hands_on), State(value=lock))
    assert done.state.value is lock


def test_run_ids_are_the_callers_where_one_is_given() -> None:
    world = World()
    runner: FlowRunner = world.runner
    assert runner.run_sync(flow_of(lambda_free), State(), run_id="mine").run_id == "mine"
    first = runner.run_sync(flow_of(lambda_free), State()).run_id
    assert first != runner.run_sync(flow_of(lambda_free), State()).run_id
