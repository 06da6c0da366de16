"""A run that is interrupted at every pause ends as the same run does with all answers known.

``seed`` decides what people say to what, ``order`` whom they answer when. For what is compared see
``assert_same``; at each pause, and at the end, the requests that are open in the store are those
of the result.
"""

from __future__ import annotations

from random import Random

from hypothesis import event, given, settings

from .plans import Plan, maps, plans, repetitions
from .running import Interrupted, assert_same, seeds, straight
from .tally import examples, tally, unhurried


@settings(unhurried, max_examples=examples(150))
@given(plan=plans(), seed=seeds, order=seeds)
def test_a_run_interrupted_at_every_pause_ends_as_one_with_all_answers_known(
    plan: Plan, seed: int, order: int
) -> None:
    ends_in_the_same_way(plan, seed, order)


@settings(unhurried, max_examples=examples(60))
@given(plan=plans(parallel=False), seed=seeds, order=seeds)
def test_a_sequential_run_interrupted_at_every_pause_has_its_effects_in_one_order(
    plan: Plan, seed: int, order: int
) -> None:
    ends_in_the_same_way(plan, seed, order)


@settings(unhurried, max_examples=examples(50))
@given(plan=plans(deadly=True), seed=seeds, order=seeds)
def test_a_run_that_may_fail_does_so_in_both_ways(plan: Plan, seed: int, order: int) -> None:
    ends_in_the_same_way(plan, seed, order)


@settings(unhurried, max_examples=examples(50))
@given(plan=maps(), seed=seeds, order=seeds)
def test_a_map_that_fails_leaves_no_request_open(plan: Plan, seed: int, order: int) -> None:
    ends_in_the_same_way(plan, seed, order)


@settings(unhurried, max_examples=examples(50))
@given(plan=repetitions(), seed=seeds, order=seeds)
def test_the_same_question_asked_again_needs_an_answer_of_its_own(
    plan: Plan, seed: int, order: int
) -> None:
    ends_in_the_same_way(plan, seed, order)


@settings(unhurried, max_examples=examples(20))
@given(plan=plans(), seed=seeds, order=seeds)
def test_no_checkpoint_of_an_ended_run_can_be_resumed(plan: Plan, seed: int, order: int) -> None:
    run = ends_in_the_same_way(plan, seed, order)
    random = Random(order)  # noqa: S311
    for text in run.texts:
        _, flow, checkpoint = run.load(text)
        everything = [run.answer(request) for request in checkpoint.requests]
        run.assert_spent(flow, checkpoint, everything)
        run.assert_spent(flow, checkpoint, [random.choice(everything)])


def ends_in_the_same_way(plan: Plan, seed: int, order: int) -> Interrupted:
    expected = straight(plan, seed)
    run = Interrupted(plan, seed)
    found = run.to_the_end(Random(order))  # noqa: S311
    kind = "sequential" if plan.sequential else "parallel"
    ended = "completed" if found.error is None else "failed"
    tally.runs += 1
    tally.effects += len(found.effects)
    tally.kinds[f"{kind} and {ended}"] += 1
    event(f"{kind}, {ended}, {min(len(run.texts), 10)} pauses or more")
    assert_same(plan, expected, found)
    return run
