"""What the ``format`` of a JSON Schema asks for.

Checked: date, time, date-time, duration, email, uri, uuid, ipv4, ipv6, regex. Other formats are
notes to the reader, as the specification has it. One deliberate difference: a ``time`` may do
without its offset, since a time of day seldom has one and pydantic writes ``format: time`` for it.
A ``date-time`` without one says nothing certain and is refused.
"""

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final
from urllib.parse import urlsplit

from jsonschema import FormatChecker

from .limits import FormSchemaError
from .patterns import compile_pattern

_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_FINE = r":[0-5][0-9](?:\.[0-9]{1,9})?"
_ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(rf"{_CLOCK}(?:{_FINE})?{_ZONE}?", re.IGNORECASE)
_DATE_TIME = re.compile(rf"({_DATE.pattern})[T ]({_CLOCK})({_FINE})?( ?)({_ZONE})?", re.IGNORECASE)
_DURATION = re.compile(
    r"P(?!$)(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)"
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")


def is_date(text: str) -> bool:
    """A calendar date that exists, as YYYY-MM-DD."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    """HH:MM, with seconds and offset if wanted."""
    return _TIME.fullmatch(text) is not None


def is_date_time(text: str) -> bool:
    """An RFC 3339 instant: date, time to the second, offset."""
    found = _DATE_TIME.fullmatch(text)
    return bool(found and found[3] and not found[4] and found[5] and is_date(found[1]))


def plain_date_time(text: str) -> str | None:
    """Return what a person typed as a date and time in RFC 3339, or ``None`` if it is not one.

    ``2026-11-30 14:30 Z`` becomes ``2026-11-30T14:30:00Z``. A missing zone stays missing: whether
    it may is for the schema to say.
    """
    found = _DATE_TIME.fullmatch(text)
    if not found or not is_date(found[1]):
        return None
    return f"{found[1]}T{found[2]}{found[3] or ':00'}{(found[5] or '').upper()}"


def _is_uri(text: str) -> bool:
    if not text.isascii() or not text.isprintable() or set(text) & set(' "<>\\^`{|}'):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path))


def _is_regex(text: str) -> bool:
    try:
        compile_pattern(text)
    except FormSchemaError:
        return False
    return True


def _is_address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return "%" not in text

    return check


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "date": is_date,
    "time": is_time,
    "date-time": is_date_time,
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": _is_uri,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "ipv4": _is_address(ipaddress.IPv4Address),
    "ipv6": _is_address(ipaddress.IPv6Address),
    "regex": _is_regex,
}


def format_checker() -> FormatChecker:
    """Return a checker of the formats above and no others."""
    checker = FormatChecker(formats=())
    for name, check in _CHECKS.items():
        checker.checks(name)(_on_text(check))
    return checker


def _on_text(check: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or check(value)
