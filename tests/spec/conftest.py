"""The fixtures of the specification's tests. Each store is a param of ``approvals``."""

from __future__ import annotations

import pytest

from .support import Desk, MemoryDesk, Runner, Tools, runner_on


@pytest.fixture(params=["memory", pytest.param("database", marks=pytest.mark.django_db)])
def approvals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An approval port with an empty store: in memory, and over the tables."""
    if request.param == "memory":
        return MemoryDesk()
    # Django is set up after this file has been read.
    from runs import registry

    from .database_desk import DatabaseDesk

    monkeypatch.setattr(registry, "_found", {})
    return DatabaseDesk()


@pytest.fixture
def runner(approvals: Desk) -> Runner:
    """A runner that asks ``approvals``."""
    return runner_on(approvals.port)


@pytest.fixture
def tools() -> Tools:
    """Tools that note what they did."""
    return Tools()
