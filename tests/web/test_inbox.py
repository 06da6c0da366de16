"""The inbox: who sees what waits, searched, paged and polled."""

from __future__ import annotations

import uuid

import pytest

from approvals.models import ApprovalRequest
from tests.support import flows
from tests.support.make import (
    DECIDE,
    START,
    VIEW,
    approve,
    paused,
    pending,
    person,
    request_of,
    reviewer,
)
from tests.support.pages import (
    HTMX,
    as_user,
    copy_of,
    is_partial,
    poll_url,
    source_of,
    text_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def test_the_inbox_shows_who_may_decide_what_waits_for_them():
    one = person("one", VIEW, DECIDE, START)
    own, other = request_of("question", by=one, statement="MINE"), request_of("small")
    assert own.summary != other.summary
    client = as_user(one)
    yours, every = client.get("/approvals/"), client.get("/approvals/?tab=open")
    assert (other.summary in text_of(yours), own.summary in text_of(yours)) == (True, False)
    assert (other.summary in text_of(every), own.summary in text_of(every)) == (True, True)
    assert "For you 1" in text_of(yours)
    assert "All open 2" in text_of(yours)


def test_the_inbox_of_a_requester_shows_the_requests_of_their_own_runs_only():
    requester = person("requester", START)
    own, other = request_of("question", by=requester, statement="MINE"), request_of("small")
    response = as_user(requester).get("/approvals/")
    assert own.summary in text_of(response)
    assert other.summary not in text_of(response)
    assert "For you" not in text_of(response)


def test_a_decided_request_moves_to_its_tab_with_who_decided():
    request = request_of("small")
    approve(request, by=person("finance-lead", VIEW, DECIDE))
    client = as_user(reviewer())
    assert request.summary not in text_of(client.get("/approvals/"))
    decided = text_of(client.get("/approvals/?tab=decided"))
    assert request.summary in decided
    assert "finance-lead" in decided


@pytest.mark.parametrize("words", ["TRUNC", "question", "claims-desk"])
def test_the_inbox_is_searched_by_summary_flow_and_requester(words):
    wanted = request_of("question", by=person("claims-desk", START), statement="TRUNCATE")
    request_of("small")
    response = as_user(reviewer()).get("/approvals/", {"q": words.lower()})
    assert "For you 1" in text_of(response)
    assert str(wanted.pk) in source_of(response)


def test_the_inbox_is_a_part_for_htmx_and_the_whole_page_for_its_history():
    client = as_user(reviewer())
    part = client.get("/approvals/", headers=HTMX)
    restored = client.get("/approvals/", headers=HTMX | {"HX-History-Restore-Request": "true"})
    assert is_partial(part)
    assert not is_partial(restored)
    for response in (part, restored, client.get("/approvals/")):
        assert "HX-Request" in response["Vary"]


def test_a_poll_of_the_inbox_is_empty_until_something_changes():
    request_of("small")
    client = as_user(reviewer())
    poll = poll_url(client.get("/approvals/"), "list")
    seen = client.get(poll, headers=HTMX)
    assert (seen.status_code, seen.content) == (204, b"")
    assert "HX-Request" in seen["Vary"]
    request_of("small")
    news = client.get(poll, headers=HTMX)
    assert news.status_code == 200
    assert is_partial(news)
    assert 'id="badge"' in source_of(news)
    assert client.get(poll_url(news, "list"), headers=HTMX).status_code == 204


@pytest.mark.parametrize("path", ["/approvals/?tab=nonsense", "/runs/?status=nonsense"])
def test_an_unknown_list_is_a_404_page(path):
    response = as_user(reviewer()).get(path)
    assert response.status_code == 404
    assert "There is nothing here" in text_of(response)


@pytest.mark.parametrize("path", ["/approvals/", "/runs/"])
@pytest.mark.parametrize("words", ["%", "'", "x" * 5_000, "\u202e"])
def test_hostile_words_find_nothing_and_break_nothing(path, words):
    response = as_user(reviewer()).get(path, {"q": words, "page": "-1"})
    assert response.status_code == 200


def test_pages_of_a_long_list_keep_what_was_searched_for():
    run = paused("small")
    first = pending(run)[0]
    copies = [copy_of(first, id=uuid.uuid4(), summary=f"Copy {n}") for n in range(60)]
    ApprovalRequest.objects.bulk_create(copies)
    client = as_user(reviewer())
    response = client.get("/approvals/?q=copy")
    assert source_of(response).count('class="row-title"') == 50
    assert "1 to 50 of 60" in text_of(response)
    assert 'href="?q=copy&amp;page=2"' in source_of(response)
    assert source_of(client.get("/approvals/?q=copy&page=2")).count("row-title") == 10
