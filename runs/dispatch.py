"""The embedded queue: tasks in the site's own database."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from django_tasks import task
from django_tasks_db.management.commands.db_worker import Worker
from django_tasks_db.models import DBTaskResult

from .work import advance_and_log

logger = logging.getLogger(__name__)

QUEUE = "runs"
POLL_SECONDS = 0.1
DATABASE_RETRY_SECONDS = 2.0
KEEP_FINISHED = timedelta(hours=24)


@task(queue_name=QUEUE)
def advance_run(run_id: str, sent_at: str) -> None:
    """Walk a run if it is due; a message too many finds nothing to do."""
    advance_and_log(UUID(run_id), f"{_worker_id}:{sent_at}")


_worker_id = "unnamed"


class EmbeddedDispatcher:
    """django-tasks on the site's database: a hint commits and rolls back with the run's row."""

    def enqueue(self, run_id: UUID) -> None:
        advance_run.enqueue(str(run_id), timezone.now().isoformat())

    def work(self, worker_id: str, *, batch: bool = False) -> None:
        global _worker_id
        _worker_id = worker_id
        worker = Worker(
            queue_names=[QUEUE],
            interval=POLL_SECONDS,
            batch=batch,
            backend_name="default",
            startup_delay=False,
            max_tasks=None,
            worker_id=worker_id,
            excluded_queue_names=[],
        )
        worker.configure_signals()
        while worker.running:
            try:
                worker.run()
            except (OperationalError, InterfaceError) as error:
                logger.warning("The database can't be used (%s); trying again.", error)
                connection.close()
                time.sleep(DATABASE_RETRY_SECONDS)
            else:
                return

    def tidy(self) -> None:
        ours = DBTaskResult.objects.filter(queue_name=QUEUE)
        old = timezone.now() - KEEP_FINISHED
        ours.finished().filter(finished_at__lt=old).delete()
        # A worker that was killed leaves its message running for ever.
        ours.running().filter(started_at__lt=old).delete()
