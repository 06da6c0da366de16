"""Guards and a ledger for the executor: what a run may do, and what it has cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from .errors import FlowError
from .journal import ToolResult
from .tools import Tool

Counters = MutableMapping[str, Any]


@dataclass(frozen=True)
class GuardedCall:
    """A call that is about to run.

    ``counters`` are the run's: they are sealed with it and go on over a resume. A guard keeps
    what it counts there, under a name of its own.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    counters: Counters


class Guard(Protocol):
    """Looks at every call before it runs; raising FlowError stops it. Replays aren't shown."""

    def __call__(self, call: GuardedCall, /) -> None: ...


class Ledger(Protocol):
    """Is told of every call that ran, with the seconds it took. Replays aren't told."""

    def record(self, tool: Tool, result: ToolResult, seconds: float) -> None: ...


@dataclass(frozen=True)
class CallCountGuard:
    """At most ``limit`` calls in a run; of one tool only, where one is named."""

    limit: int
    tool: str | None = None

    def __call__(self, call: GuardedCall, /) -> None:
        if self.tool not in (None, call.tool.name):
            return
        name = f"calls of {self.tool or 'all tools'}"
        if call.counters.get(name, 0) >= self.limit:
            raise FlowError(
                f"The run has made {self.limit} {name}, which is its limit; {call.tool.name} did "
                "not run.",
                code="guard-refused",
            )
        call.counters[name] = call.counters.get(name, 0) + 1


@dataclass(frozen=True)
class BudgetGuard:
    """At most ``limit`` in all of what ``cost(tool, arguments)`` says the calls of a run cost.

    The cost is counted before the call runs, so that a run can't spend past its limit.
    """

    limit: Decimal
    cost: Callable[[Tool, Mapping[str, Any]], Decimal]
    name: str = "budget"

    def __call__(self, call: GuardedCall, /) -> None:
        cost = self.cost(call.tool, call.arguments)
        spent = call.counters.get(self.name, Decimal(0))
        if spent + cost > self.limit:
            raise FlowError(
                f"{call.tool.name} would cost {cost}; the run has spent {spent} of its "
                f"{self.name} of {self.limit}. It did not run.",
                code="guard-refused",
            )
        call.counters[self.name] = spent + cost


@dataclass
class Sums:
    """What the calls of one tool came to."""

    calls: int = 0
    failures: int = 0
    seconds: float = 0.0
    cost: Decimal = Decimal(0)


@dataclass
class SummingLedger:
    """Sums calls, time and cost by tool; ``cost(tool, result)`` says what a call cost."""

    cost: Callable[[Tool, ToolResult], Decimal] | None = None
    by_tool: dict[str, Sums] = field(default_factory=dict)

    def record(self, tool: Tool, result: ToolResult, seconds: float) -> None:
        sums = self.by_tool.setdefault(tool.name, Sums())
        sums.calls += 1
        sums.failures += not result.ok
        sums.seconds += seconds
        if self.cost is not None:
            sums.cost += self.cost(tool, result)
