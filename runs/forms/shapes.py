"""What a subschema comes down to: one kind of value, whether null is allowed, the choices.

References, single-member combinations and "this or null" are unfolded here, so that the rest of
the package sees ``{"type": "string", ...}`` where a person would see a line of text.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from referencing.exceptions import Unresolvable

from runs.engine.schemas.schema import Schema

Kind = Literal["string", "integer", "number", "decimal", "boolean", "choice", "json"]

#: Unfolding steps for one field; a schema that needs more goes to the JSON field.
_MAX_STEPS: Final = 32
_BOUNDS: Final = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """A subschema, unfolded.

    ``schema`` is for drawing only; what decides about an answer is always the whole source.
    ``members`` are the choices, as (value, title) pairs, null left out.
    """

    kind: Kind
    schema: Schema
    nullable: bool
    members: tuple[tuple[Any, str | None], ...] = ()


def shape_of(schema: Any, resolver: Any) -> Shape:
    """Return the shape of a property's schema; whatever has no simple one has the kind "json"."""
    try:
        unfolded, nullable = _unfold(schema, resolver)
    except Unresolvable:  # a reference from within an embedded schema with an $id of its own
        return Shape("json", {}, False)
    members = _members(unfolded)
    if members is not None:
        nullable = nullable or any(value is None for value, _ in members)
        members = [pair for pair in members if pair[0] is not None]
        if [value for value, _ in members] == [True] and members[0][0] is True and not nullable:
            return Shape("boolean", unfolded, nullable)  # a box that has to be ticked
        return Shape("choice", unfolded, nullable, tuple(members))
    bounds = _decimal_bounds(unfolded)
    if bounds is not None:
        return Shape("decimal", {**bounds, **unfolded}, nullable)
    kind = unfolded.get("type")
    if kind in ("string", "integer", "number", "boolean"):
        return Shape(kind, unfolded, nullable)
    return Shape("json", unfolded, nullable)


def _unfold(schema: Any, resolver: Any) -> tuple[Schema, bool]:
    nullable = False
    for _ in range(_MAX_STEPS):
        if not isinstance(schema, dict):
            return {}, nullable
        if "$ref" in schema:
            found = resolver.lookup(schema["$ref"])
            resolver = found.resolver
            # A definition's title names a type ("Currency"), not the field that uses it.
            schema = _merge(found.contents, schema, without="$ref", drop_title=True)
            continue
        combination = next((key for key in ("allOf", "anyOf", "oneOf") if key in schema), None)
        if combination:
            branches = schema[combination]
            rest = branches if combination == "allOf" else [b for b in branches if not _is_null(b)]
            nullable = nullable or len(rest) < len(branches)
            if len(rest) == 1:
                schema = _merge(rest[0], schema, without=combination)
                continue
            return {**schema, combination: rest}, nullable
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = [name for name in kind if name != "null"]
            nullable = nullable or len(rest) < len(kind)
            return {**schema, "type": rest[0] if len(rest) == 1 else rest}, nullable
        return schema, nullable
    return {}, nullable


def _merge(inner: Any, outer: Schema, *, without: str, drop_title: bool = False) -> Any:
    if not isinstance(inner, dict):
        inner = {}
    if drop_title:
        inner = {key: value for key, value in inner.items() if key != "title"}
    return {**inner, **{key: value for key, value in outer.items() if key != without}}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None)
    )


def _members(schema: Schema) -> list[tuple[Any, str | None]] | None:
    if "const" in schema:
        return [(schema["const"], None)]
    if "enum" in schema:
        return [(value, None) for value in schema["enum"]]
    if schema.get("type") == "null":
        return [(None, None)]
    for key in ("oneOf", "anyOf"):
        branches = schema.get(key)
        if branches and all(isinstance(b, dict) and "const" in b for b in branches):
            return [(branch["const"], branch.get("title")) for branch in branches]
    return None


def _decimal_bounds(schema: Schema) -> Schema | None:
    """Return the bounds if this is how pydantic writes a Decimal: a number or a string."""
    branches = schema.get("anyOf", ())
    if len(branches) != 2 or not all(isinstance(branch, dict) for branch in branches):
        return None
    number, text = sorted(branches, key=lambda branch: str(branch.get("type")))
    if number.get("type") != "number" or text.get("type") != "string":
        return None
    if set(number) - _BOUNDS - {"type"} or set(text) - {"type", "pattern"}:
        return None
    return {key: value for key, value in number.items() if key != "type"}


def hint_of(schema: Schema, name: str) -> Any:
    return schema.get(f"x-{name}", schema.get(name))


def is_secret(schema: Schema) -> bool:
    """Whether what is entered for a schema is hidden, and never sent back to a page."""
    return (
        schema.get("writeOnly") is True
        or schema.get("format") == "password"
        or hint_of(schema, "widget") in ("password", "secret")
    )
