"""What a paused result holds."""

from __future__ import annotations

from typing import Annotated

import pytest

from runs.engine import (
    END,
    START,
    Call,
    Flow,
    FlowError,
    Gate,
    Human,
    Secret,
    tool,
)

from .support import Desk, Runner, State, Tools, one_node, reload, runner_on, yes


@tool(confirm=True)
def send(to: str, password: str, token: Annotated[str, Secret()]) -> str:
    return f"sent to {to}"


def test_a_paused_result_has_the_status_paused(runner: Runner, tools: Tools) -> None:
    flow = one_node(Call(tools.pay, args={"amount": 5}))
    paused = runner.run_sync(flow, State())
    assert paused.status == "paused"
    assert runner.resume_sync(flow, paused.checkpoint, yes()).status == "completed"


def test_pending_names_the_tool_and_the_run_and_call_ids(approvals: Desk, tools: Tools) -> None:
    events: list = []
    runner = runner_on(approvals.port, events=events)
    flow = one_node(Call(tools.pay, args={"amount": 5}))
    paused = runner.run_sync(flow, State(), run_id="run-1")
    pending = paused.pending
    assert (pending.tool, pending.run_id) == ("pay", "run-1")
    runner.resume_sync(flow, paused.checkpoint, yes())
    started = [event.call_id for event in events if event.kind == "call.started"]
    assert started == [pending.call_id]


def test_pending_of_a_gate_names_the_flow_and_the_node(runner: Runner) -> None:
    async def work(state, ctx):
        return None

    paused = runner.run_sync(one_node(work, gate=Gate()), State(), run_id="run-1")
    assert (paused.pending.tool, paused.pending.run_id) == ("node:shop.work", "run-1")
    assert paused.pending.call_id


def test_pending_of_a_question_names_the_flow_and_the_node(runner: Runner) -> None:
    flow = Flow("shop", state=State)
    flow.node("ask", Human("Pay {amount}?"))
    flow.edge(START, "ask")
    flow.edge("ask", END, port="approved")
    flow.edge("ask", END, port="rejected")
    pending = runner.run_sync(flow, State(amount=3)).pending
    assert (pending.tool, dict(pending.arguments)) == ("node:shop.ask", {"amount": 3})


def test_the_arguments_of_a_gate_are_its_payload(runner: Runner) -> None:
    async def work(state, ctx):
        return None

    gate = Gate(payload=lambda state: {"total": state.amount * 2})
    paused = runner.run_sync(one_node(work, gate=gate), State(amount=4))
    assert dict(paused.pending.arguments) == {"total": 8}


def test_pending_arguments_are_the_requested_ones_and_reprs_redact_them(
    runner: Runner,
) -> None:
    async def work(state, ctx):
        await ctx.call(send, to="desk", password="open-sesame", token="moonlight")

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    assert dict(paused.pending.arguments) == {
        "to": "desk",
        "password": "open-sesame",
        "token": "moonlight",
    }
    shown = [repr(paused), repr(paused.pending), repr(paused.requests), repr(paused.checkpoint)]
    loaded = reload(runner, flow, paused.checkpoint)
    shown += [repr(loaded), str(loaded.requests), f"{paused.pending}"]
    for text in shown:
        assert "open-sesame" not in text
        assert "moonlight" not in text
    assert "desk" in repr(paused.pending)


def test_the_checkpoint_holds_the_state_and_goes_on_where_the_run_stood(
    runner: Runner, tools: Tools
) -> None:
    flow = Flow("shop", state=State)

    async def price(state, ctx):
        tools.ran.append("price")
        return {"amount": state.amount + 1}

    flow.node("price", price)
    flow.node("pay", Call(tools.pay, select=lambda s: {"amount": s.amount}, into="value"))
    flow.edge(START, "price")
    flow.edge("price", "pay")
    flow.edge("pay", END)
    paused = runner.run_sync(flow, State(amount=1))
    assert paused.checkpoint.state.amount == paused.state.amount == 2
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.state.amount, done.state.value) == (2, "paid 2")
    assert tools.ran == ["price", "pay 2"]


def test_a_paused_node_sees_again_the_state_it_began_with(runner: Runner, tools: Tools) -> None:
    async def work(state, ctx):
        state.items.append("noted in place")
        await ctx.call(tools.pay, amount=5)
        return {"results": list(state.items)}

    flow = one_node(work)
    paused = runner.run_sync(flow, State(items=["given"]))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.results == ["given", "noted in place"]


def test_the_checkpoint_holds_half_met_joins(runner: Runner, tools: Tools) -> None:
    flow = Flow("shop", state=State)

    async def left(state, ctx):
        tools.ran.append("left")

    async def both(state, ctx):
        tools.ran.append("both")

    flow.node("left", left)
    flow.node("pay", Call(tools.pay, args={"amount": 1}))
    flow.node("both", both)
    flow.edge(START, "left")
    flow.edge(START, "pay")
    flow.edge(["left", "pay"], "both")
    flow.edge("both", END)
    paused = runner.run_sync(flow, State())
    assert tools.ran == ["left"]
    runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["left", "pay 1", "both"]


def test_the_counters_of_the_checkpoint_go_on_over_a_resume(approvals: Desk) -> None:
    flow = Flow("shop", state=State)

    async def again(state, ctx):
        return {"amount": state.amount + 1}

    flow.node("again", again, gate=Gate())
    flow.edge(START, "again")
    flow.route("again", lambda state: "more", {"more": "again", "enough": END})
    runner = runner_on(approvals.port, max_steps=3)
    result = runner.run_sync(flow, State())
    for _ in range(2):
        result = runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
        assert result.status == "paused"
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, reload(runner, flow, result.checkpoint), yes())
    assert caught.value.code == "step-limit"


def test_the_journal_is_a_sealed_private_part_of_the_checkpoint(
    runner: Runner, tools: Tools
) -> None:
    async def work(state, ctx):
        seen = await ctx.call(tools.look, at="private-shelf")
        await ctx.call(tools.pay, amount=5)
        return {"value": seen}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    assert "private-shelf" not in repr(paused)
    assert paused.state.value is None
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.value == "seen private-shelf, 1"
    assert tools.ran == ["look private-shelf", "pay 5"]
