"""From a submitted text to the value that it writes."""

from typing import Any, Final

from runs.engine.schemas.exact import (
    Unreadable,
    read_decimal,
    read_json,
    read_number,
    read_whole,
    text_too_long,
)
from runs.engine.schemas.formats import is_date, is_time, plain_date_time
from runs.engine.schemas.text import unstorable

from .field import Field
from .messages import FORMATS, NEEDED

#: Nothing was given: the answer has no such key, and the default applies.
ABSENT: Final = object()


def parse(field: Field, text: str | None) -> Any:
    """Return the value that ``text`` writes for this field, or ``ABSENT``.

    ``None`` means that the page sent nothing under this name. Empty text is null where null is
    allowed, ``""`` where the schema asks for it by ``minLength: 0``, and otherwise absent. Text of
    a string is kept as it is, but for line ends, which browsers rewrite.

    Raises ``Unreadable`` with a message for the person who wrote it.
    """
    if field.kind == "boolean":
        return _parse_box(text)
    if text is None:
        return _absent(field)
    problem = unstorable(text) or text_too_long(text)
    if problem:
        raise Unreadable(problem)
    text = text.replace("\r\n", "\n")
    if field.one_token and field.kind != "choice":
        text = text.strip()
    if text == "":
        if field.nullable:
            return None
        return "" if field.may_be_blank else _absent(field)
    if field.kind == "choice":
        return _parse_choice(field, text)
    if field.kind == "integer":
        return read_whole(text)
    if field.kind == "number":
        return read_number(text)
    if field.kind == "decimal":
        return read_decimal(text)
    if field.kind == "json":
        return read_json(text)
    return _parse_string(field, text)


def _absent(field: Field) -> Any:
    if field.required:
        raise Unreadable(NEEDED)
    return ABSENT


def _parse_box(text: str | None) -> bool:
    if text is None or text == "false":
        return False
    if text in ("true", "on"):
        return True
    raise Unreadable("Tick the box or leave it empty.")


def _parse_choice(field: Field, text: str) -> Any:
    for choice in field.choices:
        if choice.value == text:
            return choice.member
    raise Unreadable("Choose one of the options.")


def _parse_string(field: Field, text: str) -> str:
    if field.format == "date" and not is_date(text):
        raise Unreadable(FORMATS["date"])
    if field.format == "time":
        if not is_time(text):
            raise Unreadable(FORMATS["time"])
        return f"{text}:00" if len(text) == 5 else text
    if field.format == "date-time":
        instant = plain_date_time(text)
        if instant is None:
            raise Unreadable(FORMATS["date-time"])
        return instant
    return text
