"""A form: a source, what was submitted for it, and the page's view of both."""

from collections.abc import Mapping
from typing import Any, Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from pydantic_core import to_jsonable_python

from runs.engine.schemas.exact import Unreadable, fraction
from runs.engine.schemas.limits import MAX_FIELDS
from runs.engine.schemas.schema import FormSource, Schema, is_model, schema_of
from runs.engine.schemas.text import storable

from .checking import Errors, check
from .field import Field
from .fields import fields_of
from .messages import bounded, keyword_message
from .values import ABSENT, parse

_SENT_TWICE: Final = "This was sent more than once. Send it once."
_NO_TEXT: Final = "This has to be sent as text."


class SchemaForm:
    """A form for an answer.

    ``source``: a pydantic model class or a JSON Schema (2020-12).
    ``prefix``: stands before each field's name in the page, such as ``"form."``. Submitted keys
    without it belong to others and are ignored; with it, an unknown name is refused. An empty
    prefix can't tell the two apart and ignores what it does not know.
    ``data``: what was submitted (a ``QueryDict``, or a mapping of names to text or lists of text);
    ``None`` for a form that has not been submitted.
    ``initial``: values by field name, shown instead of the defaults.

    Raises ``FormSchemaError`` for a source that no form can be made from, and never for data.
    """

    def __init__(
        self,
        source: FormSource,
        *,
        prefix: str = "",
        data: Mapping[str, Any] | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        self.source = source
        self.prefix = prefix
        self.schema: Schema = schema_of(source)
        self.fields: list[Field] = fields_of(
            self.schema,
            prefix=prefix,
            initial=to_jsonable_python(dict(initial or {})),
            defaults_apply=is_model(source),
        )
        self.is_bound = data is not None
        self._content: dict[str, Any] = {}
        self._value: Any = None
        self._errors: Errors = {}
        if data is not None:
            self._bind(data)

    def is_valid(self) -> bool:
        """Whether something was submitted and it is right."""
        return self.is_bound and not self._errors

    @property
    def content(self) -> dict[str, Any]:
        """The answer as it was read: what JSON can hold, numbers exact, decimals as their text.

        Whole only if the form is valid; otherwise what could be read.
        """
        return self._content

    @property
    def value(self) -> Any:
        """The checked answer: an instance of the model, or the content for a JSON Schema.

        ``None`` if the form is not valid.
        """
        return self._value

    @property
    def errors(self) -> Errors:
        """Messages by field name; ``""`` holds those about the form as a whole."""
        return self._errors

    @property
    def whole_errors(self) -> list[str]:
        """Messages about the form as a whole."""
        return self._errors.get("", [])

    @property
    def whole_errors_id(self) -> str:
        """The id of the list of messages about the form as a whole."""
        return f"{self.fields[0].id.rpartition('-')[0] if self.fields else 'form'}-errors"

    @property
    def first_invalid(self) -> str:
        """The id of the element to put the focus on, ``""`` if nothing is wrong."""
        if self.whole_errors:
            return self.whole_errors_id
        return next((field.focus_id for field in self.fields if field.errors), "")

    def set_errors_aside(self) -> None:
        """Draw what was entered without saying what is wrong with it: it is not what was asked."""
        self._errors = {}
        for field in self.fields:
            field.errors = []

    def render(self) -> SafeString:
        """Return the fields as HTML, to stand inside a form element of the page."""
        return render_to_string("forms/form.html", {"form": self})

    def _bind(self, data: Mapping[str, Any]) -> None:
        own = [name for name in data if self.prefix and str(name).startswith(self.prefix)]
        if len(own) > MAX_FIELDS:
            too_many = f"Too many fields were sent. A form has at most {MAX_FIELDS:,}."
            self._errors = {"": [too_many]}
            return
        unread = self._read(data, own)
        value, found = check(self.source, self._content)
        if unread:
            # A rule about the whole can't be judged while a part of it is missing.
            found = {name: said for name, said in found.items() if name}
        self._errors = {**found, **unread}
        if not self._errors:
            self._value = value
        for field in self.fields:
            field.errors = self._errors.get(field.name, []) if field.name else []

    def _read(self, data: Mapping[str, Any], own: list[str]) -> Errors:
        """Fill the fields and the content from ``data``; return what could not be read.

        ``own``: the keys of ``data`` that carry the prefix.
        """
        names = {field.html_name for field in self.fields}
        errors: Errors = {}
        unknown = [bounded(f"The form has no field {name}.") for name in own if name not in names]
        if unknown:
            errors[""] = unknown[:10]
        is_model_source = is_model(self.source)
        for field in self.fields:
            try:
                text = _one_text(data, field.html_name)
                _keep(field, text)
                value = parse(field, text)
                if field.kind == "decimal" and isinstance(value, str) and not is_model_source:
                    _check_bounds(field, value)
            except Unreadable as error:
                errors.setdefault(field.name, []).append(str(error))
            else:
                if value is not ABSENT:
                    self._content[field.name] = value
        return errors


def _one_text(data: Mapping[str, Any], name: str) -> str | None:
    """Return the text submitted under a name, ``None`` if there is none."""
    if name not in data:
        return None
    found = data.getlist(name) if hasattr(data, "getlist") else data[name]
    texts = found if isinstance(found, list | tuple) else [found]
    if len(texts) > 1:
        raise Unreadable(_SENT_TWICE)
    if texts and not isinstance(texts[0], str):
        raise Unreadable(_NO_TEXT)
    return texts[0] if texts else None


def _keep(field: Field, text: str | None) -> None:
    """Show in the field what was submitted; a secret never goes back to the page."""
    field.text = "" if text is None or field.secret else storable(text)
    if field.kind == "boolean":
        field.text = "true" if text in ("true", "on") else ""
    for choice in field.choices:
        choice.selected = text is not None and choice.value == text


def _check_bounds(field: Field, text: str) -> None:
    """Check a decimal against the bounds of its number: a JSON Schema skips them for text."""
    value = fraction(text)
    for keyword, fails in (
        ("minimum", lambda bound: value < bound),
        ("exclusiveMinimum", lambda bound: value <= bound),
        ("maximum", lambda bound: value > bound),
        ("exclusiveMaximum", lambda bound: value >= bound),
        ("multipleOf", lambda step: value % step != 0),
    ):
        bound = field.schema.get(keyword)
        if bound is not None and fails(fraction(bound)):
            raise Unreadable(keyword_message(keyword, bound))
