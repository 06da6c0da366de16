"""The sweep and the queue: a hint that is lost, doubled or late changes nothing in the end."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from runs import ports
from runs.dispatch import QUEUE, advance_run
from runs.lease import claim
from runs.sweep import HINT_LOST_AFTER, sweep
from tests.support import flows
from tests.support.make import (
    again,
    approve,
    everything,
    hints,
    only_request,
    paused,
    pending,
    set_aside,
    started,
    walk,
)

pytestmark = pytest.mark.django_db

NONE = {"queued": 0, "abandoned": 0, "decided": 0, "registered": 0}


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def lost():
    """Every message of the queue is gone."""
    DBTaskResult.objects.all().delete()


def long_ago(run):
    set_aside(run, queued_at=timezone.now() - HINT_LOST_AFTER - timedelta(seconds=1))


def take_hints():
    """Do what a worker does with the messages of the queue, oldest first."""
    for message in DBTaskResult.objects.filter(status="READY").order_by("enqueued_at"):
        message.task.func(*message.args_kwargs["args"], **message.args_kwargs["kwargs"])
        message.delete()


# ---- the sweep ----------------------------------------------------------------------------------


def test_a_sweep_finds_nothing_where_all_is_well():
    waiting, fresh, busy = paused("small"), started("small"), started("small")
    claim(busy.pk, "worker")
    ended = paused("small")
    approve(only_request(ended))
    walk(ended)
    before = everything()
    assert sweep() == NONE
    assert everything() == before
    assert again(waiting).status == "paused"
    assert again(fresh).status == "queued"


def test_a_new_run_whose_hint_is_lost_is_sent_again_once():
    run = started("small")
    lost()
    assert sweep() == NONE  # it may only be late
    long_ago(run)
    assert sweep() == NONE | {"queued": 1}
    assert hints(run) == 1
    assert sweep() == NONE
    take_hints()
    assert again(run).status == "paused"


def test_a_decided_run_whose_hint_is_lost_goes_on():
    run = paused("small")
    approve(only_request(run))
    lost()
    long_ago(run)
    assert sweep() == NONE | {"queued": 1}
    take_hints()
    assert again(run).status == "completed"


def test_an_abandoned_run_is_sent_again_and_taken_over():
    run = started("small")
    claim(run.pk, "gone")
    lost()
    assert sweep() == NONE
    set_aside(run, lease_until=timezone.now() - timedelta(seconds=1))
    assert sweep() == NONE | {"abandoned": 1}
    assert again(run).status == "running"
    take_hints()
    assert again(run).status == "paused"


def test_a_paused_run_with_a_decision_that_nobody_told_it_of_goes_on():
    run = paused("pair")
    approve(pending(run)[0])
    lost()
    set_aside(run, status="paused")
    assert sweep() == NONE | {"decided": 1}
    assert (again(run).status, hints(run)) == ("queued", 1)
    take_hints()
    assert flows.effects == ["left"]
    assert sweep() == NONE


def test_a_sweep_is_counted_by_kind():
    late, gone, decided = started("small"), started("small"), paused("small")
    long_ago(late)
    claim(gone.pk, "gone")
    set_aside(gone, lease_until=timezone.now() - timedelta(seconds=1))
    approve(only_request(decided))
    set_aside(decided, status="paused")
    assert sweep() == NONE | {"queued": 1, "abandoned": 1, "decided": 1}


def test_a_run_that_went_on_while_the_sweep_looked_is_left_alone(monkeypatch):
    run = paused("small")
    approve(only_request(run))
    set_aside(run, status="paused")
    found = ports.approvals().runs_with_answers()
    set_aside(run, status="running", lease_until=timezone.now() + timedelta(hours=1))
    monkeypatch.setattr(type(ports.approvals()), "runs_with_answers", lambda self: found)
    sent = hints(run)
    assert sweep() == NONE
    assert (again(run).status, hints(run)) == ("running", sent)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "attention"])
def test_a_run_that_does_not_go_on_is_never_swept_up(status):
    run = paused("small")
    approve(only_request(run))
    lost()
    long_ago(run)
    set_aside(run, status=status, lease_until=timezone.now() - timedelta(days=1))
    assert sweep() == NONE
    assert hints(run) == 0


# ---- the queue ----------------------------------------------------------------------------------


def test_a_hint_that_comes_many_times_is_followed_once():
    run = started("one")
    for _ in range(3):
        ports.dispatcher().enqueue(run.pk)
    assert hints(run) == 4
    take_hints()
    assert again(run).status == "paused"
    assert flows.effects == ["prepare", "look up"]


def test_a_hint_that_comes_after_the_end_changes_nothing():
    run = paused("small")
    approve(only_request(run))
    run = walk(run)
    assert run.status == "completed"
    lost()
    ports.dispatcher().enqueue(run.pk)
    before = everything()["Run"]
    take_hints()
    assert everything()["Run"] == before
    assert flows.effects == ["pay"]


def test_a_hint_for_a_run_that_is_not_there_changes_nothing():
    run = started("small")
    before = everything()
    advance_run.func(str(uuid4()), "")
    assert everything() == before
    assert again(run).status == "queued"


def test_a_hint_is_sent_when_the_transaction_commits_or_not_at_all():
    run = started("small")
    sent = hints(run)
    with transaction.atomic():
        ports.dispatcher().enqueue(run.pk)
        transaction.set_rollback(True)
    assert hints(run) == sent


def test_a_hint_tells_nothing_but_the_run_and_the_time():
    run = started("one", note="between us")
    (message,) = DBTaskResult.objects.all()
    run_id, sent_at = message.args_kwargs["args"]
    assert run_id == str(run.pk)
    assert datetime.fromisoformat(sent_at) <= timezone.now()
    assert message.queue_name == QUEUE
    assert "between us" not in str(message.args_kwargs)


@pytest.mark.parametrize(("age", "left"), [(timedelta(hours=25), 0), (timedelta(hours=23), 1)])
def test_what_finished_messages_leave_behind_is_removed_after_a_day(age, left):
    started("small")
    DBTaskResult.objects.update(status="SUCCESSFUL", finished_at=timezone.now() - age)
    sweep()
    assert DBTaskResult.objects.count() == left


def test_messages_that_wait_are_never_removed():
    run = started("small")
    DBTaskResult.objects.update(enqueued_at=timezone.now() - timedelta(days=9))
    ports.dispatcher().tidy()
    assert hints(run) == 1


def test_a_run_whose_flow_is_registered_again_as_it_was_goes_on(monkeypatch):
    run = paused("small")
    set_aside(run, status="attention", error_code="unknown-flow", version="0")
    assert sweep() == NONE
    set_aside(run, version="1", graph="0" * 64, error_code="graph-changed")
    assert sweep() == NONE
    set_aside(run, graph=flows.small.digest)
    assert sweep() == NONE | {"registered": 1}
    assert again(run).status == "queued"


def test_a_paused_run_that_waits_for_nobody_is_looked_at():
    run = paused("small")
    set_aside(only_request(run), status="expired")
    assert sweep() == NONE | {"decided": 1}
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "checkpoint-tampered")


def test_a_running_run_without_a_claim_is_abandoned():
    run = started("small")
    set_aside(run, status="running", lease_owner="", lease_until=None)
    assert sweep() == NONE | {"abandoned": 1}
    assert walk(run).status == "paused"
