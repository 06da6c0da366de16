"""``manage.py worker``: walks runs that are due, and sweeps."""

from __future__ import annotations

import logging
import os
import socket
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.utils.crypto import get_random_string

from runs import keycheck, ports, registry
from runs.sweep import sweep

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 10.0


class Command(BaseCommand):
    help = "Walk the runs that are due. SIGTERM or Ctrl-C lets the current walk end first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--batch", action="store_true", help="walk what is due now, then end (default: go on)"
        )

    def handle(self, *, batch: bool, **options: Any) -> None:
        try:
            problems = keycheck.problems()
        except DatabaseError as error:
            raise CommandError(
                f"The database can't be used: {error}\nCheck DATABASE_URL, and run manage.py "
                "migrate if this is a new database."
            ) from error
        if problems:
            raise CommandError("\n".join(problems))
        try:
            names = ", ".join(f"{flow.name} {flow.version}" for flow in registry.flows())
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        worker_id = f"{socket.gethostname()[:32]}-{os.getpid()}-{get_random_string(6)}"
        self.stdout.write(f"Worker {worker_id} is ready. Flows: {names or 'none'}.")
        stop = threading.Event()
        sweeper = threading.Thread(target=_sweep_until, args=(stop,), name="sweep")
        if not batch:
            sweeper.start()
        try:
            ports.dispatcher().work(worker_id, batch=batch)
        finally:
            stop.set()
            if sweeper.is_alive():
                sweeper.join()


def _sweep_until(stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            sweep()
        except DatabaseError as error:
            logger.warning("The sweep could not be made: %s", error)
        finally:
            connection.close()
        stop.wait(SWEEP_SECONDS)
