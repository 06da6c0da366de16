"""A worker's walk: from start to pause to resume to the end, and every way in which it stops."""

from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DataError, OperationalError
from pydantic import BaseModel

from approvals.actions import AlreadyDecided
from approvals.models import AuditEntry
from approvals.port import DatabaseRunApprovals
from runs.actions import NotStandingStill, try_again
from runs.engine import END, START, Call, Flow
from runs.models import Run, RunEvent
from runs.position import _COLUMN
from runs.storage import decrypt
from runs.work import advance, advance_and_log
from tests.support import flows
from tests.support.make import START as MAY_START
from tests.support.make import (
    again,
    approve,
    everything,
    hints,
    only_request,
    paused,
    pending,
    person,
    reject,
    reviewer,
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


def state(run):
    """The run's last state as it is shown: a display tree for each field."""
    return dict(run.result_shown["items"])


def result(run):
    """The texts of the run's last state, and its lists of texts."""
    return {
        name: [item["v"] for item in node["items"]] if node["t"] == "list" else node.get("v")
        for name, node in state(run).items()
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
    assert dict(state(run)["answer"]["items"])["ticket"]["v"] == "T-17"


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
    assert "cut" in state(run)["note"]


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


@pytest.mark.django_db(transaction=True)
def test_a_decision_taken_while_the_run_is_walked_is_not_lost():
    run = paused("pair")
    left, right = pending(run)
    approve(left)
    sent = hints(run)
    flows.during["left"] = lambda: approve(right)
    run = walk(run)
    assert flows.effects == ["left"]
    assert run.status == "queued"
    assert hints(run) == sent + 1
    assert walk(run).status == "completed"
    assert flows.effects == ["left", "right", "tidy"]


def test_a_request_that_is_asked_anew_is_superseded_and_each_call_has_its_effect_once():
    run = paused("both")
    left, right = pending(run)
    approve(left)
    run = walk(run)
    assert run.status == "paused"
    assert flows.effects == ["left"]
    right.refresh_from_db()
    assert right.status == "superseded"
    assert right.consumed_at is not None
    entry = AuditEntry.objects.get(action="request.superseded")
    assert (entry.request_id, entry.actor, entry.actor_name) == (right.pk, None, "flowsite")
    again_right = only_request(run)
    assert again_right.pk != right.pk
    assert again_right.summary == "Do right"
    approve(again_right)
    run = walk(run)
    assert run.status == "completed"
    assert flows.effects == ["left", "right"]


def test_both_calls_of_one_node_run_once_where_both_were_answered_before_the_walk():
    run = paused("both")
    for request in pending(run):
        approve(request)
    run = walk(run)
    assert run.status == "completed"
    assert sorted(flows.effects) == ["left", "right"]


@pytest.mark.django_db(transaction=True)
def test_a_request_that_is_being_asked_anew_can_not_be_decided_meanwhile():
    run = paused("both")
    left, right = pending(run)
    approve(left)
    told = []

    def decide_late():
        with pytest.raises(AlreadyDecided) as caught:
            approve(right)
        told.append(str(caught.value))

    flows.during["left"] = decide_late
    run = walk(run)
    assert told == ["This request is superseded."]
    assert flows.effects == ["left"]
    assert run.status == "paused"
    assert only_request(run).pk != right.pk
    right.refresh_from_db()
    assert (right.status, right.decisions.count()) == ("superseded", 0)
    approve(only_request(run))
    assert walk(run).status == "completed"
    assert flows.effects == ["left", "right"]


def test_a_decision_that_comes_just_before_its_request_would_be_asked_anew_is_used(monkeypatch):
    run = paused("both")
    left, right = pending(run)
    approve(left)
    look = DatabaseRunApprovals.decisions

    def look_too_early(self, open_requests):
        found = look(self, open_requests)
        if len(found) == 1:
            approve(right)
        return found

    monkeypatch.setattr(DatabaseRunApprovals, "decisions", look_too_early)
    run = walk(run)
    assert run.status == "completed"
    assert sorted(flows.effects) == ["left", "right"]
    assert [request.status for request in run.requests.all()] == ["approved", "approved"]
    assert not run.requests.filter(consumed_at=None).exists()


def test_the_open_requests_of_a_run_that_fails_are_closed(monkeypatch):
    flow = Flow("half", state=flows.Steps)
    flow.node("left", Call(flows.ask, args={"step": "left"}))
    flow.node("fails", flows.fails)
    flow.node("right", Call(flows.ask, args={"step": "right"}))
    flow.edge(START, "left")
    flow.edge(START, "right")
    flow.edge("left", "fails")
    flow.edge("fails", END)
    flow.edge("right", END)
    flows.install(monkeypatch, flow)
    run = paused("half")
    left, right = pending(run)
    approve(left)
    run = walk(run)
    assert run.status == "failed"
    left.refresh_from_db()
    right.refresh_from_db()
    assert (left.status, right.status) == ("approved", "cancelled")
    assert left.consumed_at is not None
    assert AuditEntry.objects.get(action="request.cancelled").request_id == right.pk


def test_a_node_that_fails_beside_one_that_asks_asks_nobody(monkeypatch):
    flow = Flow("beside", state=flows.Steps)
    flow.node("fails", flows.fails)
    flow.node("pay", Call(flows.ask, args={"step": "pay"}))
    for name in ("fails", "pay"):
        flow.edge(START, name)
        flow.edge(name, END)
    flows.install(monkeypatch, flow)
    run = walk(started("beside"))
    assert run.status == "failed"
    assert run.requests.count() == 0


# ---- hints --------------------------------------------------------------------------------------


def test_a_doubled_hint_finds_nothing_to_do():
    run = paused("one")
    before = everything()
    assert advance(run.pk, "worker") is False
    assert everything() == before


def test_a_hint_for_a_run_that_has_ended_changes_nothing():
    run = paused("small")
    approve(only_request(run))
    run = walk(run)
    before = everything()
    assert advance(run.pk, "worker") is False
    assert everything() == before
    assert flows.effects == ["pay"]


def test_a_hint_for_a_run_that_does_not_exist_changes_nothing():
    run = started("small")
    pk = run.pk
    run.delete()
    before = everything()
    assert advance(pk, "worker") is False
    assert everything() == before


def test_a_run_that_is_queued_without_news_goes_back_to_its_pause():
    run = paused("one")
    request = only_request(run)
    set_aside(run, status="queued")
    run = walk(run)
    assert run.status == "paused"
    assert only_request(run).pk == request.pk
    assert flows.effects == ["prepare", "look up"]


# ---- what needs a person's eye ------------------------------------------------------------------


def needs_attention(run, code):
    """The run stands still for this reason; nothing ran and the decision is kept unspent."""
    assert (run.status, run.error_code) == ("attention", code)
    assert (run.lease_owner, run.lease_until, run.finished_at) == ("", None, None)
    assert run.error_message
    assert kinds(run)[-1] == "run.attention"
    for request in run.requests.all():
        assert request.status == "approved"
        assert request.consumed_at is None
        assert request.decisions.count() == 1


def test_a_flow_that_is_gone_stops_the_run_and_its_return_lets_it_go_on(monkeypatch):
    run = paused("small")
    approve(only_request(run))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runs.registry._found", {})
        run = walk(run)
    needs_attention(run, "unknown-flow")
    assert "'small'" in run.error_message
    assert flows.effects == []
    goes_on(run)


def test_a_flow_whose_graph_has_changed_stops_the_run(monkeypatch):
    run = paused("small")
    approve(only_request(run))
    changed = Flow("small", state=flows.Empty)
    changed.node("pay", Call(flows.ask, args={"step": "pay more"}))
    changed.edge(START, "pay")
    changed.edge("pay", END)
    with pytest.MonkeyPatch.context() as patch:
        flows.install(patch, changed)
        run = walk(run)
    needs_attention(run, "graph-changed")
    assert "'pay'" in run.error_message
    assert flows.effects == []
    goes_on(run)


def goes_on(run):
    """Once it is made due again, the run ends with the decision that it has."""
    set_aside(run, status="queued")
    run = walk(run)
    assert (run.status, run.error_code, run.error_message) == ("completed", "", "")
    assert flows.effects == ["pay"]


class Gone(BaseModel):
    pass


class Holder(BaseModel):
    thing: Gone | None = Gone()


def test_a_class_of_the_state_that_is_gone_from_the_code_stops_the_run(monkeypatch):
    flow = Flow("holder", state=Holder)
    flow.node("pay", Call(flows.ask, args={"step": "pay"}))
    flow.edge(START, "pay")
    flow.edge("pay", END)
    flows.install(monkeypatch, flow)
    run = paused("holder")
    approve(only_request(run))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Holder.model_fields, "thing", flows.Empty.model_fields.get("thing"))
        patch.setattr(Holder, "model_fields", {}, raising=False)
        run = walk(run)
    needs_attention(run, "state-not-sealable")


def test_a_fault_of_the_site_itself_stops_the_run_with_a_redacted_message(monkeypatch):
    run = paused("small")
    approve(only_request(run))

    def fail(*args):
        raise TypeError(f"confused by {flows.TOKEN}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runs.work.load_checkpoint", fail)
        run = walk(run)
    needs_attention(run, "internal-error")
    assert "TypeError: confused by" in run.error_message
    assert flows.TOKEN not in run.error_message
    goes_on(run)


def test_an_error_of_the_database_leaves_the_run_to_whoever_takes_it_over(monkeypatch):
    run = started("small")

    def fail(*args):
        raise OperationalError("gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runs.work.load_checkpoint", fail)
        with pytest.raises(OperationalError):
            advance(run.pk, "worker")
        assert again(run).status == "running"
        set_aside(run, lease_until=run.created_at)
        advance_and_log(run.pk, "worker")  # the queue's entrance logs and raises nothing
    set_aside(run, lease_until=run.created_at)
    assert walk(run).status == "paused"


def test_a_walk_that_the_database_refuses_to_store_stops_the_run_and_is_not_repeated(monkeypatch):
    run = started("one")

    def fail(self, open_requests):
        raise DataError("value too long\nLINE 1: a row's own values")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseRunApprovals, "commit", fail)
        run = walk(run)
    assert (run.status, run.error_code) == ("attention", "internal-error")
    assert "value too long. The calls below took place." in run.error_message
    assert "LINE 1" not in run.error_message
    assert run.requests.count() == 0
    assert walk(run).status == "attention"
    assert flows.effects == ["prepare", "look up"]


def test_a_long_risk_is_cut_to_its_column(monkeypatch):
    flow = Flow("risky", state=flows.Empty)
    flow.node("pay", Call(flows.risky, args={"step": "pay"}))
    flow.edge(START, "pay")
    flow.edge("pay", END)
    flows.install(monkeypatch, flow)
    run = paused("risky")
    assert only_request(run).risk == ("very high, " * 10)[:32]
    approve(only_request(run))
    assert walk(run).status == "completed"


def test_what_an_unexpected_error_says_is_redacted_in_the_log(monkeypatch, caplog):
    def fail(*args):
        raise OperationalError(f"the password is in https://user:{flows.PASSWORD}@example.org/")

    monkeypatch.setattr("runs.work.claim", fail)
    run = started("small")
    advance_and_log(run.pk, "worker")
    assert "OperationalError" in caplog.text
    assert flows.PASSWORD not in caplog.text


# ---- tampering ----------------------------------------------------------------------------------


@pytest.fixture
def decided():
    """A run of a small flow whose only request is approved; no worker has seen that yet."""
    run = paused("small")
    approve(only_request(run))
    return again(run)


def stopped_by(run, *checkpoints):
    """Walk the run with each of these in place of its checkpoint; the run as it is then.

    Each stops it, and everything but its own row and events stays as it was.
    """
    parts = ("ApprovalRequest", "Decision", "AuditEntry", "DBTaskResult")
    before = everything()
    for checkpoint in checkpoints:
        set_aside(run, checkpoint=checkpoint, status="queued", error_code="", error_message="")
        stopped = walk(run)
        assert (stopped.status, stopped.error_code) == ("attention", "checkpoint-tampered")
        assert stopped.checkpoint == checkpoint
        assert flows.effects == []
    after = everything()
    assert [after[part] for part in parts] == [before[part] for part in parts]
    return stopped


def restored(run):
    """With its checkpoint put back, the run ends with the decision that it had."""
    set_aside(run, checkpoint=run.checkpoint)
    goes_on(run)
    request = run.requests.get()
    assert request.decisions.count() == 1
    assert request.consumed_at is not None


# A part of the places for each test: PostgreSQL is slow with a row changed 10,000 times at once.
@pytest.mark.parametrize("part", range(8))
def test_a_flipped_character_anywhere_in_a_checkpoint_stops_the_run_and_keeps_the_decision(
    decided, part
):
    text = decided.checkpoint
    run = stopped_by(
        decided,
        *(
            text[:place] + ("B" if character == "A" else "A") + text[place + 1 :]
            for place, character in enumerate(text)
            if place % 8 == part
        ),
    )
    assert str(run.pk) in run.error_message
    assert "Nothing ran" in run.error_message
    restored(decided)


def test_a_checkpoint_that_is_cut_lengthened_or_emptied_stops_the_run(decided):
    text = decided.checkpoint
    stopped_by(
        decided,
        "",
        text[:1],
        text[: len(text) // 2],
        text[:-1],
        text[:-4],
        text[1:],
        text + "A",
        text + "AAAA",
        text + "=",
        text + "\n",
        " " + text,
        text + text,
        text.replace("v1", "v2"),
        text.replace("test", "tset"),
        text.replace("test", ""),
        "{}",
        "\u2603" * 10,
    )
    restored(decided)


def test_a_checkpoint_of_another_run_of_the_same_flow_stops_the_run(decided):
    other = paused("small")
    stopped_by(decided, other.checkpoint)
    restored(decided)


def test_the_sealed_text_without_its_encryption_stops_the_run(decided):
    plain = decrypt(decided.checkpoint, column=_COLUMN, row=decided.pk)
    stopped_by(decided, plain)
    restored(decided)


TAMPERED = {
    "arguments": lambda request: request.arguments[:-3] + "AA=",
    "arguments of another": lambda request: paused("small").requests.get().arguments,
    "summary": lambda request: "Do nothing",
    "shown": lambda request: {"t": "map", "items": []},
    "form_schema": lambda request: {"type": "object"},
    "tool": lambda request: "act",
    "node": lambda request: "tidy",
    "call_id": lambda request: request.call_id + "0",
    "digest": lambda request: "0" * 64,
    "risk": lambda request: "low",
}


@pytest.mark.parametrize("column", TAMPERED)
def test_a_request_that_is_changed_after_the_decision_keeps_the_call_from_running(decided, column):
    request = decided.requests.get()
    name = column.split()[0]
    set_aside(request, **{name: TAMPERED[column](request)})
    run = walk(decided)
    assert run.status == "attention"
    assert flows.effects == []
    kept = decided.requests.get()
    assert (kept.status, kept.consumed_at) == ("approved", None)
    set_aside(kept, **{name: getattr(request, name)})
    goes_on(run)


def test_a_verdict_that_is_turned_round_after_the_decision_does_not_become_a_yes():
    run = paused("small")
    decision = reject(only_request(run))
    set_aside(decision, verdict="approve")
    run = walk(run)
    assert flows.effects == []
    assert run.status != "completed"


def test_a_status_that_is_turned_round_after_the_decision_does_not_become_a_yes():
    run = paused("small")
    reject(only_request(run))
    set_aside(run.requests.get(), status="approved")
    run = walk(run)
    assert flows.effects == []
    assert run.status != "completed"


def test_an_approval_in_the_row_without_a_decision_is_no_yes():
    run = paused("small")
    set_aside(only_request(run), status="approved")
    set_aside(run, status="queued")
    run = walk(run)
    assert run.status == "attention"
    assert flows.effects == []


def test_a_decision_for_another_request_is_no_yes():
    run, other = paused("small"), paused("small")
    decision = approve(only_request(other))
    request = only_request(run)
    set_aside(decision, request_id=request.pk)
    set_aside(request, status="approved")
    set_aside(run, status="queued")
    run = walk(run)
    assert run.status == "attention"
    assert flows.effects == []


def test_an_answer_that_is_changed_after_the_decision_keeps_the_run_from_going_on():
    run = paused("question")
    decision = approve(only_request(run), content={"ticket": "T-17", "backup": True})
    other = paused("question")
    stolen = approve(only_request(other), content={"ticket": "T-18", "backup": True})
    set_aside(decision, content=stolen.content)
    run = walk(run)
    assert run.status == "attention"
    assert again(run).requests.get().consumed_at is None


def test_a_decision_is_used_once_even_where_an_older_checkpoint_is_put_back():
    run = paused("small")
    old = run.checkpoint
    approve(only_request(run))
    run = walk(run)
    assert flows.effects == ["pay"]
    set_aside(run, checkpoint=old, status="queued")
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "checkpoint-tampered")
    assert "an older one was put back" in run.error_message
    assert flows.effects == ["pay"]


def test_a_decision_that_was_written_by_other_hands_is_no_yes():
    run = paused("small")
    request = only_request(run)
    made = reject(only_request(paused("small")), by=reviewer())
    made.pk, made.request_id, made.verdict = uuid4(), request.pk, "approve"
    made.digest = request.digest
    made.save(force_insert=True)
    set_aside(request, status="approved", decided_at=made.decided_at)
    set_aside(run, status="queued")
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "decision-tampered")
    assert flows.effects == []


@pytest.mark.parametrize(
    "change", [{"by_name": "somebody"}, {"reason": "because"}, {"seal": "x"}, {"seal": ""}], ids=str
)
def test_a_decision_that_was_changed_is_not_used_until_it_is_put_back(change):
    run = paused("small")
    decision = approve(only_request(run))
    (name,) = change
    before = getattr(decision, name)
    set_aside(decision, **change)
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "decision-tampered")
    assert flows.effects == []
    set_aside(decision, **{name: before})
    try_again(run.pk, by=person("operator", MAY_START, "runs.view_run"))
    assert walk(run).status == "completed"
    assert flows.effects == ["pay"]


# ---- nothing raw leaks --------------------------------------------------------------------------


def test_no_secret_stands_in_any_column_that_is_not_encrypted(caplog):
    from django.apps import apps

    run = walk(started("vault", password=flows.PASSWORD))
    approve(only_request(run), content={"pin": flows.PASSWORD}, reason=f"see {flows.TOKEN}")
    run = walk(run)
    request = only_request(run)
    assert (
        request.summary
        == "Log in with [hidden: marked secret], then use [hidden: "
        + (request.summary.partition("then use [hidden: ")[2])
    )
    approve(request)
    run = walk(run)
    assert run.status == "completed", run.error_message
    failed = walk(started("broken"))
    assert failed.status == "failed"

    searched = 0
    for model in apps.get_models():
        for row in model._base_manager.values():
            for column, value in row.items():
                text = repr(value)
                searched += 1
                assert flows.PASSWORD not in text, f"{model.__name__}.{column}"
                assert flows.TOKEN not in text, f"{model.__name__}.{column}"
                assert flows.CARD not in text, f"{model.__name__}.{column}"
    assert searched > 200
    assert flows.PASSWORD not in caplog.text
    assert flows.TOKEN not in caplog.text
    # What is encrypted holds the secrets, so that the search above could have found them.
    assert flows.PASSWORD in decrypt(run.checkpoint, column=_COLUMN, row=run.pk)


def test_events_are_kept_in_the_order_in_which_things_happened():
    run = paused("one")
    approve(only_request(run))
    run = walk(run)
    happened = [
        (event.kind, event.tool)
        for event in run.events.all()
        if event.kind.startswith(("call.", "approval."))
    ]
    assert happened == [
        ("call.started", "act"),
        ("call.finished", "act"),
        ("call.started", "act"),
        ("call.finished", "act"),
        ("approval.requested", "ask"),
        ("approval.answered", ""),
        ("call.started", "ask"),
        ("call.finished", "ask"),
        ("call.started", "act"),
        ("call.finished", "act"),
    ]
    assert run.revision >= RunEvent.objects.filter(run=run).count() // 4
    assert Run.objects.get(pk=run.pk).events.count() == len(kinds(run))


# ---- trying again -------------------------------------------------------------------------------


def standing_still(code="checkpoint-tampered"):
    run = paused("small")
    set_aside(run, status="attention", error_code=code, error_message="Something was off.")
    return run


def test_a_run_that_stands_still_is_tried_again_with_an_audit_entry():
    run = standing_still()
    operator = person("operator", MAY_START, "runs.view_run")
    before = hints(run)
    try_again(run.pk, by=operator)
    assert again(run).status == "queued"
    assert hints(run) == before + 1
    entry = AuditEntry.objects.get(action="run.tried_again")
    assert (entry.actor, entry.run_id) == (operator, run.pk)
    assert walk(run).status == "paused"
    assert again(run).error_code == ""


@pytest.mark.parametrize("code", ["outcome-unknown", "internal-error"])
def test_a_run_whose_calls_may_have_run_is_not_tried_again(code):
    run = standing_still(code)
    before = everything()
    with pytest.raises(NotStandingStill):
        try_again(run.pk, by=person("operator", MAY_START, "runs.view_run"))
    assert everything() == before


def test_who_may_not_start_runs_or_see_this_one_can_not_try_it_again():
    run = standing_still()
    with pytest.raises(PermissionDenied):
        try_again(run.pk, by=person("auditor", "runs.view_run"))
    with pytest.raises(Run.DoesNotExist):
        try_again(run.pk, by=person("stranger", MAY_START))
    assert again(run).status == "attention"
