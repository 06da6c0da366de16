"""When a flow pauses, and the sequence that the specification draws."""

from __future__ import annotations

from runs.engine import (
    ApprovalDecision,
    ApprovalPending,
    ApprovalRequest,
    Call,
    DeferredApproval,
    Gate,
)

from .support import (
    DecidingPort,
    Desk,
    Runner,
    State,
    StorelessPort,
    Tools,
    one_node,
    reload,
    runner_on,
    yes,
)


def test_a_flow_pauses_at_a_gate_before_the_node_runs(runner: Runner) -> None:
    ran: list[str] = []

    async def work(state, ctx):
        ran.append("work")

    flow = one_node(work, gate=Gate(payload=lambda state: {"amount": state.amount}))
    paused = runner.run_sync(flow, State(amount=3))
    assert (paused.status, ran) == ("paused", [])
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert (done.status, ran) == ("completed", ["work"])


def test_a_flow_pauses_when_a_tool_inside_a_node_needs_an_approval(
    runner: Runner, tools: Tools
) -> None:
    async def work(state, ctx):
        return {"value": await ctx.call(tools.pay, amount=5)}

    paused = runner.run_sync(one_node(work), State())
    assert (paused.status, tools.ran) == ("paused", [])


def test_a_flow_does_not_pause_for_an_approval_that_is_decided_already(tools: Tools) -> None:
    runner = runner_on(DecidingPort(yes()))
    flow = one_node(Call(tools.pay, args={"amount": 5}, into="value"))
    done = runner.run_sync(flow, State())
    assert (done.status, done.state.value, tools.ran) == ("completed", "paid 5", ["pay 5"])


def test_a_flow_without_gate_or_confirmed_tool_does_not_pause(runner: Runner, tools: Tools) -> None:
    flow = one_node(Call(tools.look, args={"at": "shelf"}, into="value"))
    assert runner.run_sync(flow, State()).status == "completed"


def test_resume_continues_the_same_run(runner: Runner, tools: Tools) -> None:
    seen: list[str] = []

    async def work(state, ctx):
        seen.append(ctx.run_id)
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State(), run_id="run-1")
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert (done.status, done.run_id) == ("completed", "run-1")
    assert seen == ["run-1", "run-1"]


class NotingPort(DeferredApproval):
    """A port with a store that notes how each request of the diagram was answered."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.told = told

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        self.told.append(f"request {request.tool}")
        try:
            return await super().request(request)
        except ApprovalPending:
            self.told.append("ApprovalPending")
            raise


def test_the_diagram_of_a_finished_call_and_a_confirmed_call(tools: Tools) -> None:
    told = tools.ran

    async def work(state, ctx):
        told.append("node: call A")
        first = await ctx.call(tools.look, at="A")
        told.append("node: call B")
        second = await ctx.call(tools.pay, amount=5)
        told.append("node: end")
        return {"results": [first, second]}

    runner = runner_on(NotingPort(told))
    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    assert paused.status == "paused"
    assert told == [
        "node: call A",
        "look A",
        "node: call B",
        "request pay",
        "ApprovalPending",
    ]
    told.clear()
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert told == ["node: call A", "node: call B", "pay 5", "node: end"]
    assert done.state.results == ["seen A, 2", "paid 5"]


def test_an_approval_is_no_answer_to_a_second_request_of_the_port(
    approvals: Desk, tools: Tools
) -> None:
    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)
        await ctx.call(tools.pay, amount=5)

    runner = runner_on(approvals.port)
    flow = one_node(work)
    first = runner.run_sync(flow, State())
    second = runner.resume_sync(flow, first.checkpoint, yes())
    assert second.status == "paused"
    assert tools.ran == ["pay 5"]


def test_a_port_without_a_store_pauses_a_flow_too(tools: Tools) -> None:
    port = StorelessPort()
    runner = runner_on(port)
    flow = one_node(Call(tools.pay, args={"amount": 5}))
    paused = runner.run_sync(flow, State())
    assert [request.id for request in port.asked] == [paused.pending.id]
    assert runner.resume_sync(flow, paused.checkpoint, yes()).status == "completed"
    assert tools.ran == ["pay 5"]
