"""The stated limits, and what to use instead. Those between processes are in test_processes."""

from __future__ import annotations

import pickle

import pytest

from runs.engine import ApprovalAlreadyDecided, FlowError, memory, tool

from .support import Desk, Runner, State, StorelessPort, Tools, one_node, reload, runner_on, yes

RESULTS, SIZE = 200, 10_000


def test_after_the_memory_evicted_it_a_port_without_a_store_can_resume_twice(
    monkeypatch: pytest.MonkeyPatch, tools: Tools
) -> None:
    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)

    monkeypatch.setattr(memory, "REMEMBERED_ENTRIES", 1)
    flow, runner = one_node(work), runner_on(StorelessPort())
    first, second = (runner.run_sync(flow, State()) for _ in range(2))
    for result in (first, second, first):
        assert runner.resume_sync(flow, result.checkpoint, yes()).status == "completed"
    assert tools.ran == ["pay 5"] * 3


def test_a_store_refuses_a_second_resume_where_the_memory_evicted_it(
    monkeypatch: pytest.MonkeyPatch, runner: Runner, tools: Tools
) -> None:
    async def work(state, ctx):
        await ctx.call(tools.pay, amount=5)

    monkeypatch.setattr(memory, "REMEMBERED_ENTRIES", 1)
    flow = one_node(work)
    first, second = (runner.run_sync(flow, State()) for _ in range(2))
    for result in (first, second):
        runner.resume_sync(flow, result.checkpoint, yes())
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, first.checkpoint, yes())
    assert tools.ran == ["pay 5"] * 2


def test_a_dump_is_refused_where_a_pickle_would_run_code_first(runner: Runner) -> None:
    flow = one_node(lambda state, ctx: None)
    with pytest.raises(FlowError) as caught:
        runner.load_checkpoint(flow, pickle.dumps(print, protocol=0).decode())
    assert caught.value.code == "checkpoint-tampered"


def test_a_checkpoint_grows_with_its_journaled_results_and_not_faster(
    runner: Runner, tools: Tools
) -> None:
    @tool
    def fetch(number: int) -> str:
        return f"{number:05}" * (SIZE // 5)

    async def work(state, ctx):
        for number in range(state.amount):
            await ctx.call(fetch, number=number)
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    sizes = {}
    for count in (0, RESULTS):
        checkpoint = runner.run_sync(flow, State(amount=count)).checkpoint
        sizes[count] = len(runner.dump_checkpoint(checkpoint)), len(pickle.dumps(checkpoint))
    for none, many in zip(sizes[0], sizes[RESULTS], strict=True):
        assert RESULTS * SIZE < many - none < 1.1 * RESULTS * SIZE
        assert none < 20_000


def test_large_data_kept_outside_leaves_the_checkpoint_small(runner: Runner, tools: Tools) -> None:
    storage: dict[str, str] = {}

    @tool
    def fetch(number: int) -> str:
        storage[f"blob-{number}"] = "x" * SIZE
        return f"blob-{number}"

    async def work(state, ctx):
        names = [await ctx.call(fetch, number=number) for number in range(RESULTS)]
        await ctx.call(tools.pay, amount=5)
        return {"amount": sum(len(storage[name]) for name in names)}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    assert len(runner.dump_checkpoint(paused.checkpoint)) < 100_000
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.amount == RESULTS * SIZE


def test_custom_types_in_state_and_results_go_through_encoder_and_decoder(
    approvals: Desk, tools: Tools
) -> None:
    @tool
    def turn(by: complex) -> complex:
        tools.ran.append("turn")
        return by * 1j

    async def work(state, ctx):
        turned = await ctx.call(turn, by=state.value)
        await ctx.call(tools.pay, amount=5)
        return {"value": turned}

    def decoder(name: str, value: tuple[float, float]) -> complex:
        if name != "builtins:complex":
            raise LookupError(name)
        return complex(*value)

    runner = runner_on(
        approvals.port,
        seal_encoder=lambda value: (value.real, value.imag),
        seal_decoder=decoder,
    )
    flow = one_node(work)
    paused = runner.run_sync(flow, State(value=1 + 2j))
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.state.value, tools.ran) == (-2 + 1j, ["turn", "pay 5"])
