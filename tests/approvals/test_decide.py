"""Deciding a request: who may, what is checked, what is written, and that it is all or nothing."""

import uuid

import pytest
from django.db import DatabaseError

from approvals import audit
from approvals.actions import (
    MAX_REASON,
    AlreadyDecided,
    InvalidAnswer,
    NotAllowed,
    StalePage,
    decide,
)
from approvals.models import CONTENT_COLUMN, ApprovalRequest, AuditEntry
from runs import ports
from runs.engine import END, START, Flow, Human
from runs.storage import decrypt
from tests.support import flows
from tests.support.make import (
    DECIDE,
    VIEW,
    approve,
    everything,
    hints,
    person,
    reject,
    request_of,
    reviewer,
    set_aside,
    walk,
)
from tests.support.make import START as MAY_START

pytestmark = pytest.mark.django_db

GOOD = {"ticket": "T-17", "backup": True}


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def refused(request, error, *, by=None, **given):
    """The error of a decision that is refused; everything must be as it was."""
    by = by or reviewer()
    before = everything()
    given = {"verdict": "approve", "digest": request.digest} | given
    with pytest.raises(error) as caught:
        decide(request.pk, by=by, **given)
    assert everything() == before
    return caught.value


# ---- what is written ----------------------------------------------------------------------------


def test_an_approval_is_written_with_its_audit_entry_and_wakes_the_run():
    request, user = request_of("small"), reviewer()
    sent = hints(request.run)
    decision = approve(request, by=user)
    request.refresh_from_db()
    assert (request.status, request.decided_at, request.consumed_at) == (
        "approved",
        decision.decided_at,
        None,
    )
    assert list(request.decisions.all()) == [decision]
    assert (decision.by, decision.by_name, decision.verdict) == (user, "reviewer", "approve")
    assert decision.digest == request.digest
    assert request.run.status == "queued"
    assert request.run.queued_at is not None
    assert request.run.queued_at >= decision.decided_at
    assert hints(request.run) == sent + 1
    entry = AuditEntry.objects.get(action="request.approved")
    assert (entry.actor, entry.actor_name, entry.run_id, entry.request_id) == (
        user,
        "reviewer",
        request.run_id,
        request.pk,
    )
    assert entry.summary == "Do pay"
    assert entry.data["digest"] == request.digest
    event = request.run.events.get(kind="approval.answered")
    assert event.data["outcome"] == "approved"
    assert event.data["by"] == "reviewer"


def test_a_rejection_keeps_its_reason():
    request = request_of("small")
    decision = reject(request, reason="  Too much.  ")
    request.refresh_from_db()
    assert (request.status, decision.reason) == ("rejected", "Too much.")
    assert AuditEntry.objects.get(action="request.rejected").data["reason"] == "Too much."
    assert request.run.status == "queued"


def test_a_secret_in_a_reason_is_redacted_when_it_is_written():
    decision = reject(request_of("small"), reason=f"It shows {flows.TOKEN}")
    decision.refresh_from_db()
    assert flows.TOKEN not in decision.reason
    assert "[hidden:" in decision.reason


def test_an_answer_is_kept_encrypted_and_shown():
    request = request_of("question")
    decision = approve(request, content=GOOD)
    assert "T-17" not in decision.content
    assert "T-17" in decrypt(decision.content, column=CONTENT_COLUMN, row=decision.pk)
    assert dict(decision.content_shown["items"])["ticket"] == {"t": "text", "v": "T-17"}


def test_a_rejection_takes_no_answer():
    request = request_of("question")
    decision = decide(
        request.pk,
        by=reviewer(),
        verdict="reject",
        digest=request.digest,
        reason="No.",
        content={"ticket": "x"},
    )
    assert (decision.content, decision.content_shown) == ("", None)


def test_the_decision_outlives_a_change_of_the_users_name():
    request, user = request_of("small"), reviewer("anna")
    decision = approve(request, by=user)
    user.username = "berta"
    user.save()
    decision.refresh_from_db()
    assert decision.by_name == "anna"
    assert walk(request.run).status == "completed"


# ---- who may ------------------------------------------------------------------------------------


def test_a_user_who_may_only_look_may_not_decide():
    error = refused(request_of("small"), NotAllowed, by=person("viewer", VIEW))
    assert "right to approve" in str(error)


def test_nobody_decides_for_a_run_of_their_own():
    own = person("starter", MAY_START, VIEW, DECIDE)
    assert "someone else" in str(refused(request_of("small", by=own), NotAllowed, by=own))


def test_not_even_a_superuser_decides_for_a_run_of_their_own():
    user = person("root")
    user.is_superuser = True
    user.save()
    refused(request_of("small", by=user), NotAllowed, by=user)


@pytest.mark.parametrize("rights", [(), (DECIDE,)], ids=["no right", "no right to see"])
def test_a_request_that_a_user_may_not_see_does_not_exist_for_them(rights):
    refused(request_of("small"), ApprovalRequest.DoesNotExist, by=person("guest", *rights))


def test_a_user_who_has_left_decides_nothing():
    user = reviewer()
    user.is_active = False
    user.save()
    refused(request_of("small"), ApprovalRequest.DoesNotExist, by=user)


def test_a_request_that_is_not_there_does_not_exist():
    request = request_of("small")
    before = everything()
    with pytest.raises(ApprovalRequest.DoesNotExist):
        decide(uuid.uuid4(), by=reviewer(), verdict="approve", digest=request.digest)
    assert everything() == before


# ---- once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("same_person", [True, False])
def test_a_second_decision_is_refused_and_the_winner_named(verdict, same_person):
    request, winner = request_of("small"), reviewer("winner")
    decision = approve(request, by=winner)
    by = winner if same_person else reviewer("loser")
    error = refused(request, AlreadyDecided, by=by, verdict=verdict, reason="No.")
    when = decision.decided_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert str(error) == f"winner approved this request on {when}."
    assert error.request.pk == request.pk


@pytest.mark.parametrize("status", ["expired", "cancelled", "superseded"])
def test_a_request_that_was_closed_otherwise_can_not_be_decided(status):
    request = request_of("small")
    set_aside(request, status=status)
    assert str(refused(request, AlreadyDecided)) == f"This request is {status}."


def test_a_decided_request_that_was_superseded_names_nobody_as_having_superseded_it():
    request = request_of("small")
    approve(request, by=reviewer("winner"))
    set_aside(request, status="superseded")
    error = refused(request, AlreadyDecided, by=reviewer("loser"))
    assert str(error) == "This request is superseded."


def test_being_late_counts_before_being_wrong():
    request = request_of("question")
    reject(request)
    refused(request, AlreadyDecided, digest="stale", content={})


# ---- what was shown -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "digest", ["", "0" * 64, "é☃", None], ids=["none", "0", "no ASCII", "other"]
)
def test_a_page_that_showed_something_else_decides_nothing(digest):
    request = request_of("small")
    if digest is None:
        digest = request_of("small").digest
    error = refused(request, StalePage, digest=digest)
    assert "something else" in error.message
    assert error.request.pk == request.pk


TAMPERED = {
    "arguments": lambda request: request.arguments[:-3] + "AA=",
    "arguments of another": lambda request: request_of("question").arguments,
    "no arguments": lambda request: "",
    "summary": lambda request: "Do nothing",
    "shown": lambda request: {"t": "map", "items": []},
    "form_schema": lambda request: {"type": "object"},
    "no form_schema": lambda request: None,
    "tool": lambda request: "act",
    "node": lambda request: "tidy",
    "visit": lambda request: "question#2",
    "kind": lambda request: "gate",
    "call_id": lambda request: request.call_id + "0",
    "risk": lambda request: "low",
    "digest": lambda request: "0" * 64,
}


@pytest.mark.parametrize("change", TAMPERED)
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_request_that_is_changed_after_it_was_asked_decides_nothing(change, verdict):
    request = request_of("question")
    column = change.split()[-1] if change.startswith("no ") else change.split()[0]
    set_aside(request, **{column: TAMPERED[change](request)})
    request.refresh_from_db()
    error = refused(request, StalePage, verdict=verdict, reason="No.", content=GOOD)
    assert "changed in the database" in error.message


def test_a_request_that_is_moved_to_another_run_decides_nothing():
    request, other = request_of("small"), request_of("small")
    set_aside(request, run_id=other.run_id)
    refused(request, StalePage)


def test_what_was_shown_stays_decidable_however_the_database_spells_its_numbers():
    request = request_of("bounds")
    approve(request, content={"amount": 5})
    assert walk(request.run).status == "completed"


# ---- the answer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["", "yes", "approved", "APPROVE", None, True])
def test_no_answer_is_never_a_yes(verdict):
    error = refused(request_of("small"), InvalidAnswer, verdict=verdict)
    assert error.errors == {"": ["Choose approve or reject."]}


@pytest.mark.parametrize("reason", ["", "  \n", "\u200b", "\u2060 \ufeff"])
def test_a_rejection_says_why(reason):
    error = refused(request_of("small"), InvalidAnswer, verdict="reject", reason=reason)
    assert error.errors == {"reason": ["Say why you reject it."]}


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_reason_that_is_too_long_is_refused(verdict):
    request, long = request_of("small"), "x" * (MAX_REASON + 1)
    error = refused(request, InvalidAnswer, verdict=verdict, reason=long)
    assert error.errors == {"reason": ["No more than 2000 characters; this has 2001."]}


def test_a_reason_of_the_greatest_length_is_kept_whole():
    reason = "x" * MAX_REASON
    assert reject(request_of("small"), reason=reason).reason == reason


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_reason_that_no_database_takes_is_refused(verdict):
    error = refused(request_of("small"), InvalidAnswer, verdict=verdict, reason="a\0b")
    assert error.errors == {"reason": ["The reason holds a NUL character; take it out."]}


@pytest.mark.parametrize("flow", ["question", "gate"])
def test_the_forms_own_validators_speak_at_their_fields(flow):
    error = refused(request_of(flow), InvalidAnswer, content={"ticket": "T-17", "backup": False})
    (message,) = error.errors["backup"]
    assert flows.WITHOUT_BACKUP in message
    assert list(error.errors) == ["backup"]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (None, {"ticket", "backup"}),
        ({}, {"ticket", "backup"}),
        ({"ticket": "x", "backup": True}, {"ticket"}),
        ({"ticket": "T" * 41, "backup": True}, {"ticket"}),
        ({"ticket": ["T-17"], "backup": True}, {"ticket"}),
        ({"ticket": "T-\0", "backup": True}, {"ticket"}),
    ],
)
def test_an_answer_that_does_not_fit_its_form_is_refused_at_its_fields(content, fields):
    error = refused(request_of("question"), InvalidAnswer, content=content)
    assert set(error.errors) == fields


def test_a_request_without_a_form_keeps_no_answer():
    decision = approve(request_of("small"), content={"anything": 1})
    assert (decision.content, decision.content_shown) == ("", None)


def test_an_answer_to_a_form_that_has_changed_in_the_code_is_refused(monkeypatch):
    request = request_of("question")
    changed = Flow("question", state=flows.Change)
    changed.node("question", Human("Run {statement}?", form=flows.Login, into="answer"))
    changed.edge(START, "question")
    changed.edge("question", END, port="approved")
    changed.edge("question", END, port="rejected")
    flows.install(monkeypatch, changed)
    assert "has changed" in refused(request, StalePage, content=GOOD).message


def test_an_answer_to_a_form_of_a_flow_that_is_gone_is_refused_but_a_rejection_is_taken(
    monkeypatch,
):
    request = request_of("question")
    monkeypatch.setattr("runs.registry._found", {})
    assert "There is no flow 'question'" in refused(request, StalePage, content=GOOD).message
    assert reject(request).verdict == "reject"


# ---- all or nothing -----------------------------------------------------------------------------


def test_a_decision_is_undone_where_its_audit_entry_fails(monkeypatch):
    def fail(*args, **kwargs):
        raise DatabaseError("no")

    request = request_of("small")
    monkeypatch.setattr(audit, "record", fail)
    refused(request, DatabaseError)
    monkeypatch.undo()
    request.refresh_from_db()
    assert request.is_open


def test_a_decision_is_undone_where_the_hint_can_not_be_sent(monkeypatch):
    def fail(*args, **kwargs):
        raise DatabaseError("no")

    request = request_of("small")
    monkeypatch.setattr(type(ports.dispatcher()), "enqueue", fail)
    refused(request, DatabaseError)


def test_a_decision_is_undone_where_the_last_step_fails_after_the_hint_was_sent(monkeypatch):
    def fail(*args, **kwargs):
        raise DatabaseError("no")

    request = request_of("small")
    monkeypatch.setattr("runs.actions.record", fail)  # the event, written after the hint
    refused(request, DatabaseError)


@pytest.mark.parametrize("status", ["running", "queued", "attention"])
def test_a_decision_for_a_run_that_does_not_wait_is_kept_without_another_hint(status):
    request = request_of("small")
    set_aside(request.run, status=status)
    sent = hints(request.run)
    approve(request)
    request.refresh_from_db()
    assert (request.status, request.run.status) == ("approved", status)
    assert hints(request.run) == sent
