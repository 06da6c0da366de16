"""The claim of a worker on a run: taken by one conditional UPDATE, kept alive, and given back."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from types import TracebackType
from uuid import UUID

from django.conf import settings
from django.db import Error, connection
from django.db.models import Q
from django.utils import timezone

from .models import Run

logger = logging.getLogger(__name__)


def _until() -> timedelta:
    return timedelta(seconds=settings.FLOWSITE_LEASE_SECONDS)


def claim(run_id: UUID, owner: str) -> tuple[Run, bool] | None:
    """Claim a run that is due, or whose worker has not renewed its claim in time.

    Returns the run and whether it was taken over from a worker that did not finish; None where
    there is nothing to do. Of any number of workers one gets it.
    """
    now = timezone.now()
    fields = {
        "status": Run.Status.RUNNING,
        "lease_owner": owner,
        "lease_until": now + _until(),
        "changed_at": now,
    }
    due = Run.objects.filter(pk=run_id, status=Run.Status.QUEUED)
    abandoned = Run.objects.filter(pk=run_id).filter(
        Q(lease_until__lt=now) | Q(lease_until__isnull=True), status=Run.Status.RUNNING
    )
    for rows, taken_over in ((due, False), (abandoned, True)):
        if rows.update(**fields):
            return Run.objects.get(pk=run_id), taken_over
    return None


class Lease:
    """Renews a claim in the background for as long as the walk takes.

    ``lost`` is set when the row no longer names this owner; the walk must stop then.
    """

    def __init__(self, run: Run, owner: str) -> None:
        self.lost = threading.Event()
        self._run_id = run.pk
        self._owner = owner
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{run.short_id}")

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _renew(self) -> None:
        try:
            while not self._stop.wait(settings.FLOWSITE_LEASE_SECONDS / 3):
                try:
                    kept = Run.objects.filter(
                        pk=self._run_id, lease_owner=self._owner, status=Run.Status.RUNNING
                    ).update(lease_until=timezone.now() + _until())
                except Error as error:  # the next round may find the database again
                    logger.warning("The claim on run %s was not renewed: %s", self._run_id, error)
                    connection.close()
                    continue
                if not kept:
                    self.lost.set()
                    return
        finally:
            connection.close()
