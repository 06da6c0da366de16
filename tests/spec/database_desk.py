"""The desk over the tables: each walk is claimed, stored and ended as a worker does it.

A decision that a test gives to ``resume`` is first taken on the request's row, by a person of that
name with the right to, and the run goes on with what the row then says. The checkpoint stays with
the test, which may pass an old or a forged one.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from approvals import actions
from approvals.models import ApprovalRequest as Row
from approvals.models import AuditEntry
from approvals.port import DatabaseApprovals, _as_decision, _as_row
from runs import registry
from runs.engine import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalRequest,
    ApprovalStore,
    DeferredApproval,
    Flow,
    FlowError,
    FlowResult,
    FlowRunner,
    memory,
)
from runs.engine.answers import match
from runs.engine.approval import Answer, new_id
from runs.events import EventWriter
from runs.lease import claim
from runs.models import Run
from runs.work import _Walk
from tests.support.make import reviewer, set_aside

from .support import Record, Runner

REASON = "No."  # a person who rejects says why, and a test need not


class DatabaseDesk:
    """The desk over the tables; ``record`` and ``pending`` read the rows.

    Where a resume is refused, the decision that it was given stays taken. Its record is pending
    still, in that no run has gone on with it.
    """

    records_at_once = False  # a request becomes a row in the transaction that ends the walk

    def __init__(self) -> None:
        self._stores = _StoresOfWalks()
        self.port = DeferredApproval(self._stores)

    def another(self) -> DatabaseDesk:
        """The same database, emptied: it can't hold one request twice."""
        Run.objects.all().delete()
        return DatabaseDesk()

    def add(self, request: ApprovalRequest) -> None:
        _as_row(_run_of(request.run_id), request).save(force_insert=True)

    def decide(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        _decide(Row.objects.get(pk=request.id), decision)

    def consume(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        self.decide(request, decision)
        set_aside(Row.objects.get(pk=request.id), consumed_at=timezone.now())

    def record(self, request: ApprovalRequest) -> Record | None:
        row = Row.objects.filter(pk=request.id).first()
        if row is None:
            return None
        decision = None
        if row.status in (Row.Status.APPROVED, Row.Status.REJECTED):
            decision = _as_decision(row)
        elif row.status != Row.Status.PENDING:
            entry = AuditEntry.objects.get(request_id=row.pk, action=f"request.{row.status}")
            decision = ApprovalDecision.deny(entry.actor_name, reason=entry.data["reason"])
        return Record(decision, row.consumed_at is not None)

    def pending(self) -> list[str]:
        given = Q(pk__in=self._stores.given, consumed_at__isnull=True)
        rows = Row.objects.filter(Q(status=Row.Status.PENDING) | given)
        return [str(row.pk) for row in rows.order_by("requested_at")]


class _StoresOfWalks:
    """Passes what the engine asks of a store to the store of the run's walk.

    ``given`` are the requests on which a decision was taken that a resume was given.
    """

    def __init__(self) -> None:
        self.of_run: dict[str, ApprovalStore] = {}
        self.given: set[str] = set()

    def around(self, runner: FlowRunner) -> Runner:
        """The runner as workers use it."""
        return _WorkersRunner(runner, self)

    async def add(self, request: ApprovalRequest) -> None:
        await self.of_run[request.run_id].add(request)

    async def find_pending(self, request: ApprovalRequest) -> ApprovalRequest | None:
        return await self.of_run[request.run_id].find_pending(request)

    async def settle(
        self,
        answers: Sequence[Answer],
        earlier: Sequence[Answer],
        others: Sequence[ApprovalRequest],
    ) -> set[str]:
        run_id = answers[0][0].run_id
        return await self.of_run[run_id].settle(answers, earlier, others)

    async def withdraw(self, request: ApprovalRequest, reason: str) -> ApprovalDecision | None:
        return await self.of_run[request.run_id].withdraw(request, reason)


class _WorkersRunner:
    """A runner each of whose walks is claimed before, and stored after, as a worker does it."""

    def __init__(self, runner: FlowRunner, stores: _StoresOfWalks) -> None:
        self._runner, self._stores = runner, stores
        self.executor = runner.executor
        self.dump_checkpoint, self.load_checkpoint = runner.dump_checkpoint, runner.load_checkpoint

    # A worker does the database's work in its own thread while the loop runs in another: here it
    # is the thread that has the test's transaction.

    def run_sync(self, flow: Flow, state: Any, *, run_id: str | None = None) -> Any:
        return async_to_sync(self.run)(flow, state, run_id=run_id)

    def resume_sync(self, flow: Flow, checkpoint: Any, *decisions: ApprovalDecision) -> Any:
        return async_to_sync(self.resume)(flow, checkpoint, *decisions)

    async def run(self, flow: Flow, state: Any, *, run_id: str | None = None) -> Any:
        run_id = run_id or new_id()
        walk = await self._begin(run_id)
        return await _to_its_end(walk, [], self._runner.run(flow, state, run_id=run_id))

    async def resume(self, flow: Flow, checkpoint: Any, *decisions: ApprovalDecision) -> Any:
        try:
            position = self._runner._sealer.verified(flow, checkpoint)
            matched = match(position.requests, decisions)
        except FlowError:  # no page offers this, and no worker goes on from it
            return await self._runner.resume(flow, checkpoint, *decisions)
        open_before = [request.id for request in position.requests]
        on_record = await sync_to_async(self._take)(flow, position.run_id, open_before, matched)
        walk = await self._begin(position.run_id)
        resumed = self._runner.resume(flow, checkpoint, *on_record)
        return await _to_its_end(walk, open_before, resumed)

    async def _begin(self, run_id: str) -> _Walk:
        # Each walk is that of another process, which remembers nothing.
        memory.resumed._spent.clear()
        walk = await sync_to_async(_claimed)(run_id)
        store = walk._approvals.port.store
        assert store is not None
        self._stores.of_run[run_id] = store
        return walk

    def _take(
        self,
        flow: Flow,
        run_id: str,
        open_requests: list[str],
        matched: Mapping[str, ApprovalDecision],
    ) -> list[ApprovalDecision]:
        """Take the decisions on the rows; what a worker goes on with then.

        A decision on a request that is closed goes to the engine, which must refuse it.
        """
        # The form's validators are found by the flow's name, as of an installed app's flow.
        registry._registered().setdefault(flow.name, {})[flow.version] = flow
        late = []
        for request_id, decision in matched.items():
            row = Row.objects.filter(pk=request_id).first()
            if row is None or row.consumed_at is not None:
                late.append(decision)
            elif not _is_on_record(row, decision):
                _decide(row, decision)
                self._stores.given.add(request_id)
        return late or DatabaseApprovals().for_run(_run_of(run_id)).decisions(open_requests)


def _claimed(run_id: str) -> _Walk:
    """A walk of the run, which is due: a hint may come at any time, also after the run's end."""
    run, owner = _run_of(run_id), f"worker-{uuid4().hex[:8]}"
    waiting = Run.objects.filter(pk=run.pk).exclude(status=Run.Status.RUNNING)
    waiting.update(status=Run.Status.QUEUED)
    claimed = claim(run.pk, owner)
    if claimed is None:
        raise ApprovalAlreadyDecided("Another worker walks the run. Nothing ran.")
    return _Walk(claimed[0], owner, EventWriter(run.pk, threading.Event()))


async def _to_its_end(walk: _Walk, open_before: list[str], going: Awaitable[FlowResult]) -> Any:
    """What the runner returns or raises, once the run's row and requests say so too."""
    try:
        result = await going
    except Exception as error:
        fault = error if isinstance(error, FlowError) else FlowError("", code="internal-error")
        await sync_to_async(walk._end)(fault, open_before)
        raise
    if result.checkpoint is None:
        await sync_to_async(walk._complete)(result)
    else:
        await sync_to_async(walk._pause)(result.checkpoint, lambda run, checkpoint: None)
    return result


def _run_of(run_id: str) -> Run:
    """The run's row, made where there is none. A test may name its run as it likes."""
    try:
        key = UUID(run_id)
    except ValueError:
        key = uuid5(NAMESPACE_OID, run_id)
    made = {"flow": "shop", "version": "1", "via": "test", "input_shown": {}}
    return Run.objects.get_or_create(pk=key, defaults=made)[0]


def _is_on_record(row: Row, decision: ApprovalDecision) -> bool:
    """Whether this decision was taken on the row before."""
    if row.is_open:
        return False
    known = _as_decision(row)
    return (known.approved, known.by) == (decision.approved, decision.by)


def _decide(row: Row, decision: ApprovalDecision) -> None:
    """Let the person whom the decision names take it; ApprovalAlreadyDecided."""
    person = User.objects.filter(username=decision.by).first() or reviewer(decision.by)
    try:
        actions.decide(
            row.pk,
            by=person,
            verdict="approve" if decision.approved else "reject",
            digest=row.digest,
            reason=decision.reason or ("" if decision.approved else REASON),
            content=decision.content,
        )
    except actions.AlreadyDecided as error:
        raise ApprovalAlreadyDecided(str(error)) from error
