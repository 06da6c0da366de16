"""Models, what can't be sealed, and how the encoding keeps types apart."""

from __future__ import annotations

import math
from collections import OrderedDict, namedtuple
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from runs.engine import Gate

from .sealing import BERLIN, Level, Word, back, exact, form, refused
from .support import Desk, Runner, State, one_node, reload, runner_on, yes


class Inner(BaseModel):
    at: datetime
    ids: set[int] = set()


class Outer(BaseModel):
    inner: Inner
    price: Decimal = Decimal("1.00")
    others: list[Inner] = []


class Animal(BaseModel):
    name: str


class Dog(Animal):
    breed: str
    born: date | None = None


class Generous(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int = 1


class WithPrivate(BaseModel):
    public: int
    _note: str = PrivateAttr(default="fresh")


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Inner(at=datetime(2026, 1, 1, tzinfo=BERLIN), ids={1, 2}), Inner),
        (Outer(inner=Inner(at=datetime(2026, 1, 1)), others=[Inner(at=datetime.min)]), Outer),
        (Dog(name="Rex", breed="collie"), Animal),
        (Generous(known=2, more=(1, 2)), Generous),
        (Generous(), Generous),
    ],
    ids=["nested values", "nested models", "subclass", "extra fields", "unset fields"],
)
def test_models_come_back_with_class_and_fields_at_every_depth(
    runner: Runner, value: Any, annotation: Any
) -> None:
    got = back(runner, value, annotation)
    assert exact(got) == exact(value)
    assert got.model_extra == value.model_extra
    named = f"{type(value).__module__}:{type(value).__qualname__}"
    assert named in str(form(runner, value, annotation))


def test_private_attributes_of_models_are_not_sealed(runner: Runner) -> None:
    value = WithPrivate(public=7)
    value._note = "written by a node"
    assert "written by a node" not in str(form(runner, value, WithPrivate))
    got = back(runner, value, WithPrivate)
    assert (got.public, got._note) == (7, "fresh")


class Text(str):
    pass


class Items(list):
    pass


Point = namedtuple("Point", "x y")


class Plain:
    pass


NOT_SEALABLE = [
    object(),
    Plain(),
    Plain,
    len,
    lambda: None,
    1j,
    range(3),
    memoryview(b"x"),
    iter([]),
    OrderedDict(a=1),
    Text("a"),
    Items([1]),
    Point(1, 2),
    ValueError("x"),
    Ellipsis,
]


@pytest.mark.parametrize("value", NOT_SEALABLE, ids=lambda value: type(value).__name__)
def test_anything_else_is_refused_by_its_path(runner: Runner, value: Any) -> None:
    assert "looked_for" in refused(runner, value)
    assert "deep" in refused(runner, [{"deep": (1, value)}])


def test_a_seal_encoder_returns_a_stand_in_for_anything_else(approvals: Desk) -> None:
    asked: list[Any] = []

    def encoder(value: Any) -> Any:
        asked.append(value)
        if isinstance(value, complex):
            return {"real": value.real, "imag": value.imag}
        raise TypeError("no stand-in")

    def decoder(name: str, value: Any) -> Any:
        assert name == "builtins:complex"
        return complex(value["real"], value["imag"])

    runner = runner_on(approvals.port, seal_encoder=encoder, seal_decoder=decoder)
    assert exact(back(runner, [1, 2j, (3j,)])) == exact([1, 2j, (3j,)])
    assert all(isinstance(value, complex) for value in asked), "only what has no form of its own"
    refused(runner, object())


def test_a_stand_in_that_is_not_sealable_is_refused(approvals: Desk) -> None:
    refused(runner_on(approvals.port, seal_encoder=lambda value: object()), object())


LOOKALIKES = [
    0,
    0.0,
    -0.0,
    False,
    "0",
    Decimal(0),
    Decimal("0.0"),
    Level.LOW,
    1,
    1.0,
    True,
    "1",
    b"1",
    bytearray(b"1"),
    [1],
    (1,),
    {1},
    frozenset({1}),
    {1: 1},
    {"1": 1},
    None,
    "None",
    math.nan,
    "nan",
    Decimal("NaN"),
    Word.HELLO,
    "hello",
    date(2026, 1, 1),
    datetime(2026, 1, 1),
    "2026-01-01",
    UUID(int=0),
    str(UUID(int=0)),
    timedelta(seconds=1),
]


def test_the_encoding_never_confuses_types(runner: Runner) -> None:
    forms = [(value, repr(form(runner, value, Level | Word))) for value in LOOKALIKES]
    for (one, one_form), (two, two_form) in combinations(forms, 2):
        assert one_form != two_form, f"{one!r} and {two!r} have one form"


def test_data_that_is_shaped_like_a_form_comes_back_as_data(runner: Runner) -> None:
    for value in (*LOOKALIKES, 10**700, {"$x": 1}, time(1, fold=1)):
        shaped = form(runner, value, Level | Word)
        assert exact(back(runner, shaped)) == exact(shaped)
        assert exact(back(runner, {"in": [shaped]})) == exact({"in": [shaped]})


class Unset(BaseModel):
    given: int = 1
    made: int = Field(default_factory=lambda: 7)


def test_what_was_never_set_stays_unset(runner: Runner) -> None:
    assert back(runner, Unset(made=2), Unset).model_fields_set == {"made"}


def test_a_whole_state_comes_back_equal(runner: Runner) -> None:
    async def work(state, ctx):
        return {"results": [state.value]}

    flow = one_node(work, gate=Gate())
    value = {"deep": [({"x": {1, 2}}, b"\xff", Decimal("1.50"))]}
    paused = runner.run_sync(flow, State(value=value))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert exact(done.state.results) == exact([value])
