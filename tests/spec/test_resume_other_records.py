"""What becomes of the other open records of a pause when one of them is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runs.engine import END, START, Call, Executor, Flow, Map

from .support import (
    Desk,
    MemoryDesk,
    Runner,
    State,
    Tools,
    memory_only,
    one_node,
    reload,
    runner_on,
    withdrawn,
    yes,
)


def test_other_records_of_a_map_over_a_tool_stay_pending(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow = one_node(Map(over=lambda state: state.items, into="results", tool=tools.pay))
    first = runner.run_sync(flow, State(items=[{"amount": n} for n in (1, 2, 3)]))
    ids = [request.id for request in first.requests]
    assert approvals.pending() == ids
    second = runner.resume_sync(
        flow, reload(runner, flow, first.checkpoint), yes(first.requests[1])
    )
    assert [request.id for request in second.requests] == [ids[0], ids[2]]
    assert [r.call_id for r in second.requests] == [
        first.requests[0].call_id,
        first.requests[2].call_id,
    ]
    assert (approvals.pending(), tools.ran) == ([ids[0], ids[2]], ["pay 2"])


def test_the_record_of_a_call_node_beside_the_answered_one_stays_pending(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow = Flow("shop", state=State)
    flow.node("pay", Call(tools.pay, args={"amount": 1}))
    flow.node("refund", Call(tools.refund, args={"amount": 2}))
    for name in ("pay", "refund"):
        flow.edge(START, name)
        flow.edge(name, END)
    first = runner.run_sync(flow, State())
    pay, refund = first.requests
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes(refund))
    assert [request.id for request in second.requests] == [pay.id]
    assert (approvals.pending(), tools.ran) == ([pay.id], ["refund 2"])
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes(pay))
    assert (done.status, tools.ran) == ("completed", ["refund 2", "pay 1"])


@pytest.mark.parametrize("kind", ["function", "map"])
def test_other_records_of_a_functions_calls_are_superseded_and_asked_again(
    approvals: Desk, tools: Tools, kind: str
) -> None:
    async def both(state, ctx):
        return await asyncio.gather(ctx.call(tools.pay, amount=1), ctx.call(tools.refund, amount=2))

    async def work(state, ctx):
        await both(state, ctx)

    async def handle(item, state, ctx):
        await both(state, ctx)

    events: list = []
    runner = runner_on(approvals.port, events=events)
    action: Any = (
        work if kind == "function" else Map(over=lambda state: [0], into="results", fn=handle)
    )
    flow = one_node(action)
    first = runner.run_sync(flow, State())
    pay, refund = sorted(first.requests, key=lambda request: request.tool)
    events.clear()
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes(refund))
    assert withdrawn(approvals, pay, "superseded")
    told = [event.data for event in events if event.kind == "approval.decided"]
    assert [data["reason"] for data in told if data["request"] == pay.id] == ["superseded"]
    assert (second.status, second.pending.tool) == ("paused", "pay")
    assert second.pending.id != pay.id
    assert second.pending.call_id != pay.call_id
    assert approvals.pending() == [second.pending.id]
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.status, tools.ran) == ("completed", ["refund 2", "pay 1"])


def test_other_items_of_a_map_over_a_function_are_superseded_and_asked_again(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    async def handle(item, state, ctx):
        return await ctx.call(tools.pay, amount=item)

    flow = one_node(Map(over=lambda state: state.items, into="results", fn=handle))
    first = runner.run_sync(flow, State(items=[1, 2]))
    one, two = first.requests
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes(one))
    assert withdrawn(approvals, two)
    assert [request.arguments["amount"] for request in second.requests] == [2]
    assert approvals.pending() == [second.pending.id] != [two.id]
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.state.results, tools.ran) == (["paid 1", "paid 2"], ["pay 1", "pay 2"])


@memory_only("a run of the site has one store: nobody could decide in a node's own")
def test_a_superseded_record_in_a_nodes_own_store_is_denied_and_consumed_there(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    own = MemoryDesk()
    executor = Executor(approvals=own.port)

    async def work(state, ctx):
        await asyncio.gather(
            ctx.call_on(executor, tools.pay, amount=1), ctx.call(tools.refund, amount=2)
        )

    flow = one_node(work)
    first = runner.run_sync(flow, State())
    pay, refund = sorted(first.requests, key=lambda request: request.tool)
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes(refund))
    assert withdrawn(own, pay)
    assert own.pending() == [second.pending.id] != [pay.id]
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.status, tools.ran) == ("completed", ["refund 2", "pay 1"])


def test_the_records_of_a_nested_flows_call_nodes_stay_pending(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    inner = Flow("inner", state=State)
    inner.node("pay", Call(tools.pay, args={"amount": 1}))
    inner.node("refund", Call(tools.refund, args={"amount": 2}))
    for name in ("pay", "refund"):
        inner.edge(START, name)
        inner.edge(name, END)

    async def outer(state, ctx):
        await ctx.run_flow(inner, State())

    flow = one_node(outer, name="outer")
    first = runner.run_sync(flow, State())
    pay, refund = sorted(first.requests, key=lambda request: request.tool)
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes(refund))
    assert approvals.pending() == [pay.id] == [second.pending.id]
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.status, tools.ran) == ("completed", ["refund 2", "pay 1"])
