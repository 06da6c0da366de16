"""The three forms in which a checkpoint is kept, and what a dump and a load refuse."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr

from runs.engine import END, START, Flow, FlowError, Gate

from .support import Desk, Runner, State, Tools, one_node, runner_on, yes

built: list[str] = []


def note_building() -> str:
    built.append("Watched")
    return "built"


class Watched(BaseModel):
    """Notes when an instance is made, however it is made."""

    name: str = ""
    _made: str = PrivateAttr(default_factory=note_building)


class WatchedState(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    watched: Watched
    value: Any = None


async def work(state, ctx):
    return None


def test_in_memory_the_checkpoint_is_passed_back(runner: Runner, tools: Tools) -> None:
    async def pay(state, ctx):
        return {"value": await ctx.call(tools.pay, amount=state.amount)}

    flow = one_node(pay)
    paused = runner.run_sync(flow, State(amount=5))
    assert runner.resume_sync(flow, paused.checkpoint, yes()).state.value == "paid 5"


def test_a_dump_is_json_text_for_any_storage(runner: Runner, tools: Tools) -> None:
    async def pay(state, ctx):
        return {"value": [state.value, await ctx.call(tools.pay, amount=5)]}

    flow = one_node(pay)
    value = {"text": "Ünïcode \U0001f600 \ud800", "bytes": b"\xff", 1: (2.5, {3})}
    paused = runner.run_sync(flow, State(value=value))
    text = runner.dump_checkpoint(paused.checkpoint)
    assert isinstance(text, str)
    assert isinstance(json.loads(text), dict)
    stored = text.encode("ascii").decode("ascii")
    done = runner.resume_sync(flow, runner.load_checkpoint(flow, stored), yes())
    assert done.state.value == [value, "paid 5"]


def test_a_dump_of_a_loaded_checkpoint_is_the_same_text(runner: Runner) -> None:
    flow = one_node(work, gate=Gate(payload=lambda state: {"shown": {1: 2}}))
    text = runner.dump_checkpoint(runner.run_sync(flow, State(value=(1,))).checkpoint)
    assert runner.dump_checkpoint(runner.load_checkpoint(flow, text)) == text


def watched_checkpoint(approvals: Desk) -> tuple[Flow, str]:
    """The dumped text of a checkpoint that holds a watched model and a custom value."""
    runner = runner_on(
        approvals.port,
        seal_encoder=lambda value: [value.real, value.imag],
        seal_decoder=lambda name, value: complex(*value),
    )
    flow = one_node(work, state=WatchedState, gate=Gate())
    paused = runner.run_sync(flow, WatchedState(watched=Watched(), value=1j))
    return flow, runner.dump_checkpoint(paused.checkpoint)


def noting_decoder(name: str, value: Any) -> Any:
    built.append(name)
    return complex(*value)


def test_a_load_builds_what_was_dumped(approvals: Desk) -> None:
    flow, text = watched_checkpoint(approvals)
    built.clear()
    runner = runner_on(approvals.port, seal_decoder=noting_decoder)
    checkpoint = runner.load_checkpoint(flow, text)
    assert isinstance(checkpoint.state, WatchedState)
    assert isinstance(checkpoint.state.watched, Watched)
    assert checkpoint.state.value == 1j
    assert set(built) == {"Watched", "builtins:complex"}


def test_the_mac_is_checked_before_anything_is_built(approvals: Desk) -> None:
    flow, text = watched_checkpoint(approvals)
    runner = runner_on(approvals.port, seal_decoder=noting_decoder)
    built.clear()
    other = "1" if text[-3] == "0" else "0"
    for broken in (text.replace("WatchedState", "WatchedStatx"), text[:-3] + other + text[-2:]):
        assert broken != text
        with pytest.raises(FlowError) as caught:
            runner.load_checkpoint(flow, broken)
        assert caught.value.code == "checkpoint-tampered"
    assert built == []


def test_the_graph_is_checked_before_anything_is_built(approvals: Desk) -> None:
    flow, text = watched_checkpoint(approvals)
    flow.node("more", work)
    flow.edge("work", "more")
    flow.edge("more", END)
    built.clear()
    with pytest.raises(FlowError) as caught:
        runner_on(approvals.port, seal_decoder=noting_decoder).load_checkpoint(flow, text)
    assert (caught.value.code, built) == ("graph-changed", [])


def test_a_checkpoint_of_another_flow_is_refused_before_anything_is_built(
    approvals: Desk,
) -> None:
    _, text = watched_checkpoint(approvals)
    other = Flow("other", state=State)
    other.node("work", work)
    other.edge(START, "work")
    other.edge("work", END)
    built.clear()
    with pytest.raises(FlowError) as caught:
        runner_on(approvals.port, seal_decoder=noting_decoder).load_checkpoint(other, text)
    assert (caught.value.code, built) == ("graph-changed", [])


def test_custom_values_need_a_seal_decoder_to_load(approvals: Desk) -> None:
    flow, text = watched_checkpoint(approvals)
    built.clear()
    with pytest.raises(FlowError, match="builtins:complex"):
        runner_on(approvals.port).load_checkpoint(flow, text)
    assert built == []


def test_a_dump_without_a_seal_decoder_refuses_custom_values_up_front(
    approvals: Desk,
) -> None:
    runner = runner_on(approvals.port, seal_encoder=lambda value: [value.real, value.imag])
    flow = one_node(work, gate=Gate())
    paused = runner.run_sync(flow, State(value=1j))
    with pytest.raises(FlowError, match="builtins:complex"):
        runner.dump_checkpoint(paused.checkpoint)
    assert runner.resume_sync(flow, paused.checkpoint, yes()).status == "completed"


class Trap:
    """Runs code when it is unpickled."""

    sprung: list[str] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Trap.spring, ("unpickled",)

    @staticmethod
    def spring(how: str) -> list[str]:
        Trap.sprung.append(how)
        return [how]


def test_unpickling_runs_code_before_the_mac_is_checked_which_resume_still_does(
    runner: Runner, tools: Tools
) -> None:
    async def pay(state, ctx):
        await ctx.call(tools.pay, amount=5)

    flow = one_node(pay)
    paused = runner.run_sync(flow, State(value=["unpickled"]))
    forged = dataclasses.replace(paused.checkpoint, state=State(value=Trap()))
    Trap.sprung.clear()
    checkpoint = pickle.loads(pickle.dumps(forged))  # noqa: S301  the trap is ours
    assert Trap.sprung == ["unpickled"]
    forged = dataclasses.replace(checkpoint, steps=7)
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, forged, yes())
    assert (caught.value.code, tools.ran) == ("checkpoint-tampered", [])


def test_a_load_never_unpickles(runner: Runner) -> None:
    flow = one_node(work, gate=Gate())
    paused = runner.run_sync(flow, State())
    Trap.sprung.clear()
    for data in (pickle.dumps(Trap()), pickle.dumps(paused), b"{}"):
        for text in (data, data.decode("latin-1")):
            with pytest.raises(FlowError) as caught:
                runner.load_checkpoint(flow, text)  # type: ignore[arg-type]
            assert caught.value.code == "checkpoint-tampered"
    assert Trap.sprung == []
