"""From a form source to a JSON Schema that is known to be sound and bounded.

A *form source* is a pydantic model class or a JSON Schema (2020-12). Nothing here, and nothing
that reads what this module returns, ever fetches a schema from anywhere.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final
from weakref import WeakKeyDictionary

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from .limits import MAX_FIELDS, MAX_PATTERN, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS, FormSchemaError
from .patterns import compile_pattern

Schema = dict[str, Any]
FormSource = type[BaseModel] | Schema | bool

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_ONE: Final = {
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
_LISTS: Final = {"allOf", "anyOf", "oneOf", "prefixItems"}
_MAPS: Final = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}

_of_models: WeakKeyDictionary[type[BaseModel], Schema] = WeakKeyDictionary()


def is_model(source: Any) -> bool:
    """Whether a form source is a pydantic model class."""
    return isinstance(source, type) and issubclass(source, BaseModel)


def schema_of(source: FormSource) -> Schema:
    """Return the JSON Schema of a form source, as the check of an answer understands it.

    A boolean schema comes back as the object that means the same (``{}``, ``{"not": {}}``). The
    result is shared between callers: do not change it.

    Raises ``FormSchemaError`` for a source that is neither, a schema that 2020-12 does not allow,
    a ``$ref`` that leaves the schema or points at nothing, and a schema past the limits.
    """
    if is_model(source):
        model: type[BaseModel] = source  # type: ignore[assignment]
        if model not in _of_models:
            _of_models[model] = _of_model(model)
        return _of_models[model]
    if isinstance(source, bool):
        return {} if source else {"not": {}}
    if not isinstance(source, dict):
        raise FormSchemaError(
            f"A form is a pydantic model class or a JSON Schema, not {type(source).__name__}."
        )
    try:
        text = json.dumps(source, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FormSchemaError(f"This schema can't be written as JSON: {error}.") from error
    return _of_text(text)


def resolver_of(schema: Schema) -> Any:
    """Return a resolver for the ``$ref``s of a schema. It knows the schema and nothing else."""
    return Registry().resolver_with_root(DRAFT202012.create_resource(schema))


def own_fields(schema: Schema) -> tuple[Schema, list[str]]:
    """Return the properties of the object that a schema describes, and the names it requires.

    Looks through a ``$ref`` at the root (a model that contains itself is written so). A name that
    is required without being described is among the properties, open to any value.
    """
    resolver = resolver_of(schema)
    seen: set[int] = set()
    while "$ref" in schema and "properties" not in schema and id(schema) not in seen:
        seen.add(id(schema))
        found = resolver.lookup(schema["$ref"])
        if not isinstance(found.contents, dict):
            break
        schema, resolver = found.contents, found.resolver
    properties = dict(schema.get("properties", {}))
    required = list(schema.get("required", ()))
    for name in required:
        properties.setdefault(name, {})
    return properties, required


def _of_model(model: type[BaseModel]) -> Schema:
    try:
        schema = model.model_json_schema(mode="validation", by_alias=True)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise FormSchemaError(
            f"{model.__name__} has a field that no form can be made from: {error.message}"
        ) from error
    _inspect(schema, own_patterns=False)
    _check(schema)
    return schema


@lru_cache(maxsize=256)
def _of_text(text: str) -> Schema:
    try:
        schema: Schema = json.loads(text)
    except RecursionError as error:
        raise FormSchemaError("This schema is nested too deeply.") from error
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.rstrip("#") != DIALECT:
        raise FormSchemaError(f"Forms read JSON Schema 2020-12; this schema names {dialect!r}.")
    _inspect(schema, own_patterns=True)
    _check(schema)
    return schema


def _check(schema: Schema) -> None:
    try:
        # Without formats: the meta-schema's "regex" would measure patterns by another engine.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise FormSchemaError(
            f"This is not a JSON Schema 2020-12: at {error.json_path}, {error.message[:300]}"
        ) from error
    except RecursionError as error:
        raise FormSchemaError("This schema is nested too deeply.") from error
    if len(own_fields(schema)[0]) > MAX_FIELDS:
        raise FormSchemaError(f"A form has at most {MAX_FIELDS:,} fields.")


def _inspect(root: Schema, *, own_patterns: bool) -> None:
    """Walk every subschema, also those that only a ``$ref`` reaches; refuse what is unbounded.

    ``own_patterns``: patterns will be run by us (a model's are run by pydantic), so they must be
    ones that we can run.
    """
    seen: set[int] = set()
    keywords: set[str] = set()
    todo: list[tuple[Any, Any, int]] = [(root, resolver_of(root), 0)]
    while todo:
        schema, resolver, depth = todo.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        if depth > MAX_SCHEMA_DEPTH:
            raise FormSchemaError(f"A schema has at most {MAX_SCHEMA_DEPTH} levels.")
        if len(seen) > MAX_SUBSCHEMAS:
            raise FormSchemaError(f"A schema has at most {MAX_SUBSCHEMAS:,} parts.")
        keywords.update(schema)
        if own_patterns:
            _inspect_patterns(schema)
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                found = _follow(resolver, keyword, schema[keyword])
                todo.append((found.contents, found.resolver, depth + 1))
        for child in _children(schema):
            inner = resolver
            if isinstance(child, dict) and isinstance(child.get("$id"), str):
                inner = resolver.in_subresource(DRAFT202012.create_resource(child))
            todo.append((child, inner, depth + 1))
    if own_patterns and {"patternProperties", "unevaluatedProperties"} <= keywords:
        # The library matches these two together with an engine that has no time bound.
        raise FormSchemaError(
            "A form's schema can't use patternProperties and unevaluatedProperties together."
        )


def _follow(resolver: Any, keyword: str, reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise FormSchemaError(
            f"A form's schema refers only to itself: {keyword} {reference!r} has to start with #."
        )
    try:
        return resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError, KeyError, IndexError) as error:
        raise FormSchemaError(f"{keyword} {reference!r} points at nothing.") from error


def _inspect_patterns(schema: Schema) -> None:
    patterns = [schema["pattern"]] if "pattern" in schema else []
    if isinstance(schema.get("patternProperties"), dict):
        patterns += schema["patternProperties"]
    for pattern in patterns:
        if not isinstance(pattern, str):
            continue  # the meta-schema says it better
        if len(pattern) > MAX_PATTERN:
            raise FormSchemaError(f"A pattern has at most {MAX_PATTERN:,} characters.")
        compile_pattern(pattern)


def _children(schema: Schema) -> Iterator[Any]:
    """Yield direct subschemas. What stands in ``enum`` or ``default`` is data and left alone."""
    for keyword, value in schema.items():
        if keyword in _ONE:
            yield value
        elif keyword in _LISTS and isinstance(value, list):
            yield from value
        elif keyword in _MAPS and isinstance(value, dict):
            yield from value.values()
