"""The fixtures of the specification's tests. Another store is another param of ``approvals``."""

from __future__ import annotations

import pytest

from .support import Desk, MemoryDesk, Runner, Tools, runner_on


@pytest.fixture(params=["memory"])
def approvals(request: pytest.FixtureRequest) -> Desk:
    """An approval port with an empty store."""
    desks: dict[str, type[Desk]] = {"memory": MemoryDesk}
    return desks[request.param]()


@pytest.fixture
def runner(approvals: Desk) -> Runner:
    """A runner that asks ``approvals``."""
    return runner_on(approvals.port)


@pytest.fixture
def tools() -> Tools:
    """Tools that note what they did."""
    return Tools()
