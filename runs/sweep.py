"""Finds the runs that nobody works on though they are due, and sends their hints again."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from . import ports
from .actions import lock_run, queue_run
from .models import Run
from .registry import UnknownFlow, get_flow

# How long a queued run may wait before its hint is taken for lost. A busy queue gets a few
# needless hints from this, which change nothing.
HINT_LOST_AFTER = timedelta(seconds=30)


def _is_registered(run: Run) -> bool:
    try:
        return get_flow(run.flow, run.version).digest == run.graph
    except UnknownFlow:
        return False


def sweep() -> dict[str, int]:
    """Send hints again; returns how many runs of each kind were found.

    ``queued``: due, and their hint is lost or late. ``abandoned``: their worker's claim has run
    out. ``decided``: paused, though a decision was taken, or though nobody is asked any more.
    ``registered``: their flow was missing or changed, and is there again.
    """
    now = timezone.now()
    late = Run.objects.filter(status=Run.Status.QUEUED, queued_at__lt=now - HINT_LOST_AFTER)
    abandoned = Run.objects.filter(status=Run.Status.RUNNING).filter(
        Q(lease_until__lt=now) | Q(lease_until__isnull=True)
    )
    found = {"queued": 0, "abandoned": 0, "decided": 0, "registered": 0}
    for run_id in late.values_list("pk", flat=True):
        with transaction.atomic():
            if late.filter(pk=run_id).update(queued_at=now):
                ports.dispatcher().enqueue(run_id)
                found["queued"] += 1
    for run_id in abandoned.values_list("pk", flat=True):
        ports.dispatcher().enqueue(run_id)
        found["abandoned"] += 1
    for run_id in ports.approvals().runs_with_answers():
        with transaction.atomic():
            run = lock_run(run_id)
            if run.status == Run.Status.PAUSED:
                queue_run(run)
                found["decided"] += 1
    waiting = Run.objects.filter(
        status=Run.Status.ATTENTION, error_code__in=("graph-changed", "unknown-flow")
    )
    for run in waiting.only("flow", "version", "graph"):
        if _is_registered(run):
            with transaction.atomic():
                locked = lock_run(run.pk)
                if locked.can_try_again:
                    queue_run(locked)
                    found["registered"] += 1
    ports.dispatcher().tidy()
    return found
