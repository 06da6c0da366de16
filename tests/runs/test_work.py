"""A worker's walk: from start to pause to resume to the end, and every way in which it stops."""

import pytest
from django.db import OperationalError

from approvals.models import ApprovalRequest, AuditEntry, Decision
from runs.engine import END, START, Call, Flow
from runs.models import Run, RunEvent
from runs.position import _COLUMN
from runs.storage import decrypt
from runs.work import advance, advance_and_log
from tests.support import flows
from tests.support.make import (
    again,
    approve,
    everything,
    hints,
    only_request,
    paused,
    pending,
    reject,
    set_aside,
    started,
    walk,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def kinds(run):
    return [event.kind for event in run.events.all()]


def result(run):
    """The run's last state as it is shown, texts only."""
    return {
        name: [item["v"] for item in node["items"]] if node["t"] == "list" else node.get("v")
        for name, node in run.result_shown["items"]
    }


# ---- the way through ----------------------------------------------------------------------------


def test_a_run_goes_from_start_over_its_pause_to_its_end():
    run = started("one")
    run = walk(run)
    assert run.status == "paused"
    assert flows.effects == ["prepare", "look up"]
    request = only_request(run)
    assert (request.kind, request.tool, request.node, request.summary) == (
        "tool",
        "ask",
        "pay",
        "Do pay",
    )
    assert (run.lease_owner, run.lease_until, run.finished_at) == ("", None, None)

    approve(request)
    assert again(run).status == "queued"
    assert flows.effects == ["prepare", "look up"]

    run = walk(run)
    assert run.status == "completed"
    assert flows.effects == ["prepare", "look up", "pay", "tidy"]
    assert result(run)["done"] == ["prepare", "look up", "pay", "tidy"]
    assert run.finished_at is not None
    request.refresh_from_db()
    assert request.status == "approved"
    assert request.consumed_at is not None
    assert kinds(run)[0] == "run.started"
    assert kinds(run)[-1] == "run.completed"
    assert kinds(run).count("call.started") == len(flows.effects)


def test_a_rejected_call_takes_the_way_that_the_node_has_for_it():
    run = paused("one")
    reject(only_request(run), reason="Too much.")
    run = walk(run)
    assert run.status == "completed"
    assert flows.effects == ["prepare", "look up", "tidy"]
    assert result(run)["refused"] == "Too much."


def test_a_rejected_call_without_a_way_of_its_own_fails_the_run_and_says_who():
    run = paused("small")
    decision = reject(only_request(run), reason="Too much.")
    run = walk(run)
    assert (run.status, run.error_code, run.error_node) == ("failed", "approval-denied", "pay")
    assert decision.by_name in run.error_message
    assert "Too much." in run.error_message
    assert flows.effects == []
    assert run.finished_at is not None


def test_a_rejected_call_leaves_by_the_port_where_an_edge_does(monkeypatch):
    flow = Flow("port", state=flows.Steps)
    flow.node("pay", Call(flows.ask, args={"step": "pay"}))
    flow.node("tidy", flows.tidy)
    flow.edge(START, "pay")
    flow.edge("pay", END)
    flow.edge("pay", "tidy", port="rejected")
    flow.edge("tidy", END)
    flows.install(monkeypatch, flow)
    run = paused("port")
    reject(only_request(run))
    assert walk(run).status == "completed"
    assert flows.effects == ["tidy"]


def test_the_answer_to_a_question_comes_into_the_state_checked():
    run = paused("question")
    approve(only_request(run), content={"ticket": "T-17", "backup": True})
    run = walk(run)
    assert run.status == "completed"
    assert dict(dict(run.result_shown["items"])["answer"]["items"])["ticket"]["v"] == "T-17"


def test_a_gate_hands_its_answer_to_the_node():
    run = paused("gate")
    assert flows.effects == []
    approve(only_request(run), content={"ticket": "T-17", "backup": True})
    run = walk(run)
    assert result(run)["ticket"] == "T-17"
    assert flows.effects == ["change"]


def test_an_error_of_a_node_fails_the_run_with_its_place_and_a_redacted_message():
    run = walk(started("broken"))
    assert (run.status, run.error_code, run.error_node) == ("failed", "node-failed", "fails")
    assert "RuntimeError: the server refused" in run.error_message
    assert flows.TOKEN not in run.error_message
    assert flows.CARD not in run.error_message
    assert "[hidden:" in run.error_message
    assert kinds(run)[-1] == "run.failed"
    assert run.finished_at is not None


def test_text_that_no_database_takes_is_stored_as_what_can_be_shown():
    run = paused("hostile")
    request = only_request(run)
    assert "⟨U+0000⟩" in request.summary
    approve(request, by=None, reason="nul-free")
    run = walk(run)
    assert run.status == "completed"
    assert "\0" not in str(run.result_shown)
    note = dict(run.result_shown["items"])["note"]
    assert "cut" in note


# ---- several requests ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
def test_two_open_requests_are_answered_in_any_order_one_walk_each(order):
    run = paused("pair")
    assert [request.summary for request in pending(run)] == ["Do left", "Do right"]
    for place, side in enumerate(order, start=1):
        approve(next(r for r in pending(run) if r.summary == f"Do {side}"))
        run = walk(run)
        assert flows.effects[:place] == list(order[:place])
    assert run.status == "completed"
    assert flows.effects == [*order, "tidy"]


def test_two_open_requests_are_answered_before_the_worker_comes():
    run = paused("pair")
    for request in pending(run):
        approve(request)
    run = walk(run)
    assert run.status == "completed"
    assert sorted(flows.effects) == ["left", "right", "tidy"]


def test_the_request_that_still_waits_is_the_same_after_a_walk():
    run = paused("pair")
    left, right = pending(run)
    approve(left)
    run = walk(run)
    assert run.status == "paused"
    assert [request.pk for request in pending(run)] == [right.pk]
    assert run.requests.count() == 2


def test_a_decision_taken_while_the_run_is_walked_is_not_lost():
    run = paused("pair")
    left, right = pending(run)
    approve(left)

    def while_walking():
        from django.db import connection

        assert again(run).status == "running"
        connection.close()

    flows.during["left"] = while_walking
    decided_within(run, right, "left")
    run = walk(run)
    assert run.status == "queued"
    assert flows.effects == ["left"]
    assert hints(run) >= 1
    assert walk(run).status == "completed"
    assert flows.effects == ["left", "right", "tidy"]


def decided_within(run, request, step):
    """Have a request approved by another connection while the tool of a step is at work."""
    # Tools run in threads; a plain test's data is visible in this thread's connection only, so
    # the decision is taken when the engine tells that the call has begun.
    from runs.events import EventWriter

    flush = EventWriter.flush
    done = []

    def flush_and_decide(writer):
        flush(writer)
        if not done and any(e.kind == "call.started" for e in run.events.all()):
            done.append(approve(request))

    flows.during.pop(step, None)
    patch = pytest.MonkeyPatch()
    patch.setattr(EventWriter, "flush", flush_and_decide)
