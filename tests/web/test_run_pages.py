"""The pages of runs, flows, the audit trail, and the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.utils import timezone
from django.utils.html import escape

from approvals.models import AuditEntry
from runs.models import Run, RunEvent
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
    set_aside,
    started,
    walk,
)
from tests.support.pages import (
    AUDIT,
    HTMX,
    VIEW_RUNS,
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


# ---- runs ---------------------------------------------------------------------------------------


def test_the_list_of_runs_shows_the_own_ones_and_all_with_the_right():
    requester = person("requester", START)
    own, other = paused("small", by=requester), paused("one")
    mine = source_of(as_user(requester).get("/runs/"))
    every = source_of(as_user(person("looker", VIEW_RUNS)).get("/runs/"))
    assert (str(own.pk) in mine, str(other.pk) in mine) == (True, False)
    assert (str(own.pk) in every, str(other.pk) in every) == (True, True)
    assert as_user(requester).get(url_of(other)).status_code == 404


def test_the_runs_are_listed_by_state_and_searched_by_id():
    waiting, failed = paused("small"), walk(started("broken"))
    client = as_user(person("looker", VIEW_RUNS))
    page = source_of(client.get("/runs/?status=failed"))
    assert (str(failed.pk) in page, str(waiting.pk) in page) == (True, False)
    found = source_of(client.get("/runs/", {"q": waiting.short_id}))
    assert (str(failed.pk) in found, str(waiting.pk) in found) == (False, True)


def test_a_run_shows_its_course_its_requests_and_who_decided():
    run = paused("one")
    approve(pending(run)[0], by=person("finance-lead", VIEW, DECIDE), reason="Fine.")
    run = walk(run)
    words = text_of(as_user(person("looker", VIEW_RUNS, VIEW)).get(url_of(run)))
    assert "completed" in words
    for node in ("prepare", "pay", "tidy"):
        assert node in words
    assert "approved by finance-lead" in words
    assert "Fine." in words
    assert "Do pay" in words


def test_a_run_shows_no_requests_to_who_may_not_see_them():
    run = paused("small")
    words = text_of(as_user(person("looker", VIEW_RUNS)).get(url_of(run)))
    assert "Do pay" not in words.replace("Calls", "")


def test_a_failed_run_says_what_happened_and_what_to_do():
    run = walk(started("broken"))
    words = text_of(as_user(person("looker", VIEW_RUNS)).get(url_of(run)))
    assert "The run failed." in words
    assert run.error_code in words
    assert run.error_node == "fails"
    assert "the server refused" in words
    assert "Mend what the message names" in words
    assert flows.TOKEN not in words


def test_a_run_whose_checkpoint_was_changed_says_why_it_stands_still():
    run = paused("small")
    approve(pending(run)[0])
    set_aside(run, checkpoint=run.checkpoint[:-4] + "AAAA")
    run = walk(run)
    words = text_of(as_user(person("looker", VIEW_RUNS, VIEW)).get(url_of(run)))
    assert "needs attention" in words
    assert "checkpoint-tampered" in words
    assert "Nothing has run, and the decisions are kept." in words


def test_a_poll_of_a_run_is_empty_until_something_changes_and_ends_with_the_run():
    run = paused("small")
    client = as_user(person("looker", VIEW_RUNS))
    poll = poll_url(client.get(url_of(run)), "run-body")
    assert client.get(poll, headers=HTMX).status_code == 204
    approve(pending(run)[0])
    walk(run)
    news = client.get(poll, headers=HTMX)
    assert news.status_code == 200
    assert is_partial(news)
    assert "completed" in text_of(news)
    assert "hx-get" not in source_of(news)


# ---- flows --------------------------------------------------------------------------------------


def test_flows_are_listed_with_what_they_are_for():
    words = text_of(as_user(reviewer()).get("/flows/"))
    assert "Pay something, once a reviewer has said yes." in words
    assert "version 1" in words


def test_who_may_not_start_runs_gets_no_form_and_403():
    client = as_user(reviewer())
    assert 'method="post" action="/flows/one/"' not in source_of(client.get("/flows/one/"))
    assert client.post("/flows/one/").status_code == 403
    assert not Run.objects.exists()


def test_an_unknown_flow_is_404():
    client = as_user(person("requester", START))
    assert client.get("/flows/nothing/").status_code == 404
    assert client.post("/flows/nothing/").status_code == 404


def test_a_run_is_started_from_its_page():
    client = as_user(person("requester", START))
    response = client.post("/flows/question/", {"form.statement": "UPDATE"})
    run = Run.objects.get()
    assert (response.status_code, response["Location"]) == (302, url_of(run))
    assert (run.requester, run.via, run.flow) == ("requester", "page", "question")
    by_htmx = client.post("/flows/question/", {"form.statement": "UPDATE"}, headers=HTMX)
    assert by_htmx["HX-Redirect"] == url_of(Run.objects.exclude(pk=run.pk).get())


def test_wrong_input_starts_nothing_and_is_422_with_the_input():
    client = as_user(person("requester", START))
    fields = {"form.file": "mine.csv", "form.limit": "many"}
    for headers in (HTMX, None):
        response = client.post("/flows/expenses/", fields, headers=headers)
        assert response.status_code == 422
        assert is_partial(response) == bool(headers)
        page = source_of(response)
        assert 'value="mine.csv"' in page
        assert 'value="many"' in page
        assert "field-error" in page
    assert not Run.objects.exists()


def test_what_a_run_fills_in_itself_is_neither_asked_for_nor_taken():
    client = as_user(person("requester", START))
    assert "form.report" not in source_of(client.get("/flows/expenses/"))
    client.post("/flows/expenses/", {"form.file": "claims.csv", "form.report": "forged"})
    assert "forged" not in str(Run.objects.get().input_shown)


# ---- audit --------------------------------------------------------------------------------------


def test_the_audit_trail_is_for_who_has_the_right():
    assert as_user(reviewer()).get("/audit/").status_code == 403
    assert "/audit/" not in source_of(as_user(person("other", VIEW)).get("/approvals/"))
    assert as_user(person("auditor", AUDIT)).get("/audit/").status_code == 200


def test_the_audit_trail_is_filtered_by_run_and_by_request():
    first, second = request_of("small"), request_of("question")
    approve(first, by=person("finance-lead", VIEW, DECIDE))
    client = as_user(person("auditor", AUDIT))
    of_run = text_of(client.get(f"/audit/?run={first.run_id}"))
    assert "finance-lead request.approved" in of_run
    assert "run.started" in of_run
    of_request = text_of(client.get(f"/audit/?request={first.pk}"))
    assert "request.approved" in of_request
    assert "run.started" not in of_request
    assert "request.approved" not in text_of(client.get(f"/audit/?run={second.run_id}"))


def test_the_audit_trail_takes_the_beginning_of_an_id_as_pages_show_it():
    first, second = request_of("small"), request_of("question")
    client = as_user(person("auditor", AUDIT))
    shown = source_of(client.get(f"/audit/?run={first.run.short_id}"))
    assert str(first.run_id) in shown
    assert str(second.run_id) not in shown


@pytest.mark.parametrize("text", ["nonsense", "0" * 33, "<b>"])
def test_an_id_in_the_audit_filter_that_is_none_is_said_beside_it(text):
    response = as_user(person("auditor", AUDIT)).get("/audit/", {"run": text})
    assert response.status_code == 422
    assert "is not the id of a run" in text_of(response)
    assert f'value="{escape(text)}"' in source_of(response)


# ---- admin --------------------------------------------------------------------------------------


def test_history_cannot_be_edited_in_the_admin_and_keeps_its_secrets():
    request = request_of("question")
    decision = approve(request, content={"ticket": "T-17", "backup": True})
    request.refresh_from_db()
    client = as_user(User.objects.create_superuser("root"))
    entry, event = AuditEntry.objects.latest("id"), RunEvent.objects.latest("id")
    rows: tuple[Model, ...] = (request.run, request, decision, entry, event)
    for row in rows:
        base = f"/admin/{row._meta.app_label}/{row._meta.model_name}/"
        assert client.get(base).status_code == 200
        assert client.get(f"{base}add/").status_code == 403
        assert client.get(f"{base}{row.pk}/delete/").status_code == 403
        shown = client.get(f"{base}{row.pk}/change/")
        assert shown.status_code == 200
        assert 'name="_save"' not in source_of(shown)
        assert client.post(f"{base}{row.pk}/change/", {}).status_code == 403
        for secret in (request.run.checkpoint, request.arguments, decision.content):
            assert secret
            assert secret not in source_of(shown)
    assert "encrypted, " in text_of(client.get(f"/admin/runs/run/{request.run.pk}/change/"))


def test_of_many_calls_the_newest_are_shown_and_the_earlier_open_on_demand():
    run = walk(started("one"))
    for place in range(25):
        for kind in ("call.started", "call.finished"):
            RunEvent.objects.create(
                run=run, at=timezone.now(), kind=kind, tool=f"tool-{place}", call_id=str(place)
            )
    page = source_of(as_user(person("operator", VIEW_RUNS)).get(url_of(run)))
    earlier, _, newest = page.partition('id="earlier-calls"')[2].partition("</details>\n      <div")
    shown = [("tool-0 " in part, "tool-24 " in part) for part in (earlier, newest)]
    assert shown == [(True, False), (False, True)]
