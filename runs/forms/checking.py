"""The check of an answer: the whole truth about it, with or without a page."""

import logging
import traceback
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from jsonschema.exceptions import ValidationError as SchemaViolation
from pydantic import BaseModel, ValidationError

from runs.engine.answers import validate_content
from runs.engine.redact import redact_text
from runs.engine.schemas.exact import content_problem
from runs.engine.schemas.limits import MAX_ERRORS, MAX_FIELDS
from runs.engine.schemas.schema import FormSource, Schema, is_model, own_fields, schema_of
from runs.engine.schemas.validators import CheckTooLong, validator_of

from .messages import bounded, keyword_message, pydantic_message
from .shapes import is_secret

logger = logging.getLogger(__name__)

#: Characters below which an entered secret is not looked for in messages: it would be found in
#: ordinary words.
MIN_SECRET: Final = 3

#: Messages by field name; ``""`` holds those about the answer as a whole.
Errors = dict[str, list[str]]

_TOO_LONG: Final = "This answer takes too long to check. Give a simpler one."
_CHECK_FAILED: Final = (
    "This answer could not be checked: the form's own validation stopped with an error. "
    "Ask the flow's author."
)


def check(source: FormSource, content: Any) -> tuple[Any, Errors]:
    """Check an answer that has already been read, such as one from the API.

    ``content`` is made of what JSON has. With a model, pydantic validates it as JSON by alias, the
    model's own validators included; a JSON Schema is checked in full, with formats.

    Returns ``(value, {})``, the value being an instance of the model or ``content`` itself; or
    ``(None, errors)``. Never raises for an answer, whatever it is; raises ``FormSchemaError`` for
    a source that no form can be made from.
    """
    schema = schema_of(source)
    errors = _content_errors(content, schema)
    if errors:
        return None, errors
    if is_model(source):
        return _check_model(source, schema, content)  # type: ignore[arg-type]
    return _check_schema(schema, content)


def _content_errors(content: Any, schema: Schema) -> Errors:
    problem = content_problem(content)
    if problem is None:
        if isinstance(content, dict) and len(content) > MAX_FIELDS:
            return {"": [f"This holds too many fields. Use at most {MAX_FIELDS:,}."]}
        return {}
    found = _Found(schema)
    if isinstance(content, dict):
        for name, part in islice(content.items(), MAX_FIELDS):
            of_part = content_problem(part)
            if of_part and isinstance(name, str):
                found.add([name], of_part)
    return found.errors or {"": [problem]}


def _check_model(model: type[BaseModel], schema: Schema, content: Any) -> tuple[Any, Errors]:
    try:
        return validate_content(model, content), {}
    except ValidationError as error:
        found = _Found(schema)
        details = error.errors(include_url=False, include_input=False)
        for detail in islice(details, MAX_ERRORS):
            path = _real_path(detail["loc"], content, missing=detail["type"] == "missing")
            message = pydantic_message(detail["type"], detail.get("ctx"), detail["msg"])
            found.add(path, _without_secrets(message, schema, content))
        return None, found.errors
    except Exception as error:
        # A validator of the author's that fails must not take the page down. Its message may
        # hold what was entered, so the log gets the place and the kind only.
        logger.error(
            "A validator of %s raised %s:\n%s",
            model.__qualname__,
            type(error).__name__,
            "".join(traceback.format_tb(error.__traceback__)),
        )
        return None, {"": [_CHECK_FAILED]}


def _real_path(location: Iterable[Any], content: Any, *, missing: bool) -> list[Any]:
    """Drop from pydantic's location what names a union's member and not a place in the answer."""
    steps = list(location)
    path: list[Any] = []
    for index, step in enumerate(steps):
        inside = (isinstance(content, dict) and step in content) or (
            isinstance(content, list) and isinstance(step, int) and step < len(content)
        )
        if inside:
            content = content[step]
        if inside or index == 0 or (missing and index == len(steps) - 1):
            path.append(step)
    return path


def _without_secrets(message: str, schema: Schema, content: Any) -> str:
    """A message for a person: a validator of the author's may quote what was entered, secrets
    included."""
    message = redact_text(message)
    if isinstance(content, dict):
        for name, part in own_fields(schema)[0].items():
            value = content.get(name)
            if is_secret(part) and isinstance(value, str) and len(value) >= MIN_SECRET:
                message = message.replace(value, "[hidden]")
    return message


def _check_schema(schema: Schema, content: Any) -> tuple[Any, Errors]:
    found = _Found(schema)
    try:
        for violation in validator_of(schema).errors(content):
            _explain(found, violation)
    except (CheckTooLong, RecursionError):
        return None, {"": [_TOO_LONG]}
    return (None, found.errors) if found.errors else (content, {})


def _explain(found: "_Found", violation: SchemaViolation) -> None:
    path = list(violation.absolute_path)
    keyword = violation.validator if isinstance(violation.validator, str) else None
    message = keyword_message(keyword, violation.validator_value)
    names = _names(keyword, violation.validator_value, violation.instance)
    inner = _only_fitting(violation) if keyword in ("anyOf", "oneOf") else []
    if names:
        for name in names:
            found.add([*path, name], message)
    elif inner:
        for each in inner:
            _explain(found, each)
    else:
        found.add(path, message)


def _names(keyword: str | None, value: Any, instance: Any) -> list[str]:
    """Return the members whose absence a keyword complains of, none for other keywords."""
    if keyword == "required":
        return [name for name in value if name not in instance]
    if keyword == "dependentRequired":
        needed = (name for given, names in value.items() if given in instance for name in names)
        return [name for name in dict.fromkeys(needed) if name not in instance]
    return []


def _only_fitting(violation: SchemaViolation) -> list[SchemaViolation]:
    """Return the errors of the one alternative whose type fits, if there is exactly one."""
    branches: dict[Any, list[SchemaViolation]] = {}
    for each in violation.context or ():
        if each.schema_path:  # an alternative that is simply ``false`` has none, and fits nothing
            branches.setdefault(each.schema_path[0], []).append(each)
    fitting = [
        errors
        for errors in branches.values()
        if not any(e.validator in ("type", "const") and not e.path for e in errors)
    ]
    return fitting[0] if len(fitting) == 1 else []


class _Found:
    """Collects messages, each at the field it speaks of."""

    def __init__(self, schema: Schema) -> None:
        self.errors: Errors = {}
        self._names = set(own_fields(schema)[0])

    def add(self, path: list[Any], message: str) -> None:
        """Add a message about the place that ``path`` leads to; say no message twice."""
        name, rest = "", path
        if path and path[0] in self._names:
            name, rest = path[0], path[1:]
        place = ", ".join(
            f"item {step + 1}" if isinstance(step, int) else str(step) for step in rest
        )
        said = bounded(f"{place}: {message}" if place else message)
        messages = self.errors.setdefault(name, [])
        if said not in messages:
            messages.append(said)
