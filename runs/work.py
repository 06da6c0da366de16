"""A worker's part: take a due run, walk it as far as it goes, and store where it stands."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import DatabaseError, DataError, connections, transaction
from django.utils import timezone

from runs.engine import Checkpoint, Executor, FlowError, FlowResult, Interrupted
from runs.engine.redact import redact, redact_text

from . import ports
from .actions import queue_run
from .events import EventWriter, record, touch
from .lease import Lease, claim
from .models import Run, RunEvent
from .position import load_checkpoint, make_runner, store_checkpoint
from .registry import UnknownFlow, get_flow

logger = logging.getLogger(__name__)

# What a person must look at before the run can go on; no decision is spent.
_ATTENTION = frozenset({*Run.NOTHING_RAN, "outcome-unknown", "internal-error"})


class LeaseLost(Exception):
    """Another worker has taken the run over; what this one did is not stored."""


def advance(run_id: UUID, owner: str) -> bool:
    """Take a run if it is due, and walk it until it ends or waits for people.

    The new position, the requests, the spent decisions and the status are stored in one
    transaction. False where there was nothing to do. Errors of the flow end in the run's row;
    errors of the database pass through, and the run is taken over once the claim has run out.
    """
    claimed = claim(run_id, owner)
    if claimed is None:
        return False
    run, taken_over = claimed
    with Lease(run, owner) as lease:
        walk = _Walk(run, owner, EventWriter(run.pk, lease.lost))
        try:
            walk.go(taken_over)
        except LeaseLost:
            logger.warning("Run %s was taken over by another worker; nothing stored.", run.pk)
        except Interrupted as interruption:
            logger.warning("The walk of run %s was interrupted: %s", run.pk, interruption)
    return True


class _Walk:
    """One walk of one run by the worker that has claimed it."""

    def __init__(self, run: Run, owner: str, events: EventWriter) -> None:
        self._run = run
        self._owner = owner
        self._events = events
        self._approvals = ports.approvals().for_run(run)

    def go(self, taken_over: bool) -> None:
        executor = Executor(
            self._approvals.port, on_event=self._events, around_thread=_leaving_no_connection
        )
        runner = make_runner(executor)
        open_before: list[str] | None = None
        try:
            if taken_over and self._something_may_have_run():
                raise FlowError(
                    "The worker stopped while a call was under way or had just ended, and it is "
                    "not known which of the calls since the last pause took effect. Nothing is "
                    "repeated. Look at the calls below and at the systems they change.",
                    code="outcome-unknown",
                )
            flow = get_flow(self._run.flow, self._run.version)
            checkpoint = load_checkpoint(self._run, runner, flow)
            open_before = [request.id for request in checkpoint.requests]
            decisions = self._approvals.decisions(open_before)
            if not decisions and all(visit.pending for visit in checkpoint.visits):
                if not self._approvals.are_open(open_before):
                    raise FlowError(
                        "The stored checkpoint waits for requests that are closed: an older one "
                        "was put back, or the requests were changed outside of Flowsite. Nothing "
                        "ran.",
                        code="checkpoint-tampered",
                    )
                self._store(open_before, self._still_paused)  # the hint was not a reason
                return
            result: FlowResult = async_to_sync(runner.resume)(flow, checkpoint, *decisions)
        except UnknownFlow as error:
            self._end(FlowError(str(error), code="unknown-flow"), open_before)
        except FlowError as error:
            self._end(error, open_before)
        except DatabaseError:
            raise
        except Exception as error:  # a fault of ours, or a store that can't be read: never a loop
            logger.error("Run %s: %s", self._run.pk, redact_text(traceback.format_exc()))
            self._end(
                FlowError(
                    f"Flowsite itself failed while it walked the run: {type(error).__name__}: "
                    f"{error}. The worker's log has the details.",
                    code="internal-error",
                ),
                open_before,
            )
        else:
            self._events.flush()
            try:
                if result.checkpoint is not None:
                    self._pause(
                        result.checkpoint, lambda run, cp: store_checkpoint(run, runner, cp)
                    )
                else:
                    self._complete(result)
            except DataError as error:  # the same walk would be refused again: never a loop
                self._end(
                    FlowError(
                        "The database refuses to store how far the run came: "
                        f"{str(error).partition(chr(10))[0]}. The calls below took place.",
                        code="internal-error",
                    ),
                    open_before,
                )

    def _something_may_have_run(self) -> bool:
        """Whether a call was started since the run's position was last stored."""
        events = RunEvent.objects.filter(run=self._run)
        stored = events.filter(kind__in=["run.started", "run.paused"]).last()
        return events.filter(kind="call.started", id__gt=stored.pk if stored else 0).exists()

    def _pause(self, checkpoint: Checkpoint, put: Callable[[Run, Checkpoint], None]) -> None:
        open_requests = [request.id for request in checkpoint.requests]

        def change(run: Run) -> None:
            put(run, checkpoint)
            run.status = Run.Status.PAUSED
            record(run.pk, "run.paused", data={"requests": open_requests})

        self._store(open_requests, change)

    def _complete(self, result: FlowResult) -> None:
        def change(run: Run) -> None:
            run.status, run.finished_at = Run.Status.COMPLETED, timezone.now()
            run.result_shown = redact(result.state)
            record(run.pk, "run.completed")

        self._store([], change)

    def _end(self, error: FlowError, open_before: list[str] | None) -> None:
        """Store why the run can't go on. What needs a person's eye leaves requests as they are.

        ``open_before`` None says that the position could not even be read: whatever the reason,
        nothing ran, and the run can go on once that is put right.
        """
        self._events.flush()
        attention = error.code in _ATTENTION or open_before is None
        message = redact_text(str(error))
        logger.warning("Run %s stopped (%s): %s", self._run.pk, error.code, message)

        def change(run: Run) -> None:
            run.status = Run.Status.ATTENTION if attention else Run.Status.FAILED
            run.finished_at = None if attention else timezone.now()
            run.error_code, run.error_node = error.code, error.node or ""
            run.error_message = message
            record(
                run.pk,
                "run.attention" if attention else "run.failed",
                node=error.node or "",
                data={"code": error.code, "error": message},
            )

        self._store(None if attention else [], change)

    def _still_paused(self, run: Run) -> None:
        run.status = Run.Status.PAUSED
        touch(run.pk)

    def _store(self, open_requests: list[str] | None, change: Callable[[Run], None]) -> None:
        """Store the run's new state, if it is still this worker's; LeaseLost otherwise.

        ``open_requests`` None leaves the run's requests and decisions untouched.
        """
        with transaction.atomic():
            run = Run.objects.select_for_update().get(pk=self._run.pk)
            if run.lease_owner != self._owner or run.status != Run.Status.RUNNING:
                raise LeaseLost
            change(run)
            run.lease_owner, run.lease_until = "", None
            if run.status not in (Run.Status.FAILED, Run.Status.ATTENTION):
                run.error_code = run.error_node = run.error_message = ""
            run.save(
                update_fields=[
                    "status",
                    "checkpoint",
                    "checkpoint_at",
                    "result_shown",
                    "error_code",
                    "error_node",
                    "error_message",
                    "finished_at",
                    "lease_owner",
                    "lease_until",
                    "changed_at",
                ]
            )
            if open_requests is not None:
                self._approvals.commit(open_requests)
                # A decision may have come while the run was being walked.
                if run.status == Run.Status.PAUSED and self._approvals.decisions(open_requests):
                    queue_run(run)


def _leaving_no_connection(function: Callable[[], Any]) -> Any:
    """Run a plain function in its thread, and leave no database connection open behind it."""
    try:
        return function()
    finally:
        connections.close_all()


def advance_and_log(run_id: UUID, owner: str) -> None:
    """``advance`` for a queue: an unexpected error is logged, redacted, and not kept by the queue.

    The run's claim runs out, and the sweep sends the run again.
    """
    try:
        advance(run_id, owner)
    except Exception:
        logger.error("Run %s: %s", run_id, redact_text(traceback.format_exc()))
