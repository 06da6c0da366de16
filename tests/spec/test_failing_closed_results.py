"""Updates, values and results that can't be sealed fail the pause; nothing runs again for it."""

from __future__ import annotations

from typing import Any

import pytest

from runs.engine import END, START, AdapterError, Call, Flow, Map, tool

from .sealing import Handle, fails_to_pause
from .support import Desk, Runner, State, Tools, one_node, reload, runner_on, yes


def test_a_siblings_update_that_can_not_be_sealed_fails_the_pause_and_runs_once(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    async def sibling(state, ctx):
        tools.ran.append("sibling")
        return {"value": Handle()}

    flow = Flow("shop", state=State)
    flow.node("sibling", sibling)
    flow.node("pay", Call(tools.pay, args={"amount": 1}))
    for name in ("sibling", "pay"):
        flow.edge(START, name)
        flow.edge(name, END)
    fails_to_pause(runner, flow, State(), "value", "Handle")
    assert (tools.ran, approvals.pending()) == (["sibling"], [])


@pytest.mark.parametrize("kind", ["tool", "fn"])
def test_a_map_items_value_that_can_not_be_sealed_fails_the_pause_and_runs_once(
    runner: Runner, approvals: Desk, tools: Tools, kind: str
) -> None:
    @tool(confirm=lambda amount: amount > 10)
    def handle_for(amount: int) -> Any:
        tools.ran.append(f"handle for {amount}")
        return Handle()

    async def handle(item, state, ctx):
        if item["amount"] > 10:
            await ctx.call(tools.pay, **item)
        tools.ran.append(f"handle for {item['amount']}")
        return Handle()

    items = [{"amount": 20}, {"amount": 1}]
    over: dict[str, Any] = {"over": lambda state: items, "into": "results"}
    action: Any = Map(**over, tool=handle_for) if kind == "tool" else Map(**over, fn=handle)
    flow = one_node(action)
    fails_to_pause(runner, flow, State(), "Handle", "1")
    assert (tools.ran, approvals.pending()) == (["handle for 1"], [])


@pytest.mark.parametrize("place", ["node", "Map item", "nested flow"])
def test_a_call_result_that_can_not_be_journaled_fails_the_pause_naming_the_call(
    runner: Runner, approvals: Desk, tools: Tools, place: str
) -> None:
    @tool
    def open_handle(name: str) -> Any:
        tools.ran.append("open_handle")
        return {"held": Handle()}

    async def work(state, ctx):
        await ctx.call(open_handle, name="door")
        await ctx.call(tools.pay, amount=5)

    async def item(item, state, ctx):
        await work(state, ctx)

    async def outer(state, ctx):
        await ctx.run_flow(one_node(work), State())

    action: Any = {
        "node": work,
        "Map item": Map(over=lambda state: [0], into="results", fn=item),
        "nested flow": outer,
    }[place]
    fails_to_pause(runner, one_node(action, name="outer"), State(), "open_handle", "held")
    assert (tools.ran, approvals.pending()) == (["open_handle"], [])


def test_a_call_whose_arguments_can_not_be_journaled_fails_the_pause_naming_the_call(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    async def work(state, ctx):
        await ctx.call(tools.look, at=Handle())
        await ctx.call(tools.pay, amount=5)

    fails_to_pause(runner, one_node(work), State(), "look")
    assert (len(tools.ran), approvals.pending()) == (1, [])


def test_a_failure_that_can_not_be_journaled_fails_the_pause_naming_the_call(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    class Broken(AdapterError):
        def __init__(self) -> None:
            super().__init__("it broke")
            self.handle = Handle()

    @tool
    def break_it() -> None:
        raise Broken

    async def work(state, ctx):
        with pytest.raises(Broken):
            await ctx.call(break_it)
        await ctx.call(tools.pay, amount=5)

    fails_to_pause(runner, one_node(work), State(), "break_it")
    assert approvals.pending() == []


def test_the_marker_is_gone_from_a_node_that_finished_before_the_pause(
    runner: Runner, tools: Tools
) -> None:
    @tool
    def open_handle() -> Any:
        return Handle()

    async def first(state, ctx):
        await ctx.call(open_handle)

    flow = Flow("shop", state=State)
    flow.node("first", first)
    flow.node("pay", Call(tools.pay, args={"amount": 1}))
    flow.edge(START, "first")
    flow.edge("first", "pay")
    flow.edge("pay", END)
    assert runner.run_sync(flow, State()).status == "paused"


def test_a_seal_encoder_and_decoder_replay_custom_results(approvals: Desk, tools: Tools) -> None:
    @tool
    def measure() -> complex:
        tools.ran.append("measure")
        return 1 + 2j

    async def work(state, ctx):
        measured = await ctx.call(measure)
        await ctx.call(tools.pay, amount=5)
        return {"results": [measured.real, measured.imag]}

    def encoder(value: Any) -> Any:
        return [value.real, value.imag]

    def decoder(name: str, value: Any) -> Any:
        if name != "builtins:complex":
            raise KeyError(name)
        return complex(*value)

    runner = runner_on(approvals.port, seal_encoder=encoder, seal_decoder=decoder)
    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.state.results, tools.ran) == ([1.0, 2.0], ["measure", "pay 5"])
