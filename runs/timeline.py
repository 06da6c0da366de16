"""A run's visits, laid out in time from its events.

Each visit is a row: when its node ran, and when it stood still for a person. A pause is often a
thousand times longer than the work around it, so long stretches are drawn shorter: the order and
what happens side by side are to scale, the lengths are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Protocol

MAX_ROWS = 100
# A stretch of t seconds is drawn t ** 0.3 wide: an hour is some ten times a second.
COMPRESSION = 0.3
SHORTEST = 0.8  # percent of the width; what took no time is still seen


class Event(Protocol):
    """What the timeline reads of a ``RunEvent``."""

    @property
    def at(self) -> datetime: ...
    @property
    def kind(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def visit(self) -> str: ...


@dataclass
class Stretch:
    """A part of a row: ``work`` or ``wait``. ``x`` and ``width`` are percent of the drawing."""

    kind: str
    begin: datetime
    end: datetime
    x: float = 0
    width: float = 0


@dataclass
class Row:
    """One visit of a node. ``state`` is ``running``, ``waiting``, ``finished`` or ``stopped``."""

    node: str
    state: str = "running"
    number: int = 1
    stretches: list[Stretch] = field(default_factory=list)
    # What is still going on: its kind, and since when.
    ongoing: tuple[str, datetime] | None = None

    @property
    def seconds(self) -> float:
        """From the visit's first start to its end, or to now."""
        if not self.stretches:
            return 0
        return (self.stretches[-1].end - self.stretches[0].begin).total_seconds()

    def turn(self, kind: str | None, at: datetime) -> None:
        """End what was going on, and begin ``kind`` where there is one."""
        if self.ongoing:
            self.stretches.append(Stretch(self.ongoing[0], self.ongoing[1], at))
        self.ongoing = (kind, at) if kind else None


@dataclass
class Timeline:
    rows: list[Row]
    left_out: int


TURNS = {
    "node.started": ("work", "running"),
    "node.suspended": ("wait", "waiting"),
    "node.finished": (None, "finished"),
    "node.failed": (None, "stopped"),
}


def timeline(events: Iterable[Event], until: datetime, *, stopped: bool) -> Timeline:
    """The rows of the visits in ``events`` (oldest first), the newest MAX_ROWS of them.

    What is still going on is drawn up to ``until``. ``stopped`` says that the run goes on no more,
    so that a visit without an end is one that was cut short.
    """
    rows: dict[str, Row] = {}
    visits: dict[str, int] = {}
    for event in events:
        if event.kind not in TURNS:
            continue
        row = rows.get(event.visit)
        if row is None:
            visits[event.node] = visits.get(event.node, 0) + 1
            row = rows[event.visit] = Row(event.node, number=visits[event.node])
        kind, row.state = TURNS[event.kind]
        row.turn(kind, event.at)
    for row in rows.values():
        if row.ongoing:
            row.turn(None, max(until, row.ongoing[1]))
            if stopped:
                row.state = "stopped"
    shown = list(rows.values())[-MAX_ROWS:]
    _place([stretch for row in shown for stretch in row.stretches])
    return Timeline(shown, len(rows) - len(shown))


def _place(stretches: list[Stretch]) -> None:
    """Give each stretch its place, on a scale on which long stretches are shorter."""
    moments = sorted({moment for s in stretches for moment in (s.begin, s.end)})
    position = {moment: 0.0 for moment in moments[:1]}
    for before, after in pairwise(moments):
        seconds = (after - before).total_seconds()
        position[after] = position[before] + seconds**COMPRESSION
    whole = position[moments[-1]] if moments else 0
    for stretch in stretches:
        if not whole:
            stretch.x, stretch.width = 0, SHORTEST
            continue
        begin, end = (position[moment] / whole for moment in (stretch.begin, stretch.end))
        stretch.width = max((end - begin) * 100, SHORTEST)
        stretch.x = min(begin * 100, 100 - stretch.width)
