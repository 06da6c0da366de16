"""What is answered while the site can't work, and how much a page asks of the database."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from approvals.models import ApprovalRequest, AuditEntry, Decision
from flowsite.middleware import site_ready
from runs import keycheck
from runs.models import Run
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
    AUDIT,
    VIEW_RUNS,
    answer,
    as_user,
    copy_of,
    source_of,
    text_of,
    url_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


# ---- when the site can't work -------------------------------------------------------------------


def unreachable(*args, **kwargs):
    raise OperationalError("connection refused")


def test_the_probes_need_no_session(monkeypatch):
    assert Client().get("/healthz").content == b"ok\n"
    assert Client().get("/readyz").content == b"ok\n"


def test_without_a_database_the_process_is_alive_and_not_ready(monkeypatch):
    monkeypatch.setattr(connection, "ensure_connection", unreachable)
    assert Client().get("/healthz").status_code == 200
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert "DATABASE_URL" in source_of(response)
    assert "connection refused" not in source_of(response)


def test_wrong_keys_are_named_by_readyz_and_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(keycheck, "problems", lambda: ["The key 'k1' is not the key."])
    response = Client().get("/readyz")
    assert (response.status_code, response.content) == (503, b"The key 'k1' is not the key.\n")
    page = as_user(reviewer()).get("/approvals/")
    assert page.status_code == 503
    assert "FLOWSITE_KEYS" in text_of(page)
    assert page["Content-Security-Policy"]


def test_keys_that_were_put_right_are_noticed_and_then_asked_about_no_more(monkeypatch):
    answers = [["The key 'k1' is not the key."], []]
    monkeypatch.setattr(keycheck, "problems", lambda: answers.pop(0))
    client = as_user(reviewer())
    codes = [client.get("/approvals/").status_code for _ in range(3)]
    assert codes == [503, 200, 200]


def test_a_session_that_cannot_be_read_is_a_503_page(monkeypatch):
    client = as_user(reviewer())
    assert client.get("/runs/").status_code == 200
    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", unreachable)
    response = client.get("/runs/")
    assert response.status_code == 503
    assert "can't reach its database" in text_of(response)
    assert "connection refused" not in text_of(response)
    assert response["Retry-After"]


def test_a_view_that_loses_the_database_is_a_503_page_and_no_decision(monkeypatch):
    request = request_of("small")
    client = as_user(reviewer())
    monkeypatch.setattr("approvals.views.decide", unreachable)
    response = answer(client, request, verdict="approve")
    assert response.status_code == 503
    assert "it shows whether your answer was taken" in text_of(response)


def test_a_mistake_of_the_site_is_a_page_that_says_nothing_of_it(monkeypatch):
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("runs.views._search", broken)
    client = as_user(reviewer(), raise_request_exception=False)
    response = client.get("/runs/")
    assert response.status_code == 500
    assert "Something went wrong here" in text_of(response)
    assert "secret detail" not in text_of(response)


def test_the_site_asks_about_its_keys_once_a_process(monkeypatch):
    answers: list[list[str]] = [[]]  # a second question would find no answer
    monkeypatch.setattr(keycheck, "problems", lambda: answers.pop(0))
    middleware = site_ready(lambda request: HttpResponse("a page"))
    pages = [middleware(RequestFactory().get("/")) for _ in range(3)]
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert answers == []


# ---- queries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/approvals/", "/approvals/?tab=decided", "/runs/", "/audit/", "/flows/"]
)
def test_a_longer_list_takes_no_more_queries(path):
    client = as_user(person("all", VIEW, DECIDE, AUDIT, VIEW_RUNS))
    for _ in range(2):
        approve(request_of("small", by=person(f"p{uuid.uuid4().hex[:8]}", START)))
        request_of("small", by=person(f"p{uuid.uuid4().hex[:8]}", START))
    queries(client, path)  # the first also asks about the keys
    few = queries(client, path)
    multiply(48)
    assert queries(client, path) == few <= 12


def test_a_longer_run_takes_no_more_queries():
    run, someone = paused("pair"), reviewer("someone")
    client = as_user(person("all", VIEW, DECIDE, VIEW_RUNS))
    queries(client, url_of(run))  # the first also asks about the keys
    few = queries(client, url_of(run))
    for _ in range(20):
        request = copy_of(pending(run)[0], id=uuid.uuid4())
        request.save(force_insert=True)
        Decision.objects.create(
            request=request,
            verdict="approve",
            by=someone,
            by_name="x",
            digest=request.digest,
            decided_at=request.requested_at,
        )
    assert queries(client, url_of(run)) == few <= 12


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def multiply(count: int) -> None:
    """Add that many copies of the runs and requests there are, each of another person."""
    waiting = ApprovalRequest.objects.filter(status="pending").first()
    decided = Decision.objects.first()
    assert waiting
    assert decided
    for number in range(count):
        user = User.objects.create_user(f"many-{number}")
        run = Run.objects.get(pk=waiting.run_id)
        run.pk, run.started_by = uuid.uuid4(), user
        run.save(force_insert=True)
        for original in (waiting, decided.request):
            copy = copy_of(original, id=uuid.uuid4(), run_id=run.pk)
            copy.save(force_insert=True)
            if original == decided.request:
                Decision.objects.create(
                    request=copy,
                    verdict=decided.verdict,
                    by=user,
                    by_name=user.username,
                    digest=copy.digest,
                    decided_at=decided.decided_at,
                )
        AuditEntry.objects.create(
            at=decided.decided_at, actor=user, actor_name=user.username, action="x", run_id=run.pk
        )
