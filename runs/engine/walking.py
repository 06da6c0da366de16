"""Walks a frontier: wave after wave, until it ends or only people can let it go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from .approval import ApprovalRequest
from .checkpoint import Checkpoint, OpenVisit
from .errors import ApprovalPending, FlowError
from .executor import Executor, Visit, is_a_stop
from .frontier import Finished, Frontier, Suspended
from .graph import Flow
from .guards import Counters
from .journal import Journal
from .validation import own_copy
from .visiting import NodeRunner


class Walker:
    """Makes the visits of one run, those of flows nested in it included."""

    def __init__(
        self, executor: Executor, run_id: str, counters: Counters, *, max_steps: int, steps: int
    ) -> None:
        self._executor = executor
        self._run_id = run_id
        self._counters = counters
        self._max_steps = max_steps
        self._left = max_steps - steps

    async def walk(
        self,
        frontier: Frontier,
        journal_of: Callable[[OpenVisit], Journal],
        *,
        left: Mapping[str, list[ApprovalRequest]] = MappingProxyType({}),
        outer: Visit | None = None,
        within: str = "",
    ) -> None:
        """Walk until nothing is due; visits that wait for people are left suspended.

        ``left`` are open requests that a visit, by id, asked before and will find again.
        ``outer`` is the visit that a nested flow runs in, and ``within`` the path to it.

        The visits of a wave run side by side, each to its end whatever befalls the others.
        Raises FlowError; no request of this frontier is open then.
        """
        while due := frontier.due():
            try:
                self._count(due)
                wave = frontier.begin(due)
                outcomes = await asyncio.gather(
                    *(
                        self._visit(
                            self._now(frontier.flow, visit, journal_of(visit), within),
                            visit,
                            outer.left if outer is not None else left.get(visit.id, []),
                            nested=outer is not None,
                        )
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
            except BaseException as error:
                if not is_a_stop(error):
                    await self.withdraw(frontier, "the run failed")
                raise

    def _count(self, due: Sequence[OpenVisit]) -> None:
        """Count the visits that begin now, those of nested flows too; FlowError (step-limit)."""
        for visit in due:
            if visit.state is None:
                self._left -= 1
                if self._left < 0:
                    raise FlowError(
                        f"The run has made {self._max_steps} visits, which is its limit; the next "
                        f"would have been {visit.node!r}. Look for a cycle that does not end, or "
                        "raise max_steps.",
                        code="step-limit",
                        node=visit.node,
                    )

    async def withdraw(self, frontier: Frontier, reason: str) -> None:
        """Take back every open request of a frontier that goes no further."""
        for visit in frontier.suspended:
            for request in visit.pending:
                await self._executor.withdraw(request, reason)

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
        self, now: Visit, visit: OpenVisit, left: list[ApprovalRequest], *, nested: bool
    ) -> Finished | Suspended:
        now.left = left
        try:
            return await NodeRunner(now.flow, self._executor, now, self.run_nested).visit(visit)
        except BaseException as error:
            if is_a_stop(error):
                left = []
            raise
        finally:
            while left and not nested:  # asked before this resume, and not asked again
                await self._executor.withdraw(left.pop(), "superseded")

    async def run_nested(self, flow: Flow, state: BaseModel, outer: Visit) -> Any:
        """Walk a flow inside a visit; ApprovalPending where it waits for people.

        Its journals go by what it was begun with, and not by when: on a re-run, when finished
        calls take no time, nested flows may begin in another order. It is walked to its end or
        its pause whatever becomes of the caller.
        """
        return await outer.to_its_end(self._run_nested(flow, own_copy(state), outer))

    async def _run_nested(self, flow: Flow, state: BaseModel, outer: Visit) -> Any:
        frontier = Frontier(flow, beginning(flow, state, self._run_id))
        within = outer.journal.place_of_nested(flow, state)
        await self.walk(
            frontier,
            lambda visit: outer.journal.inside(f"{within}/{visit.id}"),
            outer=outer,
            within=f"{outer.id}/{within}/",
        )
        if waiting := [r for visit in frontier.suspended for r in visit.pending]:
            outer.pending.extend(waiting)
            raise ApprovalPending(waiting[0])
        return frontier.state


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
    """What a wave ends with: a stop before an error, else the first in order."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    stops = [failure for failure in failures if not isinstance(failure, Exception)]
    return next(iter([*stops, *failures]), None)
