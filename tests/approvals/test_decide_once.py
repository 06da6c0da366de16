"""Many people decide one request at one instant: one of them does."""

import pytest
from django.test import Client
from django.urls import reverse

from approvals.actions import AlreadyDecided, decide
from approvals.models import AuditEntry, Decision
from tests.support import flows
from tests.support.make import (
    again,
    everything,
    hints,
    only_request,
    paused,
    pending,
    reviewer,
    together,
    walk,
)

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE = 20


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def given(number):
    """Approvals and rejections in turn."""
    return {"verdict": "reject" if number % 2 else "approve", "reason": f"because of {number}"}


def decided_once(request, sent):
    """One decision, one audit entry, one wake-up, and, once a worker comes, one resume."""
    decision = Decision.objects.get(request=request)
    request.refresh_from_db()
    outcome = {"approve": "approved", "reject": "rejected"}[decision.verdict]
    assert (request.status, request.decided_at) == (outcome, decision.decided_at)
    entry = AuditEntry.objects.get(action__startswith="request.")
    assert (entry.action, entry.actor_name) == (f"request.{outcome}", decision.by_name)
    assert request.run.events.filter(kind="approval.answered").count() == 1
    assert request.run.status == "queued"
    assert hints(request.run) == sent + 1
    run = walk(request.run)
    assert run.status == "completed"
    assert flows.effects.count("pay") == (outcome == "approved")
    assert run.events.filter(kind="node.resumed").count() == 1
    before = everything()
    assert walk(run).status == "completed"
    assert everything() == before
    return decision


def test_twenty_people_decide_at_one_instant_and_one_of_them_does():
    people = [reviewer(f"person-{number:02}") for number in range(PEOPLE)]
    request = only_request(paused("one"))
    sent = hints(request.run)

    outcomes = together(
        PEOPLE,
        lambda number: decide(
            request.pk, by=people[number], digest=request.digest, **given(number)
        ),
    )

    winners = [outcome for outcome in outcomes if isinstance(outcome, Decision)]
    losers = [outcome for outcome in outcomes if isinstance(outcome, AlreadyDecided)]
    assert (len(winners), len(losers)) == (1, PEOPLE - 1), outcomes
    decision = decided_once(request, sent)
    assert winners == [decision]
    for loser in losers:
        assert str(loser).startswith(f"{decision.by_name} {request.status} this request on 2")


def test_one_person_who_decides_twenty_times_at_one_instant_decides_once():
    user = reviewer()
    request = only_request(paused("one"))
    sent = hints(request.run)
    outcomes = together(
        PEOPLE,
        lambda number: decide(request.pk, by=user, digest=request.digest, **given(number)),
    )
    assert sum(isinstance(outcome, Decision) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, AlreadyDecided) for outcome in outcomes) == PEOPLE - 1
    decided_once(request, sent)


def test_twenty_people_post_at_one_instant_and_nineteen_are_told_who_was_first():
    people = [reviewer(f"person-{number:02}") for number in range(PEOPLE)]
    request = only_request(paused("one"))
    sent = hints(request.run)
    url = reverse("request", args=[request.pk])
    clients = [Client() for _ in people]
    for client, user in zip(clients, people, strict=True):
        client.force_login(user)

    answers = together(
        PEOPLE,
        lambda number: clients[number].post(url, {"digest": request.digest, **given(number)}),
    )

    statuses = sorted(getattr(answer, "status_code", answer) for answer in answers)
    assert statuses == [302] + [409] * (PEOPLE - 1), answers
    decision = decided_once(request, sent)
    names = {user.username for user in people}
    for user, answer in zip(people, answers, strict=True):
        page = answer.content.decode()
        if answer.status_code == 302:
            assert user.username == decision.by_name
            continue
        assert decision.by_name in page
        assert {name for name in names if name in page} <= {decision.by_name, user.username}
        assert "changed nothing" in page


def test_two_requests_of_one_run_decided_at_one_instant_both_count():
    people = [reviewer(f"person-{number:02}") for number in range(2)]
    run = paused("pair")
    requests = pending(run)
    sent = hints(run)
    outcomes = together(
        2,
        lambda number: decide(
            requests[number].pk,
            by=people[number],
            digest=requests[number].digest,
            verdict="approve",
        ),
    )
    assert all(isinstance(outcome, Decision) for outcome in outcomes), outcomes
    assert again(run).status == "queued"
    assert hints(run) == sent + 1
    assert walk(run).status == "completed"
    assert sorted(flows.effects) == ["left", "right", "tidy"]
