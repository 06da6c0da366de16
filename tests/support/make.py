"""Makes what tests of runs and approvals need: people, runs, requests, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import Model
from django_tasks_db.models import DBTaskResult

from approvals.actions import decide
from approvals.models import ApprovalRequest, AuditEntry, Decision
from runs.actions import start_run
from runs.models import Run, RunEvent
from runs.work import advance

VIEW, DECIDE = "approvals.view_approvalrequest", "approvals.decide_approvalrequest"
START = "runs.start_run"


def person(name: str, *rights: str) -> User:
    """A user with these rights (``app.codename``), read back so that nothing is cached."""
    user = User.objects.create_user(name)
    for right in rights:
        app, codename = right.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return User.objects.get(pk=user.pk)


def reviewer(name: str = "reviewer") -> User:
    """Somebody who may see all requests and decide those of others."""
    return person(name, VIEW, DECIDE)


def started(flow: str, *, by: User | None = None, **input: Any) -> Run:
    """A run that no worker has seen yet."""
    return start_run(flow, input, by=by, via="test")


def paused(flow: str, *, by: User | None = None, **input: Any) -> Run:
    """A run that a worker has walked to its first requests."""
    run = walk(started(flow, by=by, **input))
    assert run.status == Run.Status.PAUSED, run.error_message
    return run


def walk(run: Run) -> Run:
    """Let a new worker take the run if it is due; the run as it is then."""
    advance(run.pk, f"worker-{uuid4().hex[:8]}")
    return again(run)


def again(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def pending(run: Run) -> list[ApprovalRequest]:
    """The open requests of a run, by their summaries."""
    return list(run.requests.filter(status="pending").order_by("summary"))


def only_request(run: Run) -> ApprovalRequest:
    (request,) = pending(run)
    return request


def request_of(flow: str, *, by: User | None = None, **input: Any) -> ApprovalRequest:
    """The only request of a new run of the flow."""
    return only_request(paused(flow, by=by, **input))


def approve(request: ApprovalRequest, *, by: User | None = None, **more: Any) -> Decision:
    user = by or someone_new()
    return decide(request.pk, by=user, verdict="approve", digest=request.digest, **more)


def reject(request: ApprovalRequest, *, by: User | None = None, reason: str = "No.") -> Decision:
    return decide(
        request.pk,
        by=by or someone_new(),
        verdict="reject",
        digest=request.digest,
        reason=reason,
    )


def someone_new() -> User:
    return reviewer(f"reviewer-{uuid4().hex[:8]}")


def hints(run: Run) -> int:
    """How many messages about a run the queue holds that no worker has taken."""
    waiting = DBTaskResult.objects.filter(status="READY").values_list("args_kwargs", flat=True)
    return sum(message["args"][0] == str(run.pk) for message in waiting)


def set_aside(model: Model, **values: Any) -> None:
    """Change a row behind the application's back, as somebody with the database would."""
    type(model)._base_manager.filter(pk=model.pk).update(**values)


def everything() -> dict[str, list[Any]]:
    """All rows about runs and approvals, and the queue, to compare before and after."""
    models = (Run, RunEvent, ApprovalRequest, Decision, AuditEntry, DBTaskResult)
    rows: dict[str, list[Any]] = {}
    for model in models:
        manager: Any = model._base_manager
        rows[model.__name__] = list(manager.order_by("pk").values())
    return rows


def together(count: int, act: Callable[[int], Any]) -> list[Any]:
    """Call ``act(number)`` in as many threads, released at one instant; what came of each."""
    outcomes: list[Any] = [None] * count
    barrier = threading.Barrier(count, timeout=60)

    def one(number: int) -> None:
        try:
            connection.ensure_connection()
            barrier.wait()
            outcomes[number] = act(number)
        except Exception as error:
            outcomes[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
