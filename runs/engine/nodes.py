"""What a flow is made of: nodes with their actions and gates, edges and routes."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel

from .tools import Tool

START = "__start__"
END = "__end__"
APPROVED = "approved"
REJECTED = "rejected"

Form = type[BaseModel] | dict[str, Any]
"""A pydantic model, or a JSON Schema (2020-12)."""


@dataclass(frozen=True)
class Gate:
    """A pause before a node runs.

    ``payload(state)`` is what the reviewer sees, a mapping of sealable values (default: nothing).
    ``message`` is the one sentence above it, filled from the payload. ``form`` is what the
    reviewer fills in; the node reads the answer as ``ctx.answer``. ``policy`` goes to the
    approval port as it is.
    """

    payload: Callable[[Any], Any] | None = None
    form: Form | None = None
    message: str | None = None
    risk: str = ""
    policy: Any = None


@dataclass(frozen=True)
class Human:
    """A node that is a question to a person.

    ``message`` is filled from the state. On approval the run leaves by the port ``approved`` with
    the form's answer in the state field ``into``; on rejection by the port ``rejected``.
    """

    message: str
    form: Form | None = None
    into: str | None = None
    risk: str = ""
    policy: Any = None

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The state fields that the message names, in order; ValueError where it is malformed."""
        names = (name for _, name, _, _ in string.Formatter().parse(self.message) if name)
        return tuple(dict.fromkeys(name.partition(".")[0].partition("[")[0] for name in names))


@dataclass(frozen=True)
class Call:
    """A node that is one call of a tool.

    ``args`` are static arguments, ``select(state)`` gives the rest; the result is put into the
    state field ``into``.
    """

    tool: Tool
    into: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    select: Callable[[Any], Mapping[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class Map:
    """A node that does one thing for each item of a list, several at a time.

    ``over(state)`` gives the list: of argument dicts for ``tool``, of items for
    ``fn(item, state, ctx)``. The results come into the state field ``into`` in the order of the
    items. ``concurrency`` is how many run at a time. With ``on_error="skip"`` an item that fails
    or is denied is None there; with ``"fail"`` the node fails.
    """

    over: Callable[[Any], Sequence[Any]]
    into: str
    tool: Tool | None = None
    fn: Callable[..., Any] | None = None
    concurrency: int = 8
    on_error: Literal["fail", "skip"] = "fail"


@dataclass(frozen=True)
class Go:
    """What a node function returns to leave by a named port, with state changes."""

    port: str
    changes: Mapping[str, Any] | None = None


Action = Callable[..., Any] | Human | Call | Map


def node_kind(action: object) -> str:
    """``human``, ``call``, ``map`` or ``function``: what the action of a node is."""
    for kind, name in ((Human, "human"), (Call, "call"), (Map, "map")):
        if isinstance(action, kind):
            return name
    return "function"


@dataclass(frozen=True)
class Node:
    """A named step of a flow."""

    name: str
    action: Action
    gate: Gate | None = None

    @property
    def kind(self) -> str:
        return node_kind(self.action)


@dataclass(frozen=True)
class Edge:
    """A way from one node, or from all of several (a join), to the next."""

    sources: tuple[str, ...]
    target: str
    port: str | None = None

    @property
    def is_join(self) -> bool:
        return len(self.sources) > 1


@dataclass(frozen=True)
class Route:
    """A choice after a node: ``choose(state)`` gives the label of the next node."""

    source: str
    choose: Callable[[Any], Any]
    targets: Mapping[str, str]
