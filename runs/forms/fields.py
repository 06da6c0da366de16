"""From a schema to the fields of a page."""

import re
from collections.abc import Mapping
from typing import Any, Final

from runs.engine.schemas.exact import canonical, write_json
from runs.engine.schemas.schema import Schema, own_fields, resolver_of
from runs.engine.schemas.text import storable, visible

from .field import Choice, Field, Widget
from .rules import number_rules, text_rules
from .shapes import Shape, hint_of, is_secret, shape_of

#: Up to so many choices stand on the page; more go into a list to open.
MAX_RADIOS: Final = 4

_MULTI_LINE: Final = ("multi-line", "multiline", "textarea")
_MISSING: Final = object()


def fields_of(
    schema: Schema, *, prefix: str, initial: Mapping[str, Any], defaults_apply: bool
) -> list[Field]:
    """Return the fields of a schema's properties, in order, showing ``initial`` or the defaults.

    ``defaults_apply``: what is left out gets its default (a model does that, a JSON Schema does
    not), so the help may promise it.
    """
    properties, required = own_fields(schema)
    resolver = resolver_of(schema)
    base = re.sub(r"[^a-z0-9]+", "-", prefix.lower()).strip("-") or "field"
    taken = {f"{prefix}{name}" for name in properties}
    fields = []
    for index, (name, subschema) in enumerate(properties.items()):
        shape = shape_of(subschema, resolver)
        html_name = _html_name(name, prefix, index, taken)
        made = _field(name, html_name, f"{base}-{index}", shape, name in required)
        given = initial.get(name, shape.schema.get("default", _MISSING))
        if given is not _MISSING and not made.secret:
            _show(made, given)
            if defaults_apply:
                made.help = f"{made.help} {_default_rule(made)}".strip()
        fields.append(made)
    fields.sort(key=_order)
    return fields


def text_of(field: Field, value: Any) -> str:
    """Return how a control of this field writes ``value``; what is not of its kind, as JSON."""
    if value is None and (field.nullable or field.kind != "json"):
        return ""
    if field.kind == "json":
        return storable(write_json(value, indent=2))
    if field.kind == "choice":
        wanted = canonical(value)
        fitting = (c.value for c in field.choices if c.value and canonical(c.member) == wanted)
        return next(fitting, "")
    return storable(value) if isinstance(value, str) else write_json(value)


def _field(name: str, html_name: str, field_id: str, shape: Shape, required: bool) -> Field:
    schema = shape.schema
    kind, members = shape.kind, shape.members
    if kind == "boolean" and (shape.nullable or not (required or "default" in schema)):
        # Three answers: yes, no and none. A checkbox has only two.
        kind, members = "choice", ((True, None), (False, None))
    made = Field(
        name=name,
        html_name=html_name,
        id=field_id,
        kind=kind,
        widget="input",
        label=_label(name, schema),
        help="",
        required=required,
        nullable=shape.nullable,
        schema=schema,
        choices=[],
        secret=kind == "string" and is_secret(schema),
    )
    if kind == "choice":
        made.choices = _choices(members, blank=made.optional)
    made.widget = _widget(made)
    if made.widget == "select" and not (made.choices and made.choices[0].value == ""):
        made.choices.insert(0, Choice("", "Choose one"))
    for index, choice in enumerate(made.choices):
        choice.id = f"{field_id}-{index}"
    made.placeholder = _placeholder(made)
    made.help = _help(made)
    return made


def _widget(field: Field) -> Widget:
    hint = hint_of(field.schema, "widget")
    if field.kind == "boolean":
        return "checkbox"
    if field.kind == "choice":
        few = sum(1 for choice in field.choices if choice.value) <= MAX_RADIOS
        if hint in ("radio", "radios"):
            few = True
        elif hint == "select":
            few = False
        return "radios" if few else "select"
    if field.kind == "json":
        return "textarea"
    if field.kind != "string" or field.secret:
        return "input"
    return "textarea" if hint in _MULTI_LINE or field.format in _MULTI_LINE else "input"


def _choices(members: tuple[tuple[Any, str | None], ...], *, blank: bool) -> list[Choice]:
    # Strings stand for themselves; "1" beside 1, or "", would be taken for something else.
    plain = [v if isinstance(v, str) and v.isprintable() else write_json(v) for v, _ in members]
    clash = len(set(plain)) < len(plain) or "" in plain
    choices = [Choice("", "No answer")] if blank else []
    for (member, title), value in zip(members, plain, strict=True):
        if isinstance(title, str) and title:
            label = title
        elif isinstance(member, bool):
            label = "Yes" if member else "No"
        elif isinstance(member, str) and not clash and member.strip():
            label = member
        else:
            label = write_json(member)
        value = write_json(member) if clash else value
        choices.append(Choice(storable(value), visible(label), member))
    return choices


def _show(field: Field, value: Any) -> None:
    field.text = text_of(field, value)
    for choice in field.choices:
        choice.selected = choice.value == field.text


def _default_rule(field: Field) -> str:
    default = field.schema.get("default")
    if field.required or field.nullable or default in (None, ""):
        return ""
    if field.kind in ("choice", "boolean"):
        return ""  # these can't be emptied
    return f"Left empty, this is {visible(text_of(field, default))}."


def _html_name(name: str, prefix: str, index: int, taken: set[str]) -> str:
    # A browser rewrites line ends in names, and some characters can't be sent at all.
    if name and name.isprintable() and len(name) <= 200:
        return f"{prefix}{name}"
    made = f"{prefix}[{index}]"
    while made in taken:
        made += "_"
    taken.add(made)
    return made


def _order(field: Field) -> float:
    order = hint_of(field.schema, "order")
    is_number = isinstance(order, int | float) and not isinstance(order, bool) and order == order
    return order if is_number else float("inf")


def _label(name: str, schema: Schema) -> str:
    title = schema.get("title")
    words = name.replace("_", " ").strip()
    # Pydantic gives every field a title made of its name; that one says nothing of its own.
    if isinstance(title, str) and title.strip() and title != name.title().replace("_", " ").strip():
        return visible(title.strip())
    return visible(words[:1].upper() + words[1:]) or "Answer"


def _placeholder(field: Field) -> str:
    hint = hint_of(field.schema, "placeholder")
    if isinstance(hint, str):
        return visible(hint)
    examples = field.schema.get("examples")
    if isinstance(examples, list) and examples and field.kind not in ("choice", "boolean"):
        return visible(text_of(field, examples[0]))
    return ""


def _help(field: Field) -> str:
    schema = field.schema
    parts = []
    for text in (schema.get("description"), hint_of(schema, "help")):
        if isinstance(text, str) and text.strip():
            parts.append(visible(text.strip()))
    if field.kind in ("integer", "number", "decimal"):
        parts += number_rules(schema)
    elif field.kind == "string":
        parts += text_rules(schema)
    return " ".join(part if part.endswith((".", "!", "?", ":")) else f"{part}." for part in parts)
