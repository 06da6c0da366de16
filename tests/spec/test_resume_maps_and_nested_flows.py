"""What resume keeps of Maps and nested flows: finished items, items' and child journals."""

from __future__ import annotations

from typing import Any

import pytest

from runs.engine import (
    END,
    START,
    AdapterError,
    Flow,
    Gate,
    Map,
    tool,
)

from .support import Runner, State, Tools, no, one_node, reload, yes


@pytest.mark.parametrize("concurrency", [1, 8])
def test_finished_items_of_a_map_over_a_tool_are_kept(
    runner: Runner, tools: Tools, concurrency: int
) -> None:
    @tool(confirm=lambda amount: amount > 10)
    def pay_some(amount: int) -> str:
        tools.ran.append(f"pay {amount}")
        return f"paid {amount}"

    flow = one_node(
        Map(
            over=lambda state: [{"amount": amount} for amount in state.items],
            into="results",
            tool=pay_some,
            concurrency=concurrency,
        )
    )
    paused = runner.run_sync(flow, State(items=[1, 50, 2]))
    assert (paused.status, sorted(tools.ran)) == ("paused", ["pay 1", "pay 2"])
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert sorted(tools.ran[:2]) == ["pay 1", "pay 2"]
    assert tools.ran[2:] == ["pay 50"]
    assert done.state.results == ["paid 1", "paid 50", "paid 2"]


def test_finished_items_of_a_map_over_a_function_are_kept(runner: Runner, tools: Tools) -> None:
    async def handle(item, state, ctx):
        tools.ran.append(f"begin {item}")
        if item == 50:
            return await ctx.call(tools.pay, amount=item)
        return f"free {item}"

    flow = one_node(Map(over=lambda state: state.items, into="results", fn=handle))
    paused = runner.run_sync(flow, State(items=[1, 50, 2]))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["begin 1", "begin 50", "begin 2", "begin 50", "pay 50"]
    assert done.state.results == ["free 1", "paid 50", "free 2"]


def test_skipped_items_of_a_map_are_kept(runner: Runner, tools: Tools) -> None:
    @tool(confirm=lambda amount: amount > 10)
    def pay_some(amount: int) -> str:
        tools.ran.append(f"pay {amount}")
        if amount < 0:
            raise AdapterError("nobody can be paid less than nothing")
        return f"paid {amount}"

    flow = one_node(
        Map(
            over=lambda state: [{"amount": amount} for amount in state.items],
            into="results",
            tool=pay_some,
            on_error="skip",
        )
    )
    paused = runner.run_sync(flow, State(items=[1, -1, 50]))
    assert sorted(tools.ran) == ["pay -1", "pay 1"]
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran[2:] == ["pay 50"], "neither the finished nor the skipped item ran again"
    assert done.state.results == ["paid 1", None, "paid 50"]


def test_skipped_items_of_a_map_over_a_function_are_kept(runner: Runner, tools: Tools) -> None:
    def handle(item, state, ctx):
        tools.ran.append(f"begin {item}")
        if item < 0:
            raise ValueError("less than nothing")
        return ctx.call_sync(tools.pay, amount=item)

    flow = one_node(Map(over=lambda state: state.items, into="results", fn=handle, on_error="skip"))
    paused = runner.run_sync(flow, State(items=[-1, 50]))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran.count("begin -1") == 1
    assert done.state.results == [None, "paid 50"]


def test_calls_inside_an_unfinished_item_replay_from_that_items_own_journal(
    runner: Runner, tools: Tools
) -> None:
    async def handle(item, state, ctx):
        seen = await ctx.call(tools.look, at="the same shelf")
        await ctx.call(tools.pay, amount=item)
        return seen

    flow = one_node(Map(over=lambda state: state.items, into="results", fn=handle, concurrency=1))
    paused = runner.run_sync(flow, State(items=[10, 20, 30]))
    assert tools.ran == ["look the same shelf"] * 3
    while paused.status == "paused":
        # The last item's request first: item 2 goes on while items 0 and 1 stand still.
        last = max(paused.requests, key=lambda request: request.arguments["amount"])
        checkpoint = reload(runner, flow, paused.checkpoint)
        paused = runner.resume_sync(flow, checkpoint, yes(last))
    assert tools.ran == ["look the same shelf"] * 3 + ["pay 30", "pay 20", "pay 10"]
    assert paused.state.results == [f"seen the same shelf, {place}" for place in (1, 2, 3)]


def nested(tools: Tools, depth: int) -> Flow:
    """A flow whose first node looks and runs a flow of its own kind, ``depth`` levels deep, and
    whose second node looks again; the innermost pays."""

    async def first(state, ctx):
        seen = await ctx.call(tools.look, at=f"{depth} first")
        if depth:
            inner = await ctx.run_flow(nested(tools, depth - 1), State())
            return {"results": [seen, *inner.results]}
        await ctx.call(tools.pay, amount=5)
        return {"results": [seen]}

    async def second(state, ctx):
        seen = await ctx.call(tools.look, at=f"{depth} second")
        return {"results": [*state.results, seen]}

    flow = Flow(f"depth-{depth}", state=State)
    flow.node("first", first)
    flow.node("second", second)
    flow.edge(START, "first")
    flow.edge("first", "second")
    flow.edge("second", END)
    return flow


@pytest.mark.parametrize("depth", [1, 3])
def test_calls_of_a_nested_flows_node_visits_replay_from_child_journals(
    runner: Runner, tools: Tools, depth: int
) -> None:
    flow = nested(tools, depth)
    paused = runner.run_sync(flow, State())
    firsts = [f"look {level} first" for level in range(depth, -1, -1)]
    assert (paused.status, tools.ran) == ("paused", firsts)
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    seconds = [f"look {level} second" for level in range(depth + 1)]
    assert tools.ran == [*firsts, "pay 5", *seconds]
    assert done.state.results == [
        f"seen {line.removeprefix('look ')}, {place}"
        for place, line in enumerate(tools.ran, 1)
        if line != "pay 5"
    ]


def test_finished_visits_of_a_nested_flow_replay_while_a_later_visit_waits(
    runner: Runner, tools: Tools
) -> None:
    inner = Flow("inner", state=State)

    async def early(state, ctx):
        return {"value": await ctx.call(tools.look, at="shelf")}

    async def late(state, ctx):
        seen = await ctx.call(tools.look, at="shelf")
        await ctx.call(tools.pay, amount=5)
        return {"results": [state.value, seen]}

    inner.node("early", early)
    inner.node("late", late)
    inner.edge(START, "early")
    inner.edge("early", "late")
    inner.edge("late", END)

    async def outer(state, ctx):
        done = await ctx.run_flow(inner, State())
        return {"results": done.results}

    flow = one_node(outer)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["look shelf", "look shelf", "pay 5"]
    assert done.state.results == ["seen shelf, 1", "seen shelf, 2"]


def test_a_gate_of_a_nested_flow_pauses_and_is_answered(runner: Runner, tools: Tools) -> None:
    async def gated(state, ctx):
        return {"value": await ctx.call(tools.look, at="shelf")}

    inner = one_node(gated, gate=Gate(payload=lambda state: {"amount": state.amount}))

    async def outer(state, ctx):
        before = await ctx.call(tools.look, at="door")
        done = await ctx.run_flow(inner, State(amount=9))
        return {"results": [before, done.value]}

    flow = one_node(outer, name="outer")
    paused = runner.run_sync(flow, State())
    assert paused.pending.tool == "node:shop.work"
    assert dict(paused.pending.arguments) == {"amount": 9}
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["look door", "look shelf"]
    assert done.state.results == ["seen door, 1", "seen shelf, 2"]


def test_a_nested_flow_with_two_approvals_replays_over_both_resumes(
    runner: Runner, tools: Tools
) -> None:
    async def both(state, ctx):
        await ctx.call(tools.pay, amount=1)
        await ctx.call(tools.refund, amount=2)

    inner = one_node(both)

    async def outer(state, ctx):
        await ctx.run_flow(inner, State())

    flow = one_node(outer, name="outer")
    result = runner.run_sync(flow, State())
    for _ in range(2):
        assert result.status == "paused"
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
    assert (result.status, tools.ran) == ("completed", ["pay 1", "refund 2"])


def test_a_nested_flow_inside_a_map_item_replays_from_that_items_journal(
    runner: Runner, tools: Tools
) -> None:
    async def both(state, ctx):
        seen = await ctx.call(tools.look, at="the same shelf")
        await ctx.call(tools.pay, amount=state.amount)
        return {"value": seen}

    inner = one_node(both)

    async def handle(item, state, ctx):
        return (await ctx.run_flow(inner, State(amount=item))).value

    flow = one_node(Map(over=lambda state: [1, 2], into="results", fn=handle), name="outer")
    result = runner.run_sync(flow, State())
    while result.status == "paused":
        last = max(result.requests, key=lambda request: request.arguments["amount"])
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes(last))
    assert tools.ran == ["look the same shelf"] * 2 + ["pay 2", "pay 1"]
    assert sorted(result.state.results) == [
        "seen the same shelf, 1",
        "seen the same shelf, 2",
    ]


def test_a_thousand_finished_items_are_kept_over_one_pause(runner: Runner, tools: Tools) -> None:
    async def handle(item, state, ctx):
        seen = await ctx.call(tools.look, at=item)
        if item == 500:
            await ctx.call(tools.pay, amount=item)
        return seen

    flow = one_node(Map(over=lambda state: list(range(1000)), into="results", fn=handle))
    paused = runner.run_sync(flow, State())
    assert len(tools.ran) == 1000
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran[1000:] == ["pay 500"]
    assert [seen.split(",")[0] for seen in done.state.results] == [
        f"seen {item}" for item in range(1000)
    ]


@pytest.mark.parametrize("kind", ["tool", "fn"])
def test_a_denied_item_of_a_skipping_map_is_skipped(
    runner: Runner, tools: Tools, kind: str
) -> None:
    async def handle(item, state, ctx):
        return await ctx.call(tools.pay, **item)

    action: Any = {"tool": {"tool": tools.pay}, "fn": {"fn": handle}}[kind]
    flow = one_node(
        Map(
            over=lambda state: [{"amount": amount} for amount in state.items],
            into="results",
            on_error="skip",
            **action,
        )
    )
    result = runner.run_sync(flow, State(items=[1, 2]))
    refused = next(r for r in result.requests if r.arguments["amount"] == 1)
    result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), no(refused))
    result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
    assert result.status == "completed"
    assert (result.state.results, tools.ran) == ([None, "paid 2"], ["pay 2"])
