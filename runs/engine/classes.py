"""Which classes a sealed text may name: only those that type annotations reach.

Nothing here imports a module or evaluates a name taken from a text. A name is looked up among
classes that already exist and that the annotations lead to.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from typing import Any

import typing_extensions
from pydantic import BaseModel, RootModel

# Annotating a field with one of these says nothing about which class is meant.
_BARE: frozenset[type] = frozenset({BaseModel, RootModel, Enum, Flag, IntEnum, IntFlag, StrEnum})
_ALIASES: tuple[Any, ...] = tuple(
    {
        found
        for module in (typing, typing_extensions)
        if (found := getattr(module, "TypeAliasType", None)) is not None
    }
)


def class_name(cls: type | Callable[..., Any]) -> str:
    """The name under which a class, or a function, stands in sealed data: ``module:qualname``."""
    return f"{cls.__module__}:{cls.__qualname__}"


class Classes:
    """The models and enums that a set of annotations reaches, looked up by their sealed names.

    The annotations are walked at the first look-up, so forward references may be defined after
    this object was made. Loaded subclasses are searched at every look-up that needs them, so a
    subclass defined later is found.
    """

    def __init__(self, annotations: Iterable[Any] = ()) -> None:
        self._annotations = tuple(annotations)
        self._direct: dict[str, type] | None = None

    def get(self, name: str) -> type | None:
        """The class sealed as ``name``, or ``None`` where the annotations do not reach it.

        Of two classes with one name, the one reached without going through a subclass wins;
        among subclasses the newest does.
        """
        if self._direct is None:
            self._direct = {}
            for cls in _closure(self._annotations, subclasses=False):
                self._direct.setdefault(class_name(cls), cls)
        found = self._direct.get(name)
        if found is None:
            for cls in _closure(self._annotations, subclasses=True):
                if class_name(cls) == name:
                    found = cls
        return found


def reachable(*annotations: Any) -> Classes:
    """The classes that may be built for values of these annotations.

    These are the pydantic models and enums found in the annotations and in the field annotations
    of every model found, through unions, containers, ``Annotated``, ``Literal``, type aliases,
    ``NewType``, ``TypedDict``, generics and the bounds of type variables; and their subclasses
    that are loaded when a name is looked up, with what their own fields reach. A bare
    ``BaseModel`` or ``Enum`` opens nothing, and neither does a string.
    """
    return Classes(annotations)


def _closure(annotations: Iterable[Any], *, subclasses: bool) -> Iterator[type]:
    """Every model and enum the annotations lead to, each once, parents before subclasses."""
    pending = list(annotations)[::-1]
    seen: set[int] = set()
    kept: list[Any] = []  # annotations may be made on the fly; alive, their ids stay their own
    while pending:
        annotation = pending.pop()
        if id(annotation) in seen:
            continue
        seen.add(id(annotation))
        kept.append(annotation)
        if isinstance(annotation, type) and issubclass(annotation, (BaseModel, Enum)):
            if annotation in _BARE:
                continue
            yield annotation
            if subclasses:
                pending.extend(reversed(type.__subclasses__(annotation)))
            if issubclass(annotation, BaseModel):
                pending.extend(reversed(_field_annotations(annotation)))
        else:
            pending.extend(reversed(_parts(annotation)))


def _field_annotations(model: type[BaseModel]) -> list[Any]:
    if not model.__pydantic_complete__:
        # A model with forward references is otherwise completed only when first used.
        model.model_rebuild(raise_errors=False)
    return [field.annotation for field in model.model_fields.values()]


def _parts(annotation: Any) -> list[Any]:
    """The annotations directly inside one that is itself no model and no enum."""
    origin = typing_extensions.get_origin(annotation)
    if origin in (type, Callable):
        return []  # a class or a function is not sealable, whatever it is made of
    if origin is typing.Literal:
        return [type(value) for value in typing.get_args(annotation) if isinstance(value, Enum)]
    if origin is typing.Annotated:
        return [annotation.__origin__]
    if isinstance(annotation, _ALIASES):
        return [annotation.__value__]
    if isinstance(annotation, typing.NewType):
        return [annotation.__supertype__]
    if isinstance(annotation, typing.TypeVar):
        default = getattr(annotation, "__default__", None)
        return [annotation.__bound__, *annotation.__constraints__, default]
    if typing_extensions.is_typeddict(annotation):
        return _typed_dict_annotations(annotation)
    if origin is None and not isinstance(annotation, types.UnionType):
        return []
    return [origin, *typing_extensions.get_args(annotation)]


def _typed_dict_annotations(annotation: Any) -> list[Any]:
    try:
        return list(typing_extensions.get_type_hints(annotation).values())
    except NameError:
        return []  # an unresolved forward reference names no class
