"""The engine's approval port on the tables: what is asked, spent and closed, and when."""

import json

import pytest
from django.db import transaction

from approvals.models import ApprovalRequest, AuditEntry
from approvals.port import DatabaseApprovals
from runs import ports
from runs.engine import ApprovalAlreadyDecided
from runs.forms import schema_of
from tests.support import flows
from tests.support.make import (
    approve,
    everything,
    only_request,
    paused,
    pending,
    reject,
    request_of,
    set_aside,
    started,
    walk,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def test_the_settings_hand_this_port_to_the_runs():
    assert isinstance(ports.approvals(), DatabaseApprovals)


def test_a_request_holds_what_the_reviewer_reads():
    request = request_of("gate", statement="DROP TABLE customers")
    assert (request.kind, request.tool, request.node, request.visit, request.risk) == (
        "gate",
        "node:gate.change",
        "change",
        "change#1",
        "high",
    )
    assert request.summary == "Go on with change"
    assert request.shown == {
        "t": "map",
        "items": [["statement", {"t": "text", "v": "DROP TABLE customers"}]],
    }
    assert request.form_schema == schema_of(flows.Answer)
    assert "DROP" not in request.arguments


def test_the_question_of_a_node_is_filled_from_the_state():
    request = request_of("question", statement="DELETE FROM orders")
    assert (request.kind, request.summary) == ("human", "Run DELETE FROM orders?")


def test_nobody_is_asked_where_the_walk_is_not_stored(monkeypatch):
    run = started("small")

    def fail(*args):
        raise RuntimeError("no")

    before = everything()
    monkeypatch.setattr("approvals.port._WalkStore.write", fail)
    with pytest.raises(RuntimeError):
        walk(run)
    after = everything()
    for unchanged in ("ApprovalRequest", "Decision", "AuditEntry", "DBTaskResult"):
        assert after[unchanged] == before[unchanged]
    assert after["Run"][0]["status"] == "running"
    assert after["Run"][0]["checkpoint"] == before["Run"][0]["checkpoint"]


def test_no_decision_is_spent_where_the_walk_is_not_stored(monkeypatch):
    run = paused("pair")
    left, _ = pending(run)
    approve(left)

    def fail(*args, **kwargs):
        raise RuntimeError("no")

    monkeypatch.setattr("runs.work.store_checkpoint", fail)
    with pytest.raises(RuntimeError):
        walk(run)
    left.refresh_from_db()
    assert left.consumed_at is None


def test_only_decisions_that_the_run_has_not_gone_on_with_are_given_to_it():
    run = paused("pair")
    left, right = pending(run)
    ids = [str(left.pk), str(right.pk)]
    approvals = ports.approvals().for_run(run)
    assert approvals.decisions(ids) == []
    approve(left)
    (decision,) = ports.approvals().for_run(run).decisions(ids)
    assert (decision.approved, decision.request_id) == (True, ids[0])
    assert ports.approvals().for_run(run).decisions([ids[1]]) == []
    walk(run)
    assert ports.approvals().for_run(run).decisions(ids) == []


def test_decisions_of_other_runs_are_never_given():
    run, other = paused("small"), paused("small")
    approve(only_request(other))
    ids = [str(other.requests.get().pk)]
    assert ports.approvals().for_run(run).decisions(ids) == []


def test_a_decision_is_given_as_it_was_taken():
    request = request_of("question")
    decision = approve(request, content={"ticket": "T-17", "backup": True}, reason="Fine.")
    (given,) = ports.approvals().for_run(request.run).decisions([str(request.pk)])
    assert (given.approved, given.by, given.reason) == (True, decision.by_name, "Fine.")
    assert given.content == {"ticket": "T-17", "backup": True}


def test_a_rejection_is_given_as_one():
    request = request_of("question")
    reject(request, reason="Too much.")
    (given,) = ports.approvals().for_run(request.run).decisions([str(request.pk)])
    assert (given.approved, given.reason, given.content) == (False, "Too much.", None)


def test_a_decision_is_spent_once_by_two_walks():
    """Two walks from one position: the second is refused when it is to be stored."""
    request = request_of("small")
    approve(request)
    from asgiref.sync import async_to_sync

    from runs.engine import Executor
    from runs.position import load_checkpoint, make_runner
    from runs.registry import get_flow

    request.run.refresh_from_db()
    walks = []
    for _ in range(2):
        approvals = ports.approvals().for_run(request.run)
        runner = make_runner(Executor(approvals.port))
        checkpoint = load_checkpoint(request.run, runner, get_flow("small"))
        decisions = approvals.decisions([str(request.pk)])
        async_to_sync(runner.resume)(get_flow("small"), checkpoint, *decisions)
        walks.append(approvals)
    with transaction.atomic():
        walks[0].commit([])
    before = everything()
    with pytest.raises(ApprovalAlreadyDecided, match="another worker"), transaction.atomic():
        walks[1].commit([])
    assert everything() == before


def test_a_request_that_a_run_leaves_open_at_its_end_is_cancelled_and_audited():
    run = paused("pair")
    left, right = pending(run)
    with transaction.atomic():
        ports.approvals().for_run(run).commit([str(right.pk)])
    left.refresh_from_db()
    right.refresh_from_db()
    assert (left.status, right.status) == ("cancelled", "pending")
    assert left.consumed_at is not None
    entry = AuditEntry.objects.get(action="request.cancelled")
    assert (entry.request_id, entry.data) == (left.pk, {"reason": "the run ended"})


def test_a_decision_that_a_run_leaves_unused_at_its_end_stays_what_it_was_and_is_audited():
    run = paused("pair")
    left, _ = pending(run)
    approve(left)
    with transaction.atomic():
        ports.approvals().for_run(run).commit([])
    left.refresh_from_db()
    assert left.status == "approved"
    assert left.consumed_at is not None
    entry = AuditEntry.objects.get(action="request.unused")
    assert (entry.request_id, entry.data) == (left.pk, {"reason": "the run ended"})


def test_a_closed_request_is_closed_once():
    run = paused("small")
    for _ in range(2):
        with transaction.atomic():
            ports.approvals().for_run(run).commit([])
    assert AuditEntry.objects.filter(action="request.cancelled").count() == 1


def test_runs_with_answers_are_the_paused_ones_with_an_unspent_decision():
    def found():
        return ports.approvals().runs_with_answers()

    _waiting, answered, spent, cancelled = (paused("pair") for _ in range(4))
    assert found() == []
    approve(pending(answered)[0])
    assert found() == []  # it is queued
    set_aside(answered, status="paused")
    assert found() == [answered.pk]
    approve(pending(answered)[0])
    set_aside(answered, status="paused")
    assert found() == [answered.pk]
    approve(pending(spent)[0])
    walk(spent)
    set_aside(pending(cancelled)[0], status="cancelled")
    assert found() == [answered.pk]


def test_the_raw_arguments_are_those_that_the_checkpoint_holds():
    from approvals.digest import raw_arguments

    request = request_of("one")
    assert raw_arguments(request) == {"step": "pay"}
    assert json.dumps(request.shown).count("pay") == 1
    assert ApprovalRequest.objects.get().is_open
