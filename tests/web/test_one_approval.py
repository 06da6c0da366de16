"""One approval all the way, in a real browser, against a site and a worker of real processes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import log_in, shot
from tests.support.demo import (
    add_people,
    audit_trail,
    decisions,
    password_of,
    payments,
    start_expenses,
    status_of,
    wait_for,
)
from tests.support.site import Site

APPROVED_CLAIM, REJECTED_CLAIM = "C-0023", "C-0078"


@pytest.fixture
def running_site(site: Site) -> Site:
    add_people(site)
    site.start_web()
    site.worker.start()
    return site


def test_a_reviewer_approves_one_request_and_rejects_another(
    running_site: Site, page: Page, problems: list[str]
) -> None:
    site = running_site
    approved = start_expenses(site, APPROVED_CLAIM)
    rejected = start_expenses(site, REJECTED_CLAIM)
    wait_for(site, approved, "paused")
    wait_for(site, rejected, "paused")

    log_in(page, site, "reviewer", password_of("reviewer"))
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    shot(page, "inbox")
    page.get_by_role("link", name=re.compile(APPROVED_CLAIM)).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(APPROVED_CLAIM)
    expect(page.get_by_text("marked secret")).to_be_visible()
    shot(page, "request")
    page.get_by_role("button", name=re.compile("^Approve ")).click()
    expect(page.get_by_text("Approved. The run goes on.")).to_be_visible()
    expect(page.locator("#request-body")).to_contain_text("reviewer")

    page.goto(f"{site.url}/approvals/")
    page.get_by_role("link", name=re.compile(REJECTED_CLAIM)).click()
    page.get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.get_by_text("Say why you reject it.")).to_be_visible()
    page.get_by_label(re.compile("^Reason")).fill("There is no invoice for it.")
    page.get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.locator("#request-body")).to_contain_text("There is no invoice for it.")
    shot(page, "request-rejected")

    for run, verdict, outcome, paid in (
        (approved, "approve", "request.approved", [APPROVED_CLAIM]),
        (rejected, "reject", "request.rejected", []),
    ):
        wait_for(site, run, "completed")
        assert payments(site, run) == paid
        ((by, said, decided_at),) = decisions(site, run)
        assert (by, said) == ("reviewer", verdict)
        ((actor, audited_at),) = (
            entry[1:] for entry in audit_trail(site, run) if entry[0] == outcome
        )
        assert actor == "reviewer"
        assert audited_at[:16] == decided_at[:16]  # the same minute

    for run in (approved, rejected):
        page.goto(f"{site.url}/runs/{run}/")
        expect(page.get_by_role("heading", level=1)).to_contain_text("expenses")
        expect(page.locator("main")).to_contain_text("completed")
        decided = page.locator("main").get_by_text(re.compile("reviewer")).first
        expect(decided).to_be_visible()
        expect(page.locator("main time").first).to_be_visible()
        shot(page, f"run-{run[:4]}")

    page.goto(f"{site.url}/runs/")
    shot(page, "runs")
    assert problems == []


def test_an_auditor_reads_who_decided_and_when(
    running_site: Site, page: Page, problems: list[str]
) -> None:
    site = running_site
    run = start_expenses(site, APPROVED_CLAIM)
    wait_for(site, run, "paused")
    log_in(page, site, "reviewer", password_of("reviewer"))
    page.get_by_role("link", name=re.compile(APPROVED_CLAIM)).click()
    page.get_by_role("button", name=re.compile("^Approve ")).click()
    expect(page.get_by_text("Approved. The run goes on.")).to_be_visible()
    page.context.clear_cookies()

    log_in(page, site, "auditor", password_of("auditor"))
    page.goto(f"{site.url}/audit/?run={run}")
    main = page.locator("main")
    expect(main).to_contain_text("reviewer")
    expect(main).to_contain_text(APPROVED_CLAIM)
    expect(main.locator("time").first).to_be_visible()
    shot(page, "audit")
    assert problems == []


def test_a_run_goes_on_in_a_worker_that_did_not_see_it_pause(site: Site, page: Page) -> None:
    add_people(site)
    run = start_expenses(site, APPROVED_CLAIM)  # a process of its own, which is gone by now
    site.worker.start()
    wait_for(site, run, "paused")
    first_worker = site.worker.pid
    site.worker.stop()
    site.start_web()

    log_in(page, site, "reviewer", password_of("reviewer"))
    page.get_by_role("link", name=re.compile(APPROVED_CLAIM)).click()
    page.get_by_role("button", name=re.compile("^Approve ")).click()
    expect(page.get_by_text("Approved. The run goes on.")).to_be_visible()
    assert status_of(site, run) == "queued"  # nobody works on it
    assert payments(site, run) == []
    site.web.stop()

    site.worker.start()
    assert site.worker.pid != first_worker
    wait_for(site, run, "completed")
    assert payments(site, run) == [APPROVED_CLAIM]


def test_a_person_starts_a_run_on_its_page(
    running_site: Site, page: Page, problems: list[str]
) -> None:
    site = running_site
    log_in(page, site, "requester", password_of("requester"))
    page.goto(f"{site.url}/flows/expenses/")
    shot(page, "flow")
    page.get_by_label(re.compile("^Limit")).fill("many")
    page.get_by_role("button", name=re.compile("^Start")).click()
    expect(page.locator(".field-error").first).to_be_visible()
    assert page.url.endswith("/flows/expenses/")
    page.get_by_label(re.compile("^Limit")).fill("500")
    page.get_by_label(re.compile("^Claim")).fill(APPROVED_CLAIM)
    page.get_by_role("button", name=re.compile("^Start")).click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/"))
    expect(page.locator("main")).to_contain_text("paused")
    wait_for(site, page.url.rstrip("/").rpartition("/")[2], "paused")

    page.goto(f"{site.url}/approvals/")
    page.get_by_role("link", name=re.compile(APPROVED_CLAIM)).click()
    expect(page.locator("main")).to_contain_text("You can't decide this request.")
    assert problems == []
