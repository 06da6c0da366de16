"""Walks a frontier: wave after wave, until it ends or only people can let it go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from .checkpoint import Checkpoint, OpenVisit
from .errors import ApprovalPending, FlowError
from .executor import Executor, Visit
from .frontier import Finished, Frontier, Suspended
from .graph import Flow
from .guards import Counters
from .journal import Answers, Codec, Journal
from .visiting import NodeRunner


class Walker:
    """Makes the visits of one run, those of flows nested in it included."""

    def __init__(
        self, executor: Executor, run_id: str, counters: Counters, max_steps: int
    ) -> None:
        self._executor = executor
        self._run_id = run_id
        self._counters = counters
        self._max_steps = max_steps

    async def walk(
        self, frontier: Frontier, journal_of: Callable[[OpenVisit], Journal], within: str = ""
    ) -> None:
        """Walk until nothing is due; visits that wait for people are left suspended.

        The visits of a wave run side by side, each to its end whatever befalls the others.
        Raises FlowError; no request of this frontier is open then.
        """
        while due := frontier.due():
            try:
                wave = frontier.begin(due, self._max_steps)
                outcomes = await asyncio.gather(
                    *(
                        self._visit(frontier.flow, visit, journal_of(visit), within)
                        for visit in wave
                    ),
                    return_exceptions=True,
                )
                for visit, outcome in zip(wave, outcomes, strict=True):
                    if isinstance(outcome, Suspended):
                        frontier.suspend(visit, outcome)
                if failure := _worst(outcomes):
                    raise failure
                await frontier.advance(
                    [outcome for outcome in outcomes if isinstance(outcome, Finished)],
                    self._executor,
                )
            except Exception:
                await self.withdraw(frontier, "the run failed")
                raise

    async def withdraw(self, frontier: Frontier, reason: str) -> None:
        """Take back every open request of a frontier that goes no further."""
        for visit in frontier.suspended:
            now = self._now(frontier.flow, visit, Journal(Codec(), Answers()), "")
            for request in visit.pending:
                await self._executor.withdraw(now, request, reason)

    def _now(self, flow: Flow, visit: OpenVisit, journal: Journal, within: str) -> Visit:
        return Visit(
            self._run_id,
            flow,
            visit.node,
            within + visit.id,
            journal,
            self._executor,
            self._counters,
        )

    async def _visit(
        self, flow: Flow, visit: OpenVisit, journal: Journal, within: str
    ) -> Finished | Suspended:
        now = self._now(flow, visit, journal, within)
        nested = _Nested(self, now)
        return await NodeRunner(flow, self._executor, now, nested.run).visit(visit)

    async def run_nested(self, flow: Flow, state: BaseModel, outer: Visit, place: int) -> Any:
        """Walk a flow inside a visit; ApprovalPending where it waits for people."""
        position = beginning(flow, state, self._run_id)
        frontier = Frontier(flow, position)
        await self.walk(
            frontier,
            lambda visit: outer.journal.inside(f"{place}/{visit.id}"),
            f"{outer.id}/{place}/",
        )
        if waiting := [r for visit in frontier.suspended for r in visit.pending]:
            outer.pending.extend(waiting)
            raise ApprovalPending(waiting[0])
        return frontier.state


class _Nested:
    """Numbers the nested flows of one visit in the order in which they are begun."""

    def __init__(self, walker: Walker, outer: Visit) -> None:
        self._walker = walker
        self._outer = outer
        self._begun = 0

    async def run(self, flow: Flow, state: BaseModel) -> Any:
        place, self._begun = self._begun, self._begun + 1
        return await self._walker.run_nested(flow, state, self._outer, place)


def beginning(flow: Flow, state: BaseModel, run_id: str) -> Checkpoint:
    """The position of a run that has not taken a step; FlowError where it can't take one."""
    flow.check()
    if not isinstance(state, flow.state):
        raise FlowError(
            f"Flow {flow.name!r} takes a {flow.state.__name__} as its state, not a "
            f"{type(state).__name__}.",
            code="invalid-arguments",
        )
    position = Checkpoint(
        run_id=run_id,
        flow=flow.name,
        version=flow.version,
        graph=flow.graph(),
        state=state,
        visits=(),
    )
    frontier = Frontier(flow, position)
    frontier.enter(flow.starts())
    return frontier.position()


def _worst(outcomes: Sequence[Any]) -> BaseException | None:
    """What a wave ends with: an interruption before an error, else the first in order."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    stops = [failure for failure in failures if not isinstance(failure, Exception)]
    return next(iter([*stops, *failures]), None)
