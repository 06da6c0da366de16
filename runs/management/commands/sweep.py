"""``manage.py sweep``: the sweep that workers make by themselves, once and by hand."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from runs.sweep import sweep


class Command(BaseCommand):
    help = "Find runs that are due though nobody works on them, and queue them again."

    def handle(self, **options: Any) -> None:
        found = sweep()
        self.stdout.write(
            f"Queued again: {found['queued']} whose message was lost or late, "
            f"{found['abandoned']} whose worker stopped, {found['decided']} that were decided, "
            f"{found['registered']} whose flow is there again."
        )
