"""Plain node functions run in threads, and wait for their calls without blocking the others."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runs.engine import AdapterError, tool

from .support import State, World, approve, fails, flow_of, output_of, side_by_side


@tool
def add(number: int) -> int:
    return number + 1


@tool
async def add_async(number: int) -> int:
    return number + 1


@tool
def broken() -> None:
    raise LookupError("gone")


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


def test_a_plain_node_does_not_run_in_the_loops_thread() -> None:
    threads: list[threading.Thread] = []

    def node(state: State, ctx: Any) -> None:
        threads.append(threading.current_thread())

    World().run(flow_of(node))
    assert threads[0] is not threading.current_thread()


def test_plain_nodes_call_plain_and_async_tools() -> None:
    def node(state: State, ctx: Any) -> dict[str, Any]:
        return {"number": ctx.call_sync(add, number=ctx.call_sync(add_async, number=1))}

    assert World().run(flow_of(node)).state.number == 3


def test_errors_of_tools_reach_the_plain_node() -> None:
    def node(state: State, ctx: Any) -> dict[str, Any]:
        try:
            ctx.call_sync(broken)
        except AdapterError as error:
            return {"text": str(error)}
        return {}

    assert World().run(flow_of(node)).state.text == "LookupError: gone"


def test_a_plain_node_pauses_and_replays() -> None:
    ran: list[int] = []

    @tool
    def look() -> int:
        ran.append(1)
        return 1

    def node(state: State, ctx: Any) -> dict[str, Any]:
        seen = ctx.call_sync(look)
        return {"number": seen + ctx.call_sync(pay, amount=2)}

    world, flow = World(), flow_of(node)
    assert world.resume(flow, world.run(flow), approve()).state.number == 3
    assert ran == [1]


def test_several_threads_of_one_node_call_at_the_same_time() -> None:
    def node(state: State, ctx: Any) -> dict[str, Any]:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda number: ctx.call_sync(add, number=number), range(50)))
        return {"items": found}

    assert World().run(flow_of(node)).state.items == list(range(1, 51))


def test_a_pause_in_a_thread_of_the_nodes_own_pauses_the_node() -> None:
    def node(state: State, ctx: Any) -> dict[str, Any]:
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(ctx.call_sync, pay, amount=amount) for amount in (1, 2, 3)]
        paid = [call.result() for call in calls if not call.exception()]
        return {"items": sorted(paid)}

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert len(paused.requests) == 3
    done = world.resume(flow, paused, *map(approve, paused.requests))
    assert done.state.items == [1, 2, 3]


def test_a_thread_that_outlives_its_node_can_call_nothing_more() -> None:
    ended = threading.Event()
    outcome: list[BaseException] = []
    threads: list[threading.Thread] = []
    ran: list[int] = []

    @tool
    def effect() -> None:
        ran.append(1)

    def node(state: State, ctx: Any) -> None:
        def outlives() -> None:
            ended.wait(30)
            try:
                ctx.call_sync(effect)
            except BaseException as error:
                outcome.append(error)

        threads.append(threading.Thread(target=outlives))
        threads[0].start()

    def after(state: State, ctx: Any) -> None:
        ended.set()
        threads[0].join(30)

    flow = flow_of(node)
    flow.node("after", after)
    flow.edge("node", "after")
    assert World().run(flow).status == "completed"
    assert ran == []
    assert "had ended" in str(outcome[0])


def test_a_plain_tool_that_sleeps_does_not_hold_up_an_async_node() -> None:
    order: list[str] = []
    free = threading.Event()

    @tool
    def waits() -> None:
        free.wait(30)
        order.append("slow")

    async def calls(state: State, ctx: Any) -> None:
        await ctx.call(waits)

    async def goes_on(state: State, ctx: Any) -> None:
        order.append("fast")
        free.set()

    World().run(side_by_side(calls, goes_on))
    assert order == ["fast", "slow"]


def test_many_runs_at_once_in_threads_do_not_mix() -> None:
    def node(state: State, ctx: Any) -> dict[str, Any]:
        time.sleep(0.001)
        return {"number": ctx.call_sync(add, number=state.number)}

    flow = flow_of(node)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: World().run(flow, State(number=n)).state.number, range(40)))
    assert found == list(range(1, 41))


DEADLOCK = """
from pydantic import BaseModel
from runs.engine import START, Executor, Flow, FlowRunner, tool

class State(BaseModel):
    number: int = 0

@tool
def add(number: int) -> int:
    return number + 1

def node(state, ctx):
    ctx.call_sync(add, number=1)

flow = Flow("flow", state=State)
for number in range(100):
    flow.node(f"node {number}", node)
    flow.edge(START, f"node {number}")
print(FlowRunner(Executor()).run_sync(flow, State()).status)
"""


@pytest.mark.processes
def test_more_plain_nodes_than_threads_in_the_pool_do_not_wait_for_each_other() -> None:
    assert output_of(DEADLOCK) == "completed"


STOP = """
from pydantic import BaseModel
from runs.engine import START, AdapterError, Executor, Flow, FlowError, FlowRunner, tool

class State(BaseModel):
    text: str = ""

@tool
def first(numbers: list[int]) -> int:
    return next(iter(numbers))

async def caught(state, ctx):
    try:
        await ctx.call(first, numbers=[])
    except AdapterError as error:
        return {"text": str(error)}

def node(state, ctx):
    next(iter(()))

def flow_of(action):
    flow = Flow("flow", state=State)
    flow.node("node", action)
    flow.edge(START, "node")
    return flow

runner = FlowRunner(Executor())
print("StopIteration" in runner.run_sync(flow_of(caught), State()).state.text)
try:
    runner.run_sync(flow_of(node), State())
except FlowError as error:
    print(error.code, error.node)
"""


@pytest.mark.processes
def test_a_plain_tool_or_node_that_raises_stop_iteration_fails_and_does_not_hang() -> None:
    assert output_of(STOP).split() == ["True", "node-failed", "node"]


def test_a_failing_plain_node_is_a_failure_with_its_cause() -> None:
    def node(state: State, ctx: Any) -> None:
        raise LookupError("gone")

    with fails("node-failed") as caught:
        World().run(flow_of(node))
    assert isinstance(caught.value.__cause__, LookupError)
