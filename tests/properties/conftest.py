"""Says at the end of a session what the property-based tests have tried."""

from __future__ import annotations

import pytest

from .tally import tally


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if tally.runs:
        terminalreporter.section("properties")
        terminalreporter.line(str(tally))
