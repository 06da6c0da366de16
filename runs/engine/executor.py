"""Runs tools: replay, approval, the call itself, and its record."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, cast
from weakref import WeakValueDictionary

from pydantic import SecretStr

from . import canonical, redact
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
from .journal import Entry, Journal, ToolResult
from .threads import Around, in_own_thread, in_pool, is_async
from .tools import CallArguments, Tool
from .validation import own_copy

logger = logging.getLogger(__name__)


# Events tell what happened in a line or two; the whole of a large result is in the journal.
EVENT_LIMITS = redact.Limits(max_text=500, max_items=20, max_depth=6, max_total=4_000)


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


@dataclass
class Visit:
    """One execution of a node, as the executor needs to know it.

    ``id`` is its path: ``pay#2``, and inside a nested flow ``pay#2/0/check#1``. ``home`` is the
    executor of the run, whose store the runner settles with. ``pending`` are the requests that
    it waits for, ``left`` those that it asked before this resume and has not asked again yet.
    """

    run_id: str
    flow: Flow
    node: str
    id: str
    journal: Journal
    home: Executor
    counters: Counters
    pending: list[ApprovalRequest] = field(default_factory=list)
    left: list[ApprovalRequest] = field(default_factory=list)
    begun: set[asyncio.Task[Any]] = field(default_factory=set)

    async def to_its_end(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await a call or a nested walk, which goes on to its end if the caller is cancelled.

        It has its effect whatever becomes of its caller (a thread can't be stopped), so its
        result belongs in the journal.
        """
        task = asyncio.create_task(work)
        self.begun.add(task)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait until all that was begun has ended, also what the node no longer awaits.

        Raises Interrupted where one of them was.
        """
        while self.begun:
            done, _ = await asyncio.wait(self.begun)
            self.begun -= done
            for task in done:
                if not task.cancelled() and isinstance(error := task.exception(), Interrupted):
                    raise error


# The ports of nodes' own executors that open requests of this process were put to; the runner
# knows only its own.
_ports: WeakValueDictionary[str, ApprovalPort] = WeakValueDictionary()


class Executor:
    """Runs the calls of flows.

    ``approvals`` is the port that is asked for a person's yes. ``guards`` are shown each call
    that is about to run and ``ledger`` each that ran; replays touch neither. ``on_event`` is told
    what happens; what it raises interrupts the walk.
    Plain functions run in threads; ``around_thread`` is called there with the function to run.
    """

    def __init__(
        self,
        approvals: ApprovalPort | None = None,
        *,
        guards: Iterable[Guard] = (),
        ledger: Ledger | None = None,
        on_event: Listener | None = None,
        around_thread: Around = lambda function: function(),
    ) -> None:
        self.approvals: ApprovalPort = approvals if approvals is not None else DeferredApproval()
        self.guards = list(guards)
        self.ledger = ledger
        self._on_event = on_event
        self._around = around_thread

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
        return await visit.to_its_end(self._call(visit, tool, arguments, call_id))

    async def _call(
        self, visit: Visit, tool: Tool, arguments: Mapping[str, Any], call_id: str | None
    ) -> Any:
        journal = visit.journal
        checked = CallArguments.of(tool, arguments, journal.codec.encoder)
        entry = journal.replay(tool, checked)
        if entry is not None:
            if entry.denied is not None:
                raise self._denied_again(visit, tool, checked, entry)
            return _unwrap(journal.result_of(entry, tool), tool, checked.values)
        order = journal.begin()
        answer = journal.answers.take(
            run_id=visit.run_id,
            reference=tool.reference,
            passed=checked.passed,
            call_id=call_id,
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
                journal.finish_denied(tool, checked, answer, order=order)
                raise denied(request, decision)
            values = _approved_values(journal, tool, request, decision, values)
            answered_by = request.id
        result = await self._run(visit, tool, checked, values, call_id, order, answered_by)
        return _unwrap(result, tool, values)

    async def ask(self, visit: Visit, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the port. ApprovalPending notes the request in the visit's journal and leaves."""
        try:
            return await self.approvals.request(request)
        except ApprovalPending as pending:
            visit.pending.append(pending.request)
            visit.left[:] = [r for r in visit.left if r.id != pending.request.id]
            if self is not visit.home:
                _ports[pending.request.id] = self.approvals
            await self.emit(
                "approval.requested",
                visit,
                tool=request.tool,
                call_id=request.call_id,
                request=pending.request.id,
                summary=request.summary,
            )
            raise

    async def withdraw(self, request: ApprovalRequest, reason: str) -> ApprovalDecision | None:
        """Take back an open request that nobody needs to answer any more, in the store that its
        port has; returns the decision that was on record already, if there was one.

        A request whose port has no store can't be taken back; the log names it.
        """
        store = _ports.get(request.id, self.approvals).store
        given = None
        if store is not None:
            given = await store.withdraw(request, reason)
        else:
            logger.error(
                "The approval %s for %s can't be withdrawn, because its port has no store.",
                request.id,
                request.tool,
            )
        await self._tell(
            Event(
                "approval.decided",
                request.run_id,
                request.flow,
                request.node,
                request.visit,
                request.tool,
                request.call_id,
                {
                    "request": request.id,
                    "withdrawn": store is not None and given is None,
                    "reason": reason,
                },
            )
        )
        return given

    def _denied_again(
        self, visit: Visit, tool: Tool, checked: CallArguments, entry: Entry
    ) -> ApprovalDenied:
        """The refusal of an earlier run of the node, as it was raised then."""
        by, reason = cast(tuple[str, str | None], entry.denied)
        request = self._tool_request(visit, tool, checked, entry.call_id, repeats=False)
        request = replace(request, id=entry.answered_by or request.id)
        return denied(request, ApprovalDecision.deny(by=by, reason=reason, request_id=request.id))

    async def _settle_own(self, visit: Visit, answer: Answer) -> None:
        """Spend an answer in this executor's store, where it is not the run's executor: the
        runner has not settled there. ApprovalAlreadyDecided denies the call."""
        store = self.approvals.store
        if self is visit.home or store is None or store is visit.home.approvals.store:
            return
        if answer[0].id in visit.journal.answers.new:
            await store.settle([answer], [], [])
        else:
            await store.settle([], [answer], [])

    async def run_function(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a plain function of the flow in a thread of its own, or await an ``async`` one."""
        if is_async(function):
            return await function(*args)
        result = await in_own_thread(lambda: function(*args), self._around)
        return await result if inspect.isawaitable(result) else result

    async def emit(
        self, kind: str, visit: Visit, *, tool: str = "", call_id: str = "", **data: Any
    ) -> None:
        """Tell the listener of something that happened in a visit."""
        await self._tell(
            Event(kind, visit.run_id, visit.flow.name, visit.node, visit.id, tool, call_id, data)
        )

    async def _tell(self, event: Event) -> None:
        """A listener that fails interrupts the walk (see ``Interrupted``)."""
        if self._on_event is None:
            return
        try:
            told = self._on_event(event)
            if inspect.isawaitable(told):
                await told
        except Exception as error:
            raise Interrupted(f"The listener failed at {event.kind}: {error}") from error

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
            about=tool.about,
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
            guard(GuardedCall(tool, own_copy(dict(values)), visit.counters))
        names = {"tool": tool.name, "call_id": call_id}
        if self._on_event is not None:
            shown = redact.redact_arguments(values, tool.annotations, limits=EVENT_LIMITS)
            await self.emit("call.started", visit, **names, arguments=shown)
        began = perf_counter()
        error = None
        given = own_copy(dict(values))
        try:
            if is_async(tool.fn):
                value = await tool.fn(**given)
            else:
                value = await in_pool(lambda: tool.fn(**given), self._around)
            result = ToolResult(tool.name, call_id, values, value=value)
        except BaseException as failure:  # what a tool raises of its own is its failure, all of it
            if is_a_stop(failure):
                raise
            error = as_adapter_error(failure)
            result = ToolResult(tool.name, call_id, values, error=error.info)
        seconds = perf_counter() - began
        if self.ledger is not None:
            self.ledger.record(tool, result, seconds)
        took = round(seconds * 1000)
        visit.journal.finish(tool, checked, result, order=order, answered_by=answered_by)
        if error is not None:
            error.__dict__["_shown"] = told = _without_secrets(error, tool, values)
            await self.emit("call.failed", visit, **names, duration_ms=took, error=told)
            raise error
        if self._on_event is not None:
            node = redact.redact(result.value, annotation=tool.returns, limits=EVENT_LIMITS)
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


def is_a_stop(error: BaseException) -> bool:
    """Whether an exception stops the walk itself, rather than a node or a tool raising it."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, Interrupted | KeyboardInterrupt)


def _approved_values(
    journal: Journal,
    tool: Tool,
    request: ApprovalRequest,
    decision: ApprovalDecision,
    values: Mapping[str, Any],
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
    if request.arguments is not None:
        return dict(request.arguments)
    if request.sealed is None:
        return dict(values)
    try:
        shown: dict[str, Any] = journal.codec.decode(request.sealed, *tool.annotations.values())
    except canonical.UnknownClass as error:
        raise FlowError(
            f"The approved arguments of {tool.name} hold the class {error.name}, which its "
            "annotations do not name; it did not run. Annotate the parameter with it.",
            code="state-not-sealable",
        ) from error
    return shown


def _unwrap(result: ToolResult, tool: Tool, values: Mapping[str, Any]) -> Any:
    if result.error is None:
        return result.value
    error = result.error.rebuild()
    error.__dict__["_shown"] = _without_secrets(error, tool, values)
    raise error


def _without_secrets(error: Exception, tool: Tool, values: Mapping[str, Any]) -> str:
    """The message of a tool's failure for people, also where it quotes a secret argument."""
    text = redact.redact_text(str(error))
    for name, value in values.items():
        raw = value.get_secret_value() if isinstance(value, SecretStr) else value
        shown = redact.redact(raw, annotation=tool.annotations.get(name), key=name)
        if shown["t"] == "hidden" and isinstance(raw, str) and len(raw) >= 3:
            text = text.replace(raw, f"[hidden: {name}]")
    return text
