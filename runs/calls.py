"""A run's tool calls, read from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runs.engine.redact import Node, plain
from runs.models import RunEvent

HINT = 80
MAX_CALLS = 200


@dataclass
class CallRow:
    """One call. The trees are what the events hold; ``seconds`` is None until it has ended."""

    id: str
    tool: str
    tone: str = "busy"
    icon: str = "play"
    words: str = "running"
    arguments: Node | None = None
    result: Node | None = None
    error: str = ""
    seconds: float | None = None

    @property
    def hint(self) -> str:
        """The arguments on one line."""
        return plain(self.arguments, limit=HINT).strip("{}") if self.arguments else ""


def calls(events: Iterable[RunEvent], *, stopped: bool) -> list[CallRow]:
    """The newest MAX_CALLS calls of a run, from its events, oldest first.

    ``stopped`` says that the run goes on no more, so that a call without an end has an unknown one.
    """
    rows: dict[str, CallRow] = {}
    for event in events:
        if not event.kind.startswith("call.") or not event.call_id:
            continue
        row = rows.setdefault(event.call_id, CallRow(event.call_id, event.tool))
        _tell(row, event.kind, event.data)
    if stopped:
        for row in rows.values():
            if row.words == "running":
                row.tone, row.icon, row.words = "warn", "alert", "outcome unknown"
    return list(rows.values())[-MAX_CALLS:]


def _tell(row: CallRow, kind: str, data: dict[str, Any]) -> None:
    row.arguments = data.get("arguments") or row.arguments
    if "duration_ms" in data:
        row.seconds = data["duration_ms"] / 1000
    if kind == "call.finished":
        row.tone, row.icon, row.words = "good", "check", "done"
        row.result = data.get("result")
    elif kind == "call.failed":
        row.tone, row.icon, row.words = "bad", "cross", "failed"
        row.error = str(data.get("error", ""))
