"""What the tests of the specification share: the approvals they look into, tools that note what
ran, and short words for decisions and runners."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pytest
from pydantic import BaseModel, ConfigDict

from runs.engine import (
    END,
    START,
    ApprovalDecision,
    ApprovalPending,
    ApprovalRequest,
    ApprovalStore,
    DeferredApproval,
    Event,
    Executor,
    Flow,
    FlowRunner,
    Gate,
    MemoryStore,
    Tool,
    tool,
)

KEY = b"the key of the tests of the specification"


class State(BaseModel):
    """A state that may hold anything."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    amount: int = 0
    value: Any = None
    items: list[Any] = []
    results: list[Any] = []


@dataclass(frozen=True)
class Record:
    """What became of a request: the decision on record, and whether a run went on with it."""

    decision: ApprovalDecision | None
    consumed: bool


class Desk(Protocol):
    """An approval port with a store, and a view of its records.

    ``records_at_once`` says whether the store holds a request from when it is asked, and not only
    from the end of the walk.
    """

    port: DeferredApproval
    records_at_once: bool

    def another(self) -> Desk:
        """A desk with an empty store. Over a database it takes the place of this one."""

    def add(self, request: ApprovalRequest) -> None:
        """Put a pending record into the store."""

    def decide(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Put a decision on record without resuming anything."""

    def consume(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Decide and consume a record, as if a run had gone on with the decision."""

    def record(self, request: ApprovalRequest) -> Record | None:
        """The record of a request; None where this store does not hold it."""

    def pending(self) -> list[str]:
        """The ids of the records that wait for a decision."""


class MemoryDesk:
    """The desk over the store that a process keeps in memory."""

    records_at_once = True

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.port = DeferredApproval(self.store)

    def another(self) -> MemoryDesk:
        return MemoryDesk()

    def add(self, request: ApprovalRequest) -> None:
        asyncio.run(self.store.add(request))

    def decide(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        self.store.decide(request.id, decision)

    def consume(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        asyncio.run(self.store.settle([(request, decision)], [], []))

    def record(self, request: ApprovalRequest) -> Record | None:
        found = self.store._records.get(request.id)
        return None if found is None else Record(found.decision, found.consumed)

    def pending(self) -> list[str]:
        return [request.id for request in self.store.pending()]


def withdrawn(desk: Desk, request: ApprovalRequest, reason: str | None = None) -> bool:
    """Whether the request's record was denied and consumed, for this reason where one is given;
    or whether there is none, where the walk that asked it also took it back."""
    record = desk.record(request)
    if record is None:
        return not desk.records_at_once
    return (
        record.consumed
        and record.decision is not None
        and not record.decision.approved
        and reason in (None, record.decision.reason)
    )


class StorelessPort:
    """A port that keeps no records: it asks, and notes what it was asked."""

    store: ApprovalStore | None = None

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        raise ApprovalPending(request)


class DecidingPort:
    """A port that knows the answer to everything at once."""

    store: ApprovalStore | None = None

    def __init__(self, decision: ApprovalDecision) -> None:
        self.decision = decision

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        return replace(self.decision, request_id=request.id)


@dataclass
class Tools:
    """Tools that note in ``ran`` what they did; ``look`` asks nobody, the others ask a person."""

    ran: list[str] = field(default_factory=list)
    look: Tool = field(init=False)
    pay: Tool = field(init=False)
    refund: Tool = field(init=False)

    def __post_init__(self) -> None:
        ran = self.ran

        @tool
        def look(at: Any) -> str:
            ran.append(f"look {at}")
            return f"seen {at}, {len(ran)}"

        @tool(confirm=True)
        def pay(amount: int) -> str:
            ran.append(f"pay {amount}")
            return f"paid {amount}"

        @tool(confirm=True)
        def refund(amount: int) -> str:
            ran.append(f"refund {amount}")
            return f"refunded {amount}"

        self.look, self.pay, self.refund = look, pay, refund


class Runner(Protocol):
    """A FlowRunner whose results are taken as they come: a test that reads ``pending.tool`` where
    nothing is pending should fail, and need not ask first."""

    executor: Executor

    async def run(self, flow: Flow, state: BaseModel, *, run_id: str | None = None) -> Any: ...

    async def resume(self, flow: Flow, checkpoint: Any, *decisions: ApprovalDecision) -> Any: ...

    def run_sync(self, flow: Flow, state: BaseModel, *, run_id: str | None = None) -> Any: ...

    def resume_sync(self, flow: Flow, checkpoint: Any, *decisions: ApprovalDecision) -> Any: ...

    def dump_checkpoint(self, checkpoint: Any) -> str: ...

    def load_checkpoint(self, flow: Flow, text: str) -> Any: ...


def yes(request: ApprovalRequest | None = None, **more: Any) -> ApprovalDecision:
    """A reviewer's approval."""
    return ApprovalDecision.approve(
        "reviewer", request_id=None if request is None else request.id, **more
    )


def no(request: ApprovalRequest | None = None) -> ApprovalDecision:
    """A reviewer's rejection."""
    return ApprovalDecision.deny("reviewer", request_id=None if request is None else request.id)


def runner_on(
    approvals: Any,
    *,
    key: bytes | None = KEY,
    guards: Iterable[Callable[..., None]] = (),
    ledger: Any = None,
    events: list[Event] | None = None,
    **options: Any,
) -> Runner:
    """A runner whose executor asks this port."""
    executor = Executor(
        approvals=approvals,
        guards=guards,
        ledger=ledger,
        on_event=None if events is None else events.append,
    )
    runner = FlowRunner(executor, checkpoint_key=key, **options)
    around = getattr(approvals.store, "around", None)
    return runner if around is None else around(runner)


def memory_only(reason: str) -> pytest.MarkDecorator:
    """Marks a test of ``approvals`` that says nothing over the database, and why."""
    assert reason
    return pytest.mark.parametrize("approvals", ["memory"], indirect=True)


def one_node(
    action: Any, *, state: type[BaseModel] = State, gate: Gate | None = None, name: str = "work"
) -> Flow:
    """A flow of one node."""
    flow = Flow("shop", state=state)
    flow.node(name, action, gate=gate)
    flow.edge(START, name)
    flow.edge(name, END)
    return flow


def reload(runner: Runner, flow: Flow, checkpoint: Any) -> Any:
    """The checkpoint as another process gets it: dumped and loaded."""
    return runner.load_checkpoint(flow, runner.dump_checkpoint(checkpoint))


def sealed_field(runner: Runner, checkpoint: Any, name: str) -> Any:
    """The canonical form of the field ``name`` of the state, as the dumped text has it."""
    waiting: list[Any] = [json.loads(runner.dump_checkpoint(checkpoint))]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, dict):
            if name in part:
                return part[name]
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    raise AssertionError(f"the dumped text holds no field {name}")
