"""The digest of the graph: each part of it that may change, and what a function counts by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.engine import (
    END,
    START,
    Call,
    Flow,
    FlowError,
    Gate,
    Human,
    Map,
    tool,
)

from .support import Desk, Runner, State, Tools, one_node, reload, yes

effects: list[str] = []


class OtherState(State):
    pass


@tool
def weigh(item: Any = None, unit: Any = None) -> str:
    effects.append("weigh")
    return "heavy"


@tool
def measure(item: Any = None, unit: Any = None) -> str:
    effects.append("measure")
    return "long"


async def wait_here(state, ctx):
    effects.append("wait_here")


async def act(state, ctx):
    effects.append("act")


async def act_otherwise(state, ctx):
    effects.append("act_otherwise")


async def each(item, state, ctx):
    return item


async def each_otherwise(item, state, ctx):
    return item


def payload(state):
    return {"amount": state.amount}


def other_payload(state):
    return {"amount": state.amount}


def choose(state):
    return "yes"


def choose_otherwise(state):
    return "yes"


def over(state):
    return []


def over_otherwise(state):
    return []


def select(state):
    return {}


def select_otherwise(state):
    return {}


def shop(
    action: Any = act,
    *,
    name: str = "shop",
    node: str = "work",
    state: type[State] = State,
    gate: Gate | None = None,
    start: str = "wait",
    more: Callable[[Flow], None] | None = None,
    route: Any = None,
) -> Flow:
    """wait (at a gate) -> work -> END; ``work`` and what surrounds it vary."""
    flow = Flow(name, state=state)
    flow.node("wait", wait_here, gate=Gate(payload=payload))
    flow.node(node, action, gate=gate)
    flow.edge(START, start)
    flow.edge("wait", node)
    if route is not None:
        flow.route(node, *route)
    elif isinstance(action, Human):
        flow.edge(node, END, port="approved")
        flow.edge(node, END, port="rejected")
    else:
        flow.edge(node, END)
    if more is not None:
        more(flow)
    return flow


def also_start(flow: Flow) -> None:
    flow.edge(START, "work")


def wait_may_end(flow: Flow) -> None:
    flow.edge("wait", END)


def work_leads_back(flow: Flow) -> None:
    flow.edge("work", "wait", port="again")


def extra_node(flow: Flow) -> None:
    flow.node("extra", act)
    flow.edge("wait", "extra")
    flow.edge("extra", END)


def call(**options: Any) -> Call:
    return Call(**{"tool": weigh, "into": "value", "args": {"unit": 1}, **options})


def mapped(**options: Any) -> Map:
    return Map(**{"over": over, "into": "results", "tool": weigh, **options})


def mapped_fn(fn: Any) -> Map:
    return Map(over=over, into="results", fn=fn)


ways = {"yes": END, "no": "wait"}
BEFORE_AND_AFTER: dict[str, tuple[Callable[[], Flow], Callable[[], Flow]]] = {
    "name": (shop, lambda: shop(name="store")),
    "state model": (shop, lambda: shop(state=OtherState)),
    "start": (shop, lambda: shop(more=also_start)),
    "ends": (shop, lambda: shop(more=wait_may_end)),
    "edges": (shop, lambda: shop(more=work_leads_back)),
    "node added": (shop, lambda: shop(more=extra_node)),
    "node name": (shop, lambda: shop(node="labour")),
    "node kind": (lambda: shop(call()), lambda: shop(mapped())),
    "kind of function and question": (shop, lambda: shop(Human("Go on?"))),
    "message of a question": (lambda: shop(Human("Go on?")), lambda: shop(Human("Stop?"))),
    "gate added": (shop, lambda: shop(gate=Gate())),
    "gate payload": (
        lambda: shop(gate=Gate(payload=payload)),
        lambda: shop(gate=Gate(payload=other_payload)),
    ),
    "function": (shop, lambda: shop(act_otherwise)),
    "route function": (
        lambda: shop(route=(choose, ways)),
        lambda: shop(route=(choose_otherwise, ways)),
    ),
    "route targets": (
        lambda: shop(route=(choose, ways)),
        lambda: shop(route=(choose, {"yes": "wait", "no": END})),
    ),
    "tool of a Call": (lambda: shop(call()), lambda: shop(call(tool=measure))),
    "into of a Call": (lambda: shop(call()), lambda: shop(call(into="items"))),
    "select of a Call": (
        lambda: shop(call(select=select)),
        lambda: shop(call(select=select_otherwise)),
    ),
    "static argument of a Call": (lambda: shop(call()), lambda: shop(call(args={"unit": 2}))),
    "type of a static argument": (lambda: shop(call()), lambda: shop(call(args={"unit": True}))),
    "float static argument": (lambda: shop(call()), lambda: shop(call(args={"unit": 1.0}))),
    "static argument added": (
        lambda: shop(call()),
        lambda: shop(call(args={"unit": 1, "item": None})),
    ),
    "tool of a Map": (lambda: shop(mapped()), lambda: shop(mapped(tool=measure))),
    "function of a Map": (lambda: shop(mapped_fn(each)), lambda: shop(mapped_fn(each_otherwise))),
    "over of a Map": (lambda: shop(mapped()), lambda: shop(mapped(over=over_otherwise))),
    "into of a Map": (lambda: shop(mapped()), lambda: shop(mapped(into="items"))),
    "concurrency of a Map": (lambda: shop(mapped()), lambda: shop(mapped(concurrency=3))),
    "on_error of a Map": (lambda: shop(mapped()), lambda: shop(mapped(on_error="skip"))),
}


@pytest.mark.parametrize("form", ["in memory", "loaded"])
@pytest.mark.parametrize("part", BEFORE_AND_AFTER)
def test_a_changed_graph_is_refused_before_the_approval_is_spent(
    runner: Runner, approvals: Desk, part: str, form: str
) -> None:
    before, after = BEFORE_AND_AFTER[part]
    effects.clear()
    paused = runner.run_sync(before(), State())
    assert paused.pending.tool == "node:shop.wait"
    changed = after()
    go_on: Callable[[], Any] = {
        "in memory": lambda: runner.resume_sync(changed, paused.checkpoint, yes()),
        "loaded": lambda: reload(runner, changed, paused.checkpoint),
    }[form]
    with pytest.raises(FlowError) as caught:
        go_on()
    assert caught.value.code == "graph-changed"
    assert effects == []
    assert approvals.pending() == [paused.pending.id]
    assert finish(runner, before(), paused).status == "completed"


def finish(runner: Runner, flow: Flow, result: Any) -> Any:
    """Approve and reload until the run has completed."""
    while result.status == "paused":
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
    return result


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("node added", "extra"),
        ("node name", "labour"),
        ("edges", "again"),
        ("static argument of a Call", "unit"),
        ("tool of a Call", "measure"),
        ("function", "act_otherwise"),
        ("state model", "OtherState"),
    ],
)
def test_the_error_names_what_changed_in_the_graph(runner: Runner, part: str, named: str) -> None:
    before, after = BEFORE_AND_AFTER[part]
    paused = runner.run_sync(before(), State())
    with pytest.raises(FlowError, match=named):
        runner.resume_sync(after(), paused.checkpoint, yes())


def test_a_graph_built_anew_is_the_same_graph(runner: Runner) -> None:
    for before, _ in BEFORE_AND_AFTER.values():
        assert finish(runner, before(), runner.run_sync(before(), State())).status == "completed"


def test_a_changed_body_under_the_same_name_is_not_detected(runner: Runner, tools: Tools) -> None:
    def version(number: int) -> Any:
        async def work(state, ctx):
            await ctx.call(tools.pay, amount=5)
            return {"value": f"version {number}"}

        return work

    paused = runner.run_sync(one_node(version(1)), State())
    flow = one_node(version(2))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.state.value, tools.ran) == ("version 2", ["pay 5"])


def test_another_lambda_in_the_same_scope_is_not_detected(runner: Runner, tools: Tools) -> None:
    def flow_with(select: Callable[[Any], dict[str, Any]]) -> Flow:
        return one_node(
            Call(tools.pay, select=select, into="value"),
            gate=Gate(payload=lambda state: {}),
        )

    five, six = (lambda state: {"amount": 5}), (lambda state: {"amount": 6})
    assert five.__qualname__ == six.__qualname__
    paused = runner.run_sync(flow_with(five), State())
    again = runner.resume_sync(flow_with(six), paused.checkpoint, yes())
    assert again.pending.arguments["amount"] == 6


@pytest.mark.parametrize("change", ["arguments", "tool"])
def test_answers_fail_closed_under_a_changed_body(
    runner: Runner, approvals: Desk, tools: Tools, change: str
) -> None:
    def version(called: Any, amount: int) -> Any:
        async def work(state, ctx):
            await ctx.call(called, amount=amount)

        return work

    paused = runner.run_sync(one_node(version(tools.pay, 5)), State())
    changed = version(tools.pay, 500) if change == "arguments" else version(tools.refund, 5)
    again = runner.resume_sync(one_node(changed), paused.checkpoint, yes())
    assert (again.status, tools.ran) == ("paused", [])
    assert approvals.pending() == [again.pending.id] != [paused.pending.id]
