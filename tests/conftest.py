"""What all tests share: the site's environment, test databases, sites and browsers.

The environment is complete before Django is set up, which happens in this file too.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.browser import CHROMIUM_ARGUMENTS, watch
from tests.support.chromium import find_chromium
from tests.support.environment import site_environment
from tests.support.site import Site

VAR = Path(tempfile.mkdtemp(prefix="flowsite-tests-"))
os.environ.update(site_environment(VAR))
(VAR / "static").mkdir()  # WhiteNoise warns where the collected files' folder is missing

expect.set_options(timeout=15_000)  # milliseconds: a busy machine is not a failure

# A busy machine is not a failure. In CI every run tries the same examples.
hypothesis.settings.register_profile(
    "flowsite",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("flowsite")


def pytest_configure() -> None:
    """Set Django up here: pytest-django reads the settings' name before it loads this file."""
    import django

    django.setup()


def pytest_unconfigure() -> None:
    shutil.rmtree(VAR, ignore_errors=True)


def pytest_make_parametrize_id(val: object) -> str | None:
    """The same name in every process for what would be named by its place in memory."""
    try:
        text = repr(val)
    except ValueError:  # an int with too many digits in it
        return type(val).__name__
    return re.sub(r" at 0x[0-9a-f]+", "", text) if " at 0x" in text else None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start processes of their own take turns: on one xdist worker, one at a time."""
    for item in items:
        if {"site", "page", "new_page"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.processes)
        if item.get_closest_marker("processes"):
            item.add_marker(pytest.mark.xdist_group("processes"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what the processes of its sites printed."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Site):
                report.sections += [
                    (f"output of {service.name}", service.output())
                    for service in value.services.values()
                    if service.output()
                ]
    return report


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """On SQLite, a file for each xdist worker: threads and processes can share a file only."""
    from django.db import connections

    settings = connections["default"].settings_dict
    if settings["ENGINE"] == "django.db.backends.sqlite3":
        settings["TEST"]["NAME"] = str(tmp_path_factory.getbasetemp() / "test.sqlite3")


@pytest.fixture(scope="session", autouse=True)
def uncollected_static_files() -> None:
    """Pages are rendered without a manifest of collected files; a `Site` has a real one."""
    from django.conf import settings

    settings.STORAGES["staticfiles"] = {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
    }


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A migrated site of real processes, none of them started yet."""
    with Site(tmp_path / "site") as site:
        yield site


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, started once a module.

    While Playwright runs it keeps an event loop in this thread, in which no other test could run
    one; hence not once a session. Django takes the loop for asynchronous code of its own.
    """
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture
def problems() -> list[str]:
    """Console errors, uncaught exceptions and failed requests of this test's pages."""
    return []


@pytest.fixture
def new_page(browser: Browser, problems: list[str]) -> Iterator[Callable[[], Page]]:
    """Makes pages that know nothing of each other, as of two people."""
    contexts = []

    def make() -> Page:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.set_default_timeout(15_000)  # milliseconds
        watch(context, problems)
        contexts.append(context)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page: Callable[[], Page]) -> Page:
    """A page in a browser that nobody is logged in to."""
    return new_page()
