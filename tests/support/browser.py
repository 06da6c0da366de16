"""Helpers for tests in a real browser: what went wrong on a page, log-in, pictures."""

from __future__ import annotations

import os
import re
from pathlib import Path

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

from tests.support.site import Site

CHROMIUM_ARGUMENTS = [
    "--headless",
    "--no-sandbox",  # the tests may run as root, and open only pages of our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PICTURES_VARIABLE = "FLOWSITE_SHOTS"
PICTURE_SIZES = ((1440, 900), (390, 844))

# 409 and 422 are ordinary answers of this site, and Chromium reports each as an error.
EXPECTED_ANSWER = re.compile(r"the server responded with a status of (409|422)\b")


def watch(context: BrowserContext, problems: list[str]) -> None:
    """Add console errors, uncaught exceptions and failed requests of all its pages to a list."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not EXPECTED_ANSWER.search(message.text):
            problems.append(f"console: {message.text} ({message.location.get('url', '')})")

    def on_request_failed(request: Request) -> None:
        # Leaving a page aborts what it was still asking for.
        if request.failure != "net::ERR_ABORTED":
            problems.append(f"request: {request.method} {request.url}: {request.failure}")

    context.on("console", on_console)
    context.on("weberror", lambda error: problems.append(f"exception: {error.error}"))
    context.on("requestfailed", on_request_failed)


def log_in(page: Page, site: Site, user: str, password: str) -> None:
    """Log in through the page that a person uses; ends on the page shown after it."""
    page.goto(f"{site.url}/accounts/login/")
    page.locator("input[name=username]").fill(user)
    page.locator("input[name=password]").fill(password)
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url(lambda url: "/accounts/login" not in url)


def shot(page: Page, name: str) -> None:
    """Save pictures of the whole page, wide and narrow, light and dark.

    They go to the folder that FLOWSITE_SHOTS names; without it nothing is done.
    """
    folder = os.environ.get(PICTURES_VARIABLE)
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    size_before = page.viewport_size
    for width, height in PICTURE_SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
            page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png", full_page=True)
    page.emulate_media(color_scheme="null")
    if size_before:
        page.set_viewport_size(size_before)
