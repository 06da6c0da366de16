"""The form of a request: where it comes from, and what is drawn."""

from typing import Any

import pytest

from approvals.forms import FormUnavailable, form_for, form_source
from runs.engine import END, START, Flow, Gate, Human
from runs.forms import schema_of
from tests.support import flows
from tests.support.make import request_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def other_question(form, **more):
    flow = Flow("question", state=flows.Change)
    flow.node("question", Human("Run {statement}?", form=form, into="answer"), **more)
    flow.edge(START, "question")
    flow.edge("question", END, port="approved")
    flow.edge("question", END, port="rejected")
    return flow


@pytest.mark.parametrize("flow", ["question", "gate"])
def test_the_form_of_a_request_is_the_model_in_the_flows_code(flow):
    request = request_of(flow)
    assert form_source(request) is flows.Answer
    assert request.form_schema == schema_of(flows.Answer)


def test_a_request_without_a_form_has_none():
    request = request_of("small")
    assert form_source(request) is None
    assert form_for(request) is None


@pytest.mark.parametrize(
    "form", [flows.Login, flows.BOUNDS, None], ids=["other model", "schema", "none"]
)
def test_a_form_that_has_changed_in_the_code_is_not_used(monkeypatch, form):
    request = request_of("question")
    flows.install(monkeypatch, other_question(form))
    with pytest.raises(FormUnavailable, match="has changed in the flow's code"):
        form_source(request)


def test_the_form_of_a_gate_is_not_taken_for_that_of_the_question_behind_it(monkeypatch):
    request = request_of("question")
    flows.install(monkeypatch, other_question(flows.Login, gate=Gate(form=flows.Answer)))
    with pytest.raises(FormUnavailable):
        form_source(request)


def test_a_node_that_is_gone_has_no_form(monkeypatch):
    request = request_of("question")
    flow = Flow("question", state=flows.Change)
    flow.node("change", flows.change)
    flow.edge(START, "change")
    flow.edge("change", END)
    flows.install(monkeypatch, flow)
    with pytest.raises(FormUnavailable, match="has changed"):
        form_source(request)


def test_a_flow_that_is_gone_has_no_form_and_is_named(monkeypatch):
    request = request_of("question")
    monkeypatch.setattr("runs.registry._found", {})
    with pytest.raises(FormUnavailable, match="no flow 'question'"):
        form_source(request)


def test_a_form_that_can_not_be_checked_is_drawn_from_the_schema_that_was_stored(monkeypatch):
    request = request_of("question")
    monkeypatch.setattr("runs.registry._found", {})
    form: Any = form_for(request)
    assert {field.name for field in form.fields} == {"ticket", "backup"}
    assert 'name="form.ticket"' in form.render()


def test_a_form_is_filled_with_what_was_posted():
    form: Any = form_for(request_of("question"), data={"form.ticket": "T-17", "reason": "x"})
    assert not form.is_valid()
    assert list(form.errors) == ["backup"]
    assert form.content["ticket"] == "T-17"
    assert flows.WITHOUT_BACKUP in form.errors["backup"][0]
