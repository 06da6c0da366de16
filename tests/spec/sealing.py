"""Sends values through a sealed pause and compares them exactly, or sees the pause fail."""

from __future__ import annotations

from datetime import datetime, time
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, create_model

from runs.engine import Flow, FlowError, Gate

from .support import Runner, State, one_node, reload, sealed_field, yes

BERLIN = ZoneInfo("Europe/Berlin")


class Colour(Enum):
    RED = 1
    ALSO_RED = 1
    PAIR = (1, "one")


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    HELLO = "hello"


class Rights(Flag):
    READ = 1
    WRITE = 2


class Bits(IntFlag):
    ONE = 1
    TWO = 2


def back(runner: Runner, value: Any, annotation: Any = Any) -> Any:
    """The value as a node sees it after a pause, a dump, a load and a resume."""
    seen: list[Any] = []

    async def look_at(state, ctx):
        seen.append(state.value)

    holder = create_model("Holder", value=(annotation, ...))
    flow = one_node(look_at, state=holder, gate=Gate())
    paused = runner.run_sync(flow, holder.model_construct(value=value))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.status == "completed"
    return seen[0]


def form(runner: Runner, value: Any, annotation: Any = Any) -> Any:
    """The canonical form of a value, as a dumped checkpoint has it."""

    async def pass_by(state, ctx):
        return None

    holder = create_model("Holder", looked_for=(annotation, ...))
    flow = one_node(pass_by, state=holder, gate=Gate())
    paused = runner.run_sync(flow, holder.model_construct(looked_for=value))
    return sealed_field(runner, paused.checkpoint, "looked_for")


def exact(value: Any) -> Any:
    """A value with its type, and what ``==`` does not see, at every depth."""
    kind = type(value)
    if isinstance(value, float):
        return kind, repr(value)
    if isinstance(value, Decimal):
        return kind, str(value)
    if isinstance(value, datetime | time):
        zone = value.tzinfo
        return kind, value.isoformat(), value.fold, type(zone), repr(zone)
    if isinstance(value, dict):
        return kind, {(repr(exact(key)), repr(exact(item))) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return kind, tuple(exact(item) for item in value)
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(exact(item)) for item in value)
    if isinstance(value, BaseModel):
        return kind, {n: exact(v) for n, v in value}, sorted(value.model_fields_set)
    return kind, value


def refused(runner: Runner, value: Any) -> str:
    """The message of the error with which a pause that would seal the value fails."""
    with pytest.raises(FlowError) as caught:
        form(runner, value)
    assert caught.value.code == "state-not-sealable"
    assert "looked_for" in str(caught.value)
    return str(caught.value)


class Handle:
    """Something that lives in this process only."""


def fails_to_pause(runner: Runner, flow: Flow, state: State, *named: str) -> FlowError:
    """Run the flow; the pause fails with state-not-sealable, and the message names the parts."""
    with pytest.raises(FlowError) as caught:
        runner.run_sync(flow, state)
    assert caught.value.code == "state-not-sealable"
    for part in named:
        assert part in str(caught.value)
    return caught.value
