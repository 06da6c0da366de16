"""Whole LangGraph graphs over the seal's codec: what runs, and what stops because it can't."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Interrupt, Send, interrupt

from runs.engine import canonical
from tests.outside.savers import KEYS, in_sqlite, sealed
from tests.outside.serializer import SealSerializer

CONFIG: Any = {"configurable": {"thread_id": "1"}}


class Refund(TypedDict, total=False):
    amount: int
    approved: bool


def ask(state: Refund) -> Refund:
    return {"approved": interrupt({"amount": state["amount"]})}


def graph_of(node: Any) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Refund)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph


def encode_interrupt(value: Any) -> Any:
    """Interrupts get a stand-in; any other value is handed back, which refuses it."""
    return {"id": value.id, "value": value.value} if type(value) is Interrupt else value


def decode_interrupt(name: str, value: Any) -> Any:
    if name != canonical.class_name(Interrupt):
        raise canonical.UnknownClass(name)
    return Interrupt(**value)


def test_a_graph_of_plain_values_runs_and_its_history_is_read_from_seals() -> None:
    graph = graph_of(lambda state: {"amount": state["amount"] * 2})
    graph.add_edge("node", END)
    app = graph.compile(checkpointer=InMemorySaver(serde=sealed()))
    assert app.invoke({"amount": 49}, CONFIG) == {"amount": 98}
    history = [snapshot.values for snapshot in app.get_state_history(CONFIG)]
    assert history == [{"amount": 98}, {"amount": 49}, {}]


def test_an_interrupt_is_refused_without_a_stand_in_so_the_graph_can_not_pause() -> None:
    app = graph_of(ask).compile(checkpointer=InMemorySaver(serde=sealed()))
    with pytest.raises(canonical.NotSealable, match=r"langgraph\.types:Interrupt"):
        app.invoke({"amount": 49}, CONFIG)
    assert app.get_state(CONFIG).interrupts == ()


def test_with_a_stand_in_for_interrupts_a_graph_pauses_and_goes_on_from_the_file(
    tmp_path: Path,
) -> None:
    def serde() -> SealSerializer:
        return SealSerializer(KEYS, seal_encoder=encode_interrupt, seal_decoder=decode_interrupt)

    async def step(given: Any) -> Any:
        async with in_sqlite(serde(), str(tmp_path / "runs.sqlite")) as saver:
            app = graph_of(ask).compile(checkpointer=saver)
            result = await app.ainvoke(given, CONFIG)
            return result, (await app.aget_state(CONFIG)).interrupts

    _, interrupts = asyncio.run(step({"amount": 49}))
    assert [found.value for found in interrupts] == [{"amount": 49}]
    result, interrupts = asyncio.run(step(Command(resume=True)))
    assert result == {"amount": 49, "approved": True}
    assert interrupts == ()


def test_a_send_is_refused_where_a_graph_would_store_it() -> None:
    graph = graph_of(lambda state: {})
    graph.add_node("other", lambda state: {})
    graph.add_conditional_edges("node", lambda state: [Send("other", {"amount": 1})], ["other"])
    app = graph.compile(checkpointer=InMemorySaver(serde=sealed()))
    with pytest.raises(canonical.NotSealable, match=r"langgraph\.types:Send"):
        app.invoke({"amount": 49}, CONFIG)


def test_a_command_runs_because_langgraph_stores_what_it_says_and_not_itself() -> None:
    graph = graph_of(lambda state: Command(goto="other", update={"approved": True}))
    graph.add_node("other", lambda state: {"amount": 0})
    app = graph.compile(checkpointer=InMemorySaver(serde=sealed()))
    assert app.invoke({"amount": 49}, CONFIG) == {"amount": 0, "approved": True}


def test_a_failing_node_raises_its_own_error_though_the_record_of_it_can_not_be_stored() -> None:
    def fails(state: Refund) -> Refund:
        raise LookupError("no such order")

    app = graph_of(fails).compile(checkpointer=InMemorySaver(serde=sealed()))
    with pytest.raises(LookupError, match="no such order"):
        app.invoke({"amount": 49}, CONFIG)
    snapshot = app.get_state(CONFIG)
    assert snapshot.next == ("node",)
    assert snapshot.tasks[0].error is None
