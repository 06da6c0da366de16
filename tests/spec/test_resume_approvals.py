"""Which requests a resume answers, and how often."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from runs.engine import (
    END,
    START,
    ApprovalDenied,
    Call,
    Flow,
    FlowError,
    Gate,
    Map,
    tool,
)

from .support import Desk, Runner, State, Tools, no, one_node, reload, yes


def test_each_answer_is_used_once(runner: Runner, approvals: Desk, tools: Tools) -> None:
    async def work(state, ctx):
        first = await ctx.call(tools.pay, amount=5)
        second = await ctx.call(tools.pay, amount=5)
        return {"results": [first, second]}

    flow = one_node(work)
    first = runner.run_sync(flow, State())
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes())
    assert (second.status, tools.ran) == ("paused", ["pay 5"])
    assert second.pending.id != first.pending.id
    assert approvals.pending() == [second.pending.id]
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.status, tools.ran) == ("completed", ["pay 5", "pay 5"])


def test_every_earlier_answer_of_the_node_is_given_again(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    async def work(state, ctx):
        told = []
        for called in (tools.pay, tools.refund):
            try:
                told.append(await ctx.call(called, amount=5))
            except ApprovalDenied:
                told.append(f"no {called.name}")
        told.append(await ctx.call(tools.pay, amount=6))
        return {"results": told}

    flow = one_node(work)
    result = runner.run_sync(flow, State())
    for decision in (no(), no(), yes()):
        assert result.status == "paused"
        assert approvals.pending() == [result.pending.id]
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), decision)
    assert result.state.results == ["no pay", "no refund", "paid 6"]
    assert (tools.ran, approvals.pending()) == (["pay 6"], [])


def test_the_answer_to_a_gate_is_kept_while_its_node_waits_for_a_tool(
    runner: Runner, tools: Tools
) -> None:
    answers: list[Any] = []

    async def work(state, ctx):
        answers.append(ctx.answer)
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work, gate=Gate())
    result = runner.run_sync(flow, State())
    for expected in ("node:shop.work", "pay"):
        assert result.pending.tool == expected
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
    assert (result.status, answers, tools.ran) == ("completed", [True, True], ["pay 5"])


@pytest.mark.parametrize("changed", ["tool", "arguments", "type of an argument"])
def test_a_request_with_another_tool_or_other_arguments_asks_the_port(
    runner: Runner, approvals: Desk, tools: Tools, changed: str
) -> None:
    first: tuple[Any, Any] = (tools.pay, 5)
    then = {
        "tool": (tools.refund, 5),
        "arguments": (tools.pay, 6),
        "type of an argument": (tools.pay, True),
    }[changed]
    if changed == "type of an argument":

        @tool(confirm=True)
        def pay(amount: Any) -> str:
            tools.ran.append(f"pay {amount}")
            return "paid"

        first, then = (pay, 1), (pay, True)
    asked = [then, first]

    async def work(state, ctx):
        called, amount = asked.pop()
        await ctx.call(called, amount=amount)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    again = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (again.status, tools.ran) == ("paused", [])
    assert (again.pending.tool, again.pending.arguments["amount"]) == (then[0].name, then[1])
    assert approvals.pending() == [again.pending.id]


def test_an_answer_to_another_runs_request_answers_nothing(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow = one_node(Call(tools.pay, args={"amount": 5}))
    one = runner.run_sync(flow, State(), run_id="one")
    other = runner.run_sync(flow, State(), run_id="other")
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, one.checkpoint, yes(other.pending))
    assert caught.value.code == "unknown-request"
    assert (tools.ran, approvals.pending()) == ([], [one.pending.id, other.pending.id])


def test_a_call_node_asks_again_at_its_next_visit(runner: Runner, tools: Tools) -> None:
    flow = Flow("shop", state=State)
    flow.node("pay", Call(tools.pay, args={"amount": 5}))

    async def count(state, ctx):
        return {"amount": state.amount + 1}

    flow.node("count", count)
    flow.edge(START, "pay")
    flow.edge("pay", "count")
    flow.route("count", lambda s: "on" if s.amount < 2 else "out", {"on": "pay", "out": END})
    first = runner.run_sync(flow, State())
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes())
    assert (second.status, tools.ran) == ("paused", ["pay 5"])
    assert second.pending.call_id != first.pending.call_id
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.status, tools.ran) == ("completed", ["pay 5", "pay 5"])


def test_an_answer_to_one_of_two_equal_map_items_answers_that_item_only(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow = one_node(
        Map(over=lambda state: state.items, into="results", tool=tools.pay, on_error="skip")
    )
    first = runner.run_sync(flow, State(items=[{"amount": 5}, {"amount": 5}]))
    item_0, item_1 = first.requests
    assert item_0.call_id != item_1.call_id
    second = runner.resume_sync(flow, reload(runner, flow, first.checkpoint), no(item_1))
    assert [request.id for request in second.requests] == [item_0.id]
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes(item_0))
    assert (done.state.results, tools.ran) == (["paid 5", None], ["pay 5"])


def test_a_denied_tool_raises_approval_denied_in_the_node(runner: Runner, tools: Tools) -> None:
    async def work(state, ctx):
        with pytest.raises(FlowError) as caught:
            await ctx.call(tools.pay, amount=5)
        assert isinstance(caught.value, ApprovalDenied)
        return {"value": caught.value.decision.by}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), no())
    assert done.state.value == "reviewer"
    assert tools.ran == []


def test_a_denied_tool_that_the_node_does_not_catch_fails_the_run(
    runner: Runner, tools: Tools
) -> None:
    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    with pytest.raises(ApprovalDenied, match="reviewer"):
        runner.resume_sync(flow, paused.checkpoint, no())
    assert issubclass(ApprovalDenied, FlowError)
    assert tools.ran == []


def test_a_task_that_outlives_the_paused_node_gets_no_answer(runner: Runner, tools: Tools) -> None:
    outliving: list[asyncio.Task[Any]] = []

    async def scenario() -> None:
        release = asyncio.Event()

        async def outlive(ctx):
            await release.wait()
            return await ctx.call(tools.pay, amount=5)

        async def work(state, ctx):
            if outliving:  # the answer is here, and nobody has used it yet
                release.set()
                await asyncio.gather(*outliving, return_exceptions=True)
                assert tools.ran == []
            outliving.append(asyncio.create_task(outlive(ctx)))
            release.clear()
            await ctx.call(tools.pay, amount=5)

        flow = one_node(work)
        paused = await runner.run(flow, State())
        done = await runner.resume(flow, paused.checkpoint, yes())
        assert (done.status, tools.ran) == ("completed", ["pay 5"])
        release.set()
        ends = await asyncio.gather(*outliving, return_exceptions=True)
        assert [isinstance(end, BaseException) for end in ends] == [True, True]
        assert tools.ran == ["pay 5"]

    async_to_sync(scenario)()


def test_a_task_that_outlives_the_finished_node_gets_no_answer_that_the_node_left(
    runner: Runner, tools: Tools
) -> None:
    outliving: list[asyncio.Task[Any]] = []

    async def scenario() -> None:
        release = asyncio.Event()

        async def outlive(ctx):
            await release.wait()
            return await ctx.call(tools.pay, amount=5)

        async def work(state, ctx):
            if outliving:  # this time the node goes another way
                outliving.append(asyncio.create_task(outlive(ctx)))
                return
            outliving.append(asyncio.create_task(outlive(ctx)))
            await ctx.call(tools.pay, amount=5)

        flow = one_node(work)
        paused = await runner.run(flow, State())
        done = await runner.resume(flow, paused.checkpoint, yes())
        assert (done.status, tools.ran) == ("completed", [])
        release.set()
        ends = await asyncio.gather(*outliving, return_exceptions=True)
        assert [isinstance(end, BaseException) for end in ends] == [True, True]
        assert tools.ran == []

    async_to_sync(scenario)()


def test_a_task_that_outlives_the_paused_node_writes_no_journal(
    runner: Runner, tools: Tools
) -> None:
    async def scenario() -> None:
        release = asyncio.Event()
        outliving: list[asyncio.Task[Any]] = []

        async def outlive(ctx):
            await release.wait()
            return await ctx.call(tools.look, at="shelf")

        async def work(state, ctx):
            if not outliving:
                outliving.append(asyncio.create_task(outlive(ctx)))
            await ctx.call(tools.pay, amount=5)
            return {"value": await ctx.call(tools.look, at="shelf")}

        flow = one_node(work)
        paused = await runner.run(flow, State())
        release.set()
        await asyncio.gather(*outliving, return_exceptions=True)
        before = len(tools.ran)
        done = await runner.resume(flow, paused.checkpoint, yes())
        assert tools.ran[before:] == ["pay 5", "look shelf"]
        assert done.state.value == f"seen shelf, {before + 2}"

    async_to_sync(scenario)()


def test_one_answer_lets_one_of_two_equal_items_of_a_map_over_a_function_run(
    runner: Runner, tools: Tools
) -> None:
    async def handle(item, state, ctx):
        return await ctx.call(tools.pay, amount=item)

    flow = one_node(Map(over=lambda state: [5, 5], into="results", fn=handle))
    first = runner.run_sync(flow, State())
    assert len(first.requests) == 2
    second = runner.resume_sync(
        flow, reload(runner, flow, first.checkpoint), yes(first.requests[1])
    )
    assert (second.status, tools.ran) == ("paused", ["pay 5"])
    done = runner.resume_sync(flow, reload(runner, flow, second.checkpoint), yes())
    assert (done.state.results, tools.ran) == (["paid 5"] * 2, ["pay 5"] * 2)


def test_an_answer_for_a_tool_is_none_for_another_tool_of_the_same_name(
    runner: Runner, tools: Tools
) -> None:
    def other_pay() -> Any:
        @tool(confirm=True)
        def pay(amount: int) -> str:
            tools.ran.append("the other pay")
            return "paid otherwise"

        return pay

    asked = [other_pay(), tools.pay]

    async def work(state, ctx):
        await ctx.call(asked.pop(), amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    again = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (again.status, tools.ran) == ("paused", [])


def test_replay_two_confirms_finishes_after_two_resumes_and_runs_each_body_once(
    runner: Runner, tools: Tools
) -> None:
    starts: list[str] = []

    async def work(state, ctx):
        starts.append("work")
        first = await ctx.call(tools.pay, amount=1)
        second = await ctx.call(tools.refund, amount=2)
        return {"results": [first, second]}

    flow = one_node(work)
    result, resumes = runner.run_sync(flow, State()), 0
    while result.status == "paused":
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
        resumes += 1
    assert (resumes, len(starts)) == (2, 3)
    assert tools.ran == ["pay 1", "refund 2"], "a graph that re-runs calls would pay twice"
    assert result.state.results == ["paid 1", "refunded 2"]
