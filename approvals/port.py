"""The engine's approval port on the tables, and the backend that `runs` is handed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from runs.actions import lock_run
from runs.engine import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    DeferredApproval,
    FlowError,
    canonical,
)
from runs.engine import ApprovalRequest as Asked
from runs.forms import schema_of
from runs.models import Run
from runs.storage import Unreadable, decrypt

from . import audit
from .digest import is_intact, raw_arguments, seal_arguments
from .models import CONTENT_COLUMN, ApprovalRequest, Decision
from .seals import is_genuine

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

Status = ApprovalRequest.Status
_SUPERSEDED = "superseded"
_OUTCOMES = {"approve": Status.APPROVED, "reject": Status.REJECTED}
_DECIDED = (Status.APPROVED, Status.REJECTED)


class DatabaseApprovals:
    """What `runs` needs of approvals (see ``runs.ports.ApprovalBackend``)."""

    def for_run(self, run: Run) -> DatabaseRunApprovals:
        return DatabaseRunApprovals(run)

    def runs_with_answers(self) -> list[UUID]:
        unused = ApprovalRequest.objects.filter(run=OuterRef("pk"), consumed_at__isnull=True)
        decided, waiting = (
            Exists(unused.filter(status__in=_DECIDED)),
            Exists(unused.filter(status=Status.PENDING)),
        )
        paused = Run.objects.filter(status=Run.Status.PAUSED)
        return list(paused.filter(decided | ~waiting).values_list("pk", flat=True))

    def audit(
        self,
        action: str,
        *,
        actor: AbstractBaseUser | None,
        actor_name: str,
        run: Run,
        summary: str,
        data: Mapping[str, Any],
    ) -> None:
        audit.record(
            action, actor=actor, actor_name=actor_name, run_id=run.pk, summary=summary, data=data
        )


class DatabaseRunApprovals:
    """The approvals of one run during one walk (see ``runs.ports.RunApprovals``)."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._store = _WalkStore(run)
        self.port = DeferredApproval(self._store)

    def decisions(self, open_requests: Collection[str]) -> list[ApprovalDecision]:
        rows = self._run.requests.filter(
            pk__in=list(open_requests), status__in=_DECIDED, consumed_at__isnull=True
        ).prefetch_related("decisions")
        return [_as_decision(row) for row in rows]

    def are_open(self, open_requests: Collection[str]) -> bool:
        closed = self._run.requests.filter(pk__in=list(open_requests)).exclude(
            status=Status.PENDING
        )
        return not closed.exists()

    def commit(self, open_requests: Collection[str]) -> None:
        self._store.write(set(open_requests))


class _WalkStore:
    """An approval store whose changes wait in memory for the transaction that ends the walk."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._new: dict[str, Asked] = {}
        self._spent: set[str] = set()
        self._withdrawn: dict[str, str] = {}

    async def add(self, request: Asked) -> None:
        self._new[request.id] = request

    async def find_pending(self, request: Asked) -> Asked | None:
        for known in self._new.values():
            if known.call_id == request.call_id:
                return known
        # One that was decided since the walk began is still the question that is asked here; it
        # stays open in the run's position, and the run goes on with its decision next.
        row = await self._run.requests.filter(
            call_id=request.call_id,
            status__in=(Status.PENDING, *_DECIDED),
            consumed_at__isnull=True,
        ).afirst()
        if row is None or {str(row.pk)} & (self._spent | self._withdrawn.keys()):
            return None
        return replace(request, id=str(row.pk))

    async def settle(
        self,
        answers: Sequence[tuple[Asked, ApprovalDecision]],
        earlier: Sequence[tuple[Asked, ApprovalDecision]],
        others: Sequence[Asked],
    ) -> set[str]:
        return await sync_to_async(self._settle)(answers, earlier, others)

    async def withdraw(self, request: Asked, reason: str) -> ApprovalDecision | None:
        if self._new.pop(request.id, None) is not None:
            return None  # nobody has seen it
        self._withdrawn[request.id] = reason
        if reason != _SUPERSEDED:
            return None  # the run ends here; ``write`` closes it
        return await sync_to_async(self._supersede)(request)

    def _supersede(self, request: Asked) -> ApprovalDecision | None:
        """Close a request that will be asked anew, at once: nobody shall decide it while the walk
        goes on. A decision that came before this goes on with the others."""
        with transaction.atomic():
            lock_run(self._run.pk)
            row = self._run.requests.filter(pk=request.id, consumed_at__isnull=True).first()
            if row is None:
                return None
            if row.status == Status.PENDING:
                self._close(row)
                return None
        if row.status not in _DECIDED or not _is_what_was_asked(row, request):
            return None
        self._spent.add(request.id)
        return _as_decision(row)

    def _settle(
        self,
        answers: Sequence[tuple[Asked, ApprovalDecision]],
        earlier: Sequence[tuple[Asked, ApprovalDecision]],
        others: Sequence[Asked],
    ) -> set[str]:
        # A decision is used in the transaction that stores the run's next position. (A request
        # that was superseded says nothing: the walk that closed it may have died.)
        used = self._run.requests.filter(
            pk__in=[request.id for request in others],
            status__in=_DECIDED,
            consumed_at__isnull=False,
        ).first()
        if used is not None:
            raise ApprovalAlreadyDecided(
                f"The checkpoint waits for the request {used.pk} for {used.tool}, and the run has "
                "gone on from there: an older checkpoint was put back. Nothing ran.",
                node=used.node,
            )
        ids = [request.id for request, _ in (*answers, *earlier)]
        rows = {
            str(row.pk): row
            for row in self._run.requests.filter(pk__in=ids).prefetch_related("decisions")
        }
        for spent, pairs in ((False, answers), (True, earlier)):
            for request, decision in pairs:
                row = rows.get(request.id)
                if (
                    row is None
                    or row.status not in _DECIDED
                    or (row.consumed_at is not None) is not spent
                    or _as_decision(row) != decision
                    or not _is_what_was_asked(row, request)
                ):
                    raise ApprovalAlreadyDecided(
                        f"The request {request.id} for {request.tool} is not on record as the "
                        "run's checkpoint has it, or was used before. Nothing ran.",
                        node=request.node,
                    )
        self._spent.update(request.id for request, _ in answers)
        return {request.id for request, _ in answers}

    def write(self, open_requests: set[str]) -> None:
        """Write the walk's changes; the caller's transaction has the run's row locked."""
        now = timezone.now()
        spent = self._run.requests.filter(pk__in=self._spent, consumed_at__isnull=True)
        if spent.update(consumed_at=now) != len(self._spent):
            raise ApprovalAlreadyDecided(
                "A decision was used by another worker meanwhile; this walk is not stored."
            )
        leftover = self._run.requests.filter(consumed_at__isnull=True).exclude(pk__in=open_requests)
        for row in leftover.filter(status__in=(Status.PENDING, *_DECIDED)).select_for_update():
            self._close(row)
        for request in self._new.values():
            if request.id in open_requests:
                _as_row(self._run, request).save(force_insert=True)

    def _close(self, row: ApprovalRequest) -> None:
        """Nobody needs this answer any more: the walk asked anew, or the run has ended. What was
        decided stays decided, and was not used."""
        reason = self._withdrawn.get(str(row.pk), "the run ended")
        action = "request.unused"
        if row.status == Status.PENDING:
            row.status = Status.SUPERSEDED if reason == _SUPERSEDED else Status.CANCELLED
            action = f"request.{row.status}"
        row.consumed_at = timezone.now()
        row.save(update_fields=["status", "consumed_at"])
        audit.record(
            action,
            actor=None,
            actor_name="flowsite",
            run_id=self._run.pk,
            request_id=row.pk,
            summary=row.summary,
            data={"reason": reason},
        )


def _tampered(row: ApprovalRequest, why: str) -> FlowError:
    return FlowError(
        f"The decision on {row.summary!r} can't be trusted: {why}. Nothing ran.",
        code="decision-tampered",
        node=row.node,
    )


def _as_row(run: Run, request: Asked) -> ApprovalRequest:
    row = ApprovalRequest(
        id=UUID(request.id),
        run=run,
        kind=request.kind,
        flow=request.flow,
        flow_version=request.flow_version,
        node=request.node,
        visit=request.visit,
        tool=request.tool,
        call_id=request.call_id,
        summary=request.summary[:500],
        about=request.about[:300],
        risk=request.risk[:32],
        shown=request.shown(),
        form_schema=None if request.form is None else schema_of(request.form),
        requested_at=request.requested_at,
    )
    seal_arguments(row, request.canonical_arguments(), run.graph)
    return row


def _is_what_was_asked(row: ApprovalRequest, request: Asked) -> bool:
    """Whether the checkpoint's request is the one whose row was shown, and the row is as it was
    when it was decided."""
    decision = row.final_decision
    if decision is None or decision.digest != row.digest or not is_intact(row):
        return False
    # By their text: 1, 1.0 and True are equal, and not the same.
    raw, asked = (
        json.dumps(arguments, sort_keys=True)
        for arguments in (raw_arguments(row), request.canonical_arguments())
    )
    return (raw, row.tool, row.node, row.call_id) == (
        asked,
        request.tool,
        request.node,
        request.call_id,
    )


def _as_decision(row: ApprovalRequest) -> ApprovalDecision:
    """The engine's form of the decision on record; FlowError (decision-tampered)."""
    decision = row.final_decision
    if decision is None or not is_genuine(decision) or _OUTCOMES[decision.verdict] != row.status:
        raise _tampered(row, "it is not as it was made here")
    if decision.verdict == Decision.Verdict.APPROVE:
        content = None
        if decision.content:
            try:
                text = decrypt(decision.content, column=CONTENT_COLUMN, row=decision.pk)
            except Unreadable as error:
                raise _tampered(row, f"its answer can't be read: {error}") from error
            content = canonical.decode(canonical.loads(text), classes=canonical.reachable())
        return ApprovalDecision.approve(
            by=decision.by_name,
            reason=decision.reason or None,
            content=content,
            request_id=str(row.pk),
        )
    return ApprovalDecision.deny(
        by=decision.by_name, reason=decision.reason or None, request_id=str(row.pk)
    )
