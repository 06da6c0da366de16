"""The seal: what it covers, what breaks it, and whose key opens it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from runs.engine import (
    ApprovalDecision,
    Checkpoint,
    Flow,
    FlowError,
    Human,
    tool,
)

from .support import KEY, Desk, Runner, State, Tools, no, one_node, reload, runner_on, yes


def paused_with_everything(runner: Runner, tools: Tools) -> tuple[Flow, Any]:
    """A run whose checkpoint holds a journal, an earlier answer and a pending request."""

    async def work(state, ctx):
        await ctx.call(tools.look, at="shelf")
        await ctx.call(tools.pay, amount=5)
        await ctx.call(tools.refund, amount=6)

    flow = one_node(work)
    first = runner.run_sync(flow, State(amount=1, value="note"))
    return flow, runner.resume_sync(flow, first.checkpoint, yes())


def other(value: Any) -> Any:
    """A value of the same type that is not equal to ``value``."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, BaseModel):
        return value.model_copy(update={"amount": 1000})
    if isinstance(value, Mapping):
        return {**value, "planted": 1}
    if isinstance(value, tuple):
        return () if value else ("planted",)
    if hasattr(value, "astimezone"):
        return value.replace(year=value.year - 1)
    return "planted"


def with_field(parent: Any, name: str, value: Any) -> Any:
    if isinstance(parent, tuple):
        place = int(name)
        return (*parent[:place], value, *parent[place + 1 :])
    return dataclasses.replace(parent, **{name: value})


def forgeries(part: Any, wrap: Callable[[Any], Any], path: str) -> Iterator[tuple[str, Any]]:
    """Every copy of ``part`` with one field changed, at any depth, with the field's path.

    Left out is what the flow's code gives a request: it is not sealed, and has a test of its own.
    """
    if isinstance(part, tuple):
        named = [(str(place), item) for place, item in enumerate(part)]
    else:
        named = [
            (field.name, getattr(part, field.name))
            for field in dataclasses.fields(part)
            if field.name not in ("about", "annotations", "form", "policy", "editable")
        ]
    for name, value in named:

        def put(new: Any, name: str = name) -> Any:
            return wrap(with_field(part, name, new))

        try:
            yield f"{path}.{name}", put(other(value))
        except FlowError:
            continue  # such a decision can't even be made
        if dataclasses.is_dataclass(value) or isinstance(value, tuple):
            yield from forgeries(value, put, f"{path}.{name}")


@pytest.mark.parametrize("form", ["in memory", "loaded"])
def test_every_field_is_under_the_seal_and_a_changed_one_runs_nothing(
    runner: Runner, approvals: Desk, tools: Tools, form: str
) -> None:
    flow, paused = paused_with_everything(runner, tools)
    checkpoint = paused.checkpoint
    if form == "loaded":
        checkpoint = reload(runner, flow, checkpoint)
    before = list(tools.ran)
    tried: list[str] = []
    not_refused: list[str] = []
    for path, forged in forgeries(checkpoint, lambda whole: whole, "checkpoint"):
        tried.append(path)
        try:
            runner.resume_sync(flow, forged, yes())
        except Exception as error:
            if getattr(error, "code", "") != "checkpoint-tampered":
                not_refused.append(f"{path}: {error!r}")
        else:
            not_refused.append(f"{path}: resumed")
            break
    assert not_refused == []
    assert tools.ran == before
    assert approvals.pending() == [paused.pending.id]
    assert {"checkpoint.state", "checkpoint.mac", "checkpoint.visits.0.pending.0.id"} <= set(tried)
    assert len(tried) > 40
    assert runner.resume_sync(flow, checkpoint, yes()).status == "completed"


def test_a_state_changed_in_place_is_refused(runner: Runner, tools: Tools) -> None:
    flow, paused = paused_with_everything(runner, tools)
    before = list(tools.ran)
    paused.checkpoint.state.amount = 1000
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert (caught.value.code, tools.ran) == ("checkpoint-tampered", before)


@pytest.mark.parametrize(
    ("sealed", "planted"),
    [(1, 1.0), (1, True), (0.0, -0.0), ((1,), [1]), (b"a", bytearray(b"a")), ({1}, frozenset({1}))],
    ids=repr,
)
def test_an_equal_value_of_another_type_breaks_the_seal(
    runner: Runner, tools: Tools, sealed: Any, planted: Any
) -> None:
    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State(value=sealed))
    paused.checkpoint.state.value = planted
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert (caught.value.code, tools.ran) == ("checkpoint-tampered", [])


@pytest.mark.parametrize("mac", [None, b"0" * 64, 7, "", "\ud800", "é" * 64, ["0" * 64]], ids=repr)
def test_a_mac_that_is_not_text_or_not_the_right_text_is_refused(
    runner: Runner, tools: Tools, mac: Any
) -> None:
    flow, paused = paused_with_everything(runner, tools)
    before = list(tools.ran)
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, dataclasses.replace(paused.checkpoint, mac=mac), yes())
    assert (caught.value.code, tools.ran) == ("checkpoint-tampered", before)


@pytest.mark.parametrize("foreign", [None, "text", {}, 7], ids=repr)
def test_what_is_no_checkpoint_is_refused(runner: Runner, tools: Tools, foreign: Any) -> None:
    flow, _ = paused_with_everything(runner, tools)
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, foreign, yes())
    assert caught.value.code == "checkpoint-tampered"


def test_any_changed_character_of_a_dumped_checkpoint_is_refused(
    runner: Runner, tools: Tools
) -> None:
    flow, paused = paused_with_everything(runner, tools)
    text = runner.dump_checkpoint(paused.checkpoint)
    for place, character in enumerate(text):
        changed = text[:place] + chr(ord(character) ^ 1) + text[place + 1 :]
        with pytest.raises(FlowError) as caught:
            runner.load_checkpoint(flow, changed)
        assert caught.value.code == "checkpoint-tampered"


def test_a_truncated_or_lengthened_dump_is_refused(runner: Runner, tools: Tools) -> None:
    flow, paused = paused_with_everything(runner, tools)
    text = runner.dump_checkpoint(paused.checkpoint)
    for changed in ("", text[:-1], text[1:], text + " ", " " + text, text + text, text + "\n"):
        with pytest.raises(FlowError) as caught:
            runner.load_checkpoint(flow, changed)
        assert caught.value.code == "checkpoint-tampered"


def test_parts_of_two_checkpoints_of_one_key_do_not_mix(runner: Runner, tools: Tools) -> None:
    flow, one = paused_with_everything(runner, tools)
    other_run = runner.run_sync(flow, State(amount=2))
    for field in dataclasses.fields(Checkpoint):
        value = getattr(other_run.checkpoint, field.name)
        if value != getattr(one.checkpoint, field.name):
            mixed = dataclasses.replace(one.checkpoint, **{field.name: value})
            with pytest.raises(FlowError) as caught:
                runner.resume_sync(flow, mixed, yes())
            assert caught.value.code == "checkpoint-tampered"


@pytest.mark.parametrize("key", [b"another key of sufficient length", None], ids=["other", "own"])
def test_a_checkpoint_of_a_runner_with_another_key_is_refused(
    approvals: Desk, tools: Tools, key: bytes | None
) -> None:
    flow, paused = paused_with_everything(runner_on(approvals.port, key=KEY), tools)
    before = list(tools.ran)
    foreign = runner_on(approvals.port, key=key)
    with pytest.raises(FlowError) as caught:
        foreign.resume_sync(flow, paused.checkpoint, yes())
    assert (caught.value.code, tools.ran) == ("checkpoint-tampered", before)
    text = runner_on(approvals.port, key=KEY).dump_checkpoint(paused.checkpoint)
    with pytest.raises(FlowError) as caught:
        foreign.load_checkpoint(flow, text)
    assert caught.value.code == "checkpoint-tampered"


def test_the_same_key_resumes_what_another_runner_sealed(approvals: Desk, tools: Tools) -> None:
    flow, paused = paused_with_everything(runner_on(approvals.port, key=KEY), tools)
    again = runner_on(approvals.port, key=KEY)
    done = again.resume_sync(flow, reload(again, flow, paused.checkpoint), yes())
    assert done.status == "completed"


def test_the_default_key_serves_every_runner_of_the_process(approvals: Desk, tools: Tools) -> None:
    flow, paused = paused_with_everything(runner_on(approvals.port, key=None), tools)
    done = runner_on(approvals.port, key=None).resume_sync(flow, paused.checkpoint, yes())
    assert done.status == "completed"


@pytest.mark.parametrize("key", [b"", b"fifteen bytes..", "a text of sixteen characters", 7])
def test_a_key_that_is_short_or_not_bytes_is_refused(approvals: Desk, key: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        runner_on(approvals.port, key=key)


def test_a_key_of_sixteen_bytes_is_taken(approvals: Desk, tools: Tools) -> None:
    runner = runner_on(approvals.port, key=b"sixteen bytes...")
    flow, paused = paused_with_everything(runner, tools)
    assert runner.resume_sync(flow, paused.checkpoint, yes()).status == "completed"


class Reason(BaseModel):
    text: str


def test_what_the_flows_code_says_of_a_request_counts_and_not_what_a_checkpoint_says(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    flow = one_node(Human("Pay?", form=Reason, into="value"))
    flow.edges.pop()
    flow.edge("work", "__end__", port="approved")
    flow.edge("work", "__end__", port="rejected")
    paused = runner.run_sync(flow, State())
    forged = with_request(paused.checkpoint, form=None)
    with pytest.raises(FlowError):
        runner.resume_sync(flow, forged, yes(content={}))
    assert approvals.pending() == [paused.pending.id]


def test_a_checkpoint_cannot_make_arguments_editable(
    runner: Runner, approvals: Desk, tools: Tools
) -> None:
    @tool(confirm=True)
    def pay(amount: int) -> None:
        tools.ran.append(f"pay {amount}")

    async def work(state, ctx):
        await ctx.call(pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    forged = with_request(paused.checkpoint, editable=True)
    with pytest.raises(FlowError):
        runner.resume_sync(flow, forged, ApprovalDecision.approve("x", arguments={"amount": 9}))
    assert (tools.ran, approvals.pending()) == ([], [paused.pending.id])


def with_request(checkpoint: Checkpoint, **changes: Any) -> Checkpoint:
    """The checkpoint with its only pending request changed."""
    (visit,) = checkpoint.visits
    (request,) = visit.pending
    visit = dataclasses.replace(visit, pending=(dataclasses.replace(request, **changes),))
    return dataclasses.replace(checkpoint, visits=(visit,))


def test_a_forged_decision_among_the_earlier_answers_is_refused(
    runner: Runner, tools: Tools
) -> None:
    flow, paused = paused_with_everything(runner, tools)
    (visit,) = paused.checkpoint.visits
    ((request, _),) = visit.answers
    forged = dataclasses.replace(visit, answers=((request, no(request)),))
    before = list(tools.ran)
    with pytest.raises(FlowError) as caught:
        runner.resume_sync(flow, dataclasses.replace(paused.checkpoint, visits=(forged,)), yes())
    assert (caught.value.code, tools.ran) == ("checkpoint-tampered", before)
