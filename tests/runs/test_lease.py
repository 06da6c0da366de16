"""The claim on a run: one worker holds it, keeps it alive, and loses it with all that it did."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from runs.engine import Interrupted
from runs.events import EventWriter
from runs.lease import Lease, claim
from runs.models import Run
from runs.work import advance
from tests.support import flows
from tests.support.make import (
    again,
    approve,
    everything,
    only_request,
    paused,
    set_aside,
    started,
    together,
    walk,
)

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_SECONDS = 30


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def wait_until(condition):
    last_moment = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < last_moment, "waited in vain"
        time.sleep(0.01)


def held_until(run):
    until = again(run).lease_until
    assert until is not None
    return until


def expired(run):
    set_aside(run, lease_until=timezone.now() - timedelta(seconds=1))


def abandoned(run, owner="gone"):
    """The run as a worker leaves it that was killed right after its claim."""
    assert claim(run.pk, owner) is not None
    expired(run)
    return again(run)


# ---- claiming -----------------------------------------------------------------------------------


def test_of_many_workers_at_one_instant_one_gets_the_run():
    run = started("small")
    outcomes = together(8, lambda number: claim(run.pk, f"worker-{number}"))
    (winner,) = [number for number, outcome in enumerate(outcomes) if outcome is not None]
    claimed, taken_over = outcomes[winner]
    assert (claimed.pk, taken_over) == (run.pk, False)
    run = again(run)
    assert (run.status, run.lease_owner) == ("running", f"worker-{winner}")
    assert held_until(run) > timezone.now()


def test_of_many_workers_at_one_instant_one_walks_the_run():
    run = started("one")
    outcomes = together(8, lambda number: advance(run.pk, f"worker-{number}"))
    assert sorted(outcomes) == [False] * 7 + [True]
    assert again(run).status == "paused"
    assert flows.effects == ["prepare", "look up"]


def test_of_many_workers_at_one_instant_one_takes_an_abandoned_run_over():
    run = abandoned(started("small"))
    outcomes = together(8, lambda number: claim(run.pk, f"worker-{number}"))
    (winner,) = [number for number, outcome in enumerate(outcomes) if outcome is not None]
    assert outcomes[winner][1] is True
    assert again(run).lease_owner == f"worker-{winner}"


def test_a_run_whose_worker_is_alive_is_not_taken_over():
    run = started("small")
    assert claim(run.pk, "first") is not None
    before = everything()
    assert claim(run.pk, "second") is None
    assert everything() == before


@pytest.mark.parametrize("status", ["paused", "completed", "failed", "cancelled", "attention"])
def test_a_run_that_is_not_due_is_not_claimed(status):
    run = started("small")
    set_aside(run, status=status, lease_until=timezone.now() - timedelta(days=1))
    before = everything()
    assert claim(run.pk, "worker") is None
    assert everything() == before


# ---- keeping ------------------------------------------------------------------------------------


def test_a_claim_is_renewed_while_a_long_tool_runs(settings):
    settings.FLOWSITE_LEASE_SECONDS = 0.3
    run = started("one")
    seen = []

    def long():
        first = held_until(run)
        wait_until(lambda: held_until(run) > first + timedelta(seconds=0.3))
        seen.append(claim(run.pk, "second"))

    flows.during["prepare"] = long
    assert walk(run).status == "paused"
    assert seen == [None]
    assert flows.effects == ["prepare", "look up"]


def test_the_renewal_ends_with_the_walk():
    run = started("small")
    walk(run)
    assert not [t for t in threading.enumerate() if t.name.startswith("lease-")]


def test_the_renewal_outlives_an_error_of_the_database(settings, monkeypatch):
    settings.FLOWSITE_LEASE_SECONDS = 0.1
    run = started("small")
    claim(run.pk, "worker")
    asked = []
    until = Run.objects.get(pk=run.pk).lease_until
    real = timezone.now

    def now():
        if threading.current_thread().name.startswith("lease-"):
            asked.append(1)
            if len(asked) == 1:
                raise OperationalError("gone")
        return real()

    monkeypatch.setattr("runs.lease.timezone.now", now)
    with Lease(run, "worker") as lease:
        wait_until(lambda: len(asked) > 1 and again(run).lease_until != until)
        assert not lease.lost.is_set()


def test_a_claim_that_is_lost_is_noticed(settings):
    settings.FLOWSITE_LEASE_SECONDS = 0.1
    run = started("small")
    claim(run.pk, "first")
    with Lease(run, "first") as lease:
        set_aside(run, lease_owner="second")
        assert lease.lost.wait(WAIT_SECONDS)
    assert again(run).lease_owner == "second"


# ---- losing -------------------------------------------------------------------------------------


def test_what_a_worker_stores_late_is_refused_and_changes_nothing(caplog):
    run = started("one")
    taken: list[Any] = []

    def taken_over():
        expired(run)
        taken.append(claim(run.pk, "second"))

    flows.during["look up"] = taken_over
    kept = again(run).checkpoint
    assert advance(run.pk, "first") is True
    assert taken[0][1] is True
    run = again(run)
    assert (run.status, run.lease_owner) == ("running", "second")
    assert run.checkpoint == kept
    assert run.requests.count() == 0
    assert not run.events.filter(kind="run.paused").exists()
    assert "taken over by another worker" in caplog.text


def test_a_worker_that_has_lost_its_claim_starts_no_further_call(settings):
    settings.FLOWSITE_LEASE_SECONDS = 0.1
    run = started("one")

    def taken_over():
        set_aside(run, lease_owner="second", lease_until=timezone.now() + timedelta(hours=1))
        wait_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("lease-")])

    flows.during["prepare"] = taken_over
    advance(run.pk, "first")
    assert flows.effects == ["prepare"]
    run = again(run)
    assert (run.status, run.lease_owner) == ("running", "second")
    assert not run.events.filter(tool="act", node="pay").exists()


def test_an_error_of_a_late_worker_does_not_fail_the_run(monkeypatch):
    run = started("broken")

    def taken_over(self, error, open_before, end):
        expired(run)
        claim(run.pk, "second")
        end(self, error, open_before)

    from runs.work import _Walk

    end = _Walk._end
    monkeypatch.setattr(
        _Walk, "_end", lambda self, error, before: taken_over(self, error, before, end)
    )
    advance(run.pk, "first")
    run = again(run)
    assert (run.status, run.lease_owner, run.error_code) == ("running", "second", "")


# ---- taking over --------------------------------------------------------------------------------


def test_a_run_that_was_abandoned_before_any_call_began_goes_on():
    run = walk(abandoned(started("one")))
    assert run.status == "paused"
    assert flows.effects == ["prepare", "look up"]


def test_a_run_that_was_abandoned_after_its_decision_and_before_the_call_goes_on():
    run = paused("one")
    approve(only_request(run))
    run = walk(abandoned(run))
    assert run.status == "completed"
    assert flows.effects == ["prepare", "look up", "pay", "tidy"]


def killed_in(run, step):
    """Walk the run with a worker that ends when a step has had its effect, before anyone knows."""
    tell = EventWriter.__call__

    async def tell_or_die(writer, event):
        if event.kind == "call.finished" and flows.effects[-1] == step:
            raise Interrupted("killed")
        await tell(writer, event)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventWriter, "__call__", tell_or_die)
        advance(run.pk, "killed")
    run = again(run)
    assert (run.status, run.lease_owner) == ("running", "killed")
    assert flows.effects[-1] == step
    expired(run)


@pytest.mark.parametrize("step", ["prepare", "look up"])
def test_a_run_that_was_abandoned_during_a_call_repeats_nothing_and_asks_for_a_persons_eye(step):
    run = started("one")
    killed_in(run, step)
    effects = list(flows.effects)
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "outcome-unknown")
    assert "not known which of the calls" in run.error_message
    assert flows.effects == effects
    assert (run.lease_owner, run.lease_until) == ("", None)


def test_a_run_that_was_abandoned_after_a_call_had_ended_repeats_nothing():
    run = started("one")
    killed_in(run, "look up")  # "prepare" has ended then
    run = walk(run)
    assert run.status == "attention"
    assert flows.effects.count("prepare") == 1


def test_a_run_that_was_abandoned_during_an_approved_call_keeps_its_decision_and_repeats_nothing():
    run = paused("one")
    request = only_request(run)
    approve(request)
    killed_in(run, "pay")
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "outcome-unknown")
    assert flows.effects.count("pay") == 1
    request.refresh_from_db()
    assert (request.status, request.consumed_at) == ("approved", None)


def test_a_run_that_is_abandoned_twice_is_still_not_repeated():
    run = started("one")
    killed_in(run, "prepare")
    claim(run.pk, "second")
    expired(run)
    run = walk(run)
    assert (run.status, run.error_code) == ("attention", "outcome-unknown")
    assert flows.effects == ["prepare"]


def test_calls_before_the_last_pause_do_not_count_as_unknown():
    run = paused("one")
    assert flows.effects == ["prepare", "look up"]
    approve(only_request(run))
    assert walk(abandoned(run)).status == "completed"
    assert flows.effects.count("look up") == 1
