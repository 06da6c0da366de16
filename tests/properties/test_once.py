"""Of many that resume one checkpoint at the same time, exactly one goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import assume, given, settings

from runs.engine import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalPending,
    ApprovalRequest,
    ApprovalStore,
    FlowResult,
    FlowRunner,
)

from .flows import flow_of
from .plans import Fork, Leaf, Plan, Step, Work, plans
from .running import Interrupted, assert_same, runner_on, seeds, straight
from .tally import examples, unhurried
from .world import Facts, World, decision_for

RACERS = 50

Racer = Callable[[], FlowResult]
Result = tuple[FlowRunner, FlowResult] | None


async def resume(run: Interrupted, answers: Sequence[ApprovalDecision]) -> Result:
    """Resume from the text of the last pause with all made anew; None where someone was first."""
    runner, flow, checkpoint = run.load(run.texts[-1])
    await asyncio.sleep(0)
    try:
        return runner, await runner.resume(flow, checkpoint, *answers)
    except ApprovalAlreadyDecided:
        return None


async def in_tasks(run: Interrupted, racers: list[list[ApprovalDecision]]) -> list[Result]:
    return await asyncio.gather(*(resume(run, answers) for answers in racers))


def in_threads(run: Interrupted, racers: list[list[ApprovalDecision]]) -> list[Result]:
    start = threading.Barrier(len(racers))

    def race(answers: list[ApprovalDecision]) -> Result:
        start.wait()
        return asyncio.run(resume(run, answers))

    with ThreadPoolExecutor(len(racers)) as threads:
        return list(threads.map(race, racers))


@pytest.mark.parametrize("where", ["tasks", "threads"])
@pytest.mark.parametrize("answering", ["the same", "different"])
def test_of_fifty_that_resume_one_checkpoint_one_goes_on(where: str, answering: str) -> None:
    """At every pause, whether all answer the same requests or different ones; the one that goes
    on leads to the same end as a run with all answers known."""

    @settings(unhurried, max_examples=max(examples(4) // 20, 4))
    @given(plan=plans(nodes=5, depth=1, deadly=False), seed=seeds, order=seeds)
    def goes_on_once(plan: Plan, seed: int, order: int) -> None:
        random = Random(order)  # noqa: S311
        run = Interrupted(plan, seed)
        run.begin()
        assume(run.texts)
        while run.outcome is None:
            checkpoint = run.load(run.texts[-1])[2]
            racers = [run.some_answers(checkpoint, random) for _ in range(RACERS)]
            if answering == "the same":
                racers = racers[:1] * RACERS
            results = (
                asyncio.run(in_tasks(run, racers)) if where == "tasks" else in_threads(run, racers)
            )
            (winner,) = filter(None, results)
            run.note(*winner)
        assert_same(plan, straight(plan, seed), run.outcome)

    goes_on_once()


class Storeless:
    """A port without a store."""

    store: ApprovalStore | None = None

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        raise ApprovalPending(request)


@pytest.mark.parametrize("answering", ["the same", "different"])
def test_of_fifty_that_resume_a_checkpoint_without_a_store_one_goes_on(answering: str) -> None:
    one = Leaf(Work("await", ((Step("ask"), Step("look")),)))
    plan = Plan(Fork((one, one, one)), deadly=False, open_ended=True)
    world, runner = World(), runner_on(Storeless())
    paused = asyncio.run(runner.run(flow_of(plan, world), Facts()))
    assert paused.checkpoint is not None
    assert len(paused.requests) == 3
    text = runner.dump_checkpoint(paused.checkpoint)

    async def race() -> list[FlowResult | None]:
        async def resume_one(place: int) -> FlowResult | None:
            runner, flow = runner_on(Storeless()), flow_of(plan, world)
            checkpoint = runner.load_checkpoint(flow, text)
            request = checkpoint.requests[place % 3 if answering == "different" else 0]
            try:
                return await runner.resume(flow, checkpoint, decision_for(request, seed=1))
            except ApprovalAlreadyDecided:
                return None

        return await asyncio.gather(*map(resume_one, range(RACERS)))

    results = asyncio.run(race())
    assert len(list(filter(None, results))) == 1
    assert len({effect[0] for effect in world.effects}) == 1
