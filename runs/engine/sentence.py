"""One sentence for a person, filled from a call's arguments and redacted."""

import datetime as dt
import enum
import re
from collections.abc import Mapping
from decimal import Decimal
from string import Formatter
from typing import Any

from . import secrets
from .contents import child_annotation, child_names, children, is_list
from .display import (
    Limits,
    Node,
    Walk,
    cut,
    line,
    mask_words,
    plain,
    redact_text,
)

SENTENCE_LIMIT = 300
_SHORTEST = 24
_WHOLE = Limits(max_text=10**9, max_total=10**9)
_FIELD = re.compile(r"(\w+)((?:\.\w+|\[[^\[\]]+\])*)")
_STEP = re.compile(r"\.(\w+)|\[([^\[\]]+)\]")
_FORMATS = (str, int, float, Decimal, dt.datetime, dt.date, dt.time)


def fill(template: str, values: Mapping[str, Any], *, annotations: Mapping[str, Any] = {}) -> str:
    """The template, a format string such as ``"Pay {amount:,.2f} to {payee}"``, with the values.

    A hidden value appears as its mask, whatever its format. The sentence is one line of about 300
    characters; longer values are cut, each saying by how much. Raises ``ValueError`` for a template
    that is malformed or reaches for private attributes, ``KeyError`` for a field that is missing.
    """
    parts: list[str] = []
    fields: list[int] = []
    for literal, field, spec, conversion in Formatter().parse(template):
        parts.append(line(literal))
        if field is not None:
            fields.append(len(parts))
            parts.append(line(_value(field, spec or "", conversion, values, annotations)))
    sentence = "".join(parts)
    redacted = redact_text(sentence, limits=_WHOLE)
    if redacted != sentence:  # a secret that only the whole makes one: "Bearer {word}"
        return cut(redacted, SENTENCE_LIMIT)
    room = SENTENCE_LIMIT - sum(len(parts[at]) for at in range(len(parts)) if at not in fields)
    share = _share(room, [len(parts[at]) for at in fields])
    for at in fields:
        parts[at] = cut(parts[at], share)
    return "".join(parts)


def _share(room: int, lengths: list[int]) -> int:
    """How long a value may be, so that one long value pushes no other out of sight."""
    for longer, length in enumerate(sorted(lengths, reverse=True), 1):
        if length * longer + sum(sorted(lengths)[: len(lengths) - longer]) <= room:
            return max(length, _SHORTEST)
    return max(room // max(len(lengths), 1), _SHORTEST)


def _value(
    field: str,
    spec: str,
    conversion: str | None,
    values: Mapping[str, Any],
    annotations: Mapping[str, Any],
) -> str:
    match = _FIELD.fullmatch(field)
    if not match or "{" in spec or re.search(r"\d{4}", spec):
        raise ValueError(f"“{{{field}:{spec}}}” is not a field that a sentence can have.")
    name = match.group(1)
    steps = [attribute or index for attribute, index in _STEP.findall(match.group(2))]
    if any(part.startswith("_") for part in (name, *steps)):
        raise ValueError(f"“{field}” reaches for a private name; use public ones only.")
    if name not in values:
        raise KeyError(f"The sentence needs a value for “{name}”, and there is none.")
    walk = Walk(_WHOLE)
    value, annotation = values[name], annotations.get(name)
    names = child_names(values, list(values.items()), name)
    for step in steps:
        try:
            hidden, arms = walk.mask(value, annotation, names)
            if hidden:
                return mask_words(hidden["why"], hidden["v"])
            value, annotation, names = _step(value, arms, step)
        except (LookupError, AttributeError):
            raise KeyError(f"The sentence needs “{field}”, and there is no “{step}”.") from None
        except Exception as error:  # a property's own code may do anything
            return f"[could not be read: {type(error).__name__}]"
    return _formatted(value, walk.node(value, annotation, names, 0), spec, conversion)


def _step(value: Any, arms: tuple[Any, ...], step: str) -> tuple[Any, Any, list[str]]:
    """The child that one step of a field's path leads to, with its annotation and its names."""
    found = children(value, _WHOLE.max_items)
    _, pairs, _ = found or (True, [], 0)
    key: Any = int(step) if is_list(value) and step.isdecimal() else step
    for candidate, child in pairs:
        if candidate == key or (isinstance(candidate, int) and str(candidate) == step):
            names = child_names(value, pairs, candidate)
            return child, child_annotation(value, arms, candidate), names
    if isinstance(value, Mapping) or is_list(value) or step.isdecimal():
        raise LookupError(step)
    return getattr(value, step), child_annotation(value, arms, step), [step]


def _formatted(value: object, node: Node, spec: str, conversion: str | None) -> str:
    if node["t"] == "hidden":
        return mask_words(node["why"], node["v"])
    if node["t"] == "text" and "of" not in node:
        text = repr(node["v"]) if conversion in ("r", "a") else str(node["v"])
        padded = _apply(text, spec, text)
        return padded if text in padded else text  # a format must not cut a text silently
    if node["t"] in ("list", "map", "text"):
        return plain(node, limit=10 * SENTENCE_LIMIT)
    if isinstance(value, enum.Enum):
        value = value.value
    if not spec and (value is None or isinstance(value, bool)):
        return {None: "none", True: "yes", False: "no"}[value]
    return redact_text(_apply(value, spec, plain(node, limit=SENTENCE_LIMIT)))


def _apply(value: object, spec: str, otherwise: str) -> str:
    """The value in this format, or ``otherwise`` where the format is not one for it."""
    if not spec:
        return otherwise
    try:
        if isinstance(value, _FORMATS):
            return secrets.visible(format(value, spec))
    except Exception:
        return otherwise
    return otherwise
