"""Questions to a person: the message, the form, the ports, and where the answer goes."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretStr, field_validator

from runs.engine import END, START, Flow, Human, Secret

from .support import State, World, approve, deny, fails, output_of, question

SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "when": {"type": "string", "format": "date"},
        "password": {"type": "string", "maxLength": 3},
    },
    "required": ["amount"],
    "additionalProperties": False,
}


class Form(BaseModel):
    amount: int
    note: str = ""

    @field_validator("amount")
    @classmethod
    def positive(cls, amount: int) -> int:
        if amount < 1:
            raise ValueError("must be one or more")
        return amount


class Address(BaseModel):
    city: str = "Bern"
    lines: list[str] = ["a", "b"]


class Order(BaseModel):
    address: Address = Address()
    prices: dict[str, int] = {"book": 12}
    token: SecretStr = SecretStr("hunter2")
    password: str = "hunter3"
    answer: Any = None
    form: Form | None = None


def test_the_message_is_filled_from_the_state_also_deep_inside() -> None:
    flow = question(
        Human("To {address.city}, {address.lines[1]}, for {prices[book]:>4}."), state=Order
    )
    (request,) = World().run(flow, Order()).requests
    assert request.summary == "To Bern, b, for   12."
    assert request.kind == "human"
    assert request.tool == "node:flow.ask"
    assert request.arguments == {"address": Address(), "prices": {"book": 12}}


def test_a_message_shows_no_secret() -> None:
    flow = question(Human("With {token} and {password}?"), state=Order)
    (request,) = World().run(flow, Order()).requests
    for text in (request.summary, repr(request), str(request.shown())):
        assert "hunter" not in text


def test_a_message_without_fields_shows_nothing_of_the_state() -> None:
    (request,) = World().run(question(Human("Go on?")), State(text="private")).requests
    assert request.arguments == {}
    assert "private" not in repr(request)


def test_braces_are_written_twice() -> None:
    (request,) = World().run(question(Human("{{number}} is {number}")), State(number=3)).requests
    assert request.summary == "{number} is 3"


@pytest.mark.parametrize("content", [{"amount": 2}, {"amount": "2"}, Form(amount=2)], ids=str)
def test_the_answer_of_a_model_form_goes_into_its_field(content: Any) -> None:
    world, flow = World(), question(Human("How much?", form=Form, into="answer"), state=Order)
    done = world.resume(flow, world.run(flow, Order()), approve(content=content))
    assert done.state.answer == Form(amount=2)
    typed = question(Human("How much?", form=Form, into="form"), state=Order)
    done = world.resume(typed, world.run(typed, Order()), approve(content=content))
    assert done.state.form == Form(amount=2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "amount: Field required"),
        ({}, "amount: Field required"),
        ({"amount": 0}, "must be one or more"),
        ({"amount": "many"}, "amount: "),
        ("text", "form: "),
        ([], "form: "),
        (5, "form: "),
    ],
    ids=str,
)
def test_content_that_a_model_form_refuses_decides_nothing(content: Any, words: str) -> None:
    world, flow = World(), question(Human("How much?", form=Form, into="answer"), state=Order)
    paused = world.run(flow, Order())
    with fails("invalid-answer") as caught:
        world.resume(flow, paused, approve(content=content))
    assert words in str(caught.value)
    assert caught.value.node == "ask"
    assert len(world.store.pending()) == 1
    assert world.resume(flow, paused, approve(content={"amount": 1})).status == "completed"


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"amount": 0},
        {"amount": "2"},
        {"amount": 1, "more": 2},
        {"amount": 1, "when": "tomorrow"},
        {"amount": True},
        "text",
        5,
    ],
    ids=str,
)
def test_content_that_a_schema_refuses_decides_nothing(content: Any) -> None:
    world, flow = World(), question(Human("How much?", form=SCHEMA, into="value"))
    paused = world.run(flow)
    with fails("invalid-answer"):
        world.resume(flow, paused, approve(content=content))
    done = world.resume(flow, paused, approve(content={"amount": 2, "when": "2026-02-28"}))
    assert done.state.value == {"amount": 2, "when": "2026-02-28"}


def test_the_message_about_content_that_a_schema_refuses_does_not_quote_it() -> None:
    world, flow = World(), question(Human("How much?", form=SCHEMA))
    with fails("invalid-answer") as caught:
        world.resume(flow, world.run(flow), approve(content={"amount": 1, "password": "hunter2"}))
    assert "hunter2" not in str(caught.value)
    assert "password" in str(caught.value)


def test_a_rejection_needs_no_content_and_leaves_by_its_port() -> None:
    flow = Flow("flow", state=State)
    flow.node("ask", Human("How much?", form=Form, into="value"))
    flow.node("no", lambda state, ctx: {"text": "no"})
    flow.edge(START, "ask")
    flow.edge("ask", END, port="approved")
    flow.edge("ask", "no", port="rejected")
    world = World()
    done = world.resume(flow, world.run(flow), deny())
    assert (done.state.text, done.state.value) == ("no", None)


def test_without_into_the_answer_is_checked_and_dropped() -> None:
    world, flow = World(), question(Human("How much?", form=Form))
    paused = world.run(flow)
    with fails("invalid-answer"):
        world.resume(flow, paused, approve(content={}))
    done = world.resume(flow, paused, approve(content={"amount": 1}))
    assert done.state == State()


def test_without_a_form_a_yes_is_true() -> None:
    world, flow = World(), question(Human("Go on?", into="value"))
    assert world.resume(flow, world.run(flow), approve()).state.value is True


class Login(BaseModel):
    password: SecretStr


def test_a_secret_that_was_typed_into_a_form_reaches_the_state() -> None:
    class Holder(BaseModel):
        login: Login | None = None

    world, flow = World(), question(Human("Log in", form=Login, into="login"), state=Holder)
    for content in ({"password": "hunter2"}, Login(password=SecretStr("hunter2"))):
        done = world.resume(flow, world.run(flow, Holder()), approve(content=content))
        assert done.state.login.password.get_secret_value() == "hunter2"
    assert "hunter2" not in str(world.events)


def test_the_marks_of_the_state_hide_what_the_message_names() -> None:
    class Marked(BaseModel):
        code: Annotated[str, Secret()] = "hunter2"

    (request,) = World().run(question(Human("Use {code}?"), state=Marked), Marked()).requests
    assert "hunter2" not in request.summary + repr(request)


LOCAL_STATE = """
from __future__ import annotations
from pydantic import BaseModel
from runs.engine import END, START, Executor, Flow, FlowRunner, Human

def made():
    class Part(BaseModel):
        number: int = 1

    class Whole(BaseModel):
        part: Part = Part()

    return Whole

Whole = made()
flow = Flow("flow", state=Whole)
flow.node("ask", Human("Number {part.number}?"))
flow.edge(START, "ask")
flow.edge("ask", END, port="approved")
flow.edge("ask", END, port="rejected")
print(FlowRunner(Executor()).run_sync(flow, Whole()).pending.summary)
"""


@pytest.mark.processes
def test_a_state_model_may_be_made_in_a_function_with_postponed_annotations() -> None:
    assert output_of(LOCAL_STATE) == "Number 1?"
