"""The canonical form of single values: numbers, text, bytes, dates, times, zones, secrets.

``write`` gives the form of one value, ``read`` takes it back. Readers need not be strict: what
one returns is written again and must give the very form that was read.
"""

from __future__ import annotations

import base64
import itertools
import math
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, TypeAlias, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import SecretBytes, SecretStr
from pydantic_core import TzInfo

from runs.engine.classes import class_name
from runs.engine.plain import Json, Malformed, dumps

INT_LIMIT = 10**600  # Python may be set up to refuse decimal text of more than 640 digits
INT_LOWEST = -INT_LIMIT
MAX_HEX = 1024 * 1024
# Two surrogates that stand next to each other; JSON text would read them back as one character.
PAIR = re.compile("[\ud800-\udbff](?=[\udc00-\udfff])")


class Refused(Exception):
    """A value without canonical form. On its way up each level adds its ``steps`` of the path."""

    def __init__(self, value: Any, reason: str, *steps: str) -> None:
        super().__init__(reason)
        self.type_name = class_name(type(value))
        self.reason = reason
        self.steps = list(steps)


def write(value: Any) -> Json:
    """The form of a value whose exact type is in ``LEAVES``. Raises ``Refused``."""
    kind = type(value)
    if kind is str and (value.isascii() or not PAIR.search(value)):
        return cast(str, value)
    if kind is int and INT_LOWEST < value < INT_LIMIT:
        return cast(int, value)
    if kind is float and math.isfinite(value):
        return cast(float, value)
    tag, body, _ = LEAVES[kind]
    return {tag: body(value)}


def read(tag: str, body: Json) -> Any:
    """The value that ``write`` gave as ``{tag: body}``. Raises ``Malformed``."""
    try:
        value = TAGS[tag][2](body)
        if dumps(write(value)) == dumps({tag: body}):
            return value
    except _UNREADABLE as error:
        raise Malformed(f"The sealed data holds an ill-formed {tag}: {error}.") from error
    raise Malformed(f"The sealed data holds a {tag} that is not in canonical form.")


def _write_text(value: str) -> Json:
    """As is, or in pieces where it holds a pair of surrogates."""
    cuts = [0, *(match.end() for match in PAIR.finditer(value)), len(value)]
    pieces: list[Json] = [value[start:end] for start, end in itertools.pairwise(cuts)]
    return pieces if len(pieces) > 1 else value


def _read_text(body: Any) -> str:
    return body if type(body) is str else "".join(body)


def _write_int(value: int) -> str:
    text = format(value, "x")  # unlike decimal text, hexadecimal is linear and has no limit
    if len(text.lstrip("-")) > MAX_HEX:
        raise Refused(value, f"has more than {MAX_HEX} hexadecimal digits")
    return text


def _write_bytes(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode("ascii")


def _read_bytes(body: Any) -> bytes:
    return base64.b64decode(body, validate=True)


def _write_decimal(value: Decimal) -> str:
    return str(value).replace("e", "E")  # the decimal context may ask for a small "e"


def _write_timedelta(value: timedelta) -> Json:
    return [value.days, value.seconds, value.microseconds]


def _write_zone(zone: tzinfo | None) -> Json:
    if zone is None:
        return None
    if type(zone) is timezone:
        offset, *names = zone.__getinitargs__()  # type: ignore[attr-defined]
        seconds = offset.days * 86400 + offset.seconds
        return ["offset", seconds, offset.microseconds, *(_write_text(name) for name in names)]
    if type(zone) is TzInfo:  # what pydantic makes of the text "2026-01-01T00:00:00Z"
        return ["pydantic", cast(timedelta, zone.utcoffset(None)) // timedelta(seconds=1)]
    if type(zone) is not ZoneInfo:
        raise Refused(zone, "is a time zone of a kind that has no canonical form", ".tzinfo")
    if zone.key is None:
        raise Refused(zone, "is a ZoneInfo without a key", ".tzinfo")
    return ["key", zone.key]


def _read_zone(body: Any) -> tzinfo | None:
    if body is None:
        return None
    match body:
        case ["offset", seconds, microseconds, *names]:
            offset = timedelta(seconds=seconds, microseconds=microseconds)
            return timezone(offset, *(_read_text(name) for name in names))
        case ["pydantic", seconds]:
            return TzInfo(seconds)
        case ["key", key]:
            return ZoneInfo(key)
    raise ValueError("no such kind of time zone")


def _write_clock(value: datetime | time) -> Json:
    return [value.replace(tzinfo=None).isoformat(), value.fold, _write_zone(value.tzinfo)]


def _read_datetime(body: Any) -> datetime:
    text, fold, zone = body
    return datetime.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _read_time(body: Any) -> time:
    text, fold, zone = body
    return time.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


def _write_secret_text(value: SecretStr) -> Json:
    return _write_text(value.get_secret_value())


def _write_secret_bytes(value: SecretBytes) -> Json:
    return _write_bytes(value.get_secret_value())


_Leaf: TypeAlias = tuple[str, Callable[[Any], Json], Callable[[Any], Any]]

LEAVES: dict[type, _Leaf] = {
    str: ("$str", _write_text, _read_text),
    int: ("$int", _write_int, lambda body: int(body, 16)),
    float: ("$float", repr, float),
    bytes: ("$bytes", _write_bytes, _read_bytes),
    bytearray: ("$bytearray", _write_bytes, lambda body: bytearray(_read_bytes(body))),
    date: ("$date", date.isoformat, date.fromisoformat),
    datetime: ("$datetime", _write_clock, _read_datetime),
    time: ("$time", _write_clock, _read_time),
    timedelta: ("$timedelta", _write_timedelta, lambda body: timedelta(*body)),
    Decimal: ("$decimal", _write_decimal, Decimal),
    UUID: ("$uuid", str, UUID),
    SecretStr: ("$secret", _write_secret_text, lambda body: SecretStr(_read_text(body))),
    SecretBytes: ("$secretbytes", _write_secret_bytes, lambda body: SecretBytes(_read_bytes(body))),
}
"""Per exact type: its tag, how its body is written, how it is read."""

# What the readers above raise for a body that none of the writers has made.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    KeyError,
    OSError,
    Refused,
    TypeError,
    ValueError,
)

TAGS: dict[str, _Leaf] = {leaf[0]: leaf for leaf in LEAVES.values()}
