"""Runs tools: replay, approval, the call itself, and its record."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

from . import redact
from .approval import (
    Answer,
    ApprovalDecision,
    ApprovalPort,
    ApprovalRequest,
    DeferredApproval,
    new_id,
)
from .errors import (
    ApprovalDenied,
    ApprovalPending,
    FlowError,
    Interrupted,
    as_adapter_error,
)
from .graph import Flow
from .guards import Counters, Guard, GuardedCall, Ledger
from .journal import Journal, ToolResult
from .tools import CallArguments, Tool

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Event:
    """Something that happened; ``data`` holds display trees and plain facts, never raw values."""

    kind: str
    run_id: str
    flow: str
    node: str = ""
    visit: str = ""
    tool: str = ""
    call_id: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


Listener = Callable[[Event], Awaitable[None] | None]
RunInThread = Callable[[Callable[[], Any]], Awaitable[Any]]


@dataclass
class Visit:
    """One execution of a node, as the executor needs to know it.

    ``id`` is its path: ``pay#2``, and inside a nested flow ``pay#2/0/check#1``. ``home`` is the
    executor of the run, whose store the runner settles with. ``pending`` are the requests that
    it waits for.
    """

    run_id: str
    flow: Flow
    node: str
    id: str
    journal: Journal
    home: Executor
    counters: Counters
    pending: list[ApprovalRequest] = field(default_factory=list)
    calls: set[asyncio.Task[Any]] = field(default_factory=set)

    async def drain(self) -> None:
        """Wait until every call that was begun has ended, also those the node no longer awaits.

        A call that runs has its effect whatever becomes of its caller (a thread can't be stopped),
        so its result belongs in the journal. Raises Interrupted where one of them was.
        """
        while self.calls:
            done, _ = await asyncio.wait(self.calls)
            self.calls -= done
            for task in done:
                if isinstance(error := task.exception(), Interrupted):
                    raise error


# The stores that open requests of this process were put into: a node may run tools on an executor
# of its own, whose store the runner doesn't know.
_stores: WeakValueDictionary[str, Any] = WeakValueDictionary()


class Executor:
    """Runs the calls of flows.

    ``approvals`` is the port that is asked for a person's yes. ``guards`` are shown each call
    that is about to run and ``ledger`` each that ran; replays touch neither. ``on_event`` is told
    what happens; what it raises interrupts the walk.
    ``in_thread`` runs plain functions off the event loop (default: ``asyncio.to_thread``).
    """

    def __init__(
        self,
        approvals: ApprovalPort | None = None,
        *,
        guards: Iterable[Guard] = (),
        ledger: Ledger | None = None,
        on_event: Listener | None = None,
        in_thread: RunInThread = asyncio.to_thread,
    ) -> None:
        self.approvals: ApprovalPort = approvals if approvals is not None else DeferredApproval()
        self.guards = list(guards)
        self.ledger = ledger
        self._on_event = on_event
        self._in_thread = in_thread

    async def call(
        self,
        visit: Visit,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        call_id: str | None = None,
    ) -> Any:
        """Run one call of a visit, or hand out its recorded result.

        ``call_id`` is given for a call whose id repeats on a re-run. Returns the tool's value;
        raises AdapterError (the tool failed), ApprovalDenied, ApprovalPending, or FlowError.
        Cancelling the caller does not cancel the call: it ends and is recorded.
        """
        task = asyncio.create_task(self._call(visit, tool, arguments, call_id))
        visit.calls.add(task)
        return await asyncio.shield(task)

    async def _call(
        self, visit: Visit, tool: Tool, arguments: Mapping[str, Any], call_id: str | None
    ) -> Any:
        journal = visit.journal
        checked = CallArguments.of(tool, arguments, journal.codec.encoder)
        entry = journal.replay(tool, checked)
        if entry is not None:
            await self.emit("call.replayed", visit, tool=tool.name, call_id=entry.call_id)
            return _unwrap(journal.result_of(entry, tool))
        order = journal.begin()
        answer = journal.answers.take(
            run_id=visit.run_id, tool=tool.name, passed=checked.passed, call_id=call_id
        )
        if answer is not None:
            await self._settle_own(visit, answer)
        values, answered_by = dict(checked.values), None
        repeats = call_id is not None
        call_id = call_id or new_id()
        if answer is None and tool.needs_confirmation(values):
            request = self._tool_request(visit, tool, checked, call_id, repeats=repeats)
            answer = (request, await self.ask(visit, request))
        if answer is not None:
            request, decision = answer
            if not decision.approved:
                raise denied(request, decision)
            values, answered_by = _approved_values(tool, request, decision, values), request.id
        return _unwrap(
            await self._run(visit, tool, checked, values, call_id, order, answered_by)
        )

    async def ask(self, visit: Visit, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the port. ApprovalPending notes the request in the visit's journal and leaves."""
        try:
            return await self.approvals.request(request)
        except ApprovalPending as pending:
            visit.pending.append(pending.request)
            if self.approvals.store is not None:
                _stores[pending.request.id] = self.approvals.store
            await self.emit(
                "approval.requested",
                visit,
                tool=request.tool,
                call_id=request.call_id,
                request=pending.request.id,
                summary=request.summary,
            )
            raise

    async def withdraw(self, visit: Visit, request: ApprovalRequest, reason: str) -> None:
        """Take back an open request that nobody needs to answer any more.

        A request whose port has no store can't be taken back; the log names it.
        """
        store = _stores.get(request.id, self.approvals.store)
        withdrawn = store is not None and await store.withdraw(request, reason)
        if store is None:
            logger.error(
                "The approval %s for %s can't be withdrawn, because its port has no store.",
                request.id,
                request.tool,
            )
        await self.emit(
            "approval.decided",
            visit,
            tool=request.tool,
            call_id=request.call_id,
            request=request.id,
            withdrawn=withdrawn,
            reason=reason,
        )

    async def _settle_own(self, visit: Visit, answer: Answer) -> None:
        """Spend an answer in this executor's store, where it is not the run's executor: the
        runner has not settled there. ApprovalAlreadyDecided denies the call."""
        store = self.approvals.store
        if self is visit.home or store is None or store is visit.home.approvals.store:
            return
        if answer[0].id in visit.journal.answers.new:
            await store.settle([answer], [])
        else:
            await store.settle([], [answer])

    async def run_function(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a plain function in a thread, or await an ``async`` one."""
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  a callable object may be async
        ):
            return await function(*args)
        context = copy_context()
        result = await self._in_thread(lambda: context.run(function, *args))
        return await result if inspect.isawaitable(result) else result

    async def emit(
        self, kind: str, visit: Visit | None, *, tool: str = "", call_id: str = "", **data: Any
    ) -> None:
        """Tell the listener; a listener that fails interrupts the walk (see ``Interrupted``)."""
        if self._on_event is None or visit is None:
            return
        event = Event(
            kind, visit.run_id, visit.flow.name, visit.node, visit.id, tool, call_id, data
        )
        try:
            told = self._on_event(event)
            if inspect.isawaitable(told):
                await told
        except Exception as error:
            raise Interrupted(f"The listener failed at {kind}: {error}") from error

    def _tool_request(
        self, visit: Visit, tool: Tool, checked: CallArguments, call_id: str, *, repeats: bool
    ) -> ApprovalRequest:
        values = checked.values
        summary = (
            redact.fill(tool.summary, values, annotations=tool.annotations)
            if tool.summary
            else f"Run {tool.name}"
        )
        return ApprovalRequest(
            id=new_id(),
            run_id=visit.run_id,
            flow=visit.flow.name,
            flow_version=visit.flow.version,
            node=visit.node,
            visit=visit.id,
            kind="tool",
            tool=tool.name,
            call_id=call_id,
            arguments=dict(values),
            passed=checked.passed,
            summary=summary,
            risk=tool.risk_of(values),
            repeats=repeats,
            reference=tool.reference,
            annotations=tool.annotations,
            policy=tool.policy,
            editable=tool.editable,
        )

    async def _run(
        self,
        visit: Visit,
        tool: Tool,
        checked: CallArguments,
        values: Mapping[str, Any],
        call_id: str,
        order: int,
        answered_by: str | None,
    ) -> ToolResult:
        for guard in self.guards:
            guard(GuardedCall(tool, values, visit.counters))
        names = {"tool": tool.name, "call_id": call_id}
        shown = {
            "t": "map",
            "items": [
                [name, redact.redact(value, annotation=tool.annotations.get(name), key=name)]
                for name, value in values.items()
            ],
        }
        await self.emit("call.started", visit, **names, arguments=shown)
        began = perf_counter()
        error = None
        try:
            if inspect.iscoroutinefunction(tool.fn):
                value = await tool.fn(**values)
            else:
                value = await self.run_function(lambda: tool.fn(**values))
            result = ToolResult(tool.name, call_id, values, value=value)
        except Exception as failure:
            error = as_adapter_error(failure)
            result = ToolResult(tool.name, call_id, values, error=error.info)
        seconds = perf_counter() - began
        if self.ledger is not None:
            self.ledger.record(tool, result, seconds)
        took = round(seconds * 1000)
        visit.journal.finish(tool, checked, result, order=order, answered_by=answered_by)
        if error is not None:
            text = redact.redact_text(str(error))
            await self.emit("call.failed", visit, **names, duration_ms=took, error=text)
            raise error
        node = redact.redact(result.value, annotation=tool.returns)
        await self.emit("call.finished", visit, **names, duration_ms=took, result=node)
        return result


def denied(request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDenied:
    """The error a node gets whose request was refused."""
    reason = f": {redact.line(decision.reason)}" if decision.reason else "."
    return ApprovalDenied(
        f"{decision.by} rejected {request.tool!r} in node {request.node!r}{reason}",
        request=request,
        decision=decision,
    )


def _approved_values(
    tool: Tool, request: ApprovalRequest, decision: ApprovalDecision, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments that run: what was shown, or what the reviewer made of it.

    Never the values of the re-run: a default made anew there is not what the reviewer saw.
    """
    if decision.arguments is not None:
        if not tool.editable:
            raise FlowError(
                f"The arguments of {tool.name} can't be edited; declare it @tool(editable=True) "
                "or approve it as it is.",
                code="invalid-answer",
            )
        return dict(CallArguments.of(tool, decision.arguments).values)
    return dict(values if request.arguments is None else request.arguments)


def _unwrap(result: ToolResult) -> Any:
    if result.error is not None:
        raise result.error.rebuild()
    return result.value
