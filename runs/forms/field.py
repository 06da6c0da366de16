"""One field of a form, as the page draws it."""

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.forms.utils import flatatt
from django.utils.safestring import SafeString

from runs.engine.schemas.formats import is_date, is_time
from runs.engine.schemas.schema import Schema

from .shapes import Kind

Widget = Literal["input", "textarea", "checkbox", "select", "radios"]

_ONE_TOKEN: Final = {"date", "time", "date-time", "duration", "email", "uri", "uuid"}
_HTML_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?")


@dataclass(slots=True)
class Choice:
    """One member of an enumeration. ``value`` is what the page submits for ``member``."""

    value: str
    label: str
    member: Any = None
    selected: bool = False
    id: str = ""


@dataclass(slots=True)
class Field:
    """One field of a form: what the page draws, and what is needed to read what it submits.

    ``required``: the answer has to have a value here. ``nullable``: left empty, it is null.
    ``text`` is what the control shows; for a checkbox ``"true"`` means ticked.
    """

    name: str
    html_name: str
    id: str
    kind: Kind
    widget: Widget
    label: str
    help: str
    required: bool
    nullable: bool
    schema: Schema
    choices: list[Choice]
    placeholder: str = ""
    secret: bool = False
    text: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def format(self) -> str:
        """The format that the schema names, or ``""``."""
        found = self.schema.get("format")
        return found if isinstance(found, str) else ""

    @property
    def one_token(self) -> bool:
        """Whether space around the text can't be meant."""
        return self.kind != "string" or self.format in _ONE_TOKEN

    @property
    def may_be_blank(self) -> bool:
        """Whether ``""`` is an answer here: only where the schema says so, by ``minLength: 0``."""
        return (
            self.kind == "string"
            and self.required
            and not self.nullable
            and self.schema.get("minLength") == 0
        )

    @property
    def optional(self) -> bool:
        """Whether the page says that this field may be left empty."""
        if self.kind in ("boolean", "choice") and self.schema.get("default") is not None:
            return self.nullable  # what is chosen from the start can't be emptied
        return self.widget != "checkbox" and (not self.required or self.nullable)

    @property
    def checked(self) -> bool:
        """Whether a checkbox is ticked."""
        return self.text == "true"

    @property
    def template(self) -> str:
        """The template of the control."""
        return f"forms/{self.widget}.html"

    @property
    def help_id(self) -> str:
        """The id of the help text."""
        return f"{self.id}-help"

    @property
    def errors_id(self) -> str:
        """The id of the list of messages."""
        return f"{self.id}-errors"

    @property
    def focus_id(self) -> str:
        """The id of the element that takes the focus."""
        return self.choices[0].id if self.widget == "radios" and self.choices else self.id

    @property
    def described_by(self) -> str:
        """The ids of what explains this field."""
        ids = ([self.help_id] if self.help else []) + ([self.errors_id] if self.errors else [])
        return " ".join(ids)

    @property
    def native(self) -> dict[str, str | bool]:
        """Constraints that browsers know themselves; for comfort only, the server decides.

        Numbers, addresses and e-mail are text to the browser: its own controls for them change
        what was typed (a wheel over a number, Punycode for a domain). ``maxlength`` is left out
        because it cuts what is pasted, and patterns because browsers read them another way.
        """
        attributes: dict[str, str | bool] = {}
        if self.required and not self.nullable and not self.may_be_blank:
            attributes["required"] = self.widget != "checkbox"
        if self.widget == "input":
            attributes["type"] = self._input_type()
            attributes["inputmode"] = self._input_mode()
            if attributes["type"] == "time":
                attributes["step"] = "any"
        if self.kind == "string" and self.widget in ("input", "textarea"):
            least = self.schema.get("minLength")
            if isinstance(least, int) and least > 1:
                attributes["minlength"] = str(least)
        return {name: value for name, value in attributes.items() if value}

    @property
    def attributes(self) -> SafeString:
        """Every attribute of an input, textarea or select but its value, escaped."""
        attributes: dict[str, Any] = {
            "id": self.id,
            "name": self.html_name,
            **self._plain_text_attributes(),
            **self.native,
        }
        if self.placeholder and self.widget in ("input", "textarea"):
            attributes["placeholder"] = self.placeholder
        if self.described_by:
            attributes["aria-describedby"] = self.described_by
        if self.errors:
            attributes["aria-invalid"] = "true"
        return flatatt(attributes)

    def _plain_text_attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {"autocomplete": "off", "translate": "no"}
        if self.widget in ("input", "textarea") and (self.one_token or self.secret):
            attributes |= {"autocapitalize": "off", "spellcheck": "false"}
        return attributes

    def _input_type(self) -> str:
        if self.secret:
            return "password"
        # A browser blanks a date or time that it can't show; what was typed has to stay.
        if self.format == "date" and (not self.text or is_date(self.text)):
            return "date"
        if self.format == "time" and (not self.text or _is_html_time(self.text)):
            return "time"
        return "text"

    def _input_mode(self) -> str:
        if self.kind == "integer":
            # Keypads for numbers have no minus on some phones.
            return "numeric" if _lower_bound(self.schema) >= 0 else ""
        if self.kind in ("number", "decimal"):
            return "decimal" if _lower_bound(self.schema) >= 0 else ""
        return {"email": "email", "uri": "url"}.get(self.format, "")


def _lower_bound(schema: Schema) -> float:
    bounds = [schema[key] for key in ("minimum", "exclusiveMinimum") if schema.get(key) is not None]
    return max(bounds, default=-1)


def _is_html_time(text: str) -> bool:
    return is_time(text) and _HTML_TIME.fullmatch(text) is not None
