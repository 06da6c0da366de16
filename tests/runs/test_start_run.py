"""Starting a run: what is checked, and that it is written whole or not at all."""

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from pydantic import BaseModel

from approvals.models import AuditEntry
from runs import ports
from runs.actions import InvalidInput, start_run
from runs.engine import END, START, Flow
from runs.models import Run
from runs.registry import UnknownFlow
from tests.support import flows
from tests.support.make import START as MAY_START
from tests.support.make import everything, hints, paused, person, started, walk

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def refused(flow, input, error, **more):
    """The error of a start that is refused; everything must be as it was."""
    before = everything()
    with pytest.raises(error) as caught:
        start_run(flow, input, **({"by": None} | more))
    assert everything() == before
    return caught.value


def test_a_started_run_is_queued_with_its_event_audit_entry_and_hint():
    user = person("starter", MAY_START)
    run = start_run("one", {"note": "hello"}, by=user, via="page")
    run.refresh_from_db()
    assert (run.status, run.flow, run.version, run.graph) == (
        "queued",
        "one",
        "1",
        flows.one.digest,
    )
    assert (run.started_by, run.via, run.requester) == (user, "page", "starter")
    assert run.queued_at is not None
    assert run.checkpoint_at is not None
    assert dict(run.input_shown["items"])["note"] == {"t": "text", "v": "hello"}
    (event,) = run.events.all()
    assert (event.kind, event.data) == ("run.started", {"by": "starter", "via": "page"})
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.actor, entry.actor_name, entry.run_id) == (
        "run.started",
        user,
        "starter",
        run.pk,
    )
    assert hints(run) == 1
    assert flows.effects == []


def test_nothing_runs_before_a_worker_takes_the_run():
    run = started("small")
    assert run.requests.count() == 0
    assert walk(run).status == "paused"


def test_a_start_that_is_rolled_back_leaves_nothing_not_even_a_hint():
    before = everything()
    with transaction.atomic():
        started("one")
        transaction.set_rollback(True)
    assert everything() == before


@pytest.mark.parametrize("part", ["audit", "enqueue"])
def test_a_start_is_undone_where_a_part_of_it_fails(monkeypatch, part):
    def fail(*args, **kwargs):
        raise RuntimeError("no")

    owner = ports.approvals() if part == "audit" else ports.dispatcher()
    monkeypatch.setattr(type(owner), part, fail)
    refused("one", {}, RuntimeError)


def test_an_unknown_flow_is_refused_and_the_known_ones_are_named():
    error = refused("eno", {}, UnknownFlow)
    assert "'eno'" in str(error)
    assert "one, pair" in str(error)


def test_an_unknown_version_of_a_known_flow_is_refused():
    assert "'one' in version '7'" in str(refused("one", {}, UnknownFlow, version="7"))


def test_a_user_without_the_right_may_not_start_a_run():
    refused("one", {}, PermissionDenied, by=person("guest"))


def test_a_user_who_has_left_may_not_start_a_run():
    user = person("starter", MAY_START)
    user.is_active = False
    user.save()
    refused("one", {}, PermissionDenied, by=user)


@pytest.mark.parametrize(
    ("input", "field"),
    [
        ({"done": "not a list"}, "done"),
        ({"note": 7}, "note"),
        ({"note": "nul \0"}, "note"),
        ({"note": "half a pair \ud800"}, "note"),
        ({"note": float("nan")}, "note"),
        ([1, 2], ""),
        ("text", ""),
        (None, ""),
        (10**5000, ""),
    ],
    ids=["type", "number", "nul", "surrogate", "nan", "list", "text", "null", "huge number"],
)
def test_input_that_is_no_state_of_the_flow_is_refused_at_its_field(input, field):
    error = refused("one", input, InvalidInput)
    assert list(error.errors) == [field]
    assert all(message for message in error.errors[field])
    assert str(error)


def test_input_nested_too_deeply_is_refused():
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    refused("one", {"done": deep}, InvalidInput)


def test_a_long_input_is_taken_whole_and_shown_cut():
    long = "x" * 100_000
    run = started("one", note=long)
    note = dict(run.input_shown["items"])["note"]
    assert len(note["v"]) + note["cut"] == len(long)
    assert walk(run).status == "paused"


def test_markup_in_the_input_is_only_text():
    run = started("one", note="<script>alert(1)</script>' OR 1=1 --")
    assert dict(run.input_shown["items"])["note"]["v"].startswith("<script>")


class Opaque:
    pass


class Unformable(BaseModel, arbitrary_types_allowed=True):
    thing: Opaque | None = None


def test_a_flow_whose_state_no_form_can_be_made_from_says_so(monkeypatch):
    flow = Flow("opaque", state=Unformable)
    flow.node("only", flows.fails)
    flow.edge(START, "only")
    flow.edge("only", END)
    flows.install(monkeypatch, flow)
    error = refused("opaque", {}, InvalidInput)
    assert "Unformable" in str(error)


def test_the_newest_version_is_started_unless_another_is_asked_for(monkeypatch):
    newer = Flow("one", state=flows.Steps, version="10")
    newer.node("tidy", flows.tidy)
    newer.edge(START, "tidy")
    newer.edge("tidy", END)
    flows.install(monkeypatch, newer)
    assert started("one").version == "10"
    assert start_run("one", {}, by=None, version="1").version == "1"


def test_a_run_is_visible_to_its_starter_and_to_who_may_see_all():
    own = paused("small", by=(starter := person("starter", MAY_START)))
    other = started("small")
    assert set(Run.objects.visible_to(starter)) == {own}
    assert set(Run.objects.visible_to(person("viewer", "runs.view_run"))) == {own, other}
    assert not Run.objects.visible_to(person("guest")).exists()
    starter.is_active = False
    assert not Run.objects.visible_to(starter).exists()
