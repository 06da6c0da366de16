"""Getting in and out, and what every page sends along."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from approvals.models import Decision
from tests.support import flows
from tests.support.make import (
    DECIDE,
    START,
    VIEW,
    approve,
    person,
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
    source_of,
    text_of,
    url_of,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


# ---- getting in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/approvals/", "/runs/", "/flows/", "/flows/one/", "/audit/", "/admin/"]
)
def test_a_page_asks_for_the_log_in_and_leads_back(path):
    response = Client().get(path)
    assert response.status_code == 302
    assert urlsplit(response["Location"]).path.endswith("/login/")
    assert f"next={path}" in response["Location"]


def test_a_wrong_password_is_422_with_the_name_still_there():
    User.objects.create_user("somebody", password="right-Xyzzy-1")
    response = Client().post("/accounts/login/", {"username": "somebody", "password": "wrong"})
    assert response.status_code == 422
    assert 'value="somebody"' in source_of(response)
    assert "This user name and password don't match." in text_of(response)


def test_the_right_password_leads_on_but_never_to_another_site():
    User.objects.create_user("somebody", password="right-Xyzzy-1")
    data = {"username": "somebody", "password": "right-Xyzzy-1"}
    there = Client().post("/accounts/login/", data | {"next": "/runs/"})
    elsewhere = Client().post("/accounts/login/", data | {"next": "https://example.com/"})
    assert (there["Location"], elsewhere["Location"]) == ("/runs/", "/")


def test_a_log_out_by_get_is_refused_and_by_post_is_done():
    client = as_user(reviewer())
    refused = client.get("/accounts/logout/")
    assert (refused.status_code, refused["Allow"]) == (405, "POST")
    assert "Nothing was changed" in text_of(refused)
    assert client.get("/runs/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/runs/").status_code == 302


def test_home_is_the_inbox_for_who_may_decide_and_the_runs_for_others():
    assert as_user(reviewer()).get("/")["Location"] == "/approvals/"
    assert as_user(person("requester", START)).get("/")["Location"] == "/runs/"


def test_an_htmx_request_without_a_session_sends_the_whole_browser_to_the_log_in():
    request = request_of("small")
    page = f"http://testserver{url_of(request)}?x=1"
    response = answer(Client(), request, verdict="approve", headers=HTMX | {"HX-Current-URL": page})
    assert response.status_code == 204
    assert "Location" not in response
    assert response["HX-Redirect"] == f"/accounts/login/?next={url_of(request)}%3Fx%3D1"
    assert not Decision.objects.exists()


def test_an_htmx_request_from_a_page_of_another_site_is_not_led_back_there():
    headers = HTMX | {"HX-Current-URL": "https://example.com/elsewhere/"}
    response = Client().get("/runs/", headers=headers)
    assert response["HX-Redirect"] == "/accounts/login/?next=/"


# ---- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/accounts/login/", "/approvals/", "/nothing/here/", "/admin/"])
def test_every_page_has_the_strict_policy_and_stays_out_of_caches(path):
    response = as_user(User.objects.create_superuser("root")).get(path)
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy
    assert "no-store" in response["Cache-Control"]
    assert response["Permissions-Policy"]


def test_no_page_holds_what_the_policy_forbids():
    request = request_of("gate", by=person("requester", START))
    done = request_of("small")
    approve(done)
    walk(done.run)
    client = as_user(person("all", VIEW, DECIDE, AUDIT, START, VIEW_RUNS))
    paths = ["/approvals/", "/runs/", "/flows/", "/flows/gate/", "/audit/", "/missing/"]
    paths += [url_of(request), url_of(done), url_of(request.run), url_of(done.run)]
    for path in paths:
        page = source_of(client.get(path))
        assert not re.search(r"<[^>]* (style|on[a-z]+|hx-on[^ =]*|hx-vars|hx-vals)=", page), path
        assert not re.search(r"<style|<script(?![^>]* src=)", page), path
        assert "js:" not in page, path
        for trigger in re.findall(r'hx-trigger="([^"]*)"', page):
            assert "[" not in trigger.replace("input[name=q]", ""), path
        for form in re.findall(r'<form[^>]*method="post".*?</form>', page, re.DOTALL):
            assert "csrfmiddlewaretoken" in form, path


def test_what_a_page_shows_is_escaped():
    request = request_of("hostile")
    tree = {"t": "map", "items": [["<i>key</i>", {"t": "text", "v": "<b>bold</b>"}]]}
    set_aside(request, summary="<script>alert(1)</script>", shown=tree)
    client = as_user(reviewer())
    for path in (url_of(request), "/approvals/"):
        page = source_of(client.get(path))
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in source_of(client.get(url_of(request)))


def test_a_form_that_this_session_did_not_make_is_refused_with_a_page():
    request = request_of("small")
    client = as_user(reviewer(), enforce_csrf_checks=True)
    with override_settings(CSRF_FAILURE_VIEW="flowsite.views.csrf_failure"):
        plain = answer(client, request, verdict="approve")
        by_htmx = answer(client, request, verdict="approve", headers=HTMX)
    assert (plain.status_code, by_htmx.status_code) == (403, 403)
    assert "Nothing was changed" in text_of(plain)
    assert "HX-Refresh" not in plain
    assert by_htmx["HX-Refresh"] == "true"
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "path", ["/runs/?q=a%00b", "/admin/runs/run/?status__exact=%00", "/flows/a%00b/"]
)
def test_an_address_with_a_nul_character_is_refused(path):
    client = as_user(User.objects.create_superuser("root", password="x"))
    assert client.get(path).status_code == 400


def test_the_admin_tells_who_may_not_enter_it():
    response = as_user(reviewer()).get("/admin/", follow=True)
    assert response.status_code == 200
    assert "not authorized" in text_of(response)


def test_a_current_url_that_is_none_leads_to_the_front_page_after_the_log_in():
    response = Client().get("/runs/", headers=HTMX | {"HX-Current-URL": "http://[bad"})
    assert response.status_code == 204
    assert response.headers["HX-Redirect"].endswith("?next=/")
