"""Writes what happens in a run to its events."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from runs.engine import Event, Interrupted

from .models import Run, RunEvent


def record(run_id: UUID, kind: str, *, node: str = "", data: Mapping[str, Any] = {}) -> None:
    """Write one event, and let pages know that the run has news."""
    RunEvent.objects.create(run_id=run_id, at=timezone.now(), kind=kind, node=node, data=dict(data))
    touch(run_id)


def touch(run_id: UUID) -> None:
    """Let pages know that the run has news."""
    Run.objects.filter(pk=run_id).update(revision=F("revision") + 1, changed_at=timezone.now())


class EventWriter:
    """The engine's listener during one walk.

    Events are written in batches, but a call's start is in the database before the call runs: it
    is what tells, after a crash, whether something may have happened. ``lost`` is set when the
    walk must stop, because the claim on the run is gone.
    """

    def __init__(self, run_id: UUID, lost: threading.Event) -> None:
        self._run_id = run_id
        self._lost = lost
        self._waiting: list[RunEvent] = []
        # Calls of one wave tell their events while another's are being written, in another thread.
        self._lock = threading.Lock()

    async def __call__(self, event: Event) -> None:
        if self._lost.is_set():
            raise Interrupted("Another worker has taken this run over.")
        row = RunEvent(
            run_id=self._run_id,
            at=event.at,
            kind=event.kind,
            node=event.node,
            visit=event.visit,
            tool=event.tool,
            call_id=event.call_id,
            data=dict(event.data),
        )
        with self._lock:
            self._waiting.append(row)
        if event.kind == "call.started" or event.kind == "node.started":
            await sync_to_async(self.flush)()

    def flush(self) -> None:
        """Write what waits to be written."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if waiting:
            with transaction.atomic():
                RunEvent.objects.bulk_create(waiting)
                touch(self._run_id)
