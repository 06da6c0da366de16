"""From a value to its canonical form: the walk behind ``runs.engine.canonical.encode``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, Flag
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from runs.engine import leaves
from runs.engine.classes import class_name
from runs.engine.leaves import INT_LIMIT, INT_LOWEST, LEAVES, PAIR, Refused
from runs.engine.plain import Json, dumps

MAX_DEPTH = 200
"""How many containers (list, dict, tuple, set, enum, model, stand-in) may lie in one another."""

SERIES: dict[type, str] = {tuple: "$tuple", set: "$set", frozenset: "$frozenset"}


def is_plain_key(key: Any) -> bool:
    """Whether a dict's key can stand in JSON as it is."""
    return type(key) is str and key[:1] != "$" and (key.isascii() or not PAIR.search(key))


def step_into(key: Any) -> str:
    """A path's step into a dict. Keys are shown where they are plain, and cut where long."""
    if type(key) is str:
        return f"[{json.dumps(key if len(key) <= 60 else key[:59] + '…')}]"
    if key is None or type(key) in (bool, float):
        return f"[{key!r}]"
    if type(key) is int and abs(key) < INT_LIMIT:
        return f"[{key}]"
    return f"[<{type(key).__qualname__} key>]"


def private_defaults(cls: type[BaseModel], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The private attributes that a new model with these fields starts with."""
    private: dict[str, Any] = {}
    for name, attribute in cls.__private_attributes__.items():
        default = attribute.get_default(
            call_default_factory=True, validated_data={**fields, **private}
        )
        if default is not PydanticUndefined:
            private[name] = default
    return private


class Encoder:
    """One walk over a value. ``_open`` holds the ids of the containers the walk is inside of."""

    def __init__(self, stand_in: Callable[[Any], Any] | None, exclude_unset: bool) -> None:
        self._stand_in = stand_in
        self._exclude_unset = exclude_unset
        self._open: set[int] = set()

    def encode(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if kind in LEAVES:
            try:
                return leaves.write(value)
            except Refused as refused:
                return self._custom(value, depth, refused)
        if value is None or kind is bool:
            return cast(bool | None, value)
        if depth >= MAX_DEPTH:
            raise Refused(value, f"is nested more than {MAX_DEPTH} levels deep")
        if id(value) in self._open:
            raise Refused(value, "contains itself")
        self._open.add(id(value))
        try:
            if kind is list:
                return self._items(value, depth + 1)
            if kind is dict:
                return self._mapping(value, depth + 1)
            if kind in SERIES:
                return self._series(value, depth + 1)
            if issubclass(kind, BaseModel):
                return self._model(value, depth + 1)
            if issubclass(kind, Enum):
                return self._enum(value, depth + 1)
            return self._custom(value, depth, Refused(value, "has no canonical form"))
        finally:
            self._open.discard(id(value))

    # The loops below take the commonest values themselves: a call for each would double the time.

    def _items(self, value: Iterable[Any], depth: int) -> list[Json]:
        items: list[Json] = []
        try:
            for item in value:
                kind = type(item)
                if (
                    (kind is str and item.isascii())
                    or (kind is int and INT_LOWEST < item < INT_LIMIT)
                    or (kind is float and isfinite(item))
                    or kind is bool
                    or item is None
                ):
                    items.append(item)
                else:
                    items.append(self.encode(item, depth))
        except Refused as refused:
            step = "{item}" if isinstance(value, (set, frozenset)) else f"[{len(items)}]"
            refused.steps.append(step)
            raise
        return items

    def _mapping(self, value: dict[Any, Any], depth: int) -> Json:
        plain: dict[str, Json] = {}
        pairs: list[Json] = []
        key: Any = None
        try:
            for key, item in value.items():
                kind = type(item)
                if (
                    (kind is str and item.isascii())
                    or (kind is int and INT_LOWEST < item < INT_LIMIT)
                    or (kind is float and isfinite(item))
                    or kind is bool
                    or item is None
                ):
                    form: Json = item
                else:
                    form = self.encode(item, depth)
                if is_plain_key(key):
                    plain[key] = form
                else:
                    pairs.append([self.encode(key, depth), form])
        except Refused as refused:
            refused.steps.append(step_into(key))
            raise
        return _joined(plain, pairs)

    def _series(self, value: Any, depth: int) -> Json:
        items = self._items(value, depth)
        return {SERIES[type(value)]: items if type(value) is tuple else sorted(items, key=dumps)}

    def _enum(self, value: Enum, depth: int) -> Json:
        cls = type(value)
        name: str | None = value._name_
        if cls.__members__.get(value._name_) is not value:
            if not isinstance(value, Flag):
                raise Refused(value, "is not a member of its class")
            name = None
        try:
            return {
                "$enum": [
                    class_name(cls),
                    self.encode(name, depth),
                    self.encode(value._value_, depth),
                ]
            }
        except Refused as refused:
            refused.steps.append(".value")
            raise

    def _model(self, value: BaseModel, depth: int) -> Json:
        cls = type(value)
        state = value.__dict__
        names = value.__pydantic_fields_set__
        kept = names if self._exclude_unset else state
        plain: dict[str, Json] = {}
        pairs: list[Json] = []
        step = ""
        try:
            for name in cls.__pydantic_fields__:
                if name in kept and name in state:
                    step = f".{name}"
                    form = self.encode(state[name], depth)
                    if is_plain_key(name):
                        plain[name] = form
                    else:
                        pairs.append([self.encode(name, depth), form])
            step = ""
            extra = value.__pydantic_extra__
            extras = None if extra is None else self._mapping(extra, depth + 1)
        except Refused as refused:
            if step:
                refused.steps.append(step)
            raise
        fields = _joined(plain, pairs)
        return {"$model": [class_name(cls), fields, self._items(sorted(names), depth), extras]}

    def _custom(self, value: Any, depth: int, refused: Refused) -> Json:
        if self._stand_in is None or depth >= MAX_DEPTH:
            raise refused
        try:
            stand_in = self._stand_in(value)
        except Exception as error:
            raise Refused(value, f"made seal_encoder raise {type(error).__name__}") from error
        if stand_in is value:
            raise refused
        try:
            return {"$custom": [class_name(type(value)), self.encode(stand_in, depth + 1)]}
        except Refused as inner:
            inner.steps.append("<stand-in>")
            raise


def _joined(plain: dict[str, Json], pairs: list[Json]) -> Json:
    """A dict's form: as it is, or all of it as sorted pairs where a key cannot stand as it is."""
    if not pairs:
        return plain
    pairs += [[key, form] for key, form in plain.items()]
    return {"$dict": sorted(pairs, key=lambda pair: dumps(cast(list[Json], pair)[0]))}
