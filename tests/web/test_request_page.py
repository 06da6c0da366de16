"""The page of a request: what it shows, and which answer a decision gets."""

from __future__ import annotations

import uuid

import pytest

from approvals.models import Decision
from tests.support import flows
from tests.support.make import (
    DECIDE,
    START,
    VIEW,
    approve,
    everything,
    pending,
    person,
    reject,
    request_of,
    reviewer,
    set_aside,
    walk,
)
from tests.support.pages import (
    AUDIT,
    HTMX,
    VIEW_RUNS,
    answer,
    as_user,
    is_partial,
    poll_url,
    source_of,
    text_of,
    url_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def test_a_request_shows_what_will_run_and_carries_its_digest():
    request = request_of("gate", by=person("claims-desk", START))
    response = as_user(reviewer()).get(url_of(request))
    page, words = source_of(response), text_of(response)
    assert request.summary in words
    assert "statement DELETE" in words
    assert f'name="digest" value="{request.digest}"' in page
    assert "claims-desk, who started the run" in words
    assert 'name="form.ticket"' in page


def test_a_masked_value_never_reaches_the_page():
    request = request_of("vault", password=flows.PASSWORD)
    approve(request, content={"pin": "1234"})
    request = pending(walk(request.run))[0]
    client = as_user(person("looker", VIEW, DECIDE, VIEW_RUNS))
    for path in (url_of(request), url_of(request.run)):
        page = source_of(client.get(path))
        assert flows.PASSWORD not in page
        assert flows.TOKEN not in page
        assert 'class="masked"' in page


def test_the_buttons_are_named_by_what_they_act_on():
    page = source_of(as_user(reviewer()).get(url_of(request_of("small"))))
    assert 'aria-label="Approve “Do pay”: Do pay"' in page
    assert 'aria-label="Reject: Do pay"' in page


def test_who_started_the_run_reads_why_they_cannot_decide():
    one = person("one", VIEW, DECIDE, START)
    request = request_of("small", by=one)
    response = as_user(one).get(url_of(request))
    assert "You started this run, so someone else must decide." in text_of(response)
    assert 'name="verdict"' not in source_of(response)
    refused = answer(as_user(one), request, verdict="approve")
    assert refused.status_code == 403
    assert "You started this run, so someone else must decide." in text_of(refused)
    assert not Decision.objects.exists()


def test_a_request_that_is_not_theirs_to_see_is_404_like_one_that_is_not():
    request = request_of("small")
    client = as_user(person("stranger", DECIDE))
    missing = client.get(f"/approvals/{uuid.uuid4()}/")
    hidden = client.get(url_of(request))
    assert (missing.status_code, hidden.status_code) == (404, 404)
    assert text_of(missing) == text_of(hidden)
    assert answer(client, request, verdict="approve").status_code == 404
    assert not Decision.objects.exists()


def test_looking_at_pages_changes_nothing():
    request = request_of("gate", by=person("requester", START))
    client = as_user(person("all", VIEW, DECIDE, AUDIT, START, VIEW_RUNS))
    before = everything()
    for path in (
        "/approvals/",
        f"{url_of(request)}?verdict=approve&digest={request.digest}&confirmed=1",
        url_of(request.run),
        "/runs/",
        "/flows/gate/?form.statement=DROP",
        "/audit/",
    ):
        assert client.get(path).status_code == 200
        assert client.head(path).status_code == 200
    assert everything() == before


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_other_methods_are_a_405_page_that_names_those_there_are(method):
    response = getattr(as_user(reviewer()), method)(url_of(request_of("small")))
    assert (response.status_code, response["Allow"]) == (405, "GET, POST")
    assert "GET and POST only" in text_of(response)


def test_an_approval_without_htmx_leads_back_to_the_page_which_says_so():
    request = request_of("small")
    client = as_user(reviewer())
    response = answer(client, request, verdict="approve")
    assert (response.status_code, response["Location"]) == (302, url_of(request))
    assert "Approved. The run goes on." in text_of(client.get(url_of(request)))
    assert Decision.objects.get().verdict == "approve"


def test_an_approval_by_htmx_is_a_part_that_says_so_and_tells_other_parts():
    request = request_of("small")
    response = answer(as_user(reviewer()), request, verdict="approve", headers=HTMX)
    assert response.status_code == 200
    assert is_partial(response)
    assert "Approved. The run goes on." in text_of(response)
    assert "flowsite:decided" in response["HX-Trigger"]
    assert 'name="verdict"' not in source_of(response)


def test_a_rejection_needs_a_reason_and_keeps_what_was_typed():
    request = request_of("question")
    client = as_user(reviewer())
    fields = {"form.ticket": "T-17", "reason": " "}
    response = answer(client, request, verdict="reject", headers=HTMX, **fields)
    assert response.status_code == 422
    assert "Say why you reject it." in text_of(response)
    assert 'value="T-17"' in source_of(response)
    assert not Decision.objects.exists()
    assert answer(client, request, verdict="reject", reason="No.").status_code == 302
    assert Decision.objects.get().reason == "No."


def test_a_wrong_answer_is_422_with_the_messages_at_their_fields():
    request = request_of("question")
    fields = {"verdict": "approve", "form.ticket": "T", "reason": "because"}
    for headers in (HTMX, None):
        response = answer(
            as_user(person(f"r{headers}", VIEW, DECIDE)), request, headers=headers, **fields
        )
        page = source_of(response)
        assert response.status_code == 422
        assert is_partial(response) == bool(headers)
        assert flows.WITHOUT_BACKUP in text_of(response)
        assert 'aria-invalid="true"' in page
        assert 'value="T"' in page
        assert ">\nbecause</textarea>" in page
    assert not Decision.objects.exists()


@pytest.mark.parametrize("verdict", ["", "yes", "APPROVE", "true"])
def test_an_unknown_verdict_is_never_a_yes(verdict):
    request = request_of("small")
    response = answer(as_user(reviewer()), request, verdict=verdict)
    assert response.status_code == 422
    assert "nothing was decided" in text_of(response)
    assert not Decision.objects.exists()


def test_who_comes_second_is_told_who_was_first():
    request = request_of("small")
    reject(request, by=person("finance-lead", VIEW, DECIDE), reason="No invoice.")
    for headers in (HTMX, None):
        client = as_user(person(f"second{headers}", VIEW, DECIDE))
        response = answer(client, request, verdict="approve", headers=headers)
        assert response.status_code == 409
        assert is_partial(response) == bool(headers)
        assert "finance-lead rejected this just now" in text_of(response)
        assert "No invoice." in text_of(response)
        assert "<time datetime=" in source_of(response)
    assert Decision.objects.count() == 1


def test_a_late_and_incomplete_answer_is_late():
    request = request_of("question")
    approve(request, content={"ticket": "T-17", "backup": True})
    response = answer(as_user(reviewer()), request, verdict="approve", **{"form.ticket": ""})
    assert response.status_code == 409


def test_a_stale_page_is_shown_anew_with_what_was_typed():
    request = request_of("question")
    data = {"digest": "0" * 64, "verdict": "approve", "form.ticket": "T-17", "reason": "fine"}
    response = as_user(reviewer()).post(url_of(request), data, headers=HTMX)
    assert response.status_code == 409
    assert "Nothing was decided." in text_of(response)
    assert "Read it again" in text_of(response)
    page = source_of(response)
    assert f'name="digest" value="{request.digest}"' in page
    assert 'value="T-17"' in page
    assert ">\nfine</textarea>" in page
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    ("verdict", "fields"),
    [("approve", {"form.ticket": "T-17", "form.backup": "true"}), ("reject", {"reason": "No."})],
)
def test_a_high_risk_is_asked_twice(verdict, fields):
    request = request_of("gate")
    client = as_user(reviewer())
    first = answer(client, request, verdict=verdict, **fields)
    assert first.status_code == 200
    assert not Decision.objects.exists()
    page = source_of(first)
    assert 'class="field-error"' not in page
    assert "Nothing is decided yet." in text_of(first)
    assert page.count(request.summary) >= 3  # title, heading, and said again
    assert 'name="confirmed" value="1"' in page
    assert page.count('name="verdict"') == 1
    for value in fields.values():
        assert f'value="{value}"' in page or f"\n{value}</textarea>" in page
    assert answer(client, request, verdict=verdict, confirmed="1", **fields).status_code == 302
    assert Decision.objects.get().verdict == verdict


def test_a_high_risk_is_not_asked_twice_about_an_answer_that_cannot_be_taken():
    request = request_of("gate")
    client = as_user(reviewer())
    assert answer(client, request, verdict="approve").status_code == 422
    assert answer(client, request, verdict="reject").status_code == 422
    stale = client.post(url_of(request), {"digest": "0", "verdict": "approve"})
    assert stale.status_code == 409


def test_a_poll_of_a_request_never_brings_the_form():
    request = request_of("question")
    client = as_user(reviewer())
    poll = poll_url(client.get(url_of(request)), "request-side")
    assert client.get(poll, headers=HTMX).status_code == 204
    approve(
        request,
        by=person("finance-lead", VIEW, DECIDE),
        content={"ticket": "T-17", "backup": True},
    )
    news = client.get(poll, headers=HTMX)
    assert news.status_code == 200
    assert "<form" not in source_of(news)
    assert "<textarea" not in source_of(news)
    assert 'hx-swap-oob="innerHTML:#request-notice"' in source_of(news)
    assert "finance-lead approved this" in text_of(news)
    assert "request-notice" not in source_of(
        client.get(poll_url(news, "request-side"), headers=HTMX)
    )


def test_a_decided_request_shows_the_reason_and_the_answer():
    request = request_of("question")
    approve(request, content={"ticket": "T-17", "backup": True}, reason="Seen the plan.")
    words = text_of(as_user(reviewer()).get(url_of(request)))
    assert "Seen the plan." in words
    assert "ticket T-17" in words


@pytest.mark.parametrize(
    "damage",
    [
        {"shown": []},
        {"shown": {"t": "text", "v": 5, "masks": [[9, 1]]}},
        {"shown": {"t": "map"}},
        {"form_schema": "x"},
        {"form_schema": {"properties": 7}},
    ],
    ids=str,
)
def test_a_request_that_was_changed_in_the_database_is_a_page_that_says_so(damage):
    request = request_of("question")
    set_aside(request, **damage)
    client = as_user(reviewer())
    response = client.get(url_of(request))
    assert response.status_code == 200
    assert "It was changed in the database" in text_of(response)
    assert 'name="verdict"' not in source_of(response)
    posted = client.post(url_of(request), {"verdict": "approve", "digest": request.digest})
    assert posted.status_code == 409
    assert not request.decisions.exists()
