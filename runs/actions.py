"""The verbs of runs: each checks, writes state, event and audit entry, and wakes, in one
transaction."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from runs.engine import Executor, FlowError
from runs.engine.redact import redact_arguments
from runs.engine.validation import annotations_of

from . import forms, ports
from .events import record
from .models import Run
from .position import make_runner, store_checkpoint
from .registry import get_flow

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pydantic import BaseModel


class InvalidInput(ValueError):
    """The input is not a state that the flow takes.

    ``errors`` are messages by field name, those about the whole under ``""``.
    """

    def __init__(self, errors: Mapping[str, list[str]]) -> None:
        self.errors = errors
        super().__init__(
            "; ".join(
                f"{field}: {message}" if field else message
                for field, messages in errors.items()
                for message in messages
            )
        )


class NotStandingStill(Exception):
    """The run can't be tried again as it is; the message says why."""


def start_run(
    flow_name: str,
    input: Any,
    *,
    by: User | None,
    via: str = "page",
    version: str | None = None,
) -> Run:
    """Start a run of a flow with the given input (JSON-able data for its state).

    The run, its first checkpoint, event and audit entry, and the worker's hint are written in one
    transaction. ``by`` is who starts it, with the right ``runs.start_run``; None for the command
    line, whose user has the database anyway. Raises UnknownFlow, PermissionDenied, InvalidInput.
    """
    flow = get_flow(flow_name, version)
    if by is not None and not (by.is_active and by.has_perm("runs.start_run")):
        raise PermissionDenied("You don't have the right to start runs.")
    try:
        state, errors = forms.check(flow.state, input)
    except forms.FormSchemaError as error:
        raise InvalidInput({"": [f"{flow.name} can't be started here: {error}"]}) from error
    errors |= {name: ["There is no such field."] for name in _unknown(flow.state, input)}
    if errors:
        raise InvalidInput(errors)
    run = Run(
        id=uuid.uuid4(),
        flow=flow.name,
        version=flow.version,
        graph=flow.digest,
        started_by=by,
        via=via,
        input_shown=_as_given(state),
        queued_at=timezone.now(),
    )
    runner = make_runner(Executor())
    try:
        store_checkpoint(run, runner, runner.begin(flow, state, run_id=str(run.pk)))
    except FlowError as error:
        raise InvalidInput({"": [str(error)]}) from error
    with transaction.atomic():
        run.save(force_insert=True)
        record(run.pk, "run.started", data={"by": run.requester, "via": via})
        ports.approvals().audit(
            "run.started",
            actor=by,
            actor_name=run.requester,
            run=run,
            summary=f"Started {flow.name}, version {flow.version}",
            data={"via": via, "input": run.input_shown},
        )
        ports.dispatcher().enqueue(run.pk)
    return run


def _unknown(state: type[BaseModel], input: Any) -> list[str]:
    """The names in the input that the state would silently drop."""
    if not isinstance(input, dict) or state.model_config.get("extra") == "allow":
        return []
    properties = forms.schema_of(state).get("properties", {})
    return [str(name) for name in input if name not in properties]


def _as_given(state: BaseModel) -> dict[str, Any]:
    """The display tree of the fields that are asked for at the start; the others (``readOnly``)
    are the run's to fill in."""
    properties = forms.schema_of(type(state)).get("properties", {})
    values = {name: value for name, value in state if not properties.get(name, {}).get("readOnly")}
    return redact_arguments(values, annotations_of(type(state)))


def try_again(run_id: uuid.UUID, *, by: User) -> Run:
    """Queue a run again that stands still for a reason which has been mended.

    Only where nothing of its last walk ran and no decision was spent (``Run.can_try_again``); the
    worker looks at everything anew. ``by`` has the right ``runs.start_run``. Raises
    Run.DoesNotExist, PermissionDenied, and NotStandingStill with nothing changed.
    """
    with transaction.atomic():
        run = lock_run(Run.objects.visible_to(by).values_list("pk").get(pk=run_id)[0])
        if not by.has_perm("runs.start_run"):
            raise PermissionDenied("You don't have the right to start runs.")
        if not run.can_try_again:
            raise NotStandingStill(f"This run is {run.status}; there is nothing to try again.")
        queue_run(run)
        record(run.pk, "run.tried_again", data={"by": by.get_username()})
        ports.approvals().audit(
            "run.tried_again",
            actor=by,
            actor_name=by.get_username(),
            run=run,
            summary=f"Tried {run.flow} again after {run.error_code}",
            data={"code": run.error_code},
        )
    return run


def lock_run(run_id: uuid.UUID) -> Run:
    """The run's row, locked until the caller's transaction ends.

    Whoever locks a run and its requests locks the run first, so that nobody waits in a circle.
    """
    return Run.objects.select_for_update().get(pk=run_id)


def wake_run(run: Run, event: str, *, node: str, data: Mapping[str, Any]) -> None:
    """Something that the run waits for has come: note it, and queue the run if it is paused.

    ``run`` is locked by the caller, in whose transaction this happens. A run that is being walked
    looks for news itself before it pauses.
    """
    if run.status == Run.Status.PAUSED:
        queue_run(run)
    record(run.pk, event, node=node, data=data)


def queue_run(run: Run) -> None:
    """Make a run due and send the hint, within the caller's transaction."""
    run.status, run.queued_at = Run.Status.QUEUED, timezone.now()
    run.save(update_fields=["status", "queued_at", "changed_at"])
    ports.dispatcher().enqueue(run.pk)
