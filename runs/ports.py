"""What `runs` needs from outside, and how it is handed it: by dotted paths in the settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from runs.engine import ApprovalDecision, ApprovalPort

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from .models import Run


class RunApprovals(Protocol):
    """The approvals of one run while a worker walks it.

    What the walk asks for and spends is kept in memory and written by ``commit``, in the
    transaction that stores the run's new position: nobody is asked before that, and a walk that
    dies has asked nothing and spent nothing.
    """

    port: ApprovalPort

    def decisions(self, open_requests: Collection[str]) -> list[ApprovalDecision]:
        """The decisions taken for these requests, with which the run has not gone on yet."""

    def are_open(self, open_requests: Collection[str]) -> bool:
        """Whether nobody has closed any of these requests."""

    def commit(self, open_requests: Collection[str]) -> None:
        """Write everything, within the caller's transaction, in which the run's row is locked.

        ``open_requests`` are those of the run's new position; every other open request of the
        run is closed.
        """


class ApprovalBackend(Protocol):
    """Implemented on the tables of `approvals` (``FLOWSITE_APPROVALS``)."""

    def for_run(self, run: Run) -> RunApprovals: ...

    def runs_with_answers(self) -> list[UUID]:
        """The paused runs for which a decision was taken that they have not gone on with, and
        those that wait for nobody, which nothing of ours leaves so."""

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
        """Write an audit entry, within the caller's transaction."""


class Dispatcher(Protocol):
    """Carries the hint that a run is due (``FLOWSITE_DISPATCHER``).

    A message may be lost, late, doubled or out of order: the run's row is the truth.
    """

    def enqueue(self, run_id: UUID) -> None:
        """Send the hint when the caller's transaction commits, or not at all."""

    def work(self, worker_id: str, *, batch: bool = False) -> None:
        """Take hints and advance their runs until told to stop by SIGINT or SIGTERM; with
        ``batch``, until there is none left."""

    def tidy(self) -> None:
        """Remove what finished messages have left behind."""


@cache
def approvals() -> ApprovalBackend:
    return cast(ApprovalBackend, import_string(settings.FLOWSITE_APPROVALS)())


@cache
def dispatcher() -> Dispatcher:
    return cast(Dispatcher, import_string(settings.FLOWSITE_DISPATCHER)())
