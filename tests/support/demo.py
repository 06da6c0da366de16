"""A site with the demo's people, and questions about its database and its effects."""

from __future__ import annotations

import json
import sqlite3
from uuid import UUID

from tests.support.site import Site


def add_people(site: Site) -> None:
    """The demo's groups and example users, and its files; no runs."""
    site.shell(
        "import sys; from django.core.management.base import OutputWrapper\n"
        "from flowsite.demo.seed import seed; seed(OutputWrapper(sys.stdout), runs=False)"
    )


def password_of(user: str) -> str:
    """The password of an example user, as `manage.py demo` prints it."""
    return f"{user}-demo"


def start_expenses(site: Site, claim: str, *options: str) -> str:
    """Start a run that pays one claim; returns the run's id."""
    done = site.manage("start_run", "expenses", "--input", json.dumps({"claim": claim}), *options)
    return done.stdout.strip()


def status_of(site: Site, run_id: str) -> str:
    """The status of a run."""
    ((status,),) = site.rows("SELECT status FROM runs_run WHERE id = %s", UUID(run_id))
    return str(status)


def wait_for(site: Site, run_id: str, status: str) -> None:
    """Wait until a run has a status."""
    site.wait_until(
        lambda: status_of(site, run_id) == status,
        f"run {run_id} to be {status}",
        needs=[site.worker],
    )


def decisions(site: Site, run_id: str) -> list[tuple[str, str, str]]:
    """Who decided a run's requests, and when (to the second): person, verdict, moment."""
    rows = site.rows(
        "SELECT d.by_name, d.verdict, d.decided_at FROM approvals_decision d "
        "JOIN approvals_approvalrequest r ON r.id = d.request_id WHERE r.run_id = %s "
        "ORDER BY d.decided_at",
        UUID(run_id),
    )
    return [(by, verdict, str(at)[:19]) for by, verdict, at in rows]


def audit_trail(site: Site, run_id: str) -> list[tuple[str, str, str]]:
    """The audit entries of a run, oldest first: action, actor, moment (to the second)."""
    rows = site.rows(
        "SELECT action, actor_name, at FROM approvals_auditentry WHERE run_id = %s ORDER BY id",
        UUID(run_id),
    )
    return [(action, actor, str(at)[:19]) for action, actor, at in rows]


def open_request(site: Site, run_id: str) -> str:
    """The id of a run's one open request."""
    ((request,),) = site.rows(
        "SELECT id FROM approvals_approvalrequest WHERE run_id = %s AND status = 'pending'",
        UUID(run_id),
    )
    return str(UUID(str(request)))


def payments(site: Site, run_id: str) -> list[str]:
    """The claims that a run paid, as the ledger has them."""
    path = site.var / "demo" / "ledger.sqlite3"
    if not path.exists():
        return []
    with sqlite3.connect(path) as ledger:
        rows = ledger.execute("SELECT claim FROM payments WHERE run = ? ORDER BY 1", [run_id])
        return [claim for (claim,) in rows]
