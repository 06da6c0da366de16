"""Writing what happens in a run: when it is in the database, and that nothing of it is lost."""

import threading
from datetime import UTC, datetime

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError

from runs.engine import Event, Interrupted
from runs.events import EventWriter, record, touch
from runs.models import RunEvent
from tests.support import flows
from tests.support.make import again, everything, started, together

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


@pytest.fixture
def run():
    run = started("one")
    run.events.all().delete()
    return again(run)


def event(kind, number=0, **more):
    return Event(kind, "run", "one", node="pay", call_id=str(number), **more)


def told(writer, *events):
    for each in events:
        async_to_sync(writer)(each)


def kinds(run):
    return [event.kind for event in run.events.all()]


def test_an_event_keeps_what_the_engine_tells(run):
    writer = EventWriter(run.pk, threading.Event())
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    told(
        writer,
        Event(
            "call.finished",
            str(run.pk),
            "one",
            node="pay",
            visit="pay#1",
            tool="ask",
            call_id="c1",
            data={"duration_ms": 5},
            at=at,
        ),
    )
    writer.flush()
    row = run.events.get()
    assert (row.kind, row.node, row.visit, row.tool, row.call_id, row.data, row.at) == (
        "call.finished",
        "pay",
        "pay#1",
        "ask",
        "c1",
        {"duration_ms": 5},
        at,
    )


def test_a_calls_start_is_in_the_database_at_once_with_all_before_it(run):
    writer = EventWriter(run.pk, threading.Event())
    told(writer, event("node.finished"), event("approval.requested"))
    assert kinds(run) == []
    told(writer, event("call.started"))
    assert kinds(run) == ["node.finished", "approval.requested", "call.started"]


def test_other_events_wait_for_the_next_writing_and_are_written_once(run):
    writer = EventWriter(run.pk, threading.Event())
    told(writer, event("call.finished"))
    assert kinds(run) == []
    writer.flush()
    writer.flush()
    assert kinds(run) == ["call.finished"]


def test_each_writing_tells_pages_that_there_is_news(run):
    writer = EventWriter(run.pk, threading.Event())
    before = again(run)
    told(writer, event("call.started"))
    after = again(run)
    assert after.revision == before.revision + 1
    assert after.changed_at > before.changed_at
    writer.flush()
    assert again(run).revision == after.revision
    touch(run.pk)
    record(run.pk, "run.paused")
    assert again(run).revision == after.revision + 2


def test_a_walk_whose_claim_is_lost_is_interrupted_and_writes_nothing(run):
    lost = threading.Event()
    writer = EventWriter(run.pk, lost)
    lost.set()
    before = everything()
    with pytest.raises(Interrupted):
        told(writer, event("call.started"))
    writer.flush()
    assert everything() == before


def test_events_and_their_news_are_written_together_or_not_at_all(run, monkeypatch):
    writer = EventWriter(run.pk, threading.Event())
    told(writer, event("call.finished"))

    def fail(run_id):
        raise DatabaseError("no")

    monkeypatch.setattr("runs.events.touch", fail)
    with pytest.raises(DatabaseError):
        writer.flush()
    assert kinds(run) == []


@pytest.mark.django_db(transaction=True)
def test_no_event_is_lost_that_comes_while_others_are_written(run, monkeypatch):
    """Calls that run side by side tell their events in the loop's thread, while those of others
    are written in the worker's."""
    writer = EventWriter(run.pk, threading.Event())
    make = RunEvent.__init__

    def write_meanwhile(row, *args, **values):
        assert not any(together(1, lambda number: writer.flush()))
        make(row, *args, **values)

    monkeypatch.setattr(RunEvent, "__init__", write_meanwhile)
    told(writer, *(event("call.finished", number) for number in range(3)))
    writer.flush()
    monkeypatch.undo()
    assert list(run.events.values_list("call_id", flat=True)) == ["0", "1", "2"]
