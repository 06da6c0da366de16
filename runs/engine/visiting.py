"""Makes one visit of a node: its gate, its action, and what becomes of a pause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from . import canonical, redact
from .answers import answer_value
from .approval import Answer, ApprovalDecision, ApprovalRequest, Kind, new_id
from .checkpoint import OpenVisit
from .context import Context, RunNested
from .errors import ApprovalDenied, ApprovalPending, FlowError, message_shown
from .executor import Executor, Visit, denied, is_a_stop
from .frontier import Finished, Suspended
from .graph import Flow
from .mapping import run_map
from .nodes import APPROVED, REJECTED, Call, Gate, Go, Human, Map, Node
from .validation import annotations_of, own_copy


class NodeRunner:
    """Makes one visit of a node."""

    def __init__(self, flow: Flow, executor: Executor, now: Visit, run_nested: RunNested) -> None:
        self._flow = flow
        self._executor = executor
        self._now = now
        self._run_nested = run_nested

    async def visit(self, visit: OpenVisit) -> Finished | Suspended:
        """Run a visit to its end, or to its next pause.

        Raises FlowError, its cause being an exception of the node's own. A visit that fails has
        no open request left.
        """
        node, now = self._flow.nodes[visit.node], self._now
        resuming = bool(visit.answers or visit.journal)
        await self._emit("node.resumed" if resuming else "node.started")
        try:
            try:
                outcome = await self._act(node, visit)
            finally:
                await now.drain()
            if now.pending:  # a node that swallows its pause is paused all the same
                raise ApprovalPending(now.pending[0])
        except ApprovalPending:
            return await self._suspended(node.name)
        except FlowError as error:
            await self._failed(error.code, str(error))
            error.node = error.node or node.name
            raise
        except BaseException as error:  # what a node raises of its own is its failure, all of it
            if is_a_stop(error):
                raise
            if now.pending and _only_pauses(error):
                return await self._suspended(node.name)
            told = f"{type(error).__name__}: {message_shown(error)}"
            await self._failed("node-failed", told)
            raise FlowError(
                f"Node {node.name!r} failed with {told}", code="node-failed", node=node.name
            ) from error
        for entry in now.journal.left_over():
            name = entry.tool.rpartition(":")[2].rpartition(".")[2]
            await self._emit("call.left_over", tool=name, call_id=entry.call_id)
        await self._emit("node.finished", port=outcome.port or "")
        return outcome

    async def _emit(self, kind: str, **data: Any) -> None:
        await self._executor.emit(kind, self._now, **data)

    async def _act(self, node: Node, visit: OpenVisit) -> Finished:
        assert visit.state is not None  # noqa: S101  a visit is begun before it is made
        # A copy for this run of the node: what it changes in place, no checkpoint and no re-run
        # sees.
        state = own_copy(visit.state)
        answer = None
        if node.gate is not None:
            request, decision = await self._gate(node, node.gate, state)
            if not decision.approved:
                return self._refused(node, visit, request, decision)
            answer = answer_value(node.gate.form, decision)
        if isinstance(node.action, Human):
            return await self._question(node, node.action, visit, state)
        if isinstance(node.action, Call):
            return await self._call(node, node.action, visit, state)
        if isinstance(node.action, Map):
            return await self._map(node.action, visit, state, answer)
        returned = await self._function(node.action, state, self._now, answer)
        return _finished(node, visit, returned)

    async def _function(
        self, function: Callable[..., Any], argument: Any, now: Visit, answer: Any, *more: Any
    ) -> Any:
        context = Context(self._executor, now, self._run_nested, answer)
        try:
            return await self._executor.run_function(function, argument, *more, context)
        finally:
            context.close()

    async def _map(self, action: Map, visit: OpenVisit, state: BaseModel, answer: Any) -> Finished:
        items = list(await self._executor.run_function(action.over, own_copy(state)))

        async def run_item(item: Any, now: Visit) -> Any:
            if action.tool is not None:
                call_id = f"{now.run_id}:{now.id}"
                return await self._executor.call(now, action.tool, item, call_id=call_id)
            assert action.fn is not None  # noqa: S101  the graph was checked
            return await self._function(action.fn, own_copy(item), now, answer, own_copy(state))

        values = await run_map(action, items, self._now, run_item, state)
        return Finished(visit, {action.into: values})

    async def _gate(self, node: Node, gate: Gate, state: BaseModel) -> Answer:
        answer = self._now.journal.answers.take_for_node(self._call_id("gate"))
        if answer is not None:
            return answer
        payload: Any = {}
        if gate.payload is not None:
            payload = await self._executor.run_function(gate.payload, own_copy(state))
        if not isinstance(payload, Mapping) or not all(isinstance(name, str) for name in payload):
            raise FlowError(
                f"The payload of the gate of {node.name!r} is a {type(payload).__name__}; it is a "
                "mapping of names (text) to the values that the reviewer sees.",
                code="node-failed",
                node=node.name,
            )
        message = gate.message or f"Go on with {node.name}"
        return await self._ask(node, "gate", gate, state, message, payload, {})

    async def _question(
        self, node: Node, human: Human, visit: OpenVisit, state: BaseModel
    ) -> Finished:
        answer = self._now.journal.answers.take_for_node(self._call_id("human"))
        if answer is None:
            hints = annotations_of(type(state))
            values = {name: getattr(state, name) for name in human.fields}
            answer = await self._ask(node, "human", human, state, human.message, values, hints)
        _, decision = answer
        if not decision.approved:
            return Finished(visit, port=REJECTED)
        content = answer_value(human.form, decision)
        return Finished(visit, {human.into: content} if human.into else {}, APPROVED)

    async def _ask(
        self,
        node: Node,
        kind: Kind,
        asked: Gate | Human,
        state: BaseModel,
        message: str,
        values: Mapping[str, Any],
        annotations: Mapping[str, Any],
    ) -> Answer:
        """Ask the node's own question, once it is known that the run could pause here."""
        now, codec = self._now, self._now.journal.codec
        values = own_copy(dict(values))
        try:
            codec.encode(state, "state")
            passed = canonical.dumps(codec.encode(values, "payload"))
        except canonical.NotSealable as error:
            raise FlowError(
                f"Node {node.name!r} can't pause, and nobody was asked. {error}",
                code="state-not-sealable",
                node=node.name,
            ) from error
        request = ApprovalRequest(
            id=new_id(),
            run_id=now.run_id,
            flow=self._flow.name,
            flow_version=self._flow.version,
            node=node.name,
            visit=now.id,
            kind=kind,
            tool=f"node:{self._flow.name}.{node.name}",
            call_id=self._call_id(kind),
            arguments=values,
            passed=passed,
            summary=redact.fill(message, values, annotations=annotations),
            risk=asked.risk,
            repeats=True,
            annotations=annotations,
            form=asked.form,
            policy=asked.policy,
        )
        return request, await self._executor.ask(now, request)

    def _call_id(self, kind: Kind) -> str:
        """The id of the node's own question: the same on a re-run, so that it is found again."""
        return f"{self._now.run_id}:{self._now.id}:{kind}"

    async def _call(self, node: Node, call: Call, visit: OpenVisit, state: BaseModel) -> Finished:
        arguments = dict(call.args)
        if call.select is not None:
            arguments |= await self._executor.run_function(call.select, own_copy(state))
        try:
            value = await self._executor.call(
                self._now, call.tool, arguments, call_id=f"{self._now.run_id}:{self._now.id}"
            )
        except ApprovalDenied as refusal:
            return self._refused(node, visit, refusal.request, refusal.decision)
        return Finished(visit, {call.into: value} if call.into else {})

    def _refused(
        self, node: Node, visit: OpenVisit, request: ApprovalRequest, decision: ApprovalDecision
    ) -> Finished:
        """The way on after a refusal, where an edge leaves by the port ``rejected``."""
        if any(node.name in e.sources and e.port == REJECTED for e in self._flow.edges):
            return Finished(visit, port=REJECTED)
        raise denied(request, decision)

    async def _suspended(self, node: str) -> Suspended:
        journal, pending = self._now.journal, tuple(self._now.pending)
        try:
            journal.raise_if_unsealable(node)
        except FlowError as error:
            await self._failed(error.code, str(error))
            raise
        await self._emit("node.suspended", requests=[request.id for request in pending])
        return Suspended(journal, pending)

    async def _failed(self, code: str, message: str) -> None:
        """Take back what this visit asks for: nobody needs to answer it any more."""
        for request in self._now.pending:
            await self._executor.withdraw(request, code)
        await self._emit("node.failed", code=code, error=message)


def _only_pauses(error: BaseException) -> bool:
    """Whether a group of exceptions (of a TaskGroup) holds nothing but pauses."""
    return isinstance(error, BaseExceptionGroup) and error.split(ApprovalPending)[1] is None


def _finished(node: Node, visit: OpenVisit, returned: Any) -> Finished:
    port = None
    if isinstance(returned, Go):
        port, returned = returned.port, returned.changes
    if returned is None:
        return Finished(visit, {}, port)
    if not isinstance(returned, Mapping):
        raise FlowError(
            f"Node {node.name!r} returned a {type(returned).__name__}; it returns a dict of state "
            "changes, None, or Go(port, changes).",
            code="node-failed",
            node=node.name,
        )
    return Finished(visit, dict(returned), port)
