"""From canonical form back to a value: the walk behind ``runs.engine.canonical.decode``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, Flag
from math import isfinite
from typing import Any, Protocol, cast

from pydantic import BaseModel

from runs.engine import leaves
from runs.engine.encoding import (
    MAX_DEPTH,
    SERIES,
    is_plain_key,
    private_defaults,
    step_into,
)
from runs.engine.leaves import INT_LIMIT, INT_LOWEST
from runs.engine.plain import Json, Malformed, UnknownClass

_SERIES_TAGS: dict[str, type[Any]] = {tag: kind for kind, tag in SERIES.items()}
# Tags whose body is a list that starts with a class's name: what the class is, how long the list.
_NAMED: dict[str, tuple[type, int]] = {
    "$model": (BaseModel, 4),
    "$enum": (Enum, 3),
    "$custom": (object, 2),
}
_TAGS = frozenset({"$dict", *leaves.TAGS, *_SERIES_TAGS, *_NAMED})
# The standard library's own: a ``_missing_`` that a flag defines must not run on loading.
_composite_flag: Callable[[type[Enum], int], Any] = vars(Flag)["_missing_"].__func__


class ClassLookup(Protocol):
    """Finds a class by its sealed name, and gives ``None`` for a name it does not allow."""

    def get(self, name: str, /) -> type | None: ...


def resolve(
    data: Json, classes: ClassLookup, decoder: Callable[[str, Any], Any] | None
) -> dict[tuple[str, str], type]:
    """The classes that ``data`` names, by tag and name; see ``check``."""
    known: dict[tuple[str, str], type] = {}
    for tag, name in sorted(_names_in(data)):
        cls = None if tag == "$custom" else classes.get(name)
        if cls is not None and issubclass(cls, _NAMED[tag][0]):
            known[tag, name] = cls
        elif decoder is None:
            raise UnknownClass(name)
    return known


def _names_in(data: Json) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    pending: list[Any] = [data]
    while pending:
        node = pending.pop()
        if type(node) is dict:
            tag = _tag_of(node)
            if tag in _NAMED:
                body = node[tag]
                if (
                    type(body) is not list
                    or len(body) != _NAMED[tag][1]
                    or type(body[0]) is not str
                ):
                    raise Malformed(f"The sealed data holds an ill-formed {tag}.")
                found.add((tag, body[0]))
            node = node.values()
        elif type(node) is not list:
            continue
        pending += [part for part in node if type(part) is dict or type(part) is list]
    return found


def _tag_of(node: dict[Any, Any]) -> str:
    """The tag of a tagged dict; empty for a dict that is data."""
    if len(node) != 1:
        return ""
    (key,) = node
    if type(key) is not str or not key.startswith("$"):
        return ""
    if key not in _TAGS:
        raise Malformed(f"The sealed data holds an unknown tag {key[:40]!r}.")
    return key


class Decoder:
    """One walk back. ``known`` holds, by tag and name, the classes that may be built."""

    def __init__(
        self,
        known: Mapping[tuple[str, str], type],
        decoder: Callable[[str, Any], Any] | None,
    ) -> None:
        self._known = known
        self._decoder = decoder

    def decode(self, node: Any, depth: int) -> Any:
        kind = type(node)
        if kind in (str, int, float):
            if type(leaves.write(node)) is dict:
                raise Malformed(f"The sealed data holds a {kind.__name__} that needs a tag.")
            return node
        if node is None or kind is bool:
            return node
        if kind is not dict and kind is not list:
            raise Malformed(f"The sealed data holds a {kind.__name__}, which is not plain JSON.")
        tag = _tag_of(node) if kind is dict else ""
        if tag in leaves.TAGS:
            return leaves.read(tag, node[tag])
        if depth >= MAX_DEPTH:
            raise Malformed(f"The sealed data is nested more than {MAX_DEPTH} levels deep.")
        depth += 1
        if kind is list:
            return self._items(node, depth)
        if tag == "$dict":
            return self._pairs(node[tag], depth)
        if tag == "":
            return self._mapping(node, depth)
        if tag == "$model":
            return self._model(node[tag], depth)
        if tag == "$enum":
            return self._enum(node[tag], depth)
        if tag == "$custom":
            return self._unknown(node[tag][0], self.decode(node[tag][1], depth))
        return self._series(tag, node[tag], depth)

    # As in the encoder, the loops take the commonest values themselves.

    def _items(self, node: list[Any], depth: int) -> list[Any]:
        items: list[Any] = []
        for item in node:
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
                items.append(self.decode(item, depth))
        return items

    def _mapping(self, node: dict[Any, Any], depth: int) -> dict[Any, Any]:
        if "$dict" in node and len(node) == 1:
            return self._pairs(node["$dict"], depth)
        found: dict[Any, Any] = {}
        for key, item in node.items():
            if not is_plain_key(key):
                raise Malformed(f"The sealed data holds a key that needs a tag: {step_into(key)}.")
            kind = type(item)
            if (
                (kind is str and item.isascii())
                or (kind is int and INT_LOWEST < item < INT_LIMIT)
                or (kind is float and isfinite(item))
                or kind is bool
                or item is None
            ):
                found[key] = item
            else:
                found[key] = self.decode(item, depth)
        return found

    def _pairs(self, body: Json, depth: int) -> dict[Any, Any]:
        if type(body) is not list or not all(type(it) is list and len(it) == 2 for it in body):
            raise Malformed("The sealed data holds an ill-formed $dict.")
        found: dict[Any, Any] = {}
        pairs = cast(list[list[Json]], body)
        for key_form, item_form in pairs:
            key = self.decode(key_form, depth)
            item = self.decode(item_form, depth)
            try:
                found[key] = item
            except TypeError as error:
                raise Malformed(f"The sealed data holds an unusable key: {error}.") from None
        if len(found) != len(body) or all(is_plain_key(pair[0]) for pair in pairs):
            raise Malformed("The sealed data holds a $dict that is not in canonical form.")
        return found

    def _series(self, tag: str, body: Json, depth: int) -> Any:
        if type(body) is not list:
            raise Malformed(f"The sealed data holds an ill-formed {tag}.")
        try:
            found = _SERIES_TAGS[tag](self._items(body, depth))
        except TypeError as error:
            raise Malformed(f"The sealed data holds an ill-formed {tag}: {error}.") from None
        if len(found) != len(body):
            raise Malformed(f"The sealed data holds a {tag} with an item twice.")
        return found

    def _enum(self, body: list[Json], depth: int) -> Any:
        name, member_form, value_form = body
        cls = cast(type[Enum] | None, self._known.get(("$enum", cast(str, name))))
        if cls is None:
            return self._unknown(cast(str, name), self.decode(value_form, depth))
        member_name = self.decode(member_form, depth)
        if member_name is None:
            return self._composite(cls, self.decode(value_form, depth))
        member = cls.__members__.get(member_name) if type(member_name) is str else None
        if member is None:
            raise Malformed(f"The sealed data names a member that {name} does not have.")
        return member

    def _composite(self, cls: type[Enum], value: Any) -> Any:
        found = None
        if issubclass(cls, Flag) and type(value) is int:
            try:
                found = _composite_flag(cls, value)
            except ValueError:
                found = None  # bits that the flag's boundary forbids
        if type(found) is not cls or found._value_ != value:
            raise Malformed(f"The sealed data holds a value that {cls.__name__} cannot have.")
        return found

    def _model(self, body: list[Json], depth: int) -> Any:
        name, fields_form, names_form, extra_form = body
        if type(fields_form) is not dict or type(names_form) is not list:
            raise Malformed("The sealed data holds an ill-formed $model.")
        fields = self._mapping(fields_form, depth)
        names = self._items(names_form, depth)
        extra: dict[str, Any] | None = None
        if type(extra_form) is dict:
            extra = self._mapping(extra_form, depth + 1)
        elif extra_form is not None:
            raise Malformed("The sealed data holds an ill-formed $model.")
        if not all(type(key) is str for key in (*fields, *names, *(extra or ()))):
            raise Malformed("The sealed data holds a $model with a field name that is no str.")
        cls = self._known.get(("$model", cast(str, name)))
        if cls is None:
            return self._unknown(cast(str, name), {**fields, **(extra or {})})
        return _rebuilt(cls, fields, set(names), extra)

    def _unknown(self, name: str, value: Any) -> Any:
        if self._decoder is None:
            raise UnknownClass(name)
        return self._decoder(name, value)


def _rebuilt(
    cls: type[BaseModel], fields: dict[str, Any], names: set[str], extra: dict[str, Any] | None
) -> BaseModel:
    """A model with exactly these contents; none of its own code runs but private defaults."""
    declared = cls.__pydantic_fields__
    unknown = sorted(fields.keys() - declared.keys())
    if unknown:
        raise Malformed(f"The sealed data holds fields that {cls.__name__} lacks: {unknown}.")
    model = object.__new__(cls)
    in_order = {name: fields[name] for name in declared if name in fields}
    object.__setattr__(model, "__dict__", in_order)
    object.__setattr__(model, "__pydantic_fields_set__", names)
    has_private = bool(cls.__private_attributes__)
    if not cls.__pydantic_root_model__:
        object.__setattr__(model, "__pydantic_extra__", extra)
        object.__setattr__(model, "__pydantic_private__", None)
    if has_private:
        private = private_defaults(cls, in_order)
        object.__setattr__(model, "__pydantic_private__", private)
    return model
