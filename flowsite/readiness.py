"""Whether the site can work, and the page that says it can't."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpResponse
from django.template.loader import render_to_string

from runs import keycheck, registry

RETRY_AFTER = 15  # seconds


def problems() -> list[str]:
    """What keeps the site from working, each in words that say what to do; empty if nothing."""
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        unapplied = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return ["The database can't be reached. Check DATABASE_URL and that the server is up."]
    if unapplied:
        return [f"{len(unapplied)} migrations are not applied. Run: manage.py migrate"]
    try:
        registry.flows()
    except ImproperlyConfigured as error:
        return [str(error)]
    return keycheck.problems()


def unavailable(reason: str) -> HttpResponse:
    """The 503 page; ``reason`` is ``database`` or ``keys``. Needs no database and no session."""
    page = render_to_string("errors/503.html", {"reason": reason})
    return HttpResponse(page, status=503, headers={"Retry-After": str(RETRY_AFTER)})
