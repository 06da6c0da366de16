"""The parity case ``replay_two_confirms``: one node asks for two approvals, one after the other.

The same node in LangGraph and here: a plain call, an approval before the refund, an approval
before the note to the customer. What is counted is how often the body of each call ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import task
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from runs.engine import (
    START,
    ApprovalDecision,
    Context,
    DeferredApproval,
    Executor,
    Flow,
    FlowRunner,
    tool,
)

KEY = b"a key of more than sixteen bytes"
QUESTIONS = ["refund", "notify"]


class Order(BaseModel):
    number: str = "A-1"


class OrderDict(TypedDict):
    number: str


def in_langgraph(call: Callable[[str], Any]) -> list[str]:
    """Run the node in LangGraph, saying yes twice; returns what was asked, in order."""

    def node(state: OrderDict) -> None:
        call("look_up")
        if interrupt("refund"):
            call("refund")
        if interrupt("notify"):
            call("notify")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(OrderDict)
    graph.add_node("node", node)
    graph.set_entry_point("node")
    app = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    asked = []
    result = app.invoke(OrderDict(number="A-1"), config)
    while interrupts := result.get("__interrupt__"):
        asked += [found.value for found in interrupts]
        result = app.invoke(Command(resume=True), config)
    return asked


def here(body: Callable[[str], str]) -> list[str]:
    """Run the node here, through a dumped checkpoint at each pause; returns what was asked."""

    @tool
    def look_up(number: str) -> str:
        return body("look_up")

    @tool(confirm=True)
    def refund(number: str) -> str:
        return body("refund")

    @tool(confirm=True)
    def notify(number: str) -> str:
        return body("notify")

    async def node(state: Order, ctx: Context) -> None:
        await ctx.call(look_up, number=state.number)
        await ctx.call(refund, number=state.number)
        await ctx.call(notify, number=state.number)

    flow = Flow("replay_two_confirms", state=Order)
    flow.node("node", node)
    flow.edge(START, "node")
    runner = FlowRunner(Executor(approvals=DeferredApproval()), checkpoint_key=KEY)
    asked = []
    result = runner.run_sync(flow, Order())
    while result.checkpoint is not None:
        asked += [request.tool for request in result.requests]
        text = runner.dump_checkpoint(result.checkpoint)
        checkpoint = runner.load_checkpoint(flow, text)
        result = runner.resume_sync(flow, checkpoint, ApprovalDecision.approve(by="reviewer"))
    return asked


def test_langgraph_runs_a_resumed_nodes_calls_again_and_here_each_runs_once() -> None:
    theirs = Counter[str]()
    ours = Counter[str]()

    def their_body(name: str) -> str:
        theirs[name] += 1
        return name

    def our_body(name: str) -> str:
        ours[name] += 1
        return name

    assert in_langgraph(their_body) == QUESTIONS
    assert here(our_body) == QUESTIONS
    assert theirs == {"look_up": 3, "refund": 2, "notify": 1}
    assert ours == {"look_up": 1, "refund": 1, "notify": 1}


def test_langgraph_runs_each_call_once_where_its_author_makes_every_call_a_task() -> None:
    ran = Counter[str]()

    @task
    def call(name: str) -> str:
        ran[name] += 1
        return name

    assert in_langgraph(lambda name: call(name).result()) == QUESTIONS
    assert ran == {"look_up": 1, "refund": 1, "notify": 1}
