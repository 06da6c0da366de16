"""Where a run stands while it is walked: the state, the visits to make, the joins half met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from .approval import ApprovalRequest
from .checkpoint import Checkpoint, OpenVisit
from .errors import FlowError
from .executor import Executor
from .graph import Flow
from .journal import Journal
from .nodes import END, Edge
from .redact import redact_text
from .validation import faults_in_words, own_copy


@dataclass(frozen=True, repr=False)
class Finished:
    """A finished visit: the changes it makes to the state, and the port it leaves by."""

    visit: OpenVisit
    changes: Mapping[str, Any] = field(default_factory=dict)
    port: str | None = None


@dataclass(frozen=True, repr=False)
class Suspended:
    """A visit that waits for people: its journal, and the requests that are open."""

    journal: Journal
    pending: tuple[ApprovalRequest, ...]


class Frontier:
    """The position of a run, opened for walking; ``position()`` closes it again."""

    def __init__(self, flow: Flow, position: Checkpoint) -> None:
        self.flow = flow
        self.state = position.state
        self._position = position
        self._visits = {visit.id: visit for visit in position.visits}
        self._journals: dict[str, Journal] = {}
        self._steps = position.steps
        self._counts = dict(position.counts)
        self._joins = {name: list(arrived) for name, arrived in position.joins.items()}
        self._order = {name: place for place, name in enumerate(flow.nodes)}

    def due(self) -> list[OpenVisit]:
        """The next wave: every visit that waits for nobody, in the order of declaration."""
        return sorted(
            (visit for visit in self._visits.values() if not visit.pending),
            key=lambda visit: self._order[visit.node],
        )

    @property
    def suspended(self) -> list[OpenVisit]:
        return [visit for visit in self._visits.values() if visit.pending]

    def begin(self, wave: Sequence[OpenVisit]) -> list[OpenVisit]:
        """Give each new visit of a wave its own copy of the state."""
        begun = []
        for visit in wave:
            if visit.state is None:
                self._steps += 1
                visit = replace(visit, state=own_copy(self.state))
            begun.append(visit)
        return begun

    def suspend(self, visit: OpenVisit, outcome: Suspended) -> None:
        """A visit of the wave waits for people."""
        self._journals[visit.id] = outcome.journal
        self._visits[visit.id] = replace(visit, pending=outcome.pending)

    async def advance(self, finished: Sequence[Finished], executor: Executor) -> None:
        """Merge what the finished visits of a wave changed, and enter the nodes that follow."""
        self.state = self._merged(finished)
        targets: list[str] = []
        for outcome in finished:
            del self._visits[outcome.visit.id]
            targets.extend(await self._after(outcome, executor))
        self.enter(target for target in dict.fromkeys(targets) if target != END)

    def enter(self, nodes: Any) -> None:
        """Put new visits on the frontier."""
        for node in nodes:
            self._counts[node] = self._counts.get(node, 0) + 1
            visit = OpenVisit(id=f"{node}#{self._counts[node]}", node=node)
            self._visits[visit.id] = visit

    def position(self) -> Checkpoint:
        """The position as an unsealed checkpoint."""
        return replace(
            self._position,
            state=self.state,
            visits=tuple(self._closed(visit) for visit in self._visits.values()),
            steps=self._steps,
            counts=dict(self._counts),
            joins={name: tuple(arrived) for name, arrived in self._joins.items()},
            key="",
            mac="",
        )

    def _closed(self, visit: OpenVisit) -> OpenVisit:
        journal = self._journals.get(visit.id)
        return visit if journal is None else replace(visit, journal=journal.to_json())

    def _merged(self, finished: Sequence[Finished]) -> BaseModel:
        changes: dict[str, Any] = {}
        by: dict[str, str] = {}
        for outcome in finished:
            for name, value in outcome.changes.items():
                if name in changes and not _same(changes[name], value):
                    raise FlowError(
                        f"Nodes {by[name]!r} and {outcome.visit.node!r} run side by side and set "
                        f"the field {name!r} to different values. Let each set fields of its own.",
                        code="state-conflict",
                        node=outcome.visit.node,
                    )
                changes[name], by[name] = value, outcome.visit.node
        return _changed(self.flow, self.state, changes, by) if changes else self.state

    async def _after(self, outcome: Finished, executor: Executor) -> list[str]:
        node, targets, led_on = outcome.visit.node, [], False
        for edge in self.flow.edges:
            if node in edge.sources and edge.port == outcome.port:
                led_on = True
                if not edge.is_join or self._joined(edge, node):
                    targets.append(edge.target)
        route = self.flow.routes.get(node)
        if route is not None and outcome.port is None:
            try:
                label = await executor.run_function(route.choose, own_copy(self.state))
            except Exception as error:
                told = redact_text(f"{type(error).__name__}: {error}")
                raise FlowError(
                    f"The route after {node!r} failed with {told}", code="node-failed", node=node
                ) from error
            if not isinstance(label, str) or label not in route.targets:
                raise FlowError(
                    f"The route after {node!r} chose {label!r}, which is none of its labels: "
                    f"{', '.join(map(repr, route.targets))}.",
                    code="node-failed",
                    node=node,
                )
            return [*targets, route.targets[label]]
        if not led_on and outcome.port is not None:
            raise FlowError(
                f"Node {node!r} left by the port {outcome.port!r}, which no edge leaves by.",
                code="node-failed",
                node=node,
            )
        return targets

    def _joined(self, edge: Edge, node: str) -> bool:
        """Note that a source of a join has arrived; True once, when all of them have."""
        name = f"{','.join(edge.sources)}>{edge.target}"
        arrived = self._joins.setdefault(name, [])
        if node not in arrived:
            arrived.append(node)
        if set(arrived) != set(edge.sources):
            return False
        del self._joins[name]
        return True


def _same(one: Any, other: Any) -> bool:
    """Equal and of one type; values whose comparison fails are different."""
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False


def _changed(
    flow: Flow, state: BaseModel, changes: Mapping[str, Any], by: Mapping[str, str]
) -> BaseModel:
    """The state with changes, checked by its model; FlowError (node-failed) names the field."""
    fields = type(state).model_fields
    for name in changes:
        if name not in fields and type(state).model_config.get("extra") != "allow":
            raise FlowError(
                f"Node {by[name]!r} changes {name!r}, which is no field of {flow.state.__name__}.",
                code="node-failed",
                node=by[name],
            )
    values = dict(state) | dict(changes)
    try:
        changed = type(state).model_validate(values, by_alias=False, by_name=True)
    except ValidationError as error:
        places = [str(fault["loc"][0]) for fault in error.errors() if fault["loc"]]
        node = next((by[place] for place in places if place in by), next(iter(by.values())))
        raise FlowError(
            f"Node {node!r} gave the state values that its model refuses: "
            f"{faults_in_words(error, 'state')}",
            code="node-failed",
            node=node,
        ) from None
    # What was never set stays so: journals leave unset fields out.
    changed.__pydantic_fields_set__.intersection_update(state.model_fields_set | changes.keys())
    return changed
