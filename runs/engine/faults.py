"""What keeps a graph from running, all of it together, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import canonical
from .nodes import APPROVED, END, REJECTED, START, Call, Gate, Human, Map, Node
from .schemas import FormSchemaError, is_model, schema_of

if TYPE_CHECKING:
    from .graph import Flow

MAX_NAME = 150  # characters of a flow's or node's name: what stores and pages have room for


def faults_of(flow: Flow) -> list[str]:
    """The faults of a graph; empty where it can run."""
    faults: list[str] = []
    known = set(flow.nodes)
    ways = [(source, edge.target) for edge in flow.edges for source in edge.sources]
    for route in flow.routes.values():
        ways += [(route.source, target) for target in route.targets.values()]
    for source, target in dict.fromkeys(ways):
        if source not in known | {START}:
            faults.append(f"an edge leaves from {source!r}, which is no node")
        if target not in known | {END}:
            faults.append(f"an edge leads to {target!r}, which is no node")
    faults += [
        f"the name of node {name[:40]!r}... has more than {MAX_NAME} characters"
        for name in (flow.name, *flow.nodes)
        if len(name) > MAX_NAME
    ]
    if START in flow.routes:
        faults.append("a route leaves from START; a run begins with edges")
    for edge in flow.edges:
        if START in edge.sources and (edge.is_join or edge.port):
            faults.append("an edge from START has neither a port nor further sources")
        if not edge.sources:
            faults.append(f"an edge to {edge.target!r} has no source")
    if not flow.starts():
        faults.append("no edge leads from START to a node")
    faults.extend(_unreachable(flow, ways))
    for node in flow.nodes.values():
        faults.extend(_port_faults(flow, node))
        faults.extend(_field_faults(flow, node))
        faults.extend(_map_faults(node))
        faults.extend(_form_faults(node))
    return faults


def _unreachable(flow: Flow, ways: list[tuple[str, str]]) -> list[str]:
    reached, waiting = set(), [START]
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting.extend(target for source, target in ways if source == here)
    lost = [name for name in flow.nodes if name not in reached]
    return [f"node {name!r} can't be reached from START" for name in lost]


def _port_faults(flow: Flow, node: Node) -> list[str]:
    faults: list[str] = []
    ports = {edge.port for edge in flow.edges if node.name in edge.sources}
    if node.kind == "human":
        faults.extend(
            f"no edge leaves the question {node.name!r} by the port {port!r}; lead it to END if "
            "the run ends there"
            for port in (APPROVED, REJECTED)
            if port not in ports
        )
        if None in ports or node.name in flow.routes:
            faults.append(
                f"an edge leaves the question {node.name!r} without a port; say {APPROVED!r} or "
                f"{REJECTED!r}, so that a rejection never goes the way of an approval"
            )
        allowed: set[str | None] = {APPROVED, REJECTED, None}
    elif node.kind in ("call", "map"):
        allowed = {REJECTED, None}
    else:
        return faults  # a function names its ports as it goes
    faults.extend(
        f"an edge leaves {node.name!r} by {port!r}, a port that it does not have"
        for port in sorted(ports - allowed, key=str)
    )
    return faults


def _form_faults(node: Node) -> list[str]:
    faults = []
    for asked in (node.action, node.gate):
        form = getattr(asked, "form", None) if isinstance(asked, Human | Gate) else None
        if form is None:
            continue
        if not is_model(form) and not isinstance(form, Mapping):
            faults.append(f"the form of {node.name!r} is neither a pydantic model nor a schema")
            continue
        try:
            schema_of(form)
        except FormSchemaError as error:
            faults.append(f"the form of {node.name!r} can't be used: {error}")
    if isinstance(node.action, Call):
        try:
            canonical.encode(dict(node.action.args), path="args")
        except canonical.NotSealable as error:
            faults.append(f"a static argument of {node.name!r} can't be sealed: {error}")
    return faults


def _map_faults(node: Node) -> list[str]:
    action = node.action
    if not isinstance(action, Map):
        return []
    faults = []
    if (action.tool is None) is (action.fn is None):
        faults.append(f"the Map {node.name!r} takes either a tool or a function (fn)")
    if action.concurrency < 1:
        faults.append(f"the Map {node.name!r} has a concurrency of {action.concurrency}")
    if action.on_error not in ("fail", "skip"):
        faults.append(f"the Map {node.name!r} has on_error={action.on_error!r}: 'fail' or 'skip'")
    return faults


def _field_faults(flow: Flow, node: Node) -> list[str]:
    faults: list[str] = []
    fields = flow.state.model_fields
    into = getattr(node.action, "into", None)
    if into is not None and into not in fields:
        faults.append(f"node {node.name!r} puts its result into {into!r}, which is no state field")
    if isinstance(node.action, Human):
        try:
            named = node.action.fields
        except ValueError as error:
            return [*faults, f"the message of {node.name!r} is malformed: {error}"]
        faults.extend(
            f"the message of {node.name!r} names {name!r}, which is no state field"
            for name in named
            if name not in fields
        )
    return faults
