"""Gates: a pause before a node runs."""

import threading
from typing import Any

import pytest
from pydantic import BaseModel

from runs.engine import END, START, Call, Flow, Gate, Human, tool

from .support import State, World, approve, deny, fails, flow_of


class Form(BaseModel):
    note: str


@tool
def add(number: int) -> int:
    return number + 1


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


def entered(state: State, ctx: Any) -> dict[str, Any]:
    return {"text": "entered", "value": ctx.answer}


def with_rejected_edge(action: Any, gate: Gate) -> Flow:
    flow = Flow("flow", state=State)
    flow.node("node", action, gate=gate)
    flow.node("no", lambda state, ctx: {"text": "no"})
    flow.edge(START, "node")
    flow.edge("node", END)
    flow.edge("node", "no", port="rejected")
    return flow


def test_nothing_of_the_node_runs_before_the_yes() -> None:
    world, flow = World(), flow_of(entered, gate=Gate())
    paused = world.run(flow)
    assert paused.state.text == ""
    assert paused.pending is not None
    assert paused.pending.kind == "gate"
    assert paused.pending.tool == "node:flow.node"
    assert paused.pending.summary == "Go on with node"
    done = world.resume(flow, paused, approve())
    assert done.state.text == "entered"
    assert done.state.value is True


def test_the_payload_is_what_is_shown_and_fills_the_message() -> None:
    gate = Gate(
        payload=lambda state: {"amount": state.number, "token": "hunter2"},
        message="Pay {amount} with {token}",
    )
    (request,) = World().run(flow_of(entered, gate=gate), State(number=5)).requests
    assert request.arguments == {"amount": 5, "token": "hunter2"}
    assert request.summary.startswith("Pay 5 with")
    assert "hunter2" not in request.summary + repr(request) + str(request.shown())


def test_an_async_payload_is_awaited() -> None:
    async def payload(state: State) -> Any:
        return {"a": 1}

    (request,) = World().run(flow_of(entered, gate=Gate(payload=payload))).requests
    assert request.arguments == {"a": 1}


def test_the_payload_is_made_once_and_not_again_on_resume() -> None:
    made: list[int] = []

    def payload(state: State) -> dict[str, Any]:
        made.append(1)
        return {}

    world, flow = World(), flow_of(entered, gate=Gate(payload=payload))
    world.resume(flow, world.run(flow), approve())
    assert made == [1]


def test_a_payload_cannot_change_what_the_node_sees() -> None:
    def payload(state: State) -> dict[str, Any]:
        state.number = 99
        return {"number": state.number}

    def node(state: State, ctx: Any) -> dict[str, Any]:
        return {"text": str(state.number)}

    world, flow = World(), flow_of(node, gate=Gate(payload=payload))
    assert world.resume(flow, world.run(flow), approve()).state.text == "0"


@pytest.mark.parametrize("payload", [None, 5, "text", [("a", 1)], State()], ids=repr)
def test_a_payload_that_is_no_mapping_fails_without_a_record(payload: Any) -> None:
    world = World()
    with fails("node-failed") as caught:
        world.run(flow_of(entered, gate=Gate(payload=lambda state: payload)))
    assert type(payload).__name__ in str(caught.value)
    assert "approval.requested" not in world.kinds()
    assert world.store.pending() == []


def test_a_payload_that_raises_fails_without_a_record() -> None:
    def payload(state: State) -> dict[str, Any]:
        raise LookupError("gone")

    world = World()
    with fails("node-failed") as caught:
        world.run(flow_of(entered, gate=Gate(payload=payload)))
    assert isinstance(caught.value.__cause__, LookupError)
    assert "approval.requested" not in world.kinds()


def test_a_payload_that_cannot_be_sealed_makes_no_record_and_is_named() -> None:
    world = World()
    gate = Gate(payload=lambda state: {"list": [1, {"lock": threading.Lock()}]})
    with fails("state-not-sealable") as caught:
        world.run(flow_of(entered, gate=gate))
    assert 'payload["list"][1]["lock"]' in str(caught.value)
    assert "approval.requested" not in world.kinds()
    assert world.store.pending() == []


def test_a_state_that_cannot_be_sealed_makes_no_record_and_is_named() -> None:
    world = World()
    with fails("state-not-sealable") as caught:
        world.run(flow_of(entered, gate=Gate()), State(value=object()))
    assert "state.value" in str(caught.value)
    assert "approval.requested" not in world.kinds()


def test_a_payload_whose_names_are_no_text_is_shown_or_refused_without_a_record() -> None:
    def odd_names(state: State) -> Any:
        return {1: "a"}

    world = World()
    try:
        paused = world.run(flow_of(entered, gate=Gate(payload=odd_names)))
    except Exception:
        assert world.store.pending() == []
    else:
        assert "1" in repr(paused.pending)


def test_a_refused_gate_goes_by_the_rejected_edge_where_there_is_one() -> None:
    world, flow = World(), with_rejected_edge(entered, Gate(form=Form))
    done = world.resume(flow, world.run(flow), deny())
    assert done.state.text == "no"
    done = world.resume(flow, world.run(flow), approve(content={"note": "a"}))
    assert done.state.text == "entered"


def test_a_refused_gate_is_an_error_otherwise() -> None:
    world, flow = World(), flow_of(entered, gate=Gate())
    with fails("approval-denied") as caught:
        world.resume(flow, world.run(flow), deny(reason="not now"))
    assert caught.value.node == "node"
    assert "not now" in str(caught.value)


def test_a_refused_call_node_goes_by_the_rejected_edge_too() -> None:
    flow = Flow("flow", state=State)
    flow.node("node", Call(pay, args={"amount": 1}))
    flow.node("no", lambda state, ctx: {"text": "no"})
    flow.edge(START, "node")
    flow.edge("node", "no", port="rejected")
    world = World()
    assert world.resume(flow, world.run(flow), deny()).state.text == "no"
    assert world.resume(flow, world.run(flow), approve()).state.text == ""


def test_a_wrong_answer_to_a_gate_decides_nothing() -> None:
    world, flow = World(), flow_of(entered, gate=Gate(form=Form))
    paused = world.run(flow)
    for content in (None, {}, {"note": 5}):
        with fails("invalid-answer"):
            world.resume(flow, paused, approve(content=content))
    with fails("invalid-answer"):
        world.resume(flow, paused, approve(content={"note": "a"}, arguments={"a": 1}))
    assert len(world.store.pending()) == 1
    done = world.resume(flow, paused, approve(content={"note": "a"}))
    assert done.state.value == Form(note="a")


def test_the_answer_of_the_gate_is_seen_again_after_a_pause_of_the_node() -> None:
    seen: list[Any] = []

    async def node(state: State, ctx: Any) -> None:
        seen.append(ctx.answer)
        await ctx.call(pay, amount=1)
        await ctx.call(pay, amount=2)

    world, flow = World(), flow_of(node, gate=Gate(form=Form))
    paused = world.resume(flow, world.run(flow), approve(content={"note": "a"}))
    paused = world.resume(flow, paused, approve())
    assert world.resume(flow, paused, approve()).status == "completed"
    assert seen == [Form(note="a")] * 3


def test_the_answer_does_not_change_when_the_node_changes_it_in_place() -> None:
    seen: list[str] = []

    async def node(state: State, ctx: Any) -> None:
        seen.append(ctx.answer.note)
        ctx.answer.note = "spoiled"
        await ctx.call(pay, amount=1)

    world, flow = World(), flow_of(node, gate=Gate(form=Form))
    paused = world.run(flow)
    assert paused.checkpoint is not None
    runner = world.runner
    paused = runner.resume_sync(flow, paused.checkpoint, approve(content=Form(note="a")))
    assert paused.checkpoint is not None
    runner.resume_sync(flow, paused.checkpoint, approve())
    assert seen == ["a", "a"]


def test_without_a_gate_there_is_no_answer() -> None:
    assert World().run(flow_of(entered)).state.value is None


def test_a_gate_stands_before_a_question_and_a_call_too() -> None:
    flow = Flow("flow", state=State)
    flow.node("ask", Human("Really?", into="value"), gate=Gate(message="May I ask?"))
    flow.node(
        "call", Call(add, into="number", args={"number": 1}), gate=Gate(message="May I call?")
    )
    flow.edge(START, "ask")
    flow.edge("ask", "call", port="approved")
    flow.edge("ask", END, port="rejected")
    world = World()
    paused = world.run(flow)
    said = []
    while paused.pending is not None:
        said.append(paused.pending.summary)
        paused = world.resume(flow, paused, approve())
    assert said == ["May I ask?", "Really?", "May I call?"]
    assert (paused.state.number, paused.state.value) == (2, True)


def test_two_visits_of_one_node_have_two_gates() -> None:
    flow = flow_of(lambda state, ctx: {"number": state.number + 1}, gate=Gate())
    flow.route(
        "node", lambda s: "again" if s.number < 2 else "stop", {"again": "node", "stop": END}
    )
    world = World()
    paused = world.resume(flow, world.run(flow), approve())
    assert paused.status == "paused"
    assert world.resume(flow, paused, approve()).state.number == 2
