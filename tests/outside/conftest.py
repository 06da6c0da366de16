"""LangGraph for these tests: its tracing off, and this machine alone within reach."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

# Set outright, and before LangGraph is imported: its tracing client reads them once.
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"

LOOPBACK = ("127.0.0.1", "::1")


@pytest.fixture(autouse=True)
def no_connection_leaves_this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connection or a look-up of a name is refused, and fails the test even where the caller
    hides the error, as tracing clients do."""
    wanted: list[Any] = []

    class Guarded(socket.socket):
        def connect(self, address: Any, /) -> None:
            if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
                wanted.append(address)
                raise ConnectionRefusedError(f"these tests stay on this machine: {address}")
            super().connect(address)

    def look_up(host: Any, *rest: Any, **options: Any) -> Any:
        wanted.append(host)
        raise socket.gaierror(f"these tests look up no name: {host}")

    monkeypatch.setattr(socket, "socket", Guarded)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield
    assert wanted == []
