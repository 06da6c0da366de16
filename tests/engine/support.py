"""Small helpers for tests of the engine: flows of one node, runners in memory, answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from runs.engine import (
    END,
    START,
    ApprovalDecision,
    ApprovalRequest,
    DeferredApproval,
    Event,
    Executor,
    Flow,
    FlowError,
    FlowResult,
    FlowRunner,
    Gate,
    Human,
    MemoryStore,
)

KEY = b"a key of more than sixteen bytes"
ROOT = Path(__file__).parents[2]


class State(BaseModel):
    """A state with a field for everything that these tests put into one."""

    number: int = 0
    text: str = ""
    items: list[Any] = []
    value: Any = None


class World:
    """A runner with its store and its events."""

    def __init__(self, *, guards: Any = (), **options: Any) -> None:
        self.store = MemoryStore()
        self.events: list[Event] = []
        self.executor = Executor(
            DeferredApproval(self.store), guards=guards, on_event=self.events.append
        )
        self.runner = FlowRunner(self.executor, checkpoint_key=KEY, **options)

    def run(self, flow: Flow, state: BaseModel | None = None) -> FlowResult:
        return self.runner.run_sync(flow, State() if state is None else state)

    def resume(self, flow: Flow, result: FlowResult, *decisions: ApprovalDecision) -> FlowResult:
        """Resume from the text of the result's checkpoint, as another process would."""
        assert result.checkpoint is not None
        text = self.runner.dump_checkpoint(result.checkpoint)
        return self.runner.resume_sync(flow, self.runner.load_checkpoint(flow, text), *decisions)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


def flow_of(action: Any, *, state: type[BaseModel] = State, gate: Gate | None = None) -> Flow:
    """A flow whose only node is ``node``."""
    flow = Flow("flow", state=state)
    flow.node("node", action, gate=gate)
    flow.edge(START, "node")
    return flow


def side_by_side(*actions: Callable[..., Any]) -> Flow:
    """A flow that runs functions in one wave, each as the node of its own name."""
    flow = Flow("flow", state=State)
    for action in actions:
        flow.node(action.__name__, action)
        flow.edge(START, action.__name__)
    return flow


def question(human: Human, *, state: type[BaseModel] = State) -> Flow:
    """A flow whose only node is the question ``ask``."""
    flow = Flow("flow", state=state)
    flow.node("ask", human)
    flow.edge(START, "ask")
    flow.edge("ask", END, port="approved")
    flow.edge("ask", END, port="rejected")
    return flow


def approve(request: ApprovalRequest | None = None, **answer: Any) -> ApprovalDecision:
    request_id = request.id if request else None
    return ApprovalDecision.approve("reviewer", request_id=request_id, **answer)


def deny(request: ApprovalRequest | None = None, reason: str | None = None) -> ApprovalDecision:
    return ApprovalDecision.deny("reviewer", reason, request_id=request.id if request else None)


@contextmanager
def fails(code: str) -> Iterator[pytest.ExceptionInfo[FlowError]]:
    """The block must raise a FlowError with this code."""
    with pytest.raises(FlowError) as caught:
        yield caught
    assert caught.value.code == code, caught.value


def output_of(script: str, **environment: str) -> str:
    """What a script prints in a process of its own, which is ended where it hangs."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
