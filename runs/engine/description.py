"""A graph as data: what its digest covers, and what differs between two of them, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import canonical
from .nodes import Call, Form, Human, Map, Node


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two graphs (as ``Flow.graph()`` gives them), in words."""
    changes: list[str] = []
    if old["name"] != new["name"]:
        changes.append(f"the flow was named {old['name']!r} and is now {new['name']!r}")
    if old["state"] != new["state"]:
        changes.append(f"the state was {old['state']} and is now {new['state']}")
    for name in sorted(old["nodes"].keys() | new["nodes"].keys()):
        before, after = old["nodes"].get(name), new["nodes"].get(name)
        if before is None:
            changes.append(f"node {name!r} was added")
        elif after is None:
            changes.append(f"node {name!r} was removed")
        else:
            changes.extend(
                f"node {name!r}: {part} was {_brief(before.get(part))} "
                f"and is now {_brief(after.get(part))}"
                for part in sorted(before.keys() | after.keys())
                if canonical.dumps(before.get(part)) != canonical.dumps(after.get(part))
            )
    before_edges, after_edges = old["edges"], new["edges"]
    changes.extend(f"{_edge(edge)} was removed" for edge in before_edges if edge not in after_edges)
    changes.extend(f"{_edge(edge)} was added" for edge in after_edges if edge not in before_edges)
    changes.extend(
        f"the route after {name!r} was changed"
        for name in sorted(old["routes"].keys() | new["routes"].keys())
        if old["routes"].get(name) != new["routes"].get(name)
    )
    return changes


def _edge(edge: list[Any]) -> str:
    sources, target, port = edge
    by = f" by port {port!r}" if port else ""
    return f"the edge from {' and '.join(map(repr, sources))} to {target!r}{by}"


def _brief(part: Any) -> str:
    text = "nothing" if part is None else part if isinstance(part, str) else canonical.dumps(part)
    return text if len(text) <= 120 else f"{text[:120]}..."


def function_name(function: Callable[..., Any] | None) -> str | None:
    if function is None:
        return None
    while hasattr(function, "func"):  # functools.partial counts by what it wraps
        function = function.func
    return canonical.class_name(function if hasattr(function, "__qualname__") else type(function))


def _form_as_data(form: Form | None) -> Any:
    if form is None:
        return None
    if isinstance(form, type):
        return canonical.class_name(form)
    return canonical.encode(dict(form), path="form")


def node_as_data(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": node.kind}
    action = node.action
    if isinstance(action, Human):
        data |= {"message": action.message, "into": action.into}
        data["form"] = _form_as_data(action.form)
    elif isinstance(action, Call):
        data |= {"tool": action.tool.reference, "into": action.into}
        data["args"] = canonical.encode(dict(action.args), path=f"{node.name}.args")
        data["select"] = function_name(action.select)
    elif isinstance(action, Map):
        data |= {"tool": action.tool.reference if action.tool else None, "into": action.into}
        data |= {"function": function_name(action.fn), "over": function_name(action.over)}
        data |= {"concurrency": action.concurrency, "on_error": action.on_error}
    else:
        data["function"] = function_name(action)
    if node.gate is not None:
        data["gate"] = {
            "payload": function_name(node.gate.payload),
            "message": node.gate.message,
            "form": _form_as_data(node.gate.form),
        }
    return data
