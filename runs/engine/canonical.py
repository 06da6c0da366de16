"""The canonical form: the one plain, strict, type-tagged shape in which values are sealed.

``encode`` turns a sealable value into JSON data, ``decode`` turns it back into an equal value of
the same type. What JSON can say for itself stays as it is; everything else is a dict with one
key, a tag such as ``{"$tuple": [1, 2]}``. A dict of the user's that could be read as a tag is
written as a list of pairs, so user data never becomes one. Two things are not kept: the order of
a dict's keys (``dumps`` sorts them) and private attributes of models (see ``encode``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runs.engine.classes import Classes, class_name, reachable
from runs.engine.decoding import ClassLookup, Decoder, resolve
from runs.engine.encoding import MAX_DEPTH, Encoder
from runs.engine.leaves import Refused
from runs.engine.plain import Json, Malformed, NotSealable, UnknownClass, dumps, loads

__all__ = [
    "MAX_DEPTH",
    "ClassLookup",
    "Classes",
    "Json",
    "Malformed",
    "NotSealable",
    "UnknownClass",
    "check",
    "class_name",
    "decode",
    "dumps",
    "encode",
    "loads",
    "reachable",
]


def encode(
    value: Any,
    *,
    path: str = "value",
    encoder: Callable[[Any], Any] | None = None,
    exclude_unset: bool = False,
) -> Json:
    """The canonical form of ``value``; shares no mutable part with it.

    Types are matched exactly, so an instance of a subclass of ``dict`` or ``datetime`` is refused.
    What is refused goes to ``encoder`` where one is given; the stand-in that it returns is sealed
    in the value's place, under the name of the value's class.

    A model's private attributes are not sealed: ``decode`` sets their defaults. Keep what a run
    needs to go on with in fields.

    With ``exclude_unset``, model fields that were never set are left out at every depth. That
    form is for comparing, not for decoding.

    Raises ``NotSealable``, naming the place as a path that starts with ``path``, for a value
    without canonical form, for one that contains itself, and past ``MAX_DEPTH``.
    """
    try:
        return Encoder(encoder, exclude_unset).encode(value, 0)
    except Refused as refused:
        where = path + "".join(reversed(refused.steps))
        raise NotSealable(where, refused.type_name, refused.reason) from refused.__cause__
    except RecursionError:
        # Only where the caller's own stack is almost used up: MAX_DEPTH levels fit otherwise.
        reason = "is nested too deeply for the space left on the stack"
        raise NotSealable(path, class_name(type(value)), reason) from None


def decode(
    data: Json, *, classes: ClassLookup, decoder: Callable[[str, Any], Any] | None = None
) -> Any:
    """The value whose canonical form is ``data``; shares no mutable part with it.

    Models are rebuilt field by field: no validator, ``__init__``, ``__new__`` or
    ``model_post_init`` runs. ``decoder(name, value)`` builds what ``classes`` does not know (the
    value is a model's fields or an enum's value) and every value that was sealed by a stand-in;
    what it raises is passed on.

    Raises ``UnknownClass`` before anything is built, and ``Malformed``.
    """
    known = resolve(data, classes, decoder)
    try:
        return Decoder(known, decoder).decode(data, 0)
    except RecursionError:
        raise Malformed("The sealed data is nested too deeply.") from None


def check(
    data: Json, *, classes: ClassLookup, decoder: Callable[[str, Any], Any] | None = None
) -> None:
    """Make sure that ``decode`` may build all of ``data``, building nothing.

    Raises ``UnknownClass`` for a name that neither ``classes`` nor a decoder can answer for, and
    ``Malformed`` for a tag that is none of ours. The decoder is not called.
    """
    resolve(data, classes, decoder)
