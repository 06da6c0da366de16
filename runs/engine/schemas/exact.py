"""Numbers and JSON without loss: what is read is what was written, or it is refused."""

import json
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

from .limits import MAX_DEPTH, MAX_DIGITS, MAX_TEXT, MAX_VALUES
from .text import unstorable

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?([0-9]+))?")
_GROUPED: Final = re.compile(r"[+-]?[0-9]+(?:[,.'\u2019_\s\u00a0\u202f][0-9]+)+")

NOT_FINITE: Final = "Enter a finite number; NaN and Infinity can't be used."
TOO_MANY_DIGITS: Final = f"Use no more than {MAX_DIGITS:,} digits."
OUT_OF_RANGE: Final = "This number is too large or too small to be kept."


class Unreadable(ValueError):
    """Text that is not a value of its field's kind. The message is for the person who wrote it."""


def read_whole(text: str) -> int:
    """Return the whole number that ``text`` writes, of any size up to the limit."""
    if not _WHOLE.fullmatch(text):
        raise Unreadable(_why_no_number(text, whole=True))
    if len(text) > MAX_DIGITS:
        raise Unreadable(TOO_MANY_DIGITS)
    return int(text)


def read_decimal(text: str) -> str:
    """Return ``text`` unchanged if it writes a decimal number; its scale is part of its value."""
    found = _NUMBER.fullmatch(text)
    if not found:
        raise Unreadable(_why_no_number(text, whole=False))
    if len(text) > MAX_DIGITS:
        raise Unreadable(TOO_MANY_DIGITS)
    # Past three digits of exponent a number is a few bytes that others would write out in full.
    if found[1] and len(found[1].lstrip("0")) > 3:
        raise Unreadable(OUT_OF_RANGE)
    return text


def read_number(text: str) -> int | float:
    """Return the number that ``text`` writes: an ``int`` if it has neither point nor exponent.

    A fraction becomes a ``float`` only if that float is written back as the same number.
    """
    read_decimal(text)
    if _WHOLE.fullmatch(text):
        return int(text)
    return _exact_float(text)


def _exact_float(text: str) -> float:
    value = float(text)
    try:
        written = Decimal(text)
    except InvalidOperation:
        raise Unreadable(OUT_OF_RANGE) from None
    if value in (float("inf"), float("-inf")) or (written and not value):
        raise Unreadable(OUT_OF_RANGE)
    if Decimal(repr(value)) != written:
        raise Unreadable(
            "This number has more digits than can be kept exactly. Use at most 15 digits."
        )
    return value


def _why_no_number(text: str, *, whole: bool) -> str:
    bare = text.lstrip("+-").lower()
    if bare in ("nan", "inf", "infinity"):
        return NOT_FINITE
    if any(not c.isascii() and (c.isdigit() or c.isdecimal()) for c in text):
        return "Write the number with the digits 0 to 9."
    if text.startswith("\u2212"):
        return "Write the minus sign as a plain hyphen, for example -12."
    if whole and _NUMBER.fullmatch(text):
        return "Enter a whole number, without a point or an exponent."
    if _GROUPED.fullmatch(text):
        if whole:
            return "Write the number with digits only, without separators: 1480."
        return "Write the number without thousands separators and with a decimal point: 1480.00."
    return "Enter a whole number." if whole else "Enter a number, for example 12.50."


def fraction(number: int | float | str | Decimal) -> Fraction:
    """Return a number as the fraction that its decimal notation writes (0.1 is a tenth)."""
    return Fraction(repr(number) if isinstance(number, float) else number)


def read_json(text: str) -> Any:
    """Return the value that ``text`` writes as JSON.

    Refused, each with its reason: bad JSON (with line and column), ``NaN`` and ``Infinity``, a key
    that stands twice in an object, a fraction that a float can't keep, and what
    ``content_problem`` refuses.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_without_doubles,
            parse_constant=_no_constant,
            parse_float=_exact_float,
            parse_int=_bounded_int,
        )
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"This is not JSON: {_why_no_json(error)} at line {error.lineno}, column {error.colno}."
        ) from None
    except RecursionError:
        raise Unreadable(f"This is nested too deeply. Use at most {MAX_DEPTH} levels.") from None
    problem = content_problem(value)
    if problem:
        raise Unreadable(problem)
    return value


def _why_no_json(error: json.JSONDecodeError) -> str:
    return error.msg[:1].lower() + error.msg[1:].replace(" delimiter", "")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise Unreadable(f"The key {json.dumps(key)} stands twice in one object.")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise Unreadable(NOT_FINITE)


def _bounded_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise Unreadable(TOO_MANY_DIGITS)
    return int(text)


def write_json(value: Any, *, indent: int | None = None) -> str:
    """Return ``value`` as JSON text, characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def content_problem(content: Any) -> str | None:
    """Return why ``content`` can't be an answer or a part of one, or ``None`` if it can.

    It has to be made of what JSON has, within the limits, and of text that can be stored.
    """
    count = 0
    todo: list[tuple[Any, int]] = [(content, 0)]
    while todo:
        value, depth = todo.pop()
        count += 1
        if count > MAX_VALUES:
            return f"This holds too much. Use at most {MAX_VALUES:,} values."
        if depth > MAX_DEPTH:
            return f"This is nested too deeply. Use at most {MAX_DEPTH} levels."
        if isinstance(value, dict):
            for key, inner in value.items():
                problem = _scalar_problem(key) if isinstance(key, str) else "Keys have to be text."
                if problem:
                    return problem
                todo.append((inner, depth + 1))
        elif isinstance(value, list):
            todo.extend((inner, depth + 1) for inner in value)
        else:
            problem = _scalar_problem(value)
            if problem:
                return problem
    return None


def _scalar_problem(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return unstorable(value) or text_too_long(value)
    if isinstance(value, int):
        # 3.322 bits to a digit; writing the number out to count them is what must not happen.
        return TOO_MANY_DIGITS if value.bit_length() > MAX_DIGITS * 3.322 else None
    if isinstance(value, float):
        return None if value - value == 0 else NOT_FINITE
    return f"A value of type {type(value).__name__} can't be part of an answer."


def text_too_long(text: str) -> str | None:
    """Return a message if ``text`` is past the limit of one field."""
    if len(text) * 4 <= MAX_TEXT or len(text.encode("utf-8", "surrogatepass")) <= MAX_TEXT:
        return None
    return f"This is too long. Use at most {MAX_TEXT // 1024} KB of text."


def canonical(value: Any) -> Any:
    """Return a hashable stand-in, equal for two values exactly if JSON Schema calls them equal.

    1 equals 1.0, and neither equals true.
    """
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(inner)) for key, inner in value.items()))
    if isinstance(value, list):
        return ("array", tuple(canonical(inner) for inner in value))
    return ("boolean" if isinstance(value, bool) else "scalar", value)


def show_number(value: Any) -> str:
    """Return a number as a person reads it: ``1480.0`` is ``1,480``, a decimal keeps its scale."""
    try:
        number = Decimal(repr(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        return str(value)
    if not number.is_finite() or abs(number.adjusted()) > 30:
        return str(value)
    shown = f"{number:,f}"
    return shown.removesuffix(".0") if isinstance(value, float) else shown
