"""Small helpers around pydantic: faults in words that quote no values, annotations with marks."""

from __future__ import annotations

import copy
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ValidationError

from .redact import redact_text

# Their messages quote what was given, which may be a secret.
_QUOTING = {
    "union_tag_invalid": "Input should be one of the known kinds",
    "value_error": "Input does not pass the check of its type",
    "assertion_error": "Input does not pass the check of its type",
}

Value = TypeVar("Value")


def faults_in_words(error: ValidationError, whole: str, *, own_words: bool = False) -> str:
    """What a model refuses, by field and without any value; ``whole`` names what is checked.

    ``own_words`` lets the messages of the model's own checks through, redacted: they are written
    for whoever answers a form.
    """
    told = []
    for fault in error.errors(include_input=False, include_url=False, include_context=False):
        words = _QUOTING.get(fault["type"], fault["msg"])
        if own_words and fault["type"] in ("value_error", "assertion_error"):
            words = redact_text(fault["msg"])
        told.append(f"{fault['loc'][0] if fault['loc'] else whole}: {words}")
    return "; ".join(told)


def annotations_of(model: type[BaseModel]) -> dict[str, Any]:
    """The annotations of a model's fields, with the marks that stand beside them."""
    return {
        name: Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        for name, field in model.model_fields.items()
    }


def own_copy(value: Value) -> Value:
    """A copy that nobody else can change; the value itself where it can't be copied (a flow that
    never pauses may hold anything)."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value
