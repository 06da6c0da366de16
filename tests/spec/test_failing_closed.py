"""A pause whose parts can't all be sealed fails closed: nobody is left to answer it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from runs.engine import (
    END,
    START,
    Call,
    Event,
    Executor,
    Flow,
    FlowError,
    Gate,
    Human,
    Map,
    tool,
)

from .sealing import Handle, fails_to_pause
from .support import (
    Desk,
    MemoryDesk,
    Runner,
    State,
    StorelessPort,
    Tools,
    one_node,
    reload,
    runner_on,
    withdrawn,
    yes,
)


def test_a_flow_that_never_pauses_may_hold_anything(runner: Runner, tools: Tools) -> None:
    handle = Handle()

    @tool
    def open_handle() -> Any:
        return handle

    async def work(state, ctx):
        await ctx.call(tools.look, at=state.value)
        return {"results": [await ctx.call(open_handle), state.value]}

    done = runner.run_sync(one_node(work), State(value=handle))
    assert done.status == "completed"
    assert [type(held) for held in done.state.results] == [Handle, Handle]


def test_a_flow_may_hold_anything_once_it_no_longer_pauses(runner: Runner, tools: Tools) -> None:
    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)
        return {"value": Handle()}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert isinstance(done.state.value, Handle)


def test_a_gate_checks_the_state_before_the_port_is_asked(tools: Tools) -> None:
    async def work(state, ctx):
        tools.ran.append("work")

    port = StorelessPort()
    flow = one_node(work, gate=Gate())
    state = State(items=[{"handle": Handle()}])
    fails_to_pause(runner_on(port), flow, state, "items", "handle", "Handle")
    assert (port.asked, tools.ran) == ([], [])


def test_a_gate_checks_its_payload_before_the_port_is_asked() -> None:
    async def work(state, ctx):
        return None

    port = StorelessPort()
    flow = one_node(work, gate=Gate(payload=lambda state: {"shown": [Handle()]}))
    fails_to_pause(runner_on(port), flow, State(), "shown", "Handle")
    assert port.asked == []


def test_a_gate_that_can_not_pause_makes_no_record(runner: Runner, approvals: Desk) -> None:
    events: list[Event] = []

    async def work(state, ctx):
        return None

    runner = runner_on(approvals.port, events=events)
    fails_to_pause(runner, one_node(work, gate=Gate()), State(value=Handle()), "value")
    assert approvals.pending() == []
    assert [event for event in events if event.kind.startswith("approval.")] == []


def test_a_question_checks_the_state_before_the_port_is_asked() -> None:
    port = StorelessPort()
    flow = Flow("shop", state=State)
    flow.node("ask", Human("Go on?"))
    flow.edge(START, "ask")
    flow.edge("ask", END, port="approved")
    flow.edge("ask", END, port="rejected")
    fails_to_pause(runner_on(port), flow, State(value=Handle()), "value")
    assert port.asked == []


def asked_in(events: list[Event]) -> list[Any]:
    return [event.data["request"] for event in events if event.kind == "approval.requested"]


class Asked:
    """A desk's port that keeps the requests it was asked."""

    def __init__(self, desk: Desk) -> None:
        self.inner, self.store = desk.port, desk.port.store
        self.requests: list[Any] = []

    async def request(self, request: Any) -> Any:
        self.requests.append(request)
        return await self.inner.request(request)


@pytest.mark.parametrize("kind", ["call", "concurrent calls", "Map over a tool", "Map over fn"])
def test_every_pending_record_of_the_paused_visits_is_denied_and_consumed(
    approvals: Desk, tools: Tools, kind: str
) -> None:
    async def concurrent(state, ctx):
        await asyncio.gather(*(ctx.call(tools.pay, amount=n) for n in (1, 2, 3)))

    async def handle(item, state, ctx):
        await ctx.call(tools.pay, **item)

    items = [{"amount": n} for n in (1, 2, 3)]
    action: Any = {
        "call": Call(tools.pay, args={"amount": 1}),
        "concurrent calls": concurrent,
        "Map over a tool": Map(over=lambda state: items, into="results", tool=tools.pay),
        "Map over fn": Map(over=lambda state: items, into="results", fn=handle),
    }[kind]
    port = Asked(approvals)
    fails_to_pause(runner_on(port), one_node(action), State(value=Handle()), "value", "Handle")
    assert len(port.requests) == (1 if kind == "call" else 3)
    assert all(withdrawn(approvals, request) for request in port.requests)
    assert (approvals.pending(), tools.ran) == ([], [])


def test_the_records_of_all_paused_visits_side_by_side_are_withdrawn(
    approvals: Desk, tools: Tools
) -> None:
    flow = Flow("shop", state=State)
    flow.node("pay", Call(tools.pay, args={"amount": 1}))
    flow.node("refund", Call(tools.refund, args={"amount": 2}))
    for name in ("pay", "refund"):
        flow.edge(START, name)
        flow.edge(name, END)
    port = Asked(approvals)
    fails_to_pause(runner_on(port), flow, State(value=Handle()), "value")
    assert [withdrawn(approvals, request) for request in port.requests] == [True, True]


def test_a_record_kept_from_an_earlier_pause_is_withdrawn_when_the_next_pause_fails(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    async def finish(state, ctx):
        await ctx.call(tools.pay, amount=1)
        return {"value": Handle()}

    flow = Flow("shop", state=State)
    flow.node("finish", finish)
    flow.node("refund", Call(tools.refund, args={"amount": 2}))
    for name in ("finish", "refund"):
        flow.edge(START, name)
        flow.edge(name, END)
    first = runner.run_sync(flow, State())
    pay, refund = first.requests
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, reload(runner, flow, first.checkpoint), yes(pay))
    assert caught.value.code == "state-not-sealable"
    assert withdrawn(approvals, refund)
    assert (approvals.pending(), tools.ran) == ([], ["pay 1"])


def test_the_record_in_a_nodes_own_store_is_denied_and_consumed(
    approvals: Desk, tools: Tools
) -> None:
    own = MemoryDesk()
    port = Asked(own)
    executor = Executor(approvals=port)

    async def work(state, ctx):
        await ctx.call_on(executor, tools.pay, amount=5)

    fails_to_pause(runner_on(approvals.port), one_node(work), State(value=Handle()), "value")
    (request,) = port.requests
    assert withdrawn(own, request)
    assert (own.pending(), approvals.pending(), tools.ran) == ([], [], [])


def test_the_withdrawal_is_told_as_an_event(approvals: Desk, tools: Tools) -> None:
    events: list[Event] = []
    runner = runner_on(approvals.port, events=events)
    flow = one_node(Call(tools.pay, args={"amount": 1}))
    fails_to_pause(runner, flow, State(value=Handle()))
    told = [event.data for event in events if event.kind == "approval.decided"]
    assert [(data["request"], data["withdrawn"]) for data in told] == [
        (request, True) for request in asked_in(events)
    ]
    assert len(told) == 1


def test_without_a_store_the_log_names_the_approval_and_an_event_says_it_stays_open(
    caplog: pytest.LogCaptureFixture, tools: Tools
) -> None:
    port = StorelessPort()
    events: list[Event] = []
    runner = runner_on(port, events=events)

    async def work(state, ctx):
        await asyncio.gather(ctx.call(tools.pay, amount=1), ctx.call(tools.pay, amount=2))

    with caplog.at_level(logging.ERROR):
        fails_to_pause(runner, one_node(work), State(value=Handle()))
    assert len(port.asked) == 2
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    told = [event.data for event in events if event.kind == "approval.decided"]
    for request in port.asked:
        assert len([line for line in errors if request.id in line]) == 1
        assert [data["withdrawn"] for data in told if data["request"] == request.id] == [False]


def test_a_nodes_own_port_without_a_store_is_logged_though_the_runners_port_has_one(
    caplog: pytest.LogCaptureFixture, approvals: Desk, tools: Tools
) -> None:
    port = StorelessPort()
    executor = Executor(approvals=port)
    events: list[Event] = []

    async def work(state, ctx):
        await ctx.call_on(executor, tools.pay, amount=5)

    runner = runner_on(approvals.port, events=events)
    with caplog.at_level(logging.ERROR):
        fails_to_pause(runner, one_node(work), State(value=Handle()))
    (request,) = port.asked
    assert [
        r for r in caplog.records if r.levelno == logging.ERROR and request.id in r.getMessage()
    ]
    told = [event.data for event in events if event.kind == "approval.decided"]
    assert [data["withdrawn"] for data in told if data["request"] == request.id] == [False]


def test_a_pause_inside_a_nested_flow_checks_the_nested_state_too(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    async def gated(state, ctx):
        return None

    inner = one_node(gated, gate=Gate())

    async def outer(state, ctx):
        await ctx.run_flow(inner, State(value=Handle()))

    fails_to_pause(runner, one_node(outer, name="outer"), State(), "value", "Handle")
    assert approvals.pending() == []
