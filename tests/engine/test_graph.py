"""A graph is checked when it is built, and its digest covers all that a run relies on."""

import functools
from typing import Any

import pytest
from pydantic import BaseModel

from runs.engine import END, START, Call, Flow, FlowError, Gate, Go, Human, Map, tool
from runs.engine.description import changes_between

from .support import KEY, State, World, approve, fails, flow_of, output_of, question


class OtherState(State):
    pass


class Form(BaseModel):
    note: str = ""


class OtherForm(BaseModel):
    note: str = ""


@tool
def add(number: int) -> int:
    return number + 1


@tool
def other(number: int) -> int:
    return number


def work(state: State, ctx: Any) -> None:
    return None


def other_work(state: State, ctx: Any) -> None:
    return None


def choose(state: State) -> str:
    return "on"


def choose_else(state: State) -> str:
    return "on"


def shown(state: State) -> dict[str, Any]:
    return {"number": state.number}


def listed(state: State) -> list[Any]:
    return state.items


def shown_else(state: State) -> dict[str, Any]:
    return {}


def faults_of(flow: Flow) -> list[str]:
    with fails("invalid-graph") as caught:
        flow.check()
    first, *faults = str(caught.value).splitlines()
    assert first == f"The graph of flow {flow.name!r} can't run as it is:"
    return [fault.removeprefix("- ") for fault in faults]


def test_a_sound_graph_has_no_faults() -> None:
    flow_of(work).check()


def test_all_faults_are_reported_together() -> None:
    flow = Flow("many", state=State)
    flow.node("a", work)
    flow.node("a", work)
    flow.node("bare", add)
    flow.node("nothing", 5)  # type: ignore[arg-type]
    flow.node("lost", work)
    flow.edge("a", "nowhere")
    flow.edge("nobody", "a")
    faults = faults_of(flow)
    assert "two nodes are named 'a'" in faults
    assert "node 'bare' is a bare tool; make it Call(add, ...)" in faults
    assert "node 'nothing' is no function, Call, Map or Human" in faults
    assert "an edge leads to 'nowhere', which is no node" in faults
    assert "an edge leaves from 'nobody', which is no node" in faults
    assert "no edge leads from START to a node" in faults
    assert "node 'lost' can't be reached from START" in faults


def test_a_run_of_a_faulty_graph_starts_nothing() -> None:
    world = World()
    flow = flow_of(work)
    flow.edge("node", "nowhere")
    with fails("invalid-graph"):
        world.run(flow)
    assert world.events == []


def test_faults_that_are_mended_by_a_later_line_are_gone() -> None:
    flow = flow_of(work)
    flow.edge("node", "later")
    assert faults_of(flow) == ["an edge leads to 'later', which is no node"]
    flow.node("later", work)
    flow.check()


@pytest.mark.parametrize("name", [START, END])
def test_a_node_may_not_take_the_name_of_an_end(name: str) -> None:
    flow = flow_of(work)
    flow.node(name, work)
    assert any(name in fault for fault in faults_of(flow))


def test_edges_into_start_and_out_of_end_are_faults() -> None:
    flow = flow_of(work)
    flow.edge("node", START)
    flow.edge(END, "node")
    faults = faults_of(flow)
    assert "an edge leads to '__start__', which is no node" in faults
    assert "an edge leaves from '__end__', which is no node" in faults


def test_an_edge_from_start_to_end_only_is_no_start() -> None:
    flow = Flow("empty", state=State)
    flow.edge(START, END)
    assert "no edge leads from START to a node" in faults_of(flow)


@pytest.mark.parametrize("port", ["approved", "x"])
def test_an_edge_from_start_has_no_port(port: str) -> None:
    flow = flow_of(work)
    flow.edge(START, "node", port=port)
    assert "an edge from START has neither a port nor further sources" in faults_of(flow)


def test_start_is_no_part_of_a_join() -> None:
    flow = flow_of(work)
    flow.node("then", work)
    flow.edge([START, "node"], "then")
    assert "an edge from START has neither a port nor further sources" in faults_of(flow)


def test_an_edge_without_sources_is_a_fault() -> None:
    flow = flow_of(work)
    flow.edge([], "node")
    assert "an edge to 'node' has no source" in faults_of(flow)


def test_route_targets_and_sources_are_checked() -> None:
    flow = flow_of(work)
    flow.route("node", choose, {"on": "nowhere"})
    flow.route("nobody", choose, {"on": END})
    flow.node("twice", work)
    flow.route("twice", choose, {"on": END})
    flow.route("twice", choose, {"on": END})
    faults = faults_of(flow)
    assert "an edge leads to 'nowhere', which is no node" in faults
    assert "an edge leaves from 'nobody', which is no node" in faults
    assert "node 'twice' has two routes" in faults


def test_a_route_after_start_is_a_fault_because_no_run_would_take_it() -> None:
    flow = flow_of(work)
    flow.node("other", work)
    flow.route(START, choose, {"on": "other"})
    assert any("START" in fault for fault in faults_of(flow))


def test_an_edge_to_several_nodes_is_a_fault_in_words() -> None:
    flow = flow_of(work)
    with pytest.raises((FlowError, TypeError), match="edge"):  # noqa: PT012  here or there
        flow.edge("node", ["a", "b"])
        flow.check()


def test_a_question_leads_on_by_both_its_ports() -> None:
    flow = Flow("asks", state=State)
    flow.node("ask", Human("Go on?"))
    flow.edge(START, "ask")
    assert len([f for f in faults_of(flow) if "no edge leaves the question 'ask'" in f]) == 2


def test_an_unnamed_way_out_of_a_question_is_a_fault() -> None:
    flow = question(Human("Go on?"))
    flow.edge("ask", END)
    assert any("without a port" in fault for fault in faults_of(flow))


def test_a_route_after_a_question_is_a_fault() -> None:
    flow = question(Human("Go on?"))
    flow.route("ask", choose, {"on": END})
    assert any("without a port" in fault for fault in faults_of(flow))


def test_ports_that_a_question_or_a_call_does_not_have_are_faults() -> None:
    flow = question(Human("Go on?"))
    flow.edge("ask", END, port="maybe")
    flow.node("call", Call(add, args={"number": 1}))
    flow.edge(START, "call")
    flow.edge("call", END, port="approved")
    faults = faults_of(flow)
    assert "an edge leaves 'ask' by 'maybe', a port that it does not have" in faults
    assert "an edge leaves 'call' by 'approved', a port that it does not have" in faults


def test_results_go_into_fields_of_the_state() -> None:
    flow = question(Human("Pay {amount} of {number}?", into="answer"))
    flow.node("call", Call(add, into="sum"))
    flow.edge(START, "call")
    faults = faults_of(flow)
    assert "node 'ask' puts its result into 'answer', which is no state field" in faults
    assert "node 'call' puts its result into 'sum', which is no state field" in faults
    assert "the message of 'ask' names 'amount', which is no state field" in faults
    assert len(faults) == 3


def test_a_message_that_is_no_format_is_listed_with_the_other_faults() -> None:
    flow = question(Human("Pay {number"))
    flow.edge("ask", "nowhere", port="approved")
    faults = faults_of(flow)
    assert any("message" in fault and "'ask'" in fault for fault in faults)
    assert "an edge leads to 'nowhere', which is no node" in faults


def test_static_arguments_that_cannot_be_sealed_are_a_fault_of_the_graph() -> None:
    flow = flow_of(Call(add, args={"number": object()}))
    assert any("'node'" in fault or "node.args" in fault for fault in faults_of(flow))


def test_a_form_that_is_no_schema_is_a_fault_of_the_graph() -> None:
    flow = question(Human("Go on?", form={"type": "objct"}))
    assert any("form" in fault and "'ask'" in fault for fault in faults_of(flow))


def test_a_map_takes_a_tool_or_a_function() -> None:
    flow = flow_of(Map(over=listed, into="items"))
    assert "the Map 'node' takes either a tool or a function (fn)" in faults_of(flow)
    flow = flow_of(
        Map(over=listed, into="items", tool=add, fn=work, concurrency=0, on_error="x")  # type: ignore[arg-type]
    )
    assert len(faults_of(flow)) == 3


def a_flow(**parts: Any) -> Flow:
    """A flow with everything that the digest covers, each part to be replaced by name."""
    get = parts.get
    flow = Flow(get("name", "flow"), state=get("state", State), version=get("version", "1"))
    gate = Gate(
        payload=get("payload", shown),
        form=get("gate_form", Form),
        message=get("gate_message", "Go on with {number}"),
    )
    flow.node("first", get("function", work), gate=None if get("no_gate") else gate)
    flow.node(
        get("ask", "ask"), Human(get("message", "Go on?"), form=get("form"), into=get("into"))
    )
    flow.node(
        "call",
        Call(
            get("tool", add),
            into=get("call_into"),
            args=get("args", {"number": 1}),
            select=get("select"),
        ),
    )
    flow.edge(START, "first")
    flow.edge("first", get("ask", "ask"), port=get("port"))
    flow.edge(get("ask", "ask"), "call", port="approved")
    flow.edge(get("ask", "ask"), get("rejected", END), port="rejected")
    if get("route", choose):
        flow.route("call", get("route", choose), get("targets", {"on": END}))
    return flow


CHANGES = [
    ({"name": "else"}, "the flow was named 'flow' and is now 'else'"),
    ({"state": OtherState}, "the state was"),
    ({"function": other_work}, "node 'first': function was"),
    ({"payload": shown_else}, "node 'first': gate was"),
    ({"gate_form": OtherForm}, "node 'first': gate was"),
    ({"no_gate": True}, "node 'first': gate was"),
    ({"message": "Really?"}, "node 'ask': message was Go on? and is now Really?"),
    ({"form": Form}, "node 'ask': form was nothing and is now"),
    ({"into": "value"}, "node 'ask': into was nothing and is now value"),
    ({"ask": "asks"}, "node 'ask' was removed; node 'asks' was added"),
    ({"tool": other}, "node 'call': tool was"),
    ({"call_into": "number"}, "node 'call': into was nothing and is now number"),
    ({"args": {"number": 2}}, 'node \'call\': args was {"number":1} and is now {"number":2}'),
    ({"args": {"number": True}}, "node 'call': args was"),
    ({"args": {"number": 1.0}}, "node 'call': args was"),
    ({"select": shown}, "node 'call': select was nothing and is now"),
    ({"port": "x"}, "the edge from 'first' to 'ask' was removed"),
    ({"rejected": "call"}, "the edge from 'ask' to 'call' by port 'rejected' was added"),
    ({"route": choose_else}, "the route after 'call' was changed"),
    ({"route": None}, "the route after 'call' was changed"),
    ({"targets": {"off": END}}, "the route after 'call' was changed"),
]


@pytest.mark.parametrize(("parts", "words"), CHANGES)
def test_each_part_of_the_graph_is_in_the_digest_and_named_where_it_changes(
    parts: dict[str, Any], words: str
) -> None:
    before, after = a_flow(), a_flow(**parts)
    assert before.digest != after.digest
    assert words in "; ".join(changes_between(before.graph(), after.graph()))


@pytest.mark.parametrize(("parts", "words"), CHANGES)
def test_a_run_is_not_resumed_with_a_changed_graph_and_its_answer_is_not_spent(
    parts: dict[str, Any], words: str
) -> None:
    world = World()
    paused = world.run(a_flow())
    assert paused.checkpoint is not None
    with fails("graph-changed") as caught:
        world.runner.resume_sync(a_flow(**parts), paused.checkpoint, approve(content={}))
    assert words in str(caught.value)
    with fails("graph-changed"):
        text = world.runner.dump_checkpoint(paused.checkpoint)
        world.runner.load_checkpoint(a_flow(**parts), text)
    assert world.resume(a_flow(), paused, approve(content={})).status == "paused"


def test_equal_graphs_have_equal_digests_and_no_changes() -> None:
    assert a_flow().digest == a_flow().digest
    assert changes_between(a_flow().graph(), a_flow().graph()) == []


def test_a_version_alone_does_not_change_the_digest() -> None:
    assert a_flow().digest == a_flow(version="2").digest


def test_the_order_in_which_edges_were_drawn_is_no_part_of_the_graph() -> None:
    once, turned = a_flow(), a_flow()
    turned.edges.reverse()
    assert once.digest == turned.digest


def test_an_edge_that_is_drawn_twice_is_a_fault() -> None:
    doubled = a_flow()
    doubled.edge(START, "first")
    with fails("invalid-graph") as caught:
        doubled.check()
    assert "twice" in str(caught.value)


def test_a_digest_follows_what_is_added_later() -> None:
    flow = flow_of(work)
    before = flow.digest
    flow.node("later", work)
    assert flow.digest != before


def test_a_partial_counts_by_the_function_it_wraps() -> None:
    assert flow_of(functools.partial(work)).digest == flow_of(work).digest


DIGEST_SCRIPT = """
from pydantic import BaseModel
from runs.engine import END, START, Call, Flow, Gate, Human, tool

class State(BaseModel):
    number: int = 0

@tool
def add(number: int, names: set[str] = set()) -> int:
    return number

def work(state, ctx):
    return None

flow = Flow("flow", state=State)
flow.node("first", work, gate=Gate(form={"properties": {"b": {}, "a": {}}}))
flow.node("call", Call(add, args={"number": 1, "names": {"a", "b", "c", "d", "e"}}))
flow.edge(START, "first")
flow.edge("first", "call")
flow.route("call", work, {"x": END, "a": "first"})
print(flow.digest)
"""


@pytest.mark.processes
def test_the_digest_is_the_same_in_every_process() -> None:
    digests = {output_of(DIGEST_SCRIPT, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_a_go_by_a_port_that_no_edge_leaves_by_fails_and_names_it() -> None:
    with fails("node-failed") as caught:
        World().run(flow_of(lambda state, ctx: Go("sideways")))
    assert "'sideways'" in str(caught.value)
    assert caught.value.node == "node"


def test_the_key_is_no_part_of_a_graph() -> None:
    assert KEY.decode() not in str(a_flow().graph())
