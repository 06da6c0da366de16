"""A run's checkpoint in its row: sealed by the engine, encrypted for the column."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone

from runs.engine import Checkpoint, Executor, Flow, FlowError, FlowRunner

from .keys import KeyRing
from .models import Run
from .storage import Unreadable, decrypt, encrypt

_COLUMN = "runs.Run.checkpoint"


def make_runner(executor: Executor) -> FlowRunner:
    """A runner with the site's checkpoint keys."""
    ring: KeyRing = settings.FLOWSITE_KEYS
    return FlowRunner(executor, checkpoint_key=ring.derived("checkpoint-seal"))


def store_checkpoint(run: Run, runner: FlowRunner, checkpoint: Checkpoint) -> None:
    """Put a checkpoint into the row (unsaved)."""
    run.checkpoint = encrypt(runner.dump_checkpoint(checkpoint), column=_COLUMN, row=run.pk)
    run.checkpoint_at = timezone.now()


def load_checkpoint(run: Run, runner: FlowRunner, flow: Flow) -> Checkpoint:
    """The checkpoint in the row; FlowError (checkpoint-tampered, graph-changed) where the run
    can't go on from it. Nothing is built from it before it is verified."""
    try:
        text = decrypt(run.checkpoint, column=_COLUMN, row=run.pk)
    except Unreadable as error:
        raise FlowError(
            f"The stored checkpoint of run {run.pk} can't be trusted: {error}. Nothing ran, and "
            "decisions are kept. Restore the checkpoint from a backup, or put back the key that "
            "sealed it.",
            code="checkpoint-tampered",
        ) from error
    return runner.load_checkpoint(flow, text)
