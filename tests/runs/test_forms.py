"""Forms from schemas: fields, what is read from them, and the check of the answer."""

import json
import re
import sys
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from html.parser import HTMLParser
from typing import Any, Literal
from uuid import UUID

import pytest
from django.http import QueryDict
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError, _pydantic_core

from runs.forms import Field as FormField
from runs.forms import FormSchemaError, SchemaForm, check, schema_of
from runs.forms.messages import KEYWORDS, PYDANTIC, keyword_message, pydantic_message


class Method(Enum):
    CASH = "cash"
    CARD = "card"


class Refund(BaseModel):
    amount: Decimal = Field(ge=0, le=Decimal("1480.00"), decimal_places=2)
    count: int = 3
    note: str = Field(default="", max_length=20, description="For the customer")
    urgent: bool
    method: Method = Method.CARD
    day: date | None = None


def only(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def field(source: Any, name: str = "x", **options: Any) -> FormField:
    return next(f for f in SchemaForm(source, **options).fields if f.name == name)


def submit(schema: Any, text: str | None) -> SchemaForm:
    """Submit a form of one required property "x"."""
    source = only({"x": schema}, "x")
    return SchemaForm(source, prefix="form.", data={} if text is None else {"form.x": text})


def message(schema: Any, text: str | None) -> str:
    form = submit(schema, text)
    assert not form.is_valid()
    assert set(form.errors) == {"x"}
    return form.errors["x"][0]


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag in tags]


# From a model to its answer


def test_a_model_gives_its_fields_and_takes_its_answer() -> None:
    form = SchemaForm(
        Refund,
        prefix="form.",
        data=QueryDict("form.amount=12.50&form.count=7&form.method=cash&form.day=2026-11-30"),
    )
    assert form.is_valid()
    assert form.content == {
        "amount": "12.50",
        "count": 7,
        "urgent": False,
        "method": "cash",
        "day": "2026-11-30",
    }
    assert form.value == Refund(
        amount=Decimal("12.50"), count=7, urgent=False, method=Method.CASH, day=date(2026, 11, 30)
    )
    assert str(form.value.amount) == "12.50"


def test_a_form_that_was_not_submitted_is_not_valid_and_shows_its_defaults() -> None:
    form = SchemaForm(Refund)
    assert not form.is_valid()
    assert form.errors == {}
    assert form.value is None
    shown = {f.name: f.text for f in form.fields}
    assert shown == {
        "amount": "", "count": "3", "note": "", "urgent": "", "method": "card", "day": "",
    }  # fmt: skip


def test_initial_values_stand_before_defaults() -> None:
    initial = {"amount": Decimal("1.10"), "count": 0, "day": date(2026, 1, 2), "urgent": True}
    form = SchemaForm(Refund, initial=initial)
    shown = {f.name: f.text for f in form.fields}
    assert shown["amount"] == "1.10"
    assert shown["count"] == "0"
    assert shown["day"] == "2026-01-02"
    assert field(Refund, "urgent", initial=initial).checked


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer", "default": 0}, "0"),
        ({"type": "number", "default": 0.5}, "0.5"),
        ({"type": "boolean", "default": False}, "false"),
        ({"type": "string", "default": ""}, ""),
        ({"enum": ["a", False, 0], "default": False}, "false"),
        ({"enum": ["a", False, 0], "default": 0}, "0"),
        ({"type": "array", "default": [1]}, "[\n  1\n]"),
        ({"default": None}, "null"),
    ],
)
def test_falsy_defaults_are_shown_as_what_they_are(schema: Any, text: str) -> None:
    assert field(only({"x": schema})).text == text


def test_what_a_model_fills_in_for_an_emptied_field_is_said() -> None:
    assert "Left empty, this is 3." in field(Refund, "count").help
    form = SchemaForm(Refund, data={"amount": "1", "count": ""})
    assert form.is_valid()
    assert "count" not in form.content
    assert form.value.count == 3
    assert "Left empty" not in field(only({"x": {"type": "integer", "default": 3}})).help


def test_a_strict_model_takes_dates_and_decimals_from_a_form() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True, extra="forbid")
        amount: Decimal
        day: date
        at: datetime
        clock: time
        key: UUID

    key = "12345678-1234-5678-1234-567812345678"
    form = SchemaForm(
        Strict,
        data={
            "amount": "0.10", "day": "2026-11-30", "at": "2026-11-30 14:30 z",
            "clock": "14:30", "key": key, "csrfmiddlewaretoken": "other",
        },
    )  # fmt: skip
    assert form.is_valid(), form.errors
    assert form.content["at"] == "2026-11-30T14:30:00Z"
    assert form.value.clock == time(14, 30)
    assert form.value.key == UUID(key)


def test_aliases_name_the_fields_and_their_errors() -> None:
    class Aliased(BaseModel):
        order_id: int = Field(alias="orderId")

    assert SchemaForm(Aliased, data={"orderId": "5"}).value.order_id == 5
    assert check(Aliased, {"orderId": "five"})[1] == {"orderId": ["Enter a whole number."]}


def test_a_models_own_validators_speak_at_their_field_in_their_own_words() -> None:
    class Own(BaseModel):
        low: int
        high: int

        @field_validator("low")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("Only even numbers, please.")
            if value == 4:
                raise PydanticCustomError("four", "Not {n}.", {"n": 4})
            return value

        @model_validator(mode="after")
        def ordered(self) -> "Own":
            if self.low > self.high:
                raise ValueError("Low has to come before high.")
            return self

    assert check(Own, {"low": 1, "high": 2})[1] == {"low": ["Only even numbers, please."]}
    assert check(Own, {"low": 4, "high": 5})[1] == {"low": ["Not 4."]}
    form = SchemaForm(Own, prefix="f.", data={"f.low": "6", "f.high": "2"})
    assert form.errors == {"": ["Low has to come before high."]}
    assert form.first_invalid == "f-errors"
    assert 'id="f-errors"' in form.render()


class Tells(BaseModel):
    pin: SecretStr
    note: str = ""

    @field_validator("note")
    @classmethod
    def quotes_the_pin(cls, note: str, info: ValidationInfo) -> str:
        raise ValueError(f"{info.data['pin'].get_secret_value()} and Bearer abcdef0123456789ABCDEF")


def test_a_validator_that_quotes_a_secret_does_not_bring_it_to_the_page() -> None:
    _, errors = check(Tells, {"pin": "hunter2", "note": "x"})
    (message,) = errors["note"]
    assert "hunter2" not in message
    assert "abcdef0123456789" not in message
    assert "[hidden]" in message


def test_a_validator_that_breaks_is_a_message_and_its_text_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(BaseModel):
        x: str

        @field_validator("x")
        @classmethod
        def broken(cls, value: str) -> str:
            raise KeyError(value)

    value, errors = check(Broken, {"x": "hunter2"})
    assert value is None
    assert "could not be checked" in errors[""][0]
    assert "KeyError" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_model_that_contains_itself_has_its_fields() -> None:
    class Node(BaseModel):
        name: str
        child: "Node | None" = None

    form = SchemaForm(Node, data={"name": "a", "child": '{"name": "b"}'})
    assert form.value.child.name == "b"
    assert [f.kind for f in form.fields] == ["string", "json"]


# Numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        (" -7 ", -7),
        ("+0", 0),
        ("1234567890123456789012345", 1234567890123456789012345),
        ("9" * 4000, int("9" * 4000)),
    ],
)
def test_whole_numbers_of_any_size_are_exact(text: str, value: int) -> None:
    content = submit({"type": "integer"}, text).content["x"]
    assert content == value
    assert type(content) is int


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,480", "without separators"),
        ("1480.0", "without a point"),
        ("1e3", "without a point"),
        ("\u0661\u0662", "digits 0 to 9"),
        ("\u00b2", "digits 0 to 9"),
        ("\u22125", "plain hyphen"),
        ("NaN", "finite"),
        ("1_000", "without separators"),
        ("twelve", "Enter a whole number."),
        ("0x10", "Enter a whole number."),
        ("9" * 4001, "4,000 digits"),
        ("", "This is needed."),
        (" ", "This is needed."),
    ],
)
def test_what_is_no_whole_number_is_refused_with_the_way_to_write_it(
    text: str, expected: str
) -> None:
    assert expected in message({"type": "integer"}, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("5.0", 5.0),
        ("0.1", 0.1),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_numbers_are_read_as_written(text: str, value: float) -> None:
    content = submit({"type": "number"}, text).content["x"]
    assert content == value
    assert type(content) is type(value)


@pytest.mark.parametrize("kind", ["number", "decimal"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e999999", "too large"),
        ("1e-999999", "too large or too small"),
        ("NaN", "finite"),
        ("Infinity", "finite"),
        ("-inf", "finite"),
        ("\u0661\u0662", "digits 0 to 9"),
        ("1,480.00", "1480.00"),
        ("12,50", "decimal point"),
        ("1 480", "thousands separators"),
        ("x", "Enter a number"),
        (".", "Enter a number"),
    ],
)
def test_what_is_no_number_is_refused_with_the_way_to_write_it(
    kind: str, text: str, expected: str
) -> None:
    schemas = {
        "number": {"type": "number"},
        "decimal": {"anyOf": [{"type": "number"}, {"type": "string"}]},
    }
    assert expected in message(schemas[kind], text)


def test_a_fraction_that_would_be_rounded_is_refused() -> None:
    assert "more digits" in message({"type": "number"}, "0.12345678901234567890")
    assert "too large" in message({"type": "number"}, "1e309")
    assert "too small" in message({"type": "number"}, "1e-400")


def test_decimals_keep_every_digit_and_their_scale() -> None:
    class Price(BaseModel):
        x: Decimal
        y: Decimal | None = Decimal("1.50")

    text = "0.100000000000000000000000000000000001000"
    form = SchemaForm(Price, data={"x": text, "y": ""})
    assert form.content == {"x": text, "y": None}
    assert str(form.value.x) == text
    assert field(Price, "y").text == "1.50"


def test_bounds_are_said_in_numbers_a_person_reads() -> None:
    over = SchemaForm(Refund, data={"amount": "1480.01"}).errors["amount"]
    assert over == ["No more than 1,480.00."]
    assert "From 0 to 1,480." in field(Refund, "amount").help


def test_the_bounds_of_a_decimal_hold_in_a_stored_schema_too() -> None:
    stored = json.loads(json.dumps(schema_of(Refund)))
    assert not SchemaForm(stored, data={"amount": "1480.01"}).is_valid()
    assert SchemaForm(stored, data={"amount": "1480.00"}).content["amount"] == "1480.00"


def test_multiples_are_judged_by_the_numbers_as_written() -> None:
    schema = {"type": "number", "multipleOf": 0.1}
    assert submit(schema, "0.3").is_valid()
    assert message(schema, "0.35") == "Enter a multiple of 0.1."


# Absent, null, empty and falsy


def test_optional_text_left_empty_is_left_out() -> None:
    form = SchemaForm(only({"x": {"type": "string"}}), data={"x": ""})
    assert form.is_valid()
    assert form.content == {}


def test_nullable_text_left_empty_is_null_and_what_was_not_sent_is_absent() -> None:
    schema = only({"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}})
    assert SchemaForm(schema, data={"x": ""}).content == {"x": None}
    assert SchemaForm(schema, data={}).content == {}
    assert SchemaForm(only({"x": {"type": ["integer", "null"]}}), data={"x": ""}).content == {
        "x": None
    }


def test_required_text_left_empty_is_needed_unless_the_schema_says_length_zero() -> None:
    assert message({"type": "string"}, "") == "This is needed."
    assert message({"type": "string"}, None) == "This is needed."
    assert submit({"type": "string", "minLength": 0}, "").content == {"x": ""}


def test_text_is_kept_as_it_is_but_for_line_ends() -> None:
    assert submit({"type": "string"}, "  a\r\nb ").content == {"x": "  a\nb "}
    assert submit({"type": "string", "format": "email"}, " a@b ").content == {"x": "a@b"}


def test_a_required_boolean_may_be_false() -> None:
    assert submit({"type": "boolean"}, None).content == {"x": False}
    assert submit({"type": "boolean"}, "true").content == {"x": True}
    assert "box" in message({"type": "boolean"}, "maybe")


def test_a_boolean_that_may_be_left_open_has_three_answers() -> None:
    nullable = {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None}
    labels = [choice.label for choice in field(only({"x": nullable})).choices]
    assert labels == ["No answer", "Yes", "No"]
    given = [submit(nullable, text).content["x"] for text in ("", "true", "false")]
    assert given == [None, True, False]
    assert SchemaForm(only({"x": {"type": "boolean"}}), data={"x": ""}).content == {}


def test_a_box_that_has_to_be_ticked_is_refused_unticked() -> None:
    assert field(only({"x": {"const": True}}, "x")).widget == "checkbox"
    assert submit({"const": True}, "true").content == {"x": True}
    assert message({"const": True}, None) == "This has to be yes."


# Choices


def test_members_that_look_alike_stay_apart() -> None:
    schema = {"enum": [1, "1", True, "true", None, "", [1], {"a": 1}]}
    made = field(only({"x": schema}, "x"))
    values = [choice.value for choice in made.choices]
    assert len(set(values)) == len(values)
    for choice in made.choices:
        content = submit(schema, choice.value).content["x"]
        assert content == choice.member
        assert type(content) is type(choice.member)


def test_plain_texts_are_submitted_as_themselves() -> None:
    made = field(Refund, "method")
    assert [(c.value, c.label) for c in made.choices] == [("cash", "cash"), ("card", "card")]
    assert made.widget == "radios"
    assert not made.optional


def test_a_choice_that_is_not_offered_is_refused() -> None:
    assert message({"enum": ["a", "b"]}, "c") == "Choose one of the options."


def test_up_to_four_choices_are_radio_buttons_and_more_are_a_list() -> None:
    assert field(only({"x": {"enum": list("abcd")}}, "x")).widget == "radios"
    assert field(only({"x": {"enum": list("abcde")}}, "x")).widget == "select"
    assert field(only({"x": {"enum": ["a"], "x-widget": "select"}}, "x")).widget == "select"
    assert field(only({"x": {"enum": list("abcde"), "x-widget": "radios"}}, "x")).widget == "radios"


def test_titled_constants_are_choices_with_their_titles() -> None:
    schema = {"oneOf": [{"const": 1, "title": "Low"}, {"const": 2, "title": "High"}]}
    assert [c.label for c in field(only({"x": schema}, "x")).choices] == ["Low", "High"]
    assert submit(schema, "2").content == {"x": 2}


def test_literals_of_a_model_are_kept_exact() -> None:
    class Chosen(BaseModel):
        x: Literal[1, "1", True]

    assert [
        SchemaForm(Chosen, data={"x": choice.value}).content["x"]
        for choice in field(Chosen).choices
    ] == [1, "1", True]


# Texts with a format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date", "2026-11-30", "30.11.2026"),
        ("time", "14:30:00", "25:00"),
        ("time", "14:30:00Z", "noon"),
        ("date-time", "2026-11-30T14:30:00+01:00", "2026-11-30T14:30:00"),
        ("email", "a@example.org", "a@b@c"),
        ("uri", "https://example.org/a", "example"),
        ("uuid", "12345678-1234-5678-1234-567812345678", "1234"),
        ("duration", "P1DT2H", "P"),
        ("ipv4", "192.0.2.1", "192.0.2.256"),
        ("ipv6", "2001:db8::1", "2001"),
        ("regex", "^a+$", "("),
    ],
)
def test_formats_are_checked(name: str, good: str, bad: str) -> None:
    schema = {"type": "string", "format": name}
    assert submit(schema, good).content == {"x": good}
    assert message(schema, bad).startswith("Enter ")


def test_a_missing_time_zone_is_asked_for_where_the_model_wants_one() -> None:
    class Planned(BaseModel):
        at: AwareDatetime

    errors = SchemaForm(Planned, data={"at": "2026-11-30 14:30"}).errors
    assert errors["at"] == ["Add the time zone, for example Z for UTC or +01:00."]
    assert SchemaForm(Planned, data={"at": "2026-11-30 14:30+01:00"}).is_valid()


def test_a_number_is_not_taken_for_a_date() -> None:
    class Planned(BaseModel):
        at: datetime
        day: date

    form = SchemaForm(Planned, data={"at": "1700000000", "day": "1700000000"})
    assert set(form.errors) == {"at", "day"}


def test_multi_line_text_is_a_textarea_by_format_or_hint() -> None:
    assert field(only({"x": {"type": "string", "format": "multi-line"}})).widget == "textarea"
    assert field(only({"x": {"type": "string", "x-widget": "multiline"}})).widget == "textarea"
    assert field(only({"x": {"type": "string"}})).widget == "input"


def test_a_secret_is_never_sent_back() -> None:
    class Login(BaseModel):
        key: SecretStr = Field(min_length=8)
        name: str

    form = SchemaForm(Login, data={"key": "hunter2"}, initial={"key": "hunter2"})
    assert form.errors["key"] == ["Give at least 8 characters."]
    html = form.render()
    assert "hunter2" not in html
    assert 'type="password"' in html
    assert "hunter2" not in SchemaForm(Login, initial={"key": "hunter2"}).render()


# JSON for what has no field of its own


def test_other_values_are_json_for_that_part_only_and_checked_like_the_rest() -> None:
    class Order(BaseModel):
        lines: list[dict[str, int]]
        note: str

    form = SchemaForm(Order, data={"lines": '[{"a": 1}, {"b": "x"}]', "note": "n"})
    assert form.errors == {"lines": ["item 2, b: Enter a whole number."]}
    assert [f.kind for f in form.fields] == ["json", "string"]
    assert re.search(r"Lines \(JSON\)", form.render())
    assert SchemaForm(Order, data={"lines": "[]", "note": "n"}).value.lines == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "a": 1,\n  oops\n}', "line 3, column 3"),
        ("[1, 2", "line 1, column 6"),
        ('{"a": 1, "a": 2}', 'The key "a" stands twice'),
        ("NaN", "finite"),
        ("[-Infinity]", "finite"),
        ("[1e999]", "too large"),
        ("[0.1234567890123456789]", "more digits"),
        ("[" * 60 + "]" * 60, "nested too deeply"),
        ("[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ("[" + "9" * 4001 + "]", "4,000 digits"),
        (f"[{'0,' * 20_000}0]", "20,000 values"),
        ('["\\u0000"]', "NUL"),
        ('["\\ud800"]', "surrogate"),
        ('{"\\ud800": 1}', "surrogate"),
    ],
)
def test_bad_json_says_what_and_where(text: str, expected: str) -> None:
    assert expected in message({}, text)


def test_json_keys_mean_nothing_special_and_numbers_stay_exact() -> None:
    text = '{"__proto__": {"a": 123456789012345678901234567890}, "b": 0.1}'
    assert submit({"type": "object"}, text).content["x"] == json.loads(text)


def test_an_optional_json_part_left_empty_is_left_out() -> None:
    source = only({"x": {"type": "array"}, "y": {"type": ["array", "null"]}})
    assert SchemaForm(source, data={"x": "", "y": ""}).content == {"y": None}


def test_one_alternative_that_fits_by_type_explains_itself() -> None:
    schema = {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]}
    assert message(schema, '[1, "x"]') == "item 2: Enter a whole number."
    assert message(schema, "5") == "This fits none of the forms that are possible here."


# The check of an answer without a page


def test_check_gives_the_value_or_the_errors() -> None:
    value, errors = check(Refund, {"amount": "1.00", "urgent": True})
    assert errors == {}
    assert isinstance(value, Refund)
    assert check(Refund, {"amount": "x"}) == (
        None,
        {"amount": ["Enter a number, for example 12.50."], "urgent": ["This is needed."]},
    )
    schema = only({"x": {"type": "integer"}}, "x")
    content = {"x": 10**30, "more": 1}
    assert check(schema, content) == (content, {})
    assert check(schema, {}) == (None, {"x": ["This is needed."]})


@pytest.mark.parametrize("source", [Refund, only({"amount": {"type": "number"}}, "amount")])
@pytest.mark.parametrize(
    "content",
    [
        None, [], "x", 5, True, {}, {"amount": float("nan")}, {"amount": object()}, {1: 2},
        {"amount": "\0"}, {"amount": "\ud800"}, {"\ud800": 1}, {"amount": 10**5000},
        {"amount": b"1"}, {str(i): i for i in range(1001)},
    ],
)  # fmt: skip
def test_no_answer_can_make_the_check_fail(source: Any, content: Any) -> None:
    value, errors = check(source, content)
    assert value is None
    assert errors
    json.dumps(errors, ensure_ascii=False).encode()


def test_an_answer_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["x"] = loop
    assert "nested too deeply" in check(only({"x": {}}), loop)[1]["x"][0]


def test_conditions_between_fields_speak_at_the_field_that_is_missing() -> None:
    schema = {
        **only({"card": {"type": "string"}, "code": {"type": "string"}, "z": {}}),
        "dependentRequired": {"card": ["code"]},
        "if": {"required": ["code"]},
        "then": {"required": ["z"]},
    }
    assert check(schema, {"card": "1"})[1] == {"code": ["This is needed."]}
    assert check(schema, {"code": "1"})[1] == {"z": ["This is needed."]}


def test_unknown_members_are_named_where_the_schema_forbids_them() -> None:
    schema = {**only({"x": {}}), "additionalProperties": False, "patternProperties": {"^y": {}}}
    assert check(schema, {"x": 1, "y1": 2})[1] == {}
    assert check(schema, {"z": 1})[1] == {"": ["z: This is not part of the form. Leave it out."]}


@pytest.mark.parametrize(
    ("items", "unique"),
    [([1, 1.0], False), ([1, True], True), ([{"a": 1}, {"a": 1}], False), ([[0], [False]], True)],
)
def test_equal_items_are_equal_as_json_schema_has_it(items: list[Any], unique: bool) -> None:
    assert (check(only({"x": {"uniqueItems": True}}), {"x": items})[1] == {}) is unique


# What is submitted


def test_a_field_sent_twice_is_refused() -> None:
    form = SchemaForm(Refund, prefix="form.", data=QueryDict("form.amount=1&form.amount=2"))
    assert form.errors["amount"] == ["This was sent more than once. Send it once."]


def test_unknown_names_are_refused_under_the_prefix_and_ignored_beside_it() -> None:
    source = only({"x": {"type": "string"}})
    assert SchemaForm(source, prefix="form.", data={"form.x": "a", "decision": "b"}).is_valid()
    form = SchemaForm(source, prefix="form.", data={"form.x": "a", "form.y": "b"})
    assert form.errors == {"": ["The form has no field form.y."]}
    assert SchemaForm(source, data={"x": "a", "y": "b"}).content == {"x": "a"}


def test_too_many_fields_are_refused() -> None:
    data = {f"form.{number}": "x" for number in range(1001)}
    form = SchemaForm(Refund, prefix="form.", data=data)
    assert form.errors == {"": ["Too many fields were sent. A form has at most 1,000."]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\0b", "NUL"), ("a\ud800b", "surrogate"), ("\u20ac" * 34_134, "100 KB")],
)
def test_text_that_can_not_be_kept_is_refused_and_can_still_be_shown(
    text: str, expected: str
) -> None:
    assert expected in message({"type": "string"}, text)
    submit({"type": "string"}, text).render().encode()


def test_text_up_to_the_limit_is_taken() -> None:
    assert submit({"type": "string"}, "a" * 102_400).is_valid()


def test_what_is_not_text_is_refused() -> None:
    assert SchemaForm(only({"x": {}}, "x"), data={"x": 5}).errors == {
        "x": ["This has to be sent as text."]
    }


def test_all_errors_are_told_at_once_and_the_input_is_kept() -> None:
    form = SchemaForm(
        Refund, prefix="form.", data={"form.amount": "1,0", "form.note": "n" * 21, "form.day": "x"}
    )
    assert set(form.errors) == {"amount", "note", "day"}
    assert form.errors["note"] == ["Use no more than 20 characters."]
    assert {f.name: f.text for f in form.fields}["amount"] == "1,0"
    assert form.first_invalid == "form-0"
    html = form.render()
    assert 'value="1,0"' in html
    assert 'value="x"' in html


# Schemas


@pytest.mark.parametrize(
    "source", [True, {}, {"type": "object"}, {"properties": {}}, {"$defs": {}}]
)
def test_a_schema_without_properties_is_a_form_without_fields(source: Any) -> None:
    form = SchemaForm(source, data={})
    assert form.fields == []
    assert form.is_valid()
    assert form.content == {}
    assert form.render().strip() == ""


@pytest.mark.parametrize("source", [False, {"type": "string"}, {"not": {}}])
def test_a_schema_that_no_object_fits_has_a_message_and_no_fields(source: Any) -> None:
    form = SchemaForm(source, data={})
    assert form.fields == []
    assert set(form.errors) == {""}


def test_boolean_properties_are_drawn_and_checked() -> None:
    assert submit(True, '{"a": 1}').content == {"x": {"a": 1}}
    assert message(False, "1") == "This is not accepted."


def test_a_name_that_is_required_and_not_described_has_a_field() -> None:
    assert submit({}, "5").content == {"x": 5}
    assert SchemaForm({"required": ["x"]}, data={"x": "5"}).content == {"x": 5}


@pytest.mark.parametrize(
    "reference",
    ["https://example.org/a.json", "file:///etc/passwd", "other.json", "//host/a", "", 5],
)
def test_references_out_of_the_schema_are_refused(reference: Any) -> None:
    deep = {"$defs": {"a": {"items": {"$ref": reference}}}, "properties": {"x": {}}}
    with pytest.raises(FormSchemaError, match="refers only to itself"):
        schema_of(deep)
    hidden = {"x-parts": {"a": {"$ref": reference}}, "$ref": "#/x-parts/a"}
    with pytest.raises(FormSchemaError, match="refers only to itself"):
        schema_of(hidden)


def test_a_reference_to_nothing_is_refused() -> None:
    with pytest.raises(FormSchemaError, match="points at nothing"):
        schema_of({"$ref": "#/$defs/missing"})
    with pytest.raises(FormSchemaError, match="points at nothing"):
        schema_of({"properties": {"x": {"$ref": "#nowhere"}}})


def test_what_only_looks_like_a_reference_is_data() -> None:
    schema = only({"$ref": {"type": "string"}, "x": {"enum": [{"$ref": "http://example.org"}]}})
    assert [f.name for f in SchemaForm(schema).fields] == ["$ref", "x"]


def test_references_anchors_and_single_members_are_followed() -> None:
    schema = {
        "$defs": {"n": {"$anchor": "num", "type": "integer", "title": "Number"}},
        "properties": {
            "a": {"$ref": "#num"},
            "b": {"allOf": [{"$ref": "#/$defs/n"}], "title": "Bee"},
        },
    }
    made = SchemaForm(schema).fields
    assert [(f.kind, f.label) for f in made] == [("integer", "A"), ("integer", "Bee")]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "strin"},
        {"properties": []},
        {"properties": {"x": 5}},
        {"required": "x"},
        {"properties": {"x": {"pattern": "("}}},
        {"properties": {"x": {"pattern": "a" * 1001}}},
        {"properties": {"x": {"pattern": "(?=a)b"}}},
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"properties": {str(i): {} for i in range(1001)}},
        {"default": {1, 2}},
        {"default": float("nan")},
        "a string",
        None,
        int,
    ],
)
def test_a_schema_that_can_not_be_used_is_refused_when_it_is_read(source: Any) -> None:
    with pytest.raises(FormSchemaError):
        SchemaForm(source)


def test_a_model_without_a_schema_is_refused() -> None:
    class Callback(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        x: HTMLParser

    with pytest.raises(FormSchemaError, match="Callback"):
        schema_of(Callback)


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"items": deep}
    with pytest.raises(FormSchemaError, match="64 levels"):
        schema_of(deep)
    for _ in range(sys.getrecursionlimit()):
        deep = {"items": deep}
    with pytest.raises(FormSchemaError):
        schema_of(deep)


def test_a_reference_to_itself_ends_with_a_message() -> None:
    schema = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    assert field(schema).kind == "json"
    assert "too long" in SchemaForm(schema, data={"x": "1"}).errors[""][0]


def test_a_small_schema_that_asks_for_endless_work_ends_with_a_message() -> None:
    definitions: dict[str, Any] = {"d60": {"type": "integer"}}
    for number in range(60):
        target = {"$ref": f"#/$defs/d{number + 1}"}
        definitions[f"d{number}"] = {"allOf": [target, target]}
    schema = {"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/d0"}}}
    with pytest.raises(FormSchemaError, match="64 levels"):
        schema_of(schema)
    schema["properties"]["x"] = {"$ref": "#/$defs/d35"}
    del schema["$defs"]
    schema["$defs"] = {k: v for k, v in definitions.items() if int(k[1:]) >= 35}
    assert "too long" in check(schema, {"x": 1})[1][""][0]


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "(.*)*x$"])
def test_a_hostile_pattern_ends(pattern: str) -> None:
    text = "a" * 50_000 + "b"
    assert "right form" in message({"type": "string", "pattern": pattern}, text)
    names = {"x": {"patternProperties": {pattern: False}, "additionalProperties": {}}}
    assert check(only(names), {"x": {text: 1}})[1] == {}


def test_patterns_are_found_anywhere_in_the_text() -> None:
    assert submit({"type": "string", "pattern": "b"}, "abc").is_valid()
    assert submit({"type": "string", "pattern": r"^\p{Letter}+$"}, "\u00e9t\u00e9").is_valid()
    assert r"The rule is: ^\d$" in message({"type": "string", "pattern": r"^\d$"}, "x")


def test_odd_hints_and_alternatives_do_no_harm() -> None:
    odd: list[Any] = [[], {}, 5, None, True, float("1e300")]
    for value in odd:
        hints = {f"x-{name}": value for name in ("order", "widget", "placeholder", "help")}
        schema = only({"x": {"type": "string", **hints}, "y": {"enum": [value], **hints}})
        SchemaForm(schema).render().encode()
    assert message({"oneOf": [False]}, "1") == (
        "This has to fit exactly one of the forms that are possible here."
    )


KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)  # fmt: skip
SCHEMAS = st.recursive(
    st.booleans()
    | st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=5),
            "const": VALUES,
            "title": st.text(st.characters(), max_size=4),
            "default": VALUES,
            "format": st.sampled_from(["date", "time", "date-time", "email", "other"]),
            "multipleOf": st.floats(1e-5, 1e9),
            "x-order": VALUES,
            "x-widget": VALUES,
            "$ref": st.just("#"),
        },
    ),
    lambda inner: (
        st.dictionaries(
            st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=3)
        )
        | st.fixed_dictionaries({"items": inner, "properties": st.dictionaries(st.text(), inner)})
    ),
    max_leaves=6,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(st.characters(), max_size=3), SCHEMAS, max_size=4), st.data())
def test_whatever_is_drawn_and_submitted_ends_in_an_answer_or_messages(
    properties: dict[str, Any], data: st.DataObject
) -> None:
    schema = {"properties": properties}
    shown = SchemaForm(schema, prefix="form.")
    shown.render().encode()
    submitted = {
        field.html_name: data.draw(
            st.sampled_from([field.text, "1", "[]", '"a"', *(c.value for c in field.choices)])
            | st.text(st.characters(), max_size=6)
        )
        for field in shown.fields
    }
    form = SchemaForm(schema, prefix="form.", data=submitted)
    form.render().encode()
    assert form.is_valid() is not bool(form.errors)
    if form.is_valid():
        assert check(schema, json.loads(json.dumps(form.content))) == (form.content, {})
    else:
        assert form.first_invalid


# Messages


def test_every_error_type_of_pydantic_has_a_message() -> None:
    for kind in _pydantic_core.list_all_errors():
        assert kind["type"] in PYDANTIC, f"{kind['type']}: {kind['message_template_python']}"
        said = pydantic_message(kind["type"], kind.get("example_context"), "own")
        assert said
        assert "?" not in said, f"{kind['type']} has no such context: {said}"
        assert not said.startswith("Input "), kind["type"]


def test_every_keyword_of_json_schema_has_a_message() -> None:
    assert set(KEYWORDS) == set(Draft202012Validator.VALIDATORS)
    values: dict[str, Any] = {"type": "string", "enum": ["a"], "format": "date", "pattern": "a"}
    for keyword in KEYWORDS:
        assert keyword_message(keyword, values.get(keyword, 1)).endswith((".", "a"))


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": "string", "minLength": 2}, "a", "Use at least 2 characters."),
        ({"type": "string", "maxLength": 1}, "ab", "Use no more than 1 character."),
        ({"type": "integer", "minimum": 1500}, "1", "No less than 1,500."),
        ({"type": "integer", "maximum": 1480.0}, "1481", "No more than 1,480."),
        ({"type": "integer", "exclusiveMinimum": 1}, "1", "More than 1."),
        ({"type": "integer", "exclusiveMaximum": 1}, "1", "Less than 1."),
        ({"type": "array", "minItems": 2}, "[1]", "Give at least 2 entries."),
        ({"type": "array", "uniqueItems": True}, "[1, 1]", "only once"),
        ({"type": "object", "required": ["a"]}, "{}", "a: This is needed."),
        ({"type": "array"}, "{}", "Enter a list."),
        ({"not": {"type": "integer"}}, "1", "This is not accepted."),
    ],
)
def test_messages_say_what_to_do(schema: Any, text: str, expected: str) -> None:
    assert expected in message(schema, text)


# The page


def test_every_control_has_a_label_and_is_tied_to_its_help_and_errors() -> None:
    form = SchemaForm(
        Refund, prefix="form.", data={"form.amount": "x", "form.note": "n" * 21, "form.method": "?"}
    )
    elements = Elements(form.render())
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    labels = {attributes.get("for") for attributes in elements.all("label")}
    for control in elements.all("input", "textarea", "select"):
        assert control["id"] in labels or control["type"] in ("checkbox", "radio")
        assert control["autocomplete"] == "off"
        assert control["translate"] == "no"
    for attributes in (attributes for _, attributes in elements.found):
        for described in (attributes.get("aria-describedby") or "").split():
            assert described in ids
        assert "style" not in attributes
    note = next(c for c in elements.all("input") if c.get("name") == "form.note")
    assert note["aria-invalid"] == "true"
    assert note["aria-describedby"] == "form-2-help form-2-errors"
    group = next(c for c in elements.all("div") if c.get("role") == "radiogroup")
    assert group["aria-invalid"] == "true"
    assert group["aria-labelledby"] in ids


def test_focus_goes_to_the_first_option_of_a_choice() -> None:
    form = SchemaForm(only({"x": {"enum": ["a", "b"]}}, "x"), prefix="form.", data={})
    assert form.first_invalid == "form-0-0"
    assert 'id="form-0-0"' in form.render()


def test_optional_fields_are_marked_and_needed_ones_are_native_constraints() -> None:
    html = SchemaForm(Refund).render()
    assert re.search(r"Note \(optional\)", html)
    assert re.search(r"Amount\s*</label>", html)
    elements = Elements(html)
    required = {c["name"] for c in elements.all("input") if "required" in c}
    assert required == {"amount"}


def test_labels_hints_and_values_of_a_hostile_schema_are_escaped() -> None:
    evil = '"><script>alert(1)</script>\u202e\ud800'
    schema = only(
        {
            evil: {"type": "string", "title": evil, "description": evil, "default": evil},
            "y": {"enum": [evil, evil + "2"], "examples": [evil]},
            "z": {"type": "string", "x-help": evil, "x-placeholder": evil},
        },
        evil,
    )
    form = SchemaForm(schema, prefix="form.", data={f"form.{evil}": evil, "form.z": evil})
    for html in (form.render(), SchemaForm(schema).render()):
        assert "<script" not in html
        assert "\\u202e" in html
        html.encode()


def test_names_that_a_page_can_not_carry_get_another_and_keep_their_answer() -> None:
    schema = only({"a\nb": {"type": "string"}, "": {"type": "string"}, "[0]": {"type": "string"}})
    form = SchemaForm(schema)
    names = [f.html_name for f in form.fields]
    assert len(set(names)) == 3
    assert all(name.isprintable() and name for name in names)
    answer = SchemaForm(schema, data={name: str(index) for index, name in enumerate(names)})
    assert answer.content == {"a\nb": "0", "": "1", "[0]": "2"}


def test_titles_descriptions_examples_and_hints_are_shown() -> None:
    class Hinted(BaseModel):
        last: str = Field(title="Family name", examples=["Doe"], description="As on the card")
        first: str = Field(json_schema_extra={"x-order": 1, "x-placeholder": "Jo", "help": "Short"})

    form = SchemaForm(Hinted)
    assert [f.name for f in form.fields] == ["first", "last"]
    first, last = form.fields
    assert (first.label, first.placeholder, first.help) == ("First", "Jo", "Short.")
    assert (last.label, last.placeholder, last.help) == ("Family name", "Doe", "As on the card.")
    assert 'placeholder="Doe"' in form.render()


def test_a_date_or_time_that_a_browser_would_blank_is_shown_as_text() -> None:
    date_schema, time_schema = ({"type": "string", "format": name} for name in ("date", "time"))
    assert field(only({"x": date_schema})).native["type"] == "date"
    assert field(only({"x": date_schema}), data={"x": "30.11.2026"}).native["type"] == "text"
    assert field(only({"x": time_schema}), data={"x": "14:30:00Z"}).native["type"] == "text"
    assert field(only({"x": time_schema}), data={"x": "14:30"}).native["type"] == "time"


def test_a_leading_line_feed_survives_the_textarea() -> None:
    form = SchemaForm(only({"x": {"type": "string", "format": "multi-line"}}), data={"x": "\na"})
    assert re.search(r"<textarea [^>]*>\n\na</textarea>", form.render())


def test_a_form_that_is_sent_back_as_it_was_shown_gives_what_it_showed() -> None:
    shown = SchemaForm(Refund, prefix="form.", initial={"amount": "12.50", "note": " a "})
    data = {f.html_name: f.text for f in shown.fields if f.widget != "checkbox" or f.checked}
    form = SchemaForm(Refund, prefix="form.", data=data)
    assert form.is_valid()
    assert form.value == Refund(amount=Decimal("12.50"), note=" a ", urgent=False)
