"""Which classes a load builds: those that annotations reach, and no other."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Any, Optional, Union

import pytest
from pydantic import BaseModel, ConfigDict, create_model

from runs.engine import (
    ApprovalDecision,
    ApprovalRequest,
    Flow,
    FlowError,
    Gate,
    tool,
)

from .support import Desk, Runner, Tools, no, one_node, reload, runner_on, yes


class Colour(Enum):
    RED = "red"


class Item(BaseModel):
    name: str = "tea"


class Nested(BaseModel):
    item: Item = Item()
    colour: Colour = Colour.RED


class Animal(BaseModel):
    name: str = "Rex"


class Dog(Animal):
    breed: str = "collie"
    likes: Item = Item()


class Stranger(BaseModel):
    secret: str = "s"


class StrangeColour(Enum):
    BLUE = "blue"


async def work(state, ctx):
    return None


def holding(annotation: Any, value: Any) -> tuple[Flow, BaseModel]:
    """A flow whose state has one field of this annotation, and a state that holds the value."""
    state = create_model(
        "Holding", __config__=ConfigDict(arbitrary_types_allowed=True), value=(annotation, None)
    )
    return one_node(work, state=state, gate=Gate()), state.model_construct(value=value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Item, Item()),
        (Optional[Item], Item()),  # noqa: UP045  the older spelling is still written
        (Union[int, Item], Item()),  # noqa: UP007
        (int | Item | None, Item()),
        (list[Item], [Item()]),
        (dict[str, Item], {"a": Item()}),
        (dict[Colour, int], {Colour.RED: 1}),
        (tuple[int, Item], (1, Item())),
        (tuple[Item, ...], (Item(), Item())),
        (list[dict[str, tuple[Item | None, ...]]], [{"a": (None, Item())}]),
        (Nested, Nested()),
        (Colour, Colour.RED),
        (Animal, Dog()),
        (list[Animal], [Animal(), Dog()]),
    ],
    ids=str,
)
def test_classes_that_the_annotations_of_the_state_reach_are_built(
    runner: Runner, annotation: Any, value: Any
) -> None:
    flow, state = holding(annotation, value)
    paused = runner.run_sync(flow, state)
    loaded = reload(runner, flow, paused.checkpoint).state
    assert type(loaded.value) is type(value)
    assert loaded.value == value


def test_a_subclass_that_is_loaded_later_is_found(runner: Runner) -> None:
    class Cat(Animal):
        lives: int = 9

    flow, state = holding(Animal, Cat())
    loaded = reload(runner, flow, runner.run_sync(flow, state).checkpoint)
    assert type(loaded.state.value) is Cat


STRANGE = [
    (Any, Stranger()),
    (BaseModel, Stranger()),
    (Enum, StrangeColour.BLUE),
    (BaseModel | Enum, StrangeColour.BLUE),
    (list[BaseModel], [Stranger()]),
    (Item, Stranger()),
    (Dog, Animal()),
    (list, [Stranger()]),
    (str, Stranger()),
]


@pytest.mark.parametrize(("annotation", "value"), STRANGE, ids=str)
def test_a_dump_refuses_any_other_class_up_front(
    runner: Runner, annotation: Any, value: Any
) -> None:
    flow, state = holding(annotation, value)
    paused = runner.run_sync(flow, state)
    one = value[0] if isinstance(value, list) else value
    with pytest.raises(FlowError, match=f"{__name__}:{type(one).__qualname__}"):
        runner.dump_checkpoint(paused.checkpoint)
    assert runner.resume_sync(flow, paused.checkpoint, yes()).status == "completed"


@pytest.mark.parametrize(("annotation", "value"), STRANGE, ids=str)
def test_a_load_without_a_decoder_refuses_any_other_class_before_anything_is_built(
    approvals: Desk, annotation: Any, value: Any
) -> None:
    flow, state = holding(annotation, value)
    trusting = runner_on(approvals.port, seal_decoder=lambda name, value: value)
    text = trusting.dump_checkpoint(trusting.run_sync(flow, state).checkpoint)
    one = value[0] if isinstance(value, list) else value
    with pytest.raises(FlowError, match=f"{__name__}:{type(one).__qualname__}"):
        runner_on(approvals.port).load_checkpoint(flow, text)


def test_any_other_class_goes_to_the_decoder_with_its_fields_or_its_enum_value(
    approvals: Desk,
) -> None:
    asked: list[tuple[str, Any]] = []

    def decoder(name: str, value: Any) -> Any:
        asked.append((name, value))
        if name == f"{__name__}:Stranger":
            return Stranger(**value)
        if name == f"{__name__}:StrangeColour":
            return StrangeColour(value)
        raise LookupError(name)

    runner = runner_on(approvals.port, seal_decoder=decoder)
    flow, state = holding(Any, [Stranger(secret="x"), StrangeColour.BLUE])
    loaded = reload(runner, flow, runner.run_sync(flow, state).checkpoint)
    assert loaded.state.value == [Stranger(secret="x"), StrangeColour.BLUE]
    assert (f"{__name__}:Stranger", {"secret": "x"}) in asked
    assert (f"{__name__}:StrangeColour", "blue") in asked


def test_the_decoder_is_not_asked_for_a_class_that_the_annotations_reach(
    approvals: Desk,
) -> None:
    asked: list[str] = []
    runner = runner_on(approvals.port, seal_decoder=lambda name, value: asked.append(name))
    flow, state = holding(Nested, Nested())
    assert reload(runner, flow, runner.run_sync(flow, state).checkpoint).state == state
    assert asked == []


def test_a_name_that_the_decoder_refuses_is_refused(approvals: Desk) -> None:
    trusting = runner_on(approvals.port, seal_decoder=lambda name, value: value)
    flow, state = holding(Any, Stranger())
    text = trusting.dump_checkpoint(trusting.run_sync(flow, state).checkpoint)

    def decoder(name: str, value: Any) -> Any:
        raise LookupError(f"{name} is not known here")

    with pytest.raises((LookupError, FlowError), match="Stranger"):
        runner_on(approvals.port, seal_decoder=decoder).load_checkpoint(flow, text)


def test_nothing_is_imported_because_a_text_names_it(
    approvals: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named_in_a_text.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = type("Ghost", (), {"__module__": "named_in_a_text"})
    trusting = runner_on(
        approvals.port, seal_encoder=lambda value: {}, seal_decoder=lambda name, value: value
    )
    flow, state = holding(Any, made())
    text = trusting.dump_checkpoint(trusting.run_sync(flow, state).checkpoint)
    with pytest.raises(FlowError, match="named_in_a_text:Ghost"):
        runner_on(approvals.port).load_checkpoint(flow, text)
    assert "named_in_a_text" not in sys.modules


def test_requests_and_decisions_are_built(runner: Runner, tools: Tools) -> None:
    async def both(state, ctx):
        with pytest.raises(FlowError):
            await ctx.call(tools.pay, amount=5)
        await ctx.call(tools.refund, amount=6)

    flow = one_node(both)
    first = runner.run_sync(flow, flow.state())
    second = runner.resume_sync(flow, first.checkpoint, no())
    loaded = reload(runner, flow, second.checkpoint)
    (visit,) = loaded.visits
    ((request, decision),) = visit.answers
    assert (type(request), type(decision)) == (ApprovalRequest, ApprovalDecision)
    assert (request, decision.approved) == (first.pending, False)
    assert [type(pending) for pending in loaded.requests] == [ApprovalRequest]
    assert loaded.requests == [second.pending]


@pytest.mark.parametrize("reached", [True, False])
def test_a_replayed_result_holds_classes_that_its_tools_return_annotation_reaches(
    runner: Runner, tools: Tools, reached: bool
) -> None:
    def fetch(at: str) -> list[Stranger] | None:
        return [Stranger(secret=at)]

    if not reached:
        fetch.__annotations__["return"] = Any
    fetching = tool(fetch)
    seen: list[Any] = []

    async def fetch_and_pay(state, ctx):
        seen.append(await ctx.call(fetching, at="shelf"))
        await ctx.call(tools.pay, amount=5)

    flow = one_node(fetch_and_pay)
    if reached:
        paused = runner.run_sync(flow, flow.state())
        runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
        assert seen == [[Stranger(secret="shelf")]] * 2
        assert type(seen[1][0]) is Stranger
    else:
        with pytest.raises(FlowError, match="Stranger"):
            reload(runner, flow, runner.run_sync(flow, flow.state()).checkpoint)
