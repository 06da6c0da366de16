"""Runs flows and resumes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel

from . import canonical
from .answers import match
from .approval import ApprovalDecision, ApprovalRequest, new_id
from .checkpoint import Checkpoint, CheckpointSealer, OpenVisit
from .errors import FlowError
from .executor import Executor
from .frontier import Frontier
from .graph import Flow
from .journal import Answers, Codec, Journal
from .memory import resumed
from .walking import Walker, beginning

STEP_LIMIT = 1_000


@dataclass(frozen=True, repr=False)
class FlowResult:
    """How far a run came: ``completed`` with its last state, or ``paused`` with a checkpoint.

    ``requests`` are all its open requests, ``pending`` is the first of them.
    """

    status: Literal["completed", "paused"]
    run_id: str
    state: Any
    requests: tuple[ApprovalRequest, ...] = ()
    checkpoint: Checkpoint | None = None

    @property
    def pending(self) -> ApprovalRequest | None:
        return self.requests[0] if self.requests else None

    def __repr__(self) -> str:
        return f"<{self.status} run {self.run_id}, {len(self.requests)} open requests>"


class FlowRunner:
    """Runs flows and resumes them.

    ``checkpoint_key`` seals checkpoints: bytes, 16 or more, or a mapping of key ids to keys,
    newest first (default: a random key of this process). ``seal_encoder(value)`` gives a sealable
    stand-in for a value that has no canonical form, ``seal_decoder(type_name, value)`` builds it
    again. ``max_steps`` limits the visits of a run, over all its resumes.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        checkpoint_key: bytes | Mapping[str, bytes] | None = None,
        seal_encoder: Callable[[Any], Any] | None = None,
        seal_decoder: Callable[[str, Any], Any] | None = None,
        max_steps: int = STEP_LIMIT,
    ) -> None:
        self.executor = executor
        self.max_steps = max_steps
        self._codec = Codec(seal_encoder, seal_decoder)
        self._sealer = CheckpointSealer(checkpoint_key, self._codec)

    async def run(self, flow: Flow, state: BaseModel, *, run_id: str | None = None) -> FlowResult:
        """Start a run and walk until it completes or pauses; anything else raises FlowError."""
        return await self._walk(flow, beginning(flow, state, run_id or new_id()))

    def begin(self, flow: Flow, state: BaseModel, *, run_id: str | None = None) -> Checkpoint:
        """The sealed checkpoint of a run that has not taken a step; ``resume`` starts it.

        No answer is spent by starting, so nothing here keeps a run from being started twice: that
        is for whoever stores the checkpoint to see to (``runs`` does it by its claim on the row).
        """
        return self._seal(beginning(flow, state, run_id or new_id()))

    async def resume(
        self, flow: Flow, checkpoint: Checkpoint, *decisions: ApprovalDecision
    ) -> FlowResult:
        """Go on from a checkpoint with the decisions that were taken for its open requests.

        Seal and graph are verified and every decision is checked first; only then are the
        decisions settled with the port's store, each once. A refused settle does not spend the
        checkpoint. Raises FlowError (``checkpoint-tampered``, ``graph-changed``,
        ``unknown-request``, ``invalid-decision``, ``invalid-answer``), ApprovalAlreadyDecided,
        and what the walk raises.
        """
        checkpoint = self._sealer.verified(flow, checkpoint)
        matched = match(checkpoint.requests, decisions)
        if not matched and all(visit.pending for visit in checkpoint.visits):
            raise FlowError(
                "The run waits for its open requests; resume it with a decision for one of them.",
                code="unknown-request",
            )
        visits, left = await self._spend(checkpoint.visits, matched)
        position = replace(checkpoint, visits=visits, key="", mac="")
        return await self._walk(flow, position, left, frozenset(matched))

    def run_sync(self, flow: Flow, state: BaseModel, *, run_id: str | None = None) -> FlowResult:
        """``run`` for plain code."""
        return asyncio.run(self.run(flow, state, run_id=run_id))

    def resume_sync(
        self, flow: Flow, checkpoint: Checkpoint, *decisions: ApprovalDecision
    ) -> FlowResult:
        """``resume`` for plain code."""
        return asyncio.run(self.resume(flow, checkpoint, *decisions))

    def dump_checkpoint(self, checkpoint: Checkpoint) -> str:
        """The checkpoint as sealed JSON text for any storage."""
        return self._sealer.dump(checkpoint)

    def load_checkpoint(self, flow: Flow, text: str) -> Checkpoint:
        """The checkpoint of a sealed text. Seal and graph are checked before anything is built;
        FlowError says what is wrong."""
        return self._sealer.load(flow, text)

    async def _spend(
        self, visits: Sequence[OpenVisit], matched: Mapping[str, ApprovalDecision]
    ) -> tuple[tuple[OpenVisit, ...], dict[str, list[ApprovalRequest]]]:
        """The visits with their answers, those answered due to run again.

        The answers are spent from here on, all of them or, where the store refuses, none. Other
        records of an answered visit are withdrawn where the visit will ask anew; those that it
        will find again are returned, by visit.
        """
        store = self.executor.approvals.store
        answers = {
            request.id: (request, matched[request.id])
            for visit in visits
            for request in visit.pending
            if request.id in matched
        }
        earlier = [
            answer
            for visit in visits
            if any(request.id in matched for request in visit.pending)
            for answer in visit.answers
        ]
        open_requests = [request for visit in visits for request in visit.pending]
        others = [request for request in open_requests if request.id not in answers]
        held = set() if store is None else await store.settle([*answers.values()], earlier, others)
        resumed.spend(
            [request for request, _ in answers.values()],
            [request for request in open_requests if request.id not in held],
        )
        going_on, left = [], {}
        for visit in visits:
            new = [answers[r.id] for r in visit.pending if r.id in answers]
            if new:
                rest = [r for r in visit.pending if r.id not in answers]
                left[visit.id] = [request for request in rest if request.repeats]
                for request in rest:
                    if not request.repeats:
                        # A decision that came meanwhile goes on with the others.
                        given = await self.executor.withdraw(request, "superseded")
                        new += [(request, given)] if given is not None else []
                visit = replace(visit, answers=(*visit.answers, *new), pending=())
            going_on.append(visit)
        return tuple(going_on), left

    async def _walk(
        self,
        flow: Flow,
        position: Checkpoint,
        left: Mapping[str, list[ApprovalRequest]] = MappingProxyType({}),
        new_answers: frozenset[str] = frozenset(),
    ) -> FlowResult:
        frontier = Frontier(flow, position)
        counters = dict(position.counters)
        walker = Walker(
            self.executor,
            position.run_id,
            counters,
            max_steps=self.max_steps,
            steps=position.steps,
        )
        await walker.walk(
            frontier,
            lambda visit: Journal(self._codec, Answers(visit.answers, new_answers), visit.journal),
            left=left,
        )
        if not frontier.suspended:
            return FlowResult("completed", position.run_id, frontier.state)
        try:
            checkpoint = self._seal(replace(frontier.position(), counters=counters))
        except FlowError as error:
            await walker.withdraw(frontier, error.code)
            raise
        return FlowResult(
            "paused", position.run_id, frontier.state, tuple(checkpoint.requests), checkpoint
        )

    def _seal(self, checkpoint: Checkpoint) -> Checkpoint:
        try:
            return self._sealer.seal(checkpoint)
        except canonical.NotSealable as error:
            raise FlowError(
                f"The run can't pause, because its state can't be sealed. {error}",
                code="state-not-sealable",
            ) from error
