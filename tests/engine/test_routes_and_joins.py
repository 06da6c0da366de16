"""Where a run goes next: routes, ports, joins, cycles, and the limit of steps."""

from typing import Any

import pytest

from runs.engine import END, START, Flow, Go, Human, tool

from .support import State, World, approve, deny, fails, flow_of, question


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


async def paying(state: State, ctx: Any) -> None:
    await ctx.call(pay, amount=1)


def writing(name: str) -> Any:
    """A node that adds its name to the state's text."""

    def node(state: State, ctx: Any) -> dict[str, Any]:
        return {"text": state.text + name}

    return node


def chain(*names: str) -> Flow:
    flow = Flow("flow", state=State)
    for source, name in zip((START, *names), names, strict=False):
        flow.node(name, writing(name))
        flow.edge(source, name)
    return flow


def test_a_route_leads_to_the_target_of_the_chosen_label_only() -> None:
    flow = chain("a")
    for name in "bc":
        flow.node(name, writing(name))
    flow.route("a", lambda state: "second", {"first": "b", "second": "c"})
    assert World().run(flow).state.text == "ac"


def test_a_route_may_lead_to_the_end() -> None:
    flow = chain("a")
    flow.node("b", writing("b"))
    flow.route("a", lambda state: "stop", {"stop": END, "on": "b"})
    assert World().run(flow).state.text == "a"


def test_an_async_route_is_awaited_and_sees_the_merged_state() -> None:
    async def choose(state: State) -> str:
        return state.text

    flow = chain("a")
    flow.node("b", writing("b"))
    flow.route("a", choose, {"a": "b"})
    assert World().run(flow).state.text == "ab"


def test_a_route_cannot_change_the_state() -> None:
    def choose(state: State) -> str:
        state.text = "spoiled"
        return "on"

    flow = chain("a")
    flow.node("b", writing("b"))
    flow.route("a", choose, {"on": "b"})
    assert World().run(flow).state.text == "ab"


@pytest.mark.parametrize("label", ["nowhere", None, 5, "", ["on"], {}, True], ids=repr)
def test_a_label_that_the_route_does_not_have_names_node_and_labels(label: Any) -> None:
    flow = chain("a")
    flow.route("a", lambda state: label, {"on": END, "off": END})
    with fails("node-failed") as caught:
        World().run(flow)
    assert caught.value.node == "a"
    assert "'on', 'off'" in str(caught.value)


def test_a_route_function_that_raises_is_a_failure_of_its_node() -> None:
    def choose(state: State) -> str:
        raise LookupError("no way")

    flow = chain("a")
    flow.route("a", choose, {"on": END})
    with fails("node-failed") as caught:
        World().run(flow)
    assert caught.value.node == "a"
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_route_is_evaluated_once_and_not_again_on_resume() -> None:
    chosen: list[str] = []

    def choose(state: State) -> str:
        chosen.append(state.text)
        return "on"

    flow = chain("a")
    flow.route("a", choose, {"on": "pay"})
    flow.node("pay", paying)
    world = World()
    assert world.resume(flow, world.run(flow), approve()).status == "completed"
    assert chosen == ["a"]


def test_the_port_of_an_answered_question_is_kept_over_later_pauses() -> None:
    flow = Flow("flow", state=State)
    flow.node("ask", Human("Go on?"))
    flow.node("yes", paying)
    flow.node("no", writing("no"))
    flow.edge(START, "ask")
    flow.edge("ask", "yes", port="approved")
    flow.edge("ask", "no", port="rejected")
    world = World()
    paused = world.resume(flow, world.run(flow), approve())
    assert paused.pending is not None
    assert paused.pending.node == "yes"
    done = world.resume(flow, paused, approve())
    assert (done.status, done.state.text) == ("completed", "")
    assert world.resume(flow, world.run(flow), deny()).state.text == "no"


def test_go_leaves_by_a_named_port_with_changes() -> None:
    flow = Flow("flow", state=State)
    flow.node("a", lambda state, ctx: Go("left", {"text": "a"}))
    for name in "bc":
        flow.node(name, writing(name))
    flow.edge(START, "a")
    flow.edge("a", "b", port="left")
    flow.edge("a", "c", port="right")
    assert World().run(flow).state.text == "ab"


def test_edges_without_a_port_are_not_taken_by_a_node_that_leaves_by_one() -> None:
    flow = Flow("flow", state=State)
    flow.node("a", lambda state, ctx: Go("left"))
    for name in "bc":
        flow.node(name, writing(name))
    flow.edge(START, "a")
    flow.edge("a", "b")
    flow.edge("a", "c", port="left")
    assert World().run(flow).state.text == "c"


def test_a_node_that_two_nodes_of_one_wave_lead_to_runs_once() -> None:
    flow = chain("a")
    flow.node("b", lambda state, ctx: None)
    flow.edge(START, "b")
    flow.node("c", writing("c"))
    flow.edge("a", "c")
    flow.edge("b", "c")
    assert World().run(flow).state.text == "ac"


def join() -> Flow:
    """``a`` leads straight and ``b`` by the question to the join ``c``."""
    flow = chain("a")
    flow.node("b", Human("Go on?"))
    flow.edge(START, "b")
    flow.edge("b", END, port="rejected")
    flow.node("mid", lambda state, ctx: None)
    flow.edge("b", "mid", port="approved")
    flow.node("c", writing("c"))
    flow.edge(["a", "mid"], "c")
    return flow


def test_a_join_waits_for_all_its_sources_over_a_pause_and_runs_once() -> None:
    world, flow = World(), join()
    paused = world.run(flow)
    assert paused.state.text == "a"
    assert world.resume(flow, paused, approve()).state.text == "ac"


def test_a_join_does_not_run_where_a_source_never_comes() -> None:
    world, flow = World(), join()
    assert world.resume(flow, world.run(flow), deny()).state.text == "a"


def test_a_join_declared_twice_runs_once() -> None:
    flow = Flow("flow", state=State)
    for name in "ab":
        flow.node(name, lambda state, ctx: None)
        flow.edge(START, name)
    flow.node("c", writing("c"))
    flow.edge(["a", "b"], "c")
    flow.edge(["b", "a"], "c")
    assert World().run(flow).state.text == "c"


def test_two_joins_of_names_with_commas_are_kept_apart() -> None:
    flow = Flow("flow", state=State)
    for name in ("a,b", "c", "a", "b,c"):
        flow.node(name, (lambda state, ctx: None) if name != "a" else paying)
        flow.edge(START, name)
    flow.node("d", writing("d"))
    flow.edge(["a,b", "c"], "d")
    flow.edge(["a", "b,c"], "d")
    world = World()
    paused = world.run(flow)
    assert paused.state.text == "d"
    assert world.resume(flow, paused, approve()).state.text == "dd"


def test_a_join_in_a_cycle_waits_anew_each_time_round() -> None:
    flow = Flow("flow", state=State)
    flow.node("begin", lambda state, ctx: {"number": state.number + 1})
    for name in "ab":
        flow.node(name, lambda state, ctx: None)
        flow.edge("begin", name)
    flow.node("c", writing("c"))
    flow.edge(START, "begin")
    flow.edge(["a", "b"], "c")
    flow.route("c", lambda s: "again" if s.number < 3 else "stop", {"again": "begin", "stop": END})
    assert World().run(flow).state.text == "ccc"


def test_each_round_of_a_cycle_asks_anew() -> None:
    flow = Flow("flow", state=State)
    flow.node("ask", Human("Once more, after {number}?"))
    flow.node("count", lambda state, ctx: {"number": state.number + 1})
    flow.edge(START, "ask")
    flow.edge("ask", "count", port="approved")
    flow.edge("ask", END, port="rejected")
    flow.edge("count", "ask")
    world = World()
    paused = world.run(flow)
    ids = set()
    for rounds in range(3):
        assert paused.pending is not None
        assert paused.pending.summary == f"Once more, after {rounds}?"
        ids.add((paused.pending.id, paused.pending.call_id))
        paused = world.resume(flow, paused, approve())
    assert len(ids) == 3
    assert world.resume(flow, paused, deny()).state.number == 3


def endless() -> Flow:
    flow = chain("a")
    flow.edge("a", "a")
    return flow


def test_a_cycle_that_does_not_end_meets_the_limit() -> None:
    with fails("step-limit") as caught:
        World(max_steps=25).run(endless())
    assert "25" in str(caught.value)
    assert caught.value.node == "a"


def test_exactly_as_many_visits_as_the_limit_are_allowed() -> None:
    assert World(max_steps=3).run(chain("a", "b", "c")).state.text == "abc"
    with fails("step-limit"):
        World(max_steps=2).run(chain("a", "b", "c"))


def test_the_limit_counts_over_resumes_and_a_re_run_is_no_new_visit() -> None:
    flow = chain("a")
    flow.node("pay", paying)
    flow.edge("a", "pay")
    flow.edge("pay", "a")
    world = World(max_steps=4)
    paused = world.run(flow)  # a, pay
    paused = world.resume(flow, paused, approve())  # a, pay
    with fails("step-limit"):
        world.resume(flow, paused, approve())
    assert world.store.pending() == []


def test_a_limit_met_in_one_branch_withdraws_what_others_asked() -> None:
    world, flow = World(max_steps=10), endless()
    flow.node("pay", paying)
    flow.edge(START, "pay")
    with fails("step-limit"):
        world.run(flow)
    assert world.store.pending() == []


def test_visits_of_nested_flows_count_too() -> None:
    inner = chain("a", "b", "c")

    async def nests(state: State, ctx: Any) -> None:
        for _ in range(20):
            await ctx.run_flow(inner, State())

    with fails("step-limit"):
        World(max_steps=25).run(flow_of(nests))
    assert World(max_steps=61).run(flow_of(nests)).status == "completed"


def test_a_node_without_a_way_on_ends_its_branch() -> None:
    assert World().run(flow_of(lambda state, ctx: None)).status == "completed"
    assert World().run(question(Human("Go on?"))).status == "paused"
