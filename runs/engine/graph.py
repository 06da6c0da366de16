"""A flow: its nodes, and the edges and routes between them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from pydantic import BaseModel

from . import canonical
from .description import function_name, node_as_data
from .errors import FlowError
from .faults import faults_of
from .nodes import END, START, Action, Edge, Gate, Node, Route, node_kind
from .tools import Tool

_loaded: WeakValueDictionary[tuple[str, str], Flow] = WeakValueDictionary()


def loaded_flow(name: str, version: str) -> Flow | None:
    """The flow of this process with that name and version, made last; nothing is imported."""
    return _loaded.get((name, version))


class Flow:
    """A small graph of functions, tools and questions.

    ``state`` is a pydantic model. ``version`` names this form of the graph; a run goes on with
    the version it was started with. ``description`` is a sentence for people.
    """

    def __init__(
        self, name: str, *, state: type[BaseModel], version: str = "1", description: str = ""
    ) -> None:
        self.name = name
        self.state = state
        self.version = version
        self.description = description
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self.routes: dict[str, Route] = {}
        self._faults: list[str] = []
        self._graph: dict[str, Any] | None = None
        _loaded[name, version] = self

    def node(self, name: str, action: Action, *, gate: Gate | None = None) -> None:
        """Add a node; its action is a function ``(state, ctx)``, a ``Call``, a ``Map`` or a
        ``Human``."""
        self._changed()
        if name in self.nodes or name in (START, END):
            self._faults.append(f"two nodes are named {name!r}")
        if isinstance(action, Tool):
            self._faults.append(f"node {name!r} is a bare tool; make it Call({action.name}, ...)")
        elif node_kind(action) == "function" and not callable(action):
            self._faults.append(f"node {name!r} is no function, Call, Map or Human")
        self.nodes[name] = Node(name, action, gate)

    def edge(self, source: str | Iterable[str], target: Any, *, port: str | None = None) -> None:
        """Lead from a node to the next, or from all of several nodes once each has finished.

        With ``port`` the edge is taken when the node leaves by that port only.
        """
        self._changed()
        sources = (source,) if isinstance(source, str) else tuple(dict.fromkeys(source))
        if not isinstance(target, str):
            self._faults.append(
                f"the edge from {' and '.join(map(repr, sources))} leads to one node, named by a "
                f"string; draw an edge to each"
            )
            return
        edge = Edge(sources, target, port)
        if edge in self.edges:
            self._faults.append(f"an edge from {sources[0]!r} to {target!r} is drawn twice")
        else:
            self.edges.append(edge)

    def route(self, source: str, choose: Callable[[Any], Any], targets: Mapping[str, str]) -> None:
        """After ``source``, go to the target whose label ``choose(state)`` returns."""
        self._changed()
        if source in self.routes:
            self._faults.append(f"node {source!r} has two routes")
        self.routes[source] = Route(source, choose, dict(targets))

    def check(self) -> None:
        """Check the whole graph; FlowError (invalid-graph) lists all its faults together."""
        faults = [*self._faults, *faults_of(self)]
        if faults:
            listed = "".join(f"\n- {fault}" for fault in faults)
            raise FlowError(
                f"The graph of flow {self.name!r} can't run as it is:{listed}",
                code="invalid-graph",
            )

    def graph(self) -> dict[str, Any]:
        """The graph as data: what the digest covers, and what a checkpoint keeps to tell what
        has changed. A function counts by its ``module:qualname``, not by its body."""
        if self._graph is None:
            self._graph = {
                "name": self.name,
                "state": canonical.class_name(self.state),
                "edges": sorted(
                    [list(edge.sources), edge.target, edge.port or ""] for edge in self.edges
                ),
                "routes": {
                    name: [function_name(route.choose), dict(route.targets)]
                    for name, route in self.routes.items()
                },
                "nodes": {name: node_as_data(node) for name, node in self.nodes.items()},
            }
        return self._graph

    @property
    def digest(self) -> str:
        """SHA-256 over the graph, as 64 hex digits."""
        return hashlib.sha256(canonical.dumps(self.graph()).encode()).hexdigest()

    def starts(self) -> list[str]:
        """The nodes that a run begins with, in the order of their declaration."""
        targets = {edge.target for edge in self.edges if edge.sources == (START,)}
        return [name for name in self.nodes if name in targets]

    def _changed(self) -> None:
        self._graph = None

    def __repr__(self) -> str:
        return f"<flow {self.name} version {self.version}>"
