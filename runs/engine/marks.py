"""Marks that a tool's author puts on what must not be shown, found in type annotations.

An annotation is followed beside the value: through ``Optional``, unions, containers, pydantic
models, dataclasses, typed dicts and named tuples. What cannot be resolved (a forward reference)
counts as marked where its text speaks of a secret.
"""

import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, RootModel, SecretBytes, SecretStr
from pydantic import Secret as PydanticSecret
from pydantic.fields import FieldInfo

SECRET_TYPES = (SecretStr, SecretBytes, PydanticSecret)


@dataclass(frozen=True, slots=True)
class Secret:
    """Marks a value that no page, list, log or export may show: ``Annotated[str, Secret()]``.

    ``keep_last``: how many last characters may be shown, of a value at least twice as long.
    """

    keep_last: int = 0


def unfold(annotation: Any, value: object = None) -> tuple[Secret | None, tuple[Any, ...]]:
    """The mark that the annotation carries for this value, and its plain alternatives.

    A tuple of annotations is a choice between them. ``None`` where None is allowed is no secret.
    """
    marks: list[Secret] = []
    arms: list[Any] = []
    todo, steps = [annotation], 0
    while todo and steps < 500:
        steps += 1
        item = todo.pop()
        origin = get_origin(item)
        if item is Secret or isinstance(item, Secret):
            marks.append(item if isinstance(item, Secret) else Secret())
        elif isinstance(item, tuple):
            todo.extend(item)
        elif isinstance(item, (str, typing.ForwardRef)):
            if "secret" in str(item).lower():
                marks.append(Secret())
        elif isinstance(item, FieldInfo):
            todo.append(item.annotation)
            marks.extend(_marks_in(item.metadata))
        elif origin is Annotated:
            todo.append(item.__origin__)
            marks.extend(_marks_in(item.__metadata__))
        elif origin in (Union, types.UnionType) or _is_qualifier(origin):
            todo.extend(get_args(item))
        elif hasattr(item, "__value__"):  # a type alias
            todo.append(item.__value__)
        elif inspect.isclass(item) and issubclass(item, SECRET_TYPES):
            marks.append(Secret())
        elif inspect.isclass(item) and issubclass(item, RootModel):
            todo.append(item.model_fields["root"])
        elif item is not None:
            arms.append(item)
    if value is None and types.NoneType in arms:
        return None, tuple(arms)
    strictest = min(marks, key=lambda mark: mark.keep_last, default=None)
    return strictest, tuple(arms)


def _marks_in(metadata: typing.Iterable[Any]) -> list[Secret]:
    found = [item() if item is Secret else item for item in metadata]
    return [item for item in found if isinstance(item, Secret)]


def _is_qualifier(origin: Any) -> bool:
    return origin in (typing.Required, typing.NotRequired, typing.Final, typing.ClassVar)


def for_item(arms: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    """What the alternatives say about the item at this place of a list, tuple or set."""
    found: list[Any] = []
    for arm in arms:
        origin, args = get_origin(arm), get_args(arm)
        if origin is tuple and Ellipsis not in args:
            found.extend(args[index : index + 1])
        elif inspect.isclass(origin) and not issubclass(origin, Mapping):
            found.extend(arg for arg in args if arg is not Ellipsis)
    return tuple(found)


def for_entry(arms: tuple[Any, ...], key: object) -> tuple[Any, ...]:
    """What the alternatives say about the value under this key or field."""
    found: list[Any] = []
    for arm in arms:
        origin, args = get_origin(arm), get_args(arm)
        if inspect.isclass(origin) and issubclass(origin, Mapping) and len(args) == 2:
            found.append(args[1])
        for owner in (arm, origin):
            if inspect.isclass(owner) and isinstance(key, str):
                found.extend(_fields(owner).get(key, ()))
    return tuple(found)


def for_key(arms: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the alternatives say about the keys of a mapping."""
    return tuple(
        get_args(arm)[0]
        for arm in arms
        if inspect.isclass(get_origin(arm))
        and issubclass(get_origin(arm) or object, Mapping)
        and len(get_args(arm)) == 2
    )


def _fields(owner: type) -> dict[str, list[Any]]:
    """The annotations of a class's fields, by name and by alias."""
    found: dict[str, list[Any]] = {}
    if issubclass(owner, BaseModel):
        for name, field in owner.model_fields.items():
            for key in {name, field.alias, field.validation_alias, field.serialization_alias}:
                if isinstance(key, str):
                    found.setdefault(key, []).append(field)
    elif is_dataclass(owner) or typing.is_typeddict(owner) or hasattr(owner, "_fields"):
        try:
            hints = typing.get_type_hints(owner, include_extras=True)
        except Exception:  # a name that is not there: the texts of the annotations must do
            bases = reversed(owner.__mro__)
            hints = {k: v for base in bases for k, v in inspect.get_annotations(base).items()}
        found = {name: [hint] for name, hint in hints.items()}
    return found
