"""Pauses or resumes a run of ``flows`` in a process of its own.

    python -m tests.spec.other_process '{"do": "resume", "flow": "paying", ...}'

Prints one line of JSON. The functions at the end are what tests call.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from runs.engine import DeferredApproval, FlowError

from . import flows
from .file_store import FileStore
from .support import State, StorelessPort, reload, runner_on, yes

ROOT = Path(__file__).resolve().parents[2]


def main(task: dict[str, Any]) -> dict[str, Any]:
    """Do one task; FlowErrors are told as what they are."""
    store = task.get("store")
    port: Any = StorelessPort() if store is None else DeferredApproval(FileStore(Path(store)))
    key = task["key"]
    runner = runner_on(port, key=None if key is None else key.encode())
    flow = getattr(flows, task["flow"])()
    checkpoint_file = Path(task["checkpoint"])
    if task["do"] == "pause":
        paused = runner.run_sync(flow, State(amount=task["amount"]))
        reload(runner, flow, paused.checkpoint)  # it can be read in the process that made it
        checkpoint_file.write_text(runner.dump_checkpoint(paused.checkpoint), encoding="ascii")
        checkpoint_file.with_suffix(".pickle").write_bytes(pickle.dumps(paused))
        return {"status": paused.status, "spent": flows.spent}
    try:
        if task["do"] == "resume pickle":
            data = checkpoint_file.with_suffix(".pickle").read_bytes()
            checkpoint = pickle.loads(data).checkpoint  # noqa: S301  our own
        else:
            checkpoint = runner.load_checkpoint(flow, checkpoint_file.read_text(encoding="ascii"))
        result = runner.resume_sync(flow, checkpoint, yes())
    except FlowError as error:
        return {"refused": error.code, "spent": flows.spent}
    return {"status": result.status, "results": result.state.results, "spent": flows.spent}


def start(**task: Any) -> subprocess.Popen[str]:
    """Start a task; ``result_of`` waits for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spec.other_process", json.dumps(task, default=str)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What a started task came to."""
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    told: dict[str, Any] = json.loads(output)
    return told


def elsewhere(**task: Any) -> dict[str, Any]:
    """Do a task in another process and wait for it."""
    return result_of(start(**task))


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
