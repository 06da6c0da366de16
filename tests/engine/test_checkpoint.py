"""Checkpoints: a changed one is refused, and a stored one is the one that was sealed."""

import copy
import dataclasses
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from runs.engine import (
    START,
    CallCountGuard,
    Checkpoint,
    Executor,
    Flow,
    FlowResult,
    FlowRunner,
    Gate,
    Human,
    canonical,
    tool,
)

from .support import KEY, State, World, approve, deny, fails, flow_of

ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


class Form(BaseModel):
    note: str = ""


class Order(BaseModel):
    amount: int


@tool
def look(number: int) -> int:
    ran.append(("look", number))
    return number


@tool(confirm=True, editable=True)
def pay(amount: int, order: Order | None = None) -> int:
    ran.append(("pay", amount))
    return amount


async def node(state: State, ctx: Any) -> dict[str, Any]:
    await ctx.call(look, number=1)
    paid = await ctx.call(pay, amount=1, order=Order(amount=1))
    return {"number": paid + await ctx.call(pay, amount=2)}


def idle(state: State, ctx: Any) -> None:
    return None


def everything() -> Flow:
    """A flow whose checkpoint, after one answer, has something in each of its parts."""
    flow = flow_of(node, gate=Gate(form=Form))
    flow.node("free", idle)
    flow.node("ask", Human("Go on, {number}?"))
    flow.node("joined", idle)
    flow.edge(START, "free")
    flow.edge(START, "ask")
    flow.edge("ask", "joined", port="approved")
    flow.edge("ask", "__end__", port="rejected")
    flow.edge(["node", "free"], "joined")
    return flow


def paused() -> tuple[World, Flow, FlowResult]:
    world, flow = World(guards=[CallCountGuard(100)]), everything()
    result = world.run(flow, State(items=[Decimal("1.0"), {"a": (1, datetime.now(UTC))}]))
    gate = next(r for r in result.requests if r.kind == "gate")
    result = world.resume(flow, result, approve(gate, content={"note": "a"}))
    ran.clear()
    return world, flow, result


def checkpoint_of(result: FlowResult) -> Checkpoint:
    assert result.checkpoint is not None
    return result.checkpoint


ODD = [
    None,
    5,
    0,
    "x",
    "",
    object(),
    float("nan"),
    [],
    ["ab"],
    ["abc"],
    {"a": object()},
    b"x",
    (1,),
]
FIELDS = [field.name for field in dataclasses.fields(Checkpoint)]


@pytest.mark.parametrize("name", FIELDS)
def test_a_checkpoint_with_any_field_replaced_is_refused(name: str) -> None:
    world, flow, result = paused()
    checkpoint = checkpoint_of(result)
    request = checkpoint.requests[0]
    odd: Any
    for odd in ODD:
        if odd == getattr(checkpoint, name):
            continue
        changed = dataclasses.replace(checkpoint, **{name: odd})
        with fails("checkpoint-tampered"):
            world.runner.resume_sync(flow, changed, approve(request))
        with fails("checkpoint-tampered"):
            world.runner.dump_checkpoint(changed)
    assert ran == []
    assert len(world.store.pending()) == 2


PLAUSIBLE: list[dict[str, Any]] = [{"steps": 1}, {"counts": {"node": 5}}, {"joins": {}}]


@pytest.mark.parametrize("change", PLAUSIBLE, ids=str)
def test_a_plausible_change_of_a_counter_is_refused_too(change: dict[str, Any]) -> None:
    world, flow, result = paused()
    checkpoint = checkpoint_of(result)
    changed = dataclasses.replace(checkpoint, **change)
    assert changed != checkpoint
    with fails("checkpoint-tampered"):
        world.runner.resume_sync(flow, changed, approve(checkpoint.requests[0]))


def changed_part(value: Any) -> Any:
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bool):
        return not value
    if isinstance(value, datetime):
        return value.replace(year=2020)
    if isinstance(value, BaseModel):
        return State(number=99)
    if isinstance(value, tuple):
        return value[:-1] if value else (1,)
    if isinstance(value, dict):
        return {}
    return {"other": 1}


def test_a_visit_with_any_field_replaced_is_refused() -> None:
    world, flow, result = paused()
    checkpoint = checkpoint_of(result)
    (place,) = [i for i, visit in enumerate(checkpoint.visits) if visit.node == "node"]
    visit = checkpoint.visits[place]
    request = next(r for r in checkpoint.requests if r.node == "ask")
    for field in dataclasses.fields(visit):
        value = getattr(visit, field.name)
        changed = dataclasses.replace(visit, **{field.name: changed_part(value)})
        visits = (*checkpoint.visits[:place], changed, *checkpoint.visits[place + 1 :])
        with fails("checkpoint-tampered"):
            world.runner.resume_sync(
                flow, dataclasses.replace(checkpoint, visits=visits), approve(request)
            )
    assert ran == []


def with_request(checkpoint: Checkpoint, request: Any, changed: Any) -> Checkpoint:
    visits = tuple(
        dataclasses.replace(
            visit, pending=tuple(changed if r is request else r for r in visit.pending)
        )
        for visit in checkpoint.visits
    )
    return dataclasses.replace(checkpoint, visits=visits)


SEALED = [
    "id",
    "run_id",
    "flow",
    "node",
    "visit",
    "kind",
    "tool",
    "call_id",
    "arguments",
    "passed",
    "summary",
    "risk",
    "repeats",
    "reference",
    "requested_at",
]


@pytest.mark.parametrize("loaded", [False, True], ids=["in memory", "loaded"])
@pytest.mark.parametrize("name", SEALED)
def test_a_request_with_any_sealed_field_replaced_is_refused(name: str, loaded: bool) -> None:
    world, flow, result = paused()
    checkpoint = checkpoint_of(result)
    if loaded:
        text = world.runner.dump_checkpoint(checkpoint)
        checkpoint = world.runner.load_checkpoint(flow, text)
    request = next(r for r in checkpoint.requests if r.kind == "tool")
    changed = dataclasses.replace(request, **{name: changed_part(getattr(request, name))})
    with fails("checkpoint-tampered"):
        world.runner.resume_sync(flow, with_request(checkpoint, request, changed), approve(changed))
    assert ran == []


@pytest.mark.parametrize("loaded", [False, True], ids=["in memory", "loaded"])
def test_arguments_changed_in_place_are_refused(loaded: bool) -> None:
    world, flow, result = paused()
    checkpoint = checkpoint_of(result)
    if loaded:
        text = world.runner.dump_checkpoint(checkpoint)
        checkpoint = world.runner.load_checkpoint(flow, text)
    request = next(r for r in checkpoint.requests if r.kind == "tool")
    request.arguments["order"].amount = 999  # type: ignore[index]
    with fails("checkpoint-tampered"):
        world.runner.resume_sync(flow, checkpoint, approve(request))
    request.arguments["amount"] = 999  # type: ignore[index]
    with fails("checkpoint-tampered"):
        world.runner.resume_sync(flow, checkpoint, approve(request))
    assert ran == []


def test_a_request_that_is_made_editable_in_memory_does_not_get_its_edit_run() -> None:
    @tool(confirm=True)
    def fixed(amount: int) -> None:
        ran.append(amount)

    async def calls(state: State, ctx: Any) -> None:
        await ctx.call(fixed, amount=1)

    world, flow = World(), flow_of(calls)
    checkpoint = checkpoint_of(world.run(flow))
    (request,) = checkpoint.requests
    changed = dataclasses.replace(request, editable=True)
    tampered = with_request(checkpoint, request, changed)
    with pytest.raises(Exception, match=r"edit|sealed"):
        world.runner.resume_sync(flow, tampered, approve(arguments={"amount": 999}))
    assert ran == []


def test_a_form_that_is_taken_off_in_memory_is_still_asked_for() -> None:
    def entered(state: State, ctx: Any) -> None:
        ran.append("entered")

    world, flow = World(), flow_of(entered, gate=Gate(form=Order))
    checkpoint = checkpoint_of(world.run(flow))
    (request,) = checkpoint.requests
    tampered = with_request(checkpoint, request, dataclasses.replace(request, form=None))
    with pytest.raises(Exception, match=r"amount|sealed"):
        world.runner.resume_sync(flow, tampered, approve())
    assert ran == []


@pytest.mark.parametrize("mac", [None, 5, b"0" * 64, "", "0" * 64, "é" * 64, object()])
def test_a_code_of_a_wrong_type_or_value_is_refused(mac: Any) -> None:
    world, flow, result = paused()
    changed = dataclasses.replace(checkpoint_of(result), mac=mac)
    with fails("checkpoint-tampered"):
        world.runner.resume_sync(flow, changed, approve(changed.requests[0]))


@pytest.mark.parametrize("other", [None, "text", {}, 5, State()], ids=repr)
def test_what_is_no_checkpoint_is_refused(other: Any) -> None:
    world, flow = World(), flow_of(idle)
    with fails("checkpoint-tampered"):
        world.runner.resume_sync(flow, other, approve())
    with fails("checkpoint-tampered"):
        world.runner.dump_checkpoint(other)


def test_a_checkpoint_of_another_key_is_refused_in_memory_too() -> None:
    _, flow, result = paused()
    stranger = FlowRunner(Executor(), checkpoint_key=b"quite another key than the first")
    with fails("checkpoint-tampered"):
        stranger.resume_sync(flow, checkpoint_of(result), approve(result.requests[0]))
    assert KEY not in b"quite another key than the first"


def test_a_checkpoint_of_another_flow_is_refused_before_the_answer_is_spent() -> None:
    world, flow, result = paused()
    other = Flow("other", state=State)
    other.node("idle", idle)
    other.edge(START, "idle")
    with fails("graph-changed") as caught:
        world.runner.resume_sync(other, checkpoint_of(result), approve(result.requests[0]))
    assert "'other'" in str(caught.value)
    assert len(world.store.pending()) == 2
    assert flow.digest != other.digest


def test_a_loaded_checkpoint_is_dumped_to_the_same_text() -> None:
    world, flow, result = paused()
    text = world.runner.dump_checkpoint(checkpoint_of(result))
    loaded = world.runner.load_checkpoint(flow, text)
    assert world.runner.dump_checkpoint(loaded) == text
    assert loaded == checkpoint_of(result)
    again = FlowRunner(Executor(), checkpoint_key=KEY).load_checkpoint(flow, text)
    assert world.runner.dump_checkpoint(again) == text


def test_a_loaded_request_is_like_the_one_that_was_asked() -> None:
    world, flow, result = paused()
    text = world.runner.dump_checkpoint(checkpoint_of(result))
    loaded = world.runner.load_checkpoint(flow, text)
    for asked, again in zip(result.requests, loaded.requests, strict=True):
        assert again == asked
        assert again.form is asked.form
        assert again.editable == asked.editable
        assert again.annotations == asked.annotations
        assert again.shown() == asked.shown()
        assert repr(again) == repr(asked)


@pytest.mark.parametrize(
    "copied",
    [
        lambda result: pickle.loads(pickle.dumps(result)),  # noqa: S301  our own
        copy.deepcopy,
        copy.copy,
    ],
    ids=["pickle", "deepcopy", "copy"],
)
def test_a_paused_result_can_be_copied_and_resumed(copied: Any) -> None:
    world, flow, result = paused()
    again = copied(result)
    checkpoint = checkpoint_of(again)
    assert world.runner.dump_checkpoint(checkpoint) == world.runner.dump_checkpoint(
        checkpoint_of(result)
    )
    assert [r.id for r in again.requests] == [r.id for r in result.requests]
    (request,) = [r for r in again.requests if r.kind == "tool"]
    later = world.runner.resume_sync(flow, checkpoint, approve(request))
    assert later.status == "paused"
    assert ran == [("pay", 1)]


def test_a_run_that_is_loaded_at_every_pause_ends_like_one_that_is_not() -> None:
    world, flow, result = paused()
    while result.pending is not None:
        request = result.pending
        result = world.resume(flow, result, approve(request))
    assert result.state.number == 3
    assert ran == [("pay", 1), ("pay", 2)]


def test_a_denial_is_kept_over_later_pauses() -> None:
    async def asks_twice(state: State, ctx: Any) -> dict[str, Any]:
        try:
            await ctx.call(pay, amount=1)
        except Exception as error:
            text = str(error)
        await ctx.call(pay, amount=2)
        return {"text": text}

    world, flow = World(), flow_of(asks_twice)
    result = world.resume(flow, world.run(flow), deny(reason="no money"))
    assert "no money" in world.resume(flow, result, approve()).state.text


def test_a_state_of_five_megabytes_is_sealed_and_loaded() -> None:
    world, flow = World(), flow_of(node)
    big = State(text="é" * 1_000_000, items=[{"row": i, "text": "x" * 90} for i in range(20_000)])
    result = world.run(flow, big)
    text = world.runner.dump_checkpoint(checkpoint_of(result))
    assert len(text) > 5_000_000
    loaded = world.runner.load_checkpoint(flow, text)
    assert loaded.state == big
    with fails("checkpoint-tampered"):
        middle = len(text) // 2
        changed = chr(ord(text[middle]) ^ 1)
        world.runner.load_checkpoint(flow, text[:middle] + changed + text[middle + 1 :])


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_state_within_the_depth_that_can_be_sealed_is_resumed() -> None:
    world, flow = World(), flow_of(node)
    state = State(items=nested(canonical.MAX_DEPTH - 10))
    result = world.resume(flow, world.run(flow, state), approve())
    assert world.resume(flow, result, approve()).state.items == state.items


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_state_nested_too_deeply_fails_the_pause_and_leaves_no_request(depth: int) -> None:
    world, flow = World(), flow_of(node)
    state = State()
    state.items = nested(depth)
    with fails("state-not-sealable") as caught:
        world.run(flow, state)
    assert world.store.pending() == []
    assert len(str(caught.value)) < 5_000
    while state.items:  # taken apart from outside, because Python's own way down is as deep
        state.items = state.items.pop()


def test_a_state_that_contains_itself_fails_the_pause_and_leaves_no_request() -> None:
    world, flow = World(), flow_of(node)
    state = State()
    state.items.append(state.items)
    with fails("state-not-sealable"):
        world.run(flow, state)
    assert world.store.pending() == []


class Animal(BaseModel):
    name: str


class Dog(Animal):
    loud: bool = True


def test_a_class_that_the_state_does_not_name_is_refused_when_the_checkpoint_is_dumped() -> None:
    world, flow = World(), flow_of(node)
    result = world.run(flow, State(value=Dog(name="a")))
    with fails("state-not-sealable") as caught:
        world.runner.dump_checkpoint(checkpoint_of(result))
    assert "Dog" in str(caught.value)
    later = world.runner.resume_sync(flow, checkpoint_of(result), approve())
    assert later.status == "paused"


def test_the_key_and_the_secrets_of_the_process_are_not_in_the_text() -> None:
    world, _, result = paused()
    assert KEY.decode() not in world.runner.dump_checkpoint(checkpoint_of(result))


def test_seal_encoder_and_decoder_carry_values_of_the_users_own() -> None:
    class Money:
        def __init__(self, cents: int) -> None:
            self.cents = cents

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Money) and other.cents == self.cents

    @tool
    def price() -> Money:
        ran.append("price")
        return Money(5)

    async def prices(state: State, ctx: Any) -> dict[str, Any]:
        found = await ctx.call(price)
        await ctx.call(pay, amount=1)
        return {"items": [found, state.value]}

    def decode(name: str, value: Any) -> Any:
        assert name.endswith(":" + Money.__qualname__)
        return Money(value)

    world = World(seal_encoder=lambda value: value.cents, seal_decoder=decode)
    flow = flow_of(prices)
    done = world.resume(flow, world.run(flow, State(value=Money(7))), approve())
    assert done.state.items == [Money(5), Money(7)]
    assert ran == ["price", ("pay", 1)]
