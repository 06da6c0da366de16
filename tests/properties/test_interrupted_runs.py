"""A run that is interrupted at every pause ends as the same run does with all answers known."""

from __future__ import annotations

from random import Random

from hypothesis import event, given, settings

from .plans import Plan, plans
from .running import Interrupted, assert_same, seeds, straight
from .tally import examples, tally, unhurried


@settings(unhurried, max_examples=examples(200))
@given(plan=plans(), seed=seeds, order=seeds)
def test_a_run_interrupted_at_every_pause_ends_as_one_with_all_answers_known(
    plan: Plan, seed: int, order: int
) -> None:
    """``seed`` decides what people say to what, ``order`` whom they answer when. For what is the
    same in both runs see ``assert_same``."""
    expected = straight(plan, seed)
    run = Interrupted(plan, seed)
    found = run.to_the_end(Random(order))  # noqa: S311
    _note(plan, run)
    assert_same(plan, expected, found)


@settings(unhurried, max_examples=examples(60))
@given(plan=plans(parallel=False), seed=seeds, order=seeds)
def test_a_sequential_run_interrupted_at_every_pause_has_its_effects_in_one_order(
    plan: Plan, seed: int, order: int
) -> None:
    expected = straight(plan, seed)
    run = Interrupted(plan, seed)
    found = run.to_the_end(Random(order))  # noqa: S311
    _note(plan, run)
    assert_same(plan, expected, found)


@settings(unhurried, max_examples=examples(60))
@given(plan=plans(deadly=True), seed=seeds, order=seeds)
def test_a_run_that_may_fail_leaves_no_request_open_and_fails_in_both_ways(
    plan: Plan, seed: int, order: int
) -> None:
    expected = straight(plan, seed)
    run = Interrupted(plan, seed)
    found = run.to_the_end(Random(order))  # noqa: S311
    _note(plan, run)
    assert_same(plan, expected, found)


@settings(unhurried, max_examples=examples(40))
@given(plan=plans(), seed=seeds, order=seeds)
def test_no_checkpoint_of_an_ended_run_can_be_resumed(plan: Plan, seed: int, order: int) -> None:
    random = Random(order)  # noqa: S311
    run = Interrupted(plan, seed)
    run.to_the_end(random)
    _note(plan, run)
    for text in run.texts:
        _, flow, checkpoint = run.load(text)
        everything = [run.answer(request) for request in checkpoint.requests]
        run.assert_spent(flow, checkpoint, everything)
        run.assert_spent(flow, checkpoint, [random.choice(everything)])


def _note(plan: Plan, run: Interrupted) -> None:
    tally.runs += 1
    tally.effects += len(run.world.effects)
    kind = "sequential" if plan.sequential else "parallel"
    assert run.outcome is not None
    ended = "completed" if run.outcome.error is None else "failed"
    tally.kinds[f"{kind} and {ended}"] += 1
    event(f"{kind}, {ended}, {min(len(run.texts), 10)} pauses or more")
