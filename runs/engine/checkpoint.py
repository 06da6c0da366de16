"""The checkpoint: where a run stands, sealed, and its text for any storage."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from . import canonical
from .approval import Answer, ApprovalDecision, ApprovalRequest
from .canonical import Json
from .description import changes_between
from .errors import FlowError
from .graph import Flow, loaded_flow
from .journal import Codec
from .seal import BrokenSeal, Sealed, Sealer
from .tools import loaded_tool
from .validation import annotations_of

_process_key = secrets.token_bytes(32)


@dataclass(frozen=True, repr=False)
class OpenVisit:
    """A visit that has not finished: due to run, or, with ``pending`` requests, suspended.

    ``state`` is the state the visit was begun with, and sees again on a re-run; None before that.
    ``journal`` is its journal as canonical data.
    """

    id: str
    node: str
    state: BaseModel | None = None
    journal: Json = None
    answers: tuple[Answer, ...] = ()
    pending: tuple[ApprovalRequest, ...] = ()


@dataclass(frozen=True, repr=False)
class Checkpoint:
    """Where a run stands. Every field is under the seal; a changed one is refused on resume.

    ``visits`` is the frontier, ``steps`` counts the visits begun so far, ``counts`` those of each
    node, ``joins`` says which sources of a join have arrived. ``counters`` are those of
    the guards. ``key`` and ``mac`` are the seal.
    """

    run_id: str
    flow: str
    version: str
    graph: Mapping[str, Any]
    state: BaseModel
    visits: tuple[OpenVisit, ...]
    steps: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    joins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    mac: str = ""

    @property
    def requests(self) -> list[ApprovalRequest]:
        """The open requests, in the order of the frontier."""
        return [request for visit in self.visits for request in visit.pending]

    def __repr__(self) -> str:
        return f"<checkpoint of {self.flow} run {self.run_id}, {len(self.visits)} open visits>"


class CheckpointSealer:
    """Seals checkpoints and reads them back; verifies before it decodes anything.

    ``key`` is bytes (16 or more), or a mapping of key ids to keys, newest first, whose first
    seals; without one a random key of this process is used, so that its checkpoints resume in
    this process only.
    """

    def __init__(self, key: bytes | Mapping[str, bytes] | None, codec: Codec) -> None:
        self._sealer = Sealer(
            key if isinstance(key, Mapping) else {"": _process_key if key is None else key}
        )
        self.codec = codec

    def seal(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint with its seal; NotSealable names the path of what can't be sealed."""
        sealed = self._sealer.seal(self._body(checkpoint))
        return replace(checkpoint, key=sealed.key, mac=sealed.mac)

    def dump(self, checkpoint: Checkpoint) -> str:
        """The sealed text. What could not be loaded again is refused (state-not-sealable)."""
        sealed = self._verified(checkpoint)
        parts: list[tuple[Any, list[Any]]] = [(checkpoint.state, [])]
        parts += [(visit.state, []) for visit in checkpoint.visits if visit.state is not None]
        parts += [(r.arguments, [*r.annotations.values()]) for r in checkpoint.requests]
        for part, named in parts:
            try:
                data = self.codec.encode(part, "part")
                self.codec.check(data, type(checkpoint.state), *named)
            except canonical.UnknownClass as error:
                raise _unknown_class(checkpoint.run_id, checkpoint.flow, error) from error
        return sealed.text

    def verified(self, flow: Flow, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint, with what its requests take from the flow's code (forms, policies)
        taken anew; FlowError (checkpoint-tampered, graph-changed) unless the flow can go on."""
        if not isinstance(checkpoint, Checkpoint):
            raise tampered(
                f"it is a {type(checkpoint).__name__}, and no Checkpoint; "
                "text is read by load_checkpoint"
            )
        self._verified(checkpoint)
        check_graph(flow, checkpoint.graph)
        visits = tuple(
            replace(
                visit,
                pending=tuple(replace(r, **_code_of(flow, vars(r))) for r in visit.pending),
            )
            for visit in checkpoint.visits
        )
        return replace(checkpoint, visits=visits)

    def load(self, flow: Flow, text: str) -> Checkpoint:
        """The checkpoint of a sealed text; seal and graph are checked before anything is built.

        Only classes that the annotations of the state and of the loaded tools reach are built.
        """
        try:
            sealed = self._sealer.open(text)
        except BrokenSeal as error:
            raise tampered(str(error)) from None
        data: Any = canonical.loads(sealed.body)
        graph = self.codec.decode(data["graph"])
        check_graph(flow, graph)
        try:
            for part in (data["state"], *(visit["state"] for visit in data["visits"])):
                self.codec.check(part, flow.state)
            return Checkpoint(
                run_id=data["run_id"],
                flow=data["flow"],
                version=data["version"],
                graph=graph,
                state=self.codec.decode(data["state"], flow.state),
                visits=tuple(self._visit(flow, visit) for visit in data["visits"]),
                steps=data["steps"],
                counts=data["counts"],
                joins={name: tuple(arrived) for name, arrived in data["joins"].items()},
                counters=self.codec.decode(data["counters"]),
                key=sealed.key,
                mac=sealed.mac,
            )
        except canonical.UnknownClass as error:
            raise _unknown_class(data["run_id"], flow.name, error) from error

    def _verified(self, checkpoint: Checkpoint) -> Sealed:
        try:
            sealed = Sealed(self._body(checkpoint), checkpoint.key, checkpoint.mac)
            self._sealer.verify(sealed)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            # Whatever was put into a checkpoint's fields, it is not what was sealed.
            raise tampered(str(error)) from None
        return sealed

    def _body(self, checkpoint: Checkpoint) -> str:
        encode = self.codec.encode
        return canonical.dumps(
            {
                "run_id": checkpoint.run_id,
                "flow": checkpoint.flow,
                "version": checkpoint.version,
                "graph": encode(checkpoint.graph, "graph"),
                "state": encode(checkpoint.state, "state"),
                "visits": [self._visit_as_data(visit) for visit in checkpoint.visits],
                "steps": checkpoint.steps,
                "counts": dict(checkpoint.counts),
                "joins": {name: list(arrived) for name, arrived in checkpoint.joins.items()},
                "counters": encode(dict(checkpoint.counters), "counters"),
            }
        )

    def _visit_as_data(self, visit: OpenVisit) -> Json:
        return {
            "id": visit.id,
            "node": visit.node,
            "state": self.codec.encode(visit.state, "state"),
            "journal": visit.journal,
            "answers": [
                [self._request_as_data(request), self.codec.encode(vars(decision), "decision")]
                for request, decision in visit.answers
            ],
            "pending": [self._request_as_data(request) for request in visit.pending],
        }

    def _visit(self, flow: Flow, data: Any) -> OpenVisit:
        return OpenVisit(
            id=data["id"],
            node=data["node"],
            state=self.codec.decode(data["state"], flow.state),
            journal=data["journal"],
            answers=tuple(
                self._answer(flow, request, decision) for request, decision in data["answers"]
            ),
            pending=tuple(self._request(flow, request) for request in data["pending"]),
        )

    def _answer(self, flow: Flow, request_data: Any, decision_data: Any) -> Answer:
        request = self._request(flow, request_data)
        form = request.form if isinstance(request.form, type) else None
        return request, ApprovalDecision(**self.codec.decode(decision_data, form))

    def _request_as_data(self, request: ApprovalRequest) -> Json:
        data: dict[str, Any] = {name: getattr(request, name) for name in _SEALED_OF_A_REQUEST}
        data["requested_at"] = self.codec.encode(request.requested_at, "request")
        data["arguments"] = request.sealed
        if request.arguments is not None:
            where = f"arguments of {request.tool}"
            data["arguments"] = self.codec.encode(request.arguments, where)
            if request.sealed not in (None, data["arguments"]):
                raise ValueError(f"the {where} are not those that were sealed")
        return data

    def _request(self, flow: Flow, data: Any) -> ApprovalRequest:
        facts = {name: data[name] for name in _SEALED_OF_A_REQUEST}
        facts["requested_at"] = self.codec.decode(data["requested_at"])
        facts["sealed"] = data["arguments"]
        facts |= _code_of(flow, data)
        try:
            arguments = self.codec.decode(
                data["arguments"], flow.state, *facts["annotations"].values()
            )
        except canonical.UnknownClass:
            arguments = None  # stays canonical data; the tool that takes it builds it
        return ApprovalRequest(arguments=arguments, **facts)


_SEALED_OF_A_REQUEST = (
    "id",
    "run_id",
    "flow",
    "flow_version",
    "node",
    "visit",
    "kind",
    "tool",
    "call_id",
    "passed",
    "summary",
    "risk",
    "repeats",
    "reference",
)


def _code_of(flow: Flow, request: Mapping[str, Any]) -> dict[str, Any]:
    """What a request takes from the code that asked: of the run's flow, of a loaded flow that is
    nested in it, or of a loaded tool."""
    code: dict[str, Any] = {"annotations": {}, "form": None, "policy": None, "editable": False}
    if request["kind"] == "tool":
        tool = loaded_tool(request["reference"])
        if tool is not None:
            code |= {"annotations": tool.annotations, "policy": tool.policy}
            code["editable"] = tool.editable
        return code
    name, version = request["flow"], request["flow_version"]
    asking = flow if (name, version) == (flow.name, flow.version) else loaded_flow(name, version)
    if asking is not None and request["node"] in asking.nodes:
        node = asking.nodes[request["node"]]
        asked: Any = node.gate if request["kind"] == "gate" else node.action
        code |= {"form": asked.form, "policy": asked.policy}
        if request["kind"] == "human":
            code["annotations"] = annotations_of(asking.state)
    return code


def tampered(why: str) -> FlowError:
    """The error for a checkpoint that can't be trusted."""
    return FlowError(
        f"The checkpoint is not as it was sealed: {why}. Nothing ran. Restore the checkpoint from "
        "a backup, or give the runner the key that sealed it.",
        code="checkpoint-tampered",
    )


def check_graph(flow: Flow, graph: Mapping[str, Any]) -> None:
    """FlowError (graph-changed), with the changes in words, unless the flow has this graph."""
    # By their text: 1, 1.0 and True are equal, and not the same.
    if canonical.dumps(canonical.encode(graph)) != canonical.dumps(canonical.encode(flow.graph())):
        changes = "; ".join(changes_between(graph, flow.graph()))
        raise FlowError(
            f"The graph of flow {flow.name!r} has changed since this run paused: {changes}. "
            "Nothing ran and the answer is not spent. Register the flow as it was under its old "
            "version, and resume with that.",
            code="graph-changed",
        )


def _unknown_class(run_id: str, flow: str, error: canonical.UnknownClass) -> FlowError:
    return FlowError(
        f"The checkpoint of run {run_id} holds the class {error.name}, which the state of flow "
        f"{flow!r} does not name. Annotate the field with it, or pass a seal_decoder that knows "
        "it.",
        code="state-not-sealable",
    )
