"""A full JSON Schema validator whose every check ends.

The library's validator for 2020-12, with some keywords replaced: patterns run in bounded time, also
those for names; a property that may not be there is named; ``uniqueItems`` takes one pass; and
``multipleOf`` calculates with the numbers as written (0.3 is a multiple of 0.1). Every keyword that
is evaluated is counted, since references let a small schema ask for more work than there is time.
Nothing is ever fetched.
"""

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from .exact import canonical, fraction
from .formats import format_checker
from .limits import MAX_CHECKS, MAX_ERRORS
from .patterns import matches
from .schema import Schema

Keyword = Callable[[Any, Any, Any, Schema], Iterator[ValidationError]]

_left: ContextVar[list[int]] = ContextVar("keywords left in this check")


class CheckTooLong(Exception):
    """A check that evaluated more keywords than it may."""


class BoundedValidator:
    """Checks answers against one schema, which has to have come from ``schema_of``."""

    def __init__(self, schema: Schema) -> None:
        self._validator = _Validator(schema, registry=Registry(), format_checker=format_checker())

    def errors(self, content: Any) -> list[ValidationError]:
        """Return what is wrong with ``content``, up to the limit of messages.

        Raises ``CheckTooLong`` or ``RecursionError`` for a check that does not come to its end.
        """
        token = _left.set([MAX_CHECKS])
        try:
            return list(islice(self._validator.iter_errors(content), MAX_ERRORS))
        finally:
            _left.reset(token)


def validator_of(schema: Schema) -> BoundedValidator:
    """Return the validator of a schema, compiled once and kept."""
    return _compiled(json.dumps(schema))


@lru_cache(maxsize=256)
def _compiled(text: str) -> BoundedValidator:
    return BoundedValidator(json.loads(text))


def _pattern(validator: Any, pattern: str, instance: Any, schema: Schema) -> Any:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError("pattern")


def _properties(validator: Any, properties: Any, instance: Any, schema: Schema) -> Any:
    if isinstance(instance, dict):
        for name, subschema in properties.items():
            if name in instance:
                yield from _member(validator, subschema, instance, name)


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Schema) -> Any:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name in instance:
                if matches(pattern, name):
                    yield from _member(validator, subschema, instance, name)


def _additional_properties(validator: Any, rule: Any, instance: Any, schema: Schema) -> Any:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", ())
    for name in instance:
        if name not in schema.get("properties", ()) and not any(matches(p, name) for p in patterns):
            yield from _member(validator, rule, instance, name)


def _member(validator: Any, subschema: Any, instance: dict[str, Any], name: str) -> Any:
    if subschema is False:  # the library forgets where it was
        yield ValidationError("false", path=(name,))
    else:
        yield from validator.descend(instance[name], subschema, path=name)


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Schema) -> Any:
    if not unique or not isinstance(instance, list):
        return
    if len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Schema) -> Any:
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if is_number and fraction(instance) % fraction(step):
        yield ValidationError("multipleOf")


def _counted(keyword: Any) -> Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Schema) -> Any:
        left = _left.get()
        left[0] -= 1
        if left[0] < 0:
            raise CheckTooLong
        return keyword(validator, value, instance, schema)

    return counted


_OWN: Final[dict[str, Any]] = {
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "properties": _properties,
    "uniqueItems": _unique_items,
}
_Validator: Final[Any] = extend(
    Draft202012Validator,
    {name: _counted(rule) for name, rule in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
)
