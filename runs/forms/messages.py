"""What a person reads when an answer is refused.

One message for every error type of pydantic and every keyword of JSON Schema; a test fails if one
is missing. A message says what to do, and never repeats what was entered.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from runs.engine.schemas.exact import NOT_FINITE, OUT_OF_RANGE, show_number, write_json
from runs.engine.schemas.text import visible

NEEDED: Final = "This is needed."
NOT_ACCEPTED: Final = "This is not accepted."
NOT_KNOWN: Final = "This is not part of the form. Leave it out."

#: Characters of one message; a model's own text may be of any length.
_MAX_MESSAGE: Final = 1_000

_TEXT = "Enter text."
_WHOLE = "Enter a whole number."
_NUMBER = "Enter a number, for example 12.50."
_DATE = "Enter a date as year-month-day, for example 2026-11-30."
_TIME = "Enter a time as hours and minutes, for example 14:30."
_DATE_TIME = "Enter a date, a time and its zone, for example 2026-11-30 14:30Z or 14:30+01:00."
_DURATION = "Enter a duration, for example P1DT2H for one day and two hours."
_YES_OR_NO = "Answer with yes or no."
_LIST = "Enter a list."
_OBJECT = "Enter an object: names with their values."
_URL = "Enter a full address, for example https://example.org/page."
_UUID = "Enter a UUID: 32 hexadecimal digits in five groups."
_NOT_POSSIBLE = "No answer of this kind can be given in a form. Ask the flow's author."

#: What each checked format asks for.
FORMATS: Final[Mapping[str, str]] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": _DATE_TIME,
    "duration": _DURATION,
    "email": "Enter an e-mail address, for example name@example.org.",
    "uri": _URL,
    "uuid": _UUID,
    "ipv4": "Enter an IPv4 address, for example 192.0.2.10.",
    "ipv6": "Enter an IPv6 address, for example 2001:db8::10.",
    "regex": "Enter a regular expression.",
}

_TYPES: Final = {
    "string": _TEXT,
    "integer": _WHOLE,
    "number": _NUMBER,
    "boolean": _YES_OR_NO,
    "array": _LIST,
    "object": _OBJECT,
    "null": "Leave this empty.",
}

#: For each error type of pydantic, the message as a format string over the error's context.
PYDANTIC: Final[Mapping[str, str]] = {
    "no_such_attribute": NOT_KNOWN,
    "json_invalid": "This is not JSON.",
    "json_type": "Enter text that holds JSON.",
    "needs_python_object": _NOT_POSSIBLE,
    "recursion_loop": "This refers to itself without end.",
    "recursion_depth_exceeded": "This is nested too deeply.",
    "missing": NEEDED,
    "frozen_field": "This can't be changed.",
    "frozen_instance": "This can't be changed.",
    "extra_forbidden": NOT_KNOWN,
    "invalid_key": "Every name has to be text.",
    "get_attribute_error": NOT_ACCEPTED,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "dataclass_exact_type": _OBJECT,
    "named_tuple_type": "Enter a list, or names with their values.",
    "default_factory_not_called": "The default of this depends on another field that is not right.",
    "none_required": "Leave this empty.",
    "greater_than": "More than {gt}.",
    "greater_than_equal": "No less than {ge}.",
    "less_than": "Less than {lt}.",
    "less_than_equal": "No more than {le}.",
    "multiple_of": "Enter a multiple of {multiple_of}.",
    "finite_number": NOT_FINITE,
    "too_short": "Give at least {min_length} {unit}.",
    "too_long": "Give no more than {max_length} {unit}.",
    "iterable_type": _LIST,
    "iteration_error": NOT_ACCEPTED,
    "string_type": _TEXT,
    "string_unicode": "Enter text; this holds bytes that are not text.",
    "string_too_short": "Use at least {min_length} characters.",
    "string_too_long": "Use no more than {max_length} characters.",
    "string_pattern_mismatch": "This does not have the right form. The rule is: {pattern}",
    "string_not_ascii": "Use only plain letters, digits and signs (ASCII).",
    "enum": "Choose one of: {expected}.",
    "dict_type": _OBJECT,
    "frozen_dict_type": _OBJECT,
    "ordered_dict_type": _OBJECT,
    "counter_type": "Enter an object: names with a whole number each.",
    "mapping_type": _OBJECT,
    "list_type": _LIST,
    "deque_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "set_item_not_hashable": "Use only simple values in this list.",
    "bool_type": _YES_OR_NO,
    "bool_parsing": _YES_OR_NO,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": OUT_OF_RANGE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bytes_type": _TEXT,
    "bytes_too_short": "Use at least {min_length} bytes.",
    "bytes_too_long": "Use no more than {max_length} bytes.",
    "bytes_invalid_encoding": "Enter data in the {encoding} encoding.",
    "value_error": "{error}",
    "assertion_error": "{error}",
    "literal_error": "Choose one of: {expected}.",
    "missing_sentinel_error": "Leave this out.",
    "ellipsis_error": _NOT_POSSIBLE,
    "date_type": _DATE,
    "date_parsing": _DATE,
    "date_from_datetime_parsing": _DATE,
    "date_from_datetime_inexact": "Enter a date without a time.",
    "date_past": "Enter a date in the past.",
    "date_future": "Enter a date in the future.",
    "time_type": _TIME,
    "time_parsing": _TIME,
    "datetime_type": _DATE_TIME,
    "datetime_parsing": _DATE_TIME,
    "datetime_object_invalid": _DATE_TIME,
    "datetime_from_date_parsing": _DATE_TIME,
    "datetime_past": "Enter a time in the past.",
    "datetime_future": "Enter a time in the future.",
    "timezone_naive": "Leave the time zone out.",
    "timezone_aware": "Add the time zone, for example Z for UTC or +01:00.",
    "timezone_offset": "Use another time zone: the offset has to be {tz_expected}.",
    "time_delta_type": _DURATION,
    "time_delta_parsing": _DURATION,
    "frozen_set_type": _LIST,
    "is_instance_of": _NOT_POSSIBLE,
    "is_subclass_of": _NOT_POSSIBLE,
    "callable_type": _NOT_POSSIBLE,
    "union_tag_invalid": "Set {discriminator} to one of: {expected_tags}.",
    "union_tag_not_found": "Say which kind this is: {discriminator} is needed.",
    "arguments_type": "Enter a list, or names with their values.",
    "missing_argument": NEEDED,
    "unexpected_keyword_argument": NOT_KNOWN,
    "missing_keyword_only_argument": NEEDED,
    "unexpected_positional_argument": NOT_KNOWN,
    "missing_positional_only_argument": NEEDED,
    "multiple_argument_values": "Give this only once.",
    "url_type": _URL,
    "url_parsing": _URL,
    "url_syntax_violation": _URL,
    "url_too_long": "Use an address of no more than {max_length} characters.",
    "url_scheme": "Enter an address that starts with one of: {expected_schemes}.",
    "uuid_type": _UUID,
    "uuid_parsing": _UUID,
    "uuid_version": "Enter a UUID of version {expected_version}.",
    "decimal_type": _NUMBER,
    "decimal_parsing": _NUMBER,
    "decimal_max_digits": "Use no more than {max_digits} digits in all.",
    "decimal_max_places": "Use no more than {decimal_places} digits after the point.",
    "decimal_whole_digits": "Use no more than {whole_digits} digits before the point.",
    "fraction_type": "Enter a fraction, for example 3/4.",
    "fraction_parsing": "Enter a fraction, for example 3/4.",
    "complex_type": "Enter a complex number, for example 1+2j.",
    "complex_str_parsing": "Enter a complex number, for example 1+2j.",
    # Types that pydantic raises from its own Python code, under names of their own.
    "base64_decode": "Enter base64 text.",
    "byte_size": "Enter a size, for example 10 MB.",
    "byte_size_unit": "Enter a size with a known unit, for example 10 MB.",
    "bytes_schema": _TEXT,
    "color_error": "Enter a colour, for example #3366cc.",
    "import_error": "Enter the dotted name of something that exists.",
    "ip_any_address": "Enter an IP address, for example 192.0.2.10.",
    "ip_any_interface": "Enter an IP address with its network, for example 192.0.2.10/24.",
    "ip_any_network": "Enter a network, for example 192.0.2.0/24.",
    "not_operation_failed": NOT_ACCEPTED,
    "path_type": "Enter a path.",
    "payment_card_number_digits": "Enter the card number with digits only.",
    "payment_card_number_luhn": "This card number has a typing error.",
    "pattern_type": FORMATS["regex"],
    "pattern_str_type": FORMATS["regex"],
    "pattern_bytes_type": FORMATS["regex"],
    "predicate_failed": NOT_ACCEPTED,
    "sequence_str": _LIST,
}


def pydantic_message(kind: str, context: Mapping[str, Any] | None, own: str) -> str:
    """Return the message for a pydantic error.

    ``kind`` is its type, ``context`` its ``ctx``, ``own`` its ``msg``: shown for the types that a
    model's author made up (``PydanticCustomError``). What a validator raises as ``ValueError`` or
    ``AssertionError`` is shown as it is.
    """
    values = {name: _shown(value) for name, value in (context or {}).items()}
    # Text types of pydantic's own making (a secret, say) report their length as a "value".
    values["unit"] = "characters" if values.get("field_type") == "Value" else "entries"
    if kind in ("value_error", "assertion_error") and "error" not in values:
        return bounded(own)  # a custom error under pydantic's own name
    template = PYDANTIC.get(kind)
    message = own if template is None else template.format_map(_Lenient(values))
    return bounded(message)


#: For each keyword of JSON Schema, a function from the keyword's value to the message.
KEYWORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "$ref": lambda _: NOT_ACCEPTED,
    "$dynamicRef": lambda _: NOT_ACCEPTED,
    "additionalProperties": lambda _: NOT_KNOWN,
    "allOf": lambda _: NOT_ACCEPTED,
    "anyOf": lambda _: "This fits none of the forms that are possible here.",
    "const": lambda value: f"This has to be {_shown(value)}.",
    "contains": lambda _: "Something needed in this list is missing, or there too often.",
    "dependentRequired": lambda _: NEEDED,
    "dependentSchemas": lambda _: NOT_ACCEPTED,
    "enum": lambda value: f"Choose one of: {_listed(value)}.",
    "exclusiveMaximum": lambda value: f"Less than {show_number(value)}.",
    "exclusiveMinimum": lambda value: f"More than {show_number(value)}.",
    "format": lambda value: FORMATS.get(value, "This does not have the right form."),
    "if": lambda _: NOT_ACCEPTED,
    "items": lambda _: "This list holds too much.",
    "maxItems": lambda value: f"Give no more than {_counted(value, 'entry', 'entries')}.",
    "maxLength": lambda value: f"Use no more than {_counted(value, 'character')}.",
    "maxProperties": lambda value: f"Give no more than {_counted(value, 'entry', 'entries')}.",
    "maximum": lambda value: f"No more than {show_number(value)}.",
    "minItems": lambda value: f"Give at least {_counted(value, 'entry', 'entries')}.",
    "minLength": lambda value: f"Use at least {_counted(value, 'character')}.",
    "minProperties": lambda value: f"Give at least {_counted(value, 'entry', 'entries')}.",
    "minimum": lambda value: f"No less than {show_number(value)}.",
    "multipleOf": lambda value: f"Enter a multiple of {show_number(value)}.",
    "not": lambda _: NOT_ACCEPTED,
    "oneOf": lambda _: "This has to fit exactly one of the forms that are possible here.",
    "pattern": lambda value: f"This does not have the right form. The rule is: {value}",
    "patternProperties": lambda _: NOT_ACCEPTED,
    "prefixItems": lambda _: NOT_ACCEPTED,
    "properties": lambda _: NOT_ACCEPTED,
    "propertyNames": lambda _: "This name is not accepted.",
    "required": lambda _: NEEDED,
    "type": lambda value: _typed(value),
    "unevaluatedItems": lambda _: "This list holds something that is not accepted.",
    "unevaluatedProperties": lambda _: NOT_KNOWN,
    "uniqueItems": lambda _: "Give everything in this list only once.",
}


def keyword_message(keyword: str | None, value: Any) -> str:
    """Return the message for a JSON Schema keyword that an answer does not meet.

    ``keyword`` is ``None`` where the schema is ``false``: nothing at all fits.
    """
    return NOT_ACCEPTED if keyword is None else bounded(KEYWORDS[keyword](value))


def bounded(message: str) -> str:
    """Return ``message`` ready for a page: hidden characters visible, an end after 1,000."""
    message = visible(message.strip()) or NOT_ACCEPTED
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}\u2026"


class _Lenient(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, BaseException | str | timedelta):
        return str(value)
    if isinstance(value, list | dict) or value is None:
        return write_json(value)
    return show_number(value)


def _listed(values: list[Any]) -> str:
    shown = [_shown(value) for value in values[:10]]
    return ", ".join(shown) + (" \u2026" if len(values) > 10 else "")


def _typed(value: str | list[str]) -> str:
    names = [value] if isinstance(value, str) else [name for name in value if name != "null"]
    return _TYPES[names[0]] if len(names) == 1 else f"Enter one of: {', '.join(names)}."


def _counted(number: float, one: str, many: str = "") -> str:
    return f"{show_number(number)} {one if number == 1 else many or one + 's'}"
