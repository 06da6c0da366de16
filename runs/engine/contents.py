"""What is inside a value: its children, and the names and annotations they go by."""

import dataclasses
import datetime as dt
import enum
import ipaddress
import pathlib
import uuid
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from itertools import islice
from typing import Any

from pydantic import AnyUrl, BaseModel

from . import marks, secrets

# Values whose ``str`` is exact and is the standard library's or pydantic's own.
TEXT_TYPES = (
    uuid.UUID,
    pathlib.PurePath,
    dt.timedelta,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    AnyUrl,
)
_NAME_KEYS = frozenset(["name", "key", "header", "field", "variable", "var", "k", "id", "label"])
_VALUE_KEYS = frozenset(["value", "values", "val", "v", "content", "contents", "data", "text"])


def children(value: object, limit: int) -> tuple[bool, list[tuple[Any, Any]], int] | None:
    """Whether it is a map, the first ``limit`` keys (or places) with values, and how many it has.

    None for a value that has no contents that may be shown.
    """
    if isinstance(value, type):
        return None
    pairs: list[tuple[Any, Any]]
    if isinstance(value, BaseModel):
        extra = value.__pydantic_extra__ or {}
        pairs = [*((k, v) for k, v in value.__dict__.items() if k in type(value).model_fields)]
        pairs += extra.items()
        return True, pairs[:limit], len(pairs)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return True, [(name, getattr(value, name)) for name in names[:limit]], len(names)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        pairs = list(zip(value._fields, value, strict=True))
        return True, pairs[:limit], len(pairs)
    if isinstance(value, dict):
        return True, list(islice(dict.items(value), limit)), dict.__len__(value)
    if isinstance(value, Mapping):
        return True, list(islice(value.items(), limit)), len(value)
    if isinstance(value, (Sequence, Set)):
        return False, list(enumerate(islice(iter(value), limit))), len(value)
    return None


def is_list(value: object) -> bool:
    """Whether its children have places, not keys."""
    return isinstance(value, (Sequence, Set)) and not hasattr(value, "_fields")


def child_annotation(value: object, arms: tuple[Any, ...], key: object) -> Any:
    """What is known about the type of the value at this key or place."""
    if is_list(value):
        return marks.for_item(arms, key if isinstance(key, int) else 0)
    return marks.for_entry((*arms, type(value)), key)


def child_names(value: object, pairs: Sequence[tuple[Any, Any]], key: object) -> list[str]:
    """The names by which the child at this key is called.

    Its key; the name beside it in ``{"name": ..., "value": ...}`` or ``[name, value]``; the flag
    before it in ``["--password", "..."]``.
    """
    found: list[str] = []
    if isinstance(value, Set):
        return found
    if is_list(value):
        before = pairs[key - 1][1] if isinstance(key, int) and key > 0 else None
        if issubclass(type(before), (str, bytes)):  # isinstance may run the value's own code
            name = key_text(before)
            found += [name] if len(pairs) == 2 or name.startswith("--") else []
        return found
    found.append(key_text(key))
    field = type(value).model_fields.get(found[0]) if isinstance(value, BaseModel) else None
    if field is not None and field.alias:
        found.append(field.alias)
    if secrets.clean(found[0]).lower() in _VALUE_KEYS:
        found += [
            key_text(other)
            for other_key, other in pairs[:20]
            if key_text(other_key).lower() in _NAME_KEYS and issubclass(type(other), (str, bytes))
        ]
    return found


def key_text(key: object) -> str:
    """A key as text; of an object its class name only."""
    if isinstance(key, enum.Enum):
        return key_text(key.value)
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, bytes):
        return key.decode("latin-1")
    if key is None or isinstance(key, (bool, int, float, Decimal, dt.date, dt.time, *TEXT_TYPES)):
        return str(key)
    if type(key) is tuple:
        return "(" + ", ".join(key_text(part) for part in key) + ")"
    return f"({class_name(key)})"


def class_name(value: object) -> str:
    """The name of the value's class, without running any code of the class."""
    return str(type.__dict__["__name__"].__get__(type(value)))
