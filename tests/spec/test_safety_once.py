"""Each approval is spent once: by the store, by a node's own store, by the process's memory."""

from __future__ import annotations

import asyncio
import dataclasses
import time
import types
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from runs.engine import (
    END,
    START,
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalPending,
    ApprovalRequest,
    Call,
    DeferredApproval,
    Executor,
    Flow,
    FlowError,
    Gate,
    MemoryStore,
    memory,
)

from .support import (
    Desk,
    MemoryDesk,
    Runner,
    State,
    StorelessPort,
    Tools,
    memory_only,
    no,
    one_node,
    reload,
    runner_on,
    yes,
)


def paying(tools: Tools) -> Flow:
    return one_node(Call(tools.pay, args={"amount": 5}, into="value"))


@pytest.mark.parametrize("port", ["with a store", "without a store"])
def test_a_second_resume_is_refused_and_runs_nothing(
    approvals: Desk, tools: Tools, port: str
) -> None:
    runner = runner_on(approvals.port if port == "with a store" else StorelessPort())
    flow = paying(tools)
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, paused.checkpoint, yes())
    for decision in (yes(), no(), yes(paused.pending)):
        for checkpoint in (paused.checkpoint, reload(runner, flow, paused.checkpoint)):
            with pytest.raises(ApprovalAlreadyDecided):
                runner.resume_sync(flow, checkpoint, decision)
    assert tools.ran == ["pay 5"]


def test_a_second_resume_of_a_gate_is_refused_and_runs_nothing(
    runner: Runner, tools: Tools
) -> None:
    async def work(state, ctx):
        tools.ran.append("work")

    flow = one_node(work, gate=Gate())
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, paused.checkpoint, yes())
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["work"]


def test_a_second_resume_after_a_denial_is_refused(runner: Runner, tools: Tools) -> None:
    async def work(state, ctx):
        try:
            await ctx.call(tools.pay, amount=5)
        except FlowError:
            tools.ran.append("went on without")

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, paused.checkpoint, no())
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["went on without"]


@pytest.mark.parametrize("port", ["with a store", "without a store"])
def test_a_second_resume_with_the_answer_to_another_open_request_is_refused(
    approvals: Desk, tools: Tools, port: str
) -> None:
    runner = runner_on(approvals.port if port == "with a store" else StorelessPort())
    flow = Flow("shop", state=State)
    flow.node("pay", Call(tools.pay, args={"amount": 1}))
    flow.node("refund", Call(tools.refund, args={"amount": 2}))
    for name in ("pay", "refund"):
        flow.edge(START, name)
        flow.edge(name, END)
    first = runner.run_sync(flow, State())
    pay, refund = first.requests
    second = runner.resume_sync(flow, first.checkpoint, yes(pay))
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, first.checkpoint, yes(refund))
    assert tools.ran == ["pay 1"]
    done = runner.resume_sync(flow, second.checkpoint, yes(refund))
    assert (done.status, tools.ran) == ("completed", ["pay 1", "refund 2"])


@pytest.mark.parametrize("port", ["with a store", "without a store"])
def test_fifty_tasks_resume_one_checkpoint_and_one_runs(
    approvals: Desk, tools: Tools, port: str
) -> None:
    runner = runner_on(approvals.port if port == "with a store" else StorelessPort())
    flow = paying(tools)
    paused = runner.run_sync(flow, State())

    async def fifty() -> list[Any]:
        resumes = (runner.resume(flow, paused.checkpoint, yes()) for _ in range(50))
        return await asyncio.gather(*resumes, return_exceptions=True)

    ends = async_to_sync(fifty)()
    assert sum(isinstance(end, ApprovalAlreadyDecided) for end in ends) == 49
    assert tools.ran == ["pay 5"]


@pytest.mark.parametrize("approved", [True, False])
def test_the_record_in_the_ports_store_is_decided_and_consumed(
    runner: Runner, approvals: Desk, tools: Tools, approved: bool
) -> None:
    async def work(state, ctx):
        try:
            await ctx.call(tools.pay, amount=5)
        except FlowError:
            return None

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    pending = approvals.record(paused.pending)
    assert pending is not None
    assert (pending.decision, pending.consumed) == (None, False)
    runner.resume_sync(flow, paused.checkpoint, yes() if approved else no())
    record = approvals.record(paused.pending)
    assert record is not None
    assert record.decision is not None
    assert (record.decision.approved, record.decision.by) == (approved, "reviewer")
    assert record.consumed
    assert approvals.pending() == []


def twice_paused(runner: Runner, tools: Tools) -> tuple[Flow, Any, ApprovalRequest]:
    """A run paused a second time, whose checkpoint holds the first answer; and that request."""

    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)
        await ctx.call(tools.refund, amount=6)

    flow = one_node(work)
    first = runner.run_sync(flow, State())
    return flow, runner.resume_sync(flow, first.checkpoint, yes()), first.pending


def test_an_earlier_answer_that_the_store_has_as_pending_is_refused(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow, paused, earlier = twice_paused(runner, tools)
    store = approvals.another()
    store.add(earlier)
    store.add(paused.pending)
    with pytest.raises(ApprovalAlreadyDecided):
        runner_on(store.port).resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["pay 5"]
    assert store.pending() == [earlier.id, paused.pending.id]


@pytest.mark.parametrize("decision", ["same", "other"])
def test_an_earlier_answer_that_the_store_has_not_consumed_or_decided_otherwise_is_refused(
    runner: Runner, approvals: Desk, tools: Tools, decision: str
) -> None:
    flow, paused, earlier = twice_paused(runner, tools)
    store = approvals.another()
    store.add(earlier)
    store.decide(earlier, yes() if decision == "same" else no())
    store.add(paused.pending)
    with pytest.raises(ApprovalAlreadyDecided):
        runner_on(store.port).resume_sync(flow, paused.checkpoint, yes())
    assert (tools.ran, store.pending()) == (["pay 5"], [paused.pending.id])


def test_an_earlier_answer_that_the_store_consumed_with_another_decision_is_refused(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow, paused, earlier = twice_paused(runner, tools)
    store = approvals.another()
    store.add(earlier)
    store.consume(earlier, no())
    store.add(paused.pending)
    with pytest.raises(ApprovalAlreadyDecided):
        runner_on(store.port).resume_sync(flow, paused.checkpoint, yes())
    assert (tools.ran, store.pending()) == (["pay 5"], [paused.pending.id])


@memory_only("a run of the site has one port: an answer that is not on record is refused")
def test_an_earlier_answer_that_the_store_does_not_hold_belongs_to_another_port(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow, paused, _ = twice_paused(runner, tools)
    store = approvals.another()
    store.add(paused.pending)
    done = runner_on(store.port).resume_sync(flow, paused.checkpoint, yes())
    assert (done.status, tools.ran) == ("completed", ["pay 5", "refund 6"])


def on_own_executor(tools: Tools, desk: Desk) -> Flow:
    own = Executor(approvals=desk.port)

    async def work(state, ctx):
        seen = await ctx.call(tools.look, at="shelf")
        paid = await ctx.call_on(own, tools.pay, amount=5)
        return {"results": [seen, paid]}

    return one_node(work)


@memory_only("a run of the site has one store: nobody could decide in a node's own")
@pytest.mark.parametrize("port", ["with a store", "without a store"])
def test_a_nodes_own_store_has_the_record_which_is_decided_and_consumed_there(
    approvals: Desk, tools: Tools, port: str
) -> None:
    own = MemoryDesk()
    flow = on_own_executor(tools, own)
    runner = runner_on(approvals.port if port == "with a store" else StorelessPort())
    paused = runner.run_sync(flow, State())
    assert (own.pending(), approvals.pending()) == ([paused.pending.id], [])
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.results == ["seen shelf, 1", "paid 5"]
    record = own.record(paused.pending)
    assert record is not None
    assert (record.consumed, record.decision is not None and record.decision.approved) == (
        True,
        True,
    )
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["look shelf", "pay 5"]


@memory_only("a run of the site has one store: nobody could decide in a node's own")
@pytest.mark.parametrize("consumed", [False, True])
def test_a_record_decided_otherwise_in_a_nodes_own_store_denies_the_call(
    runner: Runner, approvals: Desk, tools: Tools, consumed: bool
) -> None:
    own = MemoryDesk()
    flow = on_own_executor(tools, own)
    paused = runner.run_sync(flow, State())
    if consumed:
        own.consume(paused.pending, no())
    else:
        own.decide(paused.pending, no())
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["look shelf"]


@memory_only("a run of the site has one store: nobody could decide in a node's own")
def test_a_node_may_catch_that_its_own_store_was_decided_otherwise(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    own = MemoryDesk()
    executor = Executor(approvals=own.port)

    async def work(state, ctx):
        try:
            return {"value": await ctx.call_on(executor, tools.pay, amount=5)}
        except ApprovalAlreadyDecided:
            return {"value": "went on without"}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    own.consume(paused.pending, no())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.state.value, tools.ran) == ("went on without", [])


def test_without_a_store_the_process_remembers_resumed_approvals_for_every_runner(
    tools: Tools,
) -> None:
    flow = paying(tools)
    paused = runner_on(StorelessPort()).run_sync(flow, State())
    runner_on(StorelessPort()).resume_sync(flow, paused.checkpoint, yes())
    with pytest.raises(ApprovalAlreadyDecided):
        runner_on(StorelessPort()).resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["pay 5"]


def test_the_memory_of_resumed_approvals_is_bounded(
    monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    monkeypatch.setattr(memory, "REMEMBERED_ENTRIES", 3)
    flow, runner = paying(tools), runner_on(StorelessPort())
    paused = [runner.run_sync(flow, State()) for _ in range(5)]
    for result in paused:
        runner.resume_sync(flow, result.checkpoint, yes())
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused[-1].checkpoint, yes())
    assert len(tools.ran) == 5
    runner.resume_sync(flow, paused[0].checkpoint, yes())
    assert len(tools.ran) == 6


@pytest.mark.parametrize(("hours", "remembered"), [(23.9, True), (24.1, False)])
def test_the_memory_of_resumed_approvals_lasts_a_day(
    monkeypatch: pytest.MonkeyPatch, tools: Tools, hours: float, remembered: bool
) -> None:
    now = time.monotonic()
    flow, runner = paying(tools), runner_on(StorelessPort())
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, paused.checkpoint, yes())
    later = types.SimpleNamespace(monotonic=lambda: now + hours * 3600)
    monkeypatch.setattr(memory, "time", later)
    if remembered:
        with pytest.raises(ApprovalAlreadyDecided):
            runner.resume_sync(flow, paused.checkpoint, yes())
    else:
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert len(tools.ran) == (1 if remembered else 2)


def test_after_an_entry_is_evicted_a_store_still_refuses(
    monkeypatch: pytest.MonkeyPatch, runner: Runner, tools: Tools
) -> None:
    flow = paying(tools)
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, paused.checkpoint, yes())
    monkeypatch.setattr("runs.engine.runner.resumed", memory.ResumedApprovals())
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert tools.ran == ["pay 5"]


@pytest.mark.parametrize("name", ["", None])
def test_a_pending_that_names_no_tool_is_refused(tools: Tools, name: Any) -> None:
    class Nameless(StorelessPort):
        async def request(self, request: ApprovalRequest) -> ApprovalDecision:
            raise ApprovalPending(dataclasses.replace(request, tool=name))

    runner = runner_on(Nameless())
    flow = paying(tools)
    with pytest.raises(FlowError):
        runner.resume_sync(flow, runner.run_sync(flow, State()).checkpoint, yes())
    assert tools.ran == []


def test_a_refused_settle_does_not_spend_the_checkpoint(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow = paying(tools)
    paused = runner.run_sync(flow, State())
    decision = ApprovalDecision.approve("second reviewer")
    approvals.decide(paused.pending, decision)
    with pytest.raises(ApprovalAlreadyDecided, match="second reviewer"):
        runner.resume_sync(flow, paused.checkpoint, no())
    assert tools.ran == []
    done = runner.resume_sync(flow, paused.checkpoint, decision)
    assert (done.status, tools.ran) == ("completed", ["pay 5"])
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, decision)


class UnreachableStore(MemoryStore):
    """A store that can't be reached while ``down``."""

    down = False

    async def settle(self, *told: Any) -> set[str]:
        if self.down:
            raise ConnectionError("the store is away")
        return await super().settle(*told)


def test_an_unreachable_store_does_not_spend_the_checkpoint(tools: Tools) -> None:
    store = UnreachableStore()
    runner = runner_on(DeferredApproval(store))
    flow = paying(tools)
    paused = runner.run_sync(flow, State())
    store.down = True
    for _ in range(2):
        with pytest.raises((ConnectionError, FlowError)) as caught:
            runner.resume_sync(flow, paused.checkpoint, yes())
        assert not isinstance(caught.value, ApprovalAlreadyDecided)
    assert tools.ran == []
    store.down = False
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert (done.status, tools.ran) == ("completed", ["pay 5"])
