"""Each kind of single value and container that can be sealed, there and back exactly."""

from __future__ import annotations

import base64
import math
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from .sealing import BERLIN, Bits, Colour, Level, Rights, Word, back, exact, form, refused
from .support import Runner

AS_IS = [
    None,
    True,
    False,
    0,
    -1,
    10**500,
    0.0,
    -0.0,
    1.5,
    5e-324,
    1.7976931348623157e308,
    "",
    "text",
    "Ünïcode \U0001f600",
    "nul \x00 and line\u2028end",
    [],
    [1, [1.0, [True, None, "x"]]],
]


@pytest.mark.parametrize("value", AS_IS, ids=lambda value: ascii(value)[:30])
def test_plain_values_come_back_and_stand_as_they_are(runner: Runner, value: Any) -> None:
    assert exact(back(runner, value)) == exact(value)
    assert exact(form(runner, value)) == exact(value)


@pytest.mark.parametrize(
    "value", ["\ud800", "\ud800\udc00", "a\udfff", ["\ud83d", "\ude00"]], ids=ascii
)
def test_lone_surrogates_come_back(runner: Runner, value: Any) -> None:
    assert exact(back(runner, value)) == exact(value)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("bits", [2_000, 20_000, 4_194_303])
def test_an_int_past_600_digits_is_tagged_as_hex(runner: Runner, bits: int, sign: int) -> None:
    value = sign * (1 << bits)
    assert back(runner, value) == value
    sealed = form(runner, value)
    assert isinstance(sealed, dict)
    assert format(value, "x") in sealed.values()


def test_an_int_past_a_mebibyte_of_hex_is_not_sealable(runner: Runner) -> None:
    refused(runner, 16 ** (1024 * 1024))


@pytest.mark.parametrize(
    "value", [{}, {"a": 1}, {"b": {"a": [None]}}, {"": 0, "é": 1, "a$": 2}], ids=repr
)
def test_a_dict_with_plain_text_keys_stands_as_it_is(runner: Runner, value: Any) -> None:
    assert exact(back(runner, value)) == exact(value)
    assert form(runner, value) == value


@pytest.mark.parametrize(
    "value",
    [
        {1: "a"},
        {"$tuple": [1, 2]},
        {"$": 1, "a": 2},
        {None: 1, True: 2, 2.5: 3},
        {(1, "x"): {"y"}, b"b": 1},
        {Colour.RED: 1, date(2026, 1, 2): 2},
        {"1": "text", 1: "int"},
    ],
    ids=repr,
)
def test_any_other_dict_becomes_a_list_of_pairs_and_comes_back(runner: Runner, value: Any) -> None:
    holder = dict[Any, Any] if Colour.RED not in value else dict[Colour | date, Any]
    assert exact(back(runner, value, holder)) == exact(value)
    (pairs,) = form(runner, value, holder).values()
    assert [len(pair) for pair in pairs] == [2] * len(value)


def test_the_pairs_of_a_dict_are_sorted(runner: Runner) -> None:
    there = {number: str(number) for number in range(20)}
    back_again = dict(reversed(list(there.items())))
    assert form(runner, there) == form(runner, back_again)


@pytest.mark.parametrize("kind", [bytes, bytearray])
@pytest.mark.parametrize("value", [b"", b"text", b"\xff\xfe no utf-8 \x80", bytes(range(256))])
def test_bytes_are_base64_under_a_tag(runner: Runner, kind: Any, value: bytes) -> None:
    assert exact(back(runner, kind(value))) == (kind, kind(value))
    assert base64.b64encode(value).decode() in form(runner, kind(value)).values()


@pytest.mark.parametrize(
    "value",
    [
        (),
        (1, "a", (2.0,)),
        set(),
        {1, "a", (2,)},
        frozenset(),
        frozenset({frozenset({1}), b"x"}),
        [(1,), {1}, frozenset({1})],
        math.inf,
        -math.inf,
        math.nan,
        [math.nan, (math.inf,)],
    ],
)
def test_tuples_sets_and_special_floats_are_tagged(runner: Runner, value: Any) -> None:
    assert exact(back(runner, value)) == exact(value)
    if not isinstance(value, list):
        assert isinstance(form(runner, value), dict)


def test_sets_are_sorted(runner: Runner) -> None:
    numbers = [*range(0, 4096, 64), *"abc"]
    one: set[Any] = set()
    other: set[Any] = set()
    one.update(numbers)
    for number in reversed(numbers):
        other.add(number)
    assert list(one) != list(other), "two sets that are equal, and whose order is not"
    assert form(runner, one) == form(runner, other)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (date(2026, 2, 28), Any),
        (date.min, Any),
        (timedelta(days=-1, microseconds=1), Any),
        (timedelta.max, Any),
        (Decimal("1.0"), Any),
        (Decimal("1.00"), Any),
        (Decimal("-0"), Any),
        (Decimal("1E+50"), Any),
        (Decimal("NaN"), Any),
        (Decimal("sNaN12"), Any),
        (Decimal("-Infinity"), Any),
        (UUID("12345678123456781234567812345678"), Any),
        (Colour.RED, Colour),
        (Colour.PAIR, Colour),
        (Level.LOW, Level),
        (Word.HELLO, Word),
        (Rights.READ | Rights.WRITE, Rights),
        (Rights(0), Rights),
        (Bits.ONE | Bits.TWO, Bits),
    ],
    ids=repr,
)
def test_dates_decimals_uuids_and_enums_are_tagged(
    runner: Runner, value: Any, annotation: Any
) -> None:
    assert exact(back(runner, value, annotation)) == exact(value)
    assert isinstance(form(runner, value, annotation), dict)


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize(
    "zone",
    [
        None,
        UTC,
        timezone(timedelta(hours=5, minutes=45)),
        timezone(-timedelta(seconds=3601), "odd"),
        timezone(timedelta(0), "named like UTC"),
        BERLIN,
        ZoneInfo("America/Argentina/Ushuaia"),
    ],
    ids=str,
)
def test_datetime_and_time_keep_fold_and_zone(
    runner: Runner, zone: tzinfo | None, fold: int
) -> None:
    for value in (
        datetime(2026, 10, 25, 2, 30, 0, 123456, tzinfo=zone, fold=fold),
        time(2, 30, 0, 123456, tzinfo=zone, fold=fold),
    ):
        got = back(runner, value)
        assert exact(got) == exact(value)
        assert got.utcoffset() == value.utcoffset()


def test_the_offset_stands_in_seconds_and_a_zone_by_its_key(runner: Runner) -> None:
    assert "3601" in str(form(runner, time(2, tzinfo=timezone(timedelta(seconds=3601)))))
    assert "'odd'" in str(form(runner, time(2, tzinfo=timezone(timedelta(hours=1), "odd"))))
    assert "'Europe/Berlin'" in str(form(runner, datetime(2026, 1, 1, tzinfo=BERLIN)))


class OwnZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta:
        return timedelta(hours=1)

    def dst(self, when: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, when: datetime | None) -> str:
        return "own"


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 2, tzinfo=OwnZone()), time(1, tzinfo=OwnZone())]
)
def test_other_kinds_of_time_zone_are_not_sealable(runner: Runner, value: Any) -> None:
    assert "OwnZone" in refused(runner, value)
