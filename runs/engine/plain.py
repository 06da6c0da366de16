"""Plain JSON data, its text, and the errors of sealing and loading values."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Malformed(ValueError):
    """A text or a structure is not in canonical form."""


class NotSealable(ValueError):
    """A value has no canonical form. ``path`` says where it is, ``type_name`` what it is."""

    def __init__(self, path: str, type_name: str, reason: str) -> None:
        self.path = path
        self.type_name = type_name
        super().__init__(
            f"{path} ({type_name}) cannot be sealed: it {reason}. "
            "Use a sealable type there, or pass seal_encoder to turn it into one."
        )


class UnknownClass(ValueError):
    """A sealed value names a class that may not be built here. ``name`` is ``module:qualname``."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The sealed data names {name}, which may not be built here. Annotate the field with "
            "that model or enum, or pass a seal_decoder that knows the name."
        )


def dumps(data: Json) -> str:
    """Canonical JSON text of ``data``: sorted keys, no spaces, ASCII.

    Raises ``Malformed`` for data that JSON cannot hold (NaN, bytes) or that is nested too deeply.
    """
    try:
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise Malformed("The data is nested too deeply for JSON text.") from None
    except (TypeError, ValueError) as error:
        raise Malformed(f"The data is not plain JSON: {error}.") from None


def loads(text: str) -> Json:
    """Read JSON text strictly.

    Raises ``Malformed`` for anything but one JSON value in a ``str``: also for a key that stands
    twice in one object, for NaN and infinity, and for a number too large to be held.
    """
    if type(text) is not str:
        raise Malformed(f"The sealed text must be a str, not {type(text).__name__}.")
    try:
        return cast(Json, _READER.decode(text))
    except Malformed:
        raise
    except RecursionError:
        raise Malformed("The sealed text is nested too deeply.") from None
    except ValueError as error:
        raise Malformed(f"The sealed text is not JSON: {error}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("The sealed text holds a key twice in one object.")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Malformed("The sealed text holds a number that is not finite.")
    return number


_READER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite)
