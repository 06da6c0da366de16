"""Runs a plan: straight through, or interrupted at every pause; and compares how both ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import strategies as st

from runs.engine import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalPort,
    ApprovalRequest,
    Checkpoint,
    DeferredApproval,
    Executor,
    Flow,
    FlowError,
    FlowResult,
    FlowRunner,
)
from runs.engine.approval import Answer

from .flows import flow_of
from .plans import Plan
from .tally import tally
from .world import (
    Effect,
    Facts,
    KnownAnswers,
    NotingStore,
    World,
    allowed,
    by_chain,
    decision_for,
    needs_a_yes,
    questions,
)

KEY = b"the key of the property-based tests"
seeds = st.integers(0, 2**32 - 1)
LIMIT = 400
"""Pauses of one run; more would be a run that never ends."""


def runner_on(port: ApprovalPort) -> FlowRunner:
    """A new runner with a new executor, as another process would make them."""
    return FlowRunner(Executor(port), checkpoint_key=KEY)


@dataclass
class Outcome:
    """How a run ended: with a state, or with an error's code and node; its effects; and the
    questions whose answers it used, as often as it used one."""

    state: Facts | None = None
    error: tuple[str, str | None] | None = None
    effects: list[Effect] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


@dataclass
class Interrupted:
    """A run that is dumped to text at each pause, and goes on from the text in a new loop with a
    new runner, a flow made anew, and the same store and world."""

    plan: Plan
    seed: int
    world: World = field(default_factory=World)
    store: NotingStore = field(default_factory=NotingStore)
    texts: list[str] = field(default_factory=list)
    outcome: Outcome | None = None

    def begin(self) -> None:
        """Run to the first pause, or to the end."""
        self._take(lambda runner: runner.run(self.flow(), Facts()))

    def flow(self) -> Flow:
        return flow_of(self.plan, self.world)

    def runner(self) -> FlowRunner:
        return runner_on(DeferredApproval(self.store))

    def load(self, text: str) -> tuple[FlowRunner, Flow, Checkpoint]:
        runner, flow = self.runner(), self.flow()
        return runner, flow, runner.load_checkpoint(flow, text)

    def some_answers(self, checkpoint: Checkpoint, random: Random) -> list[ApprovalDecision]:
        """Answers to some of a checkpoint's open requests, one at least, in any order."""
        requests = checkpoint.requests
        some = random.sample(requests, random.randint(1, len(requests)))
        return [self.answer(request) for request in some]

    def answer(self, request: ApprovalRequest) -> ApprovalDecision:
        return decision_for(request, self.seed)

    def go_on(self, random: Random) -> None:
        """Answer some of the open requests, and resume from the text of the last pause; once
        only, for the second time nothing runs."""
        _, flow, checkpoint = self.load(self.texts[-1])
        answers = self.some_answers(checkpoint, random)
        self._take(lambda runner: runner.resume(flow, checkpoint, *answers))
        self.assert_spent(flow, checkpoint, answers)

    def _take(self, step: Callable[[FlowRunner], Awaitable[FlowResult]]) -> None:
        runner = self.runner()

        async def main() -> FlowResult:
            return await step(runner)

        try:
            self.note(runner, asyncio.run(main()))
        except FlowError as error:
            self.ended(Outcome(error=(error.code, error.node)))

    def note(self, runner: FlowRunner, result: FlowResult) -> None:
        """A pause, whose text is kept, or the end."""
        open_here = sorted(request.id for request in result.requests)
        assert open_here == sorted(request.id for request in self.store.pending())
        if result.checkpoint is None:
            self.ended(Outcome(state=result.state))
            return
        assert open_here, "a run that pauses waits for someone"
        assert len(self.texts) < LIMIT, "the run does not come to an end"
        self.texts.append(runner.dump_checkpoint(result.checkpoint))
        tally.pauses += 1
        tally.requests += len(open_here)

    def ended(self, outcome: Outcome) -> None:
        self.outcome = outcome
        outcome.effects = self.world.effects
        outcome.questions = questions(self.store.answered)

    def to_the_end(self, random: Random) -> Outcome:
        self.begin()
        while self.outcome is None:
            self.go_on(random)
        assert self.store.pending() == []
        answered = self.store.answered
        for which in ("id", "call_id"):
            ids = {getattr(request, which) for request, _ in answered}
            assert len(ids) == len(answered), f"two answers were spent for one {which}"
        assert_allowed(self.outcome, answered)
        return self.outcome

    def assert_spent(
        self, flow: Flow, checkpoint: Checkpoint, answers: list[ApprovalDecision]
    ) -> None:
        """The checkpoint can't be resumed with these answers any more, and nothing runs."""
        with self.nothing_runs(), pytest.raises(ApprovalAlreadyDecided):
            asyncio.run(self.runner().resume(flow, checkpoint, *answers))

    @contextmanager
    def nothing_runs(self) -> Iterator[None]:
        """No function and no tool of the flow runs in this block, and no request is made or
        withdrawn. (An answer is checked by its form's validators before it is spent.)"""
        before = self._stands_at()
        yield
        assert self._stands_at() == before

    def _stands_at(self) -> tuple[int, int, list[str]]:
        pending = [request.id for request in self.store.pending()]
        return self.world.functions, len(self.world.effects), pending


def straight(plan: Plan, seed: int) -> Outcome:
    """The run whose answers are all known beforehand."""
    world, port = World(), KnownAnswers(seed)
    runner = runner_on(port)
    outcome = Outcome(effects=world.effects)
    try:
        outcome.state = asyncio.run(runner.run(flow_of(plan, world), Facts())).state
    except FlowError as error:
        outcome.error = (error.code, error.node)
    outcome.questions = questions(port.answered)
    assert_allowed(outcome, port.answered)
    return outcome


def assert_allowed(outcome: Outcome, answers: Sequence[Answer]) -> None:
    """What needs a person's yes ran once for each yes, with the arguments that were allowed. (A
    run that fails may end before it comes to that.)"""
    ran = Counter(
        (chain, tool, seen, note)
        for chain, tool, seen, note in outcome.effects
        if needs_a_yes(tool, chain, seen)
    )
    assert ran <= allowed(answers)
    if outcome.error is None:
        assert ran == allowed(answers)


def assert_same(plan: Plan, expected: Outcome, found: Outcome) -> None:
    """Two runs of a plan ended in the same way.

    Completed: equal states; the same effects, each as often, in the same order in each chain of
    calls, and in one order where the plan is sequential; and the same questions were answered,
    each as often. A call's arguments tell what all calls before it gave, so calls of different
    chains can't change places unnoticed either.

    Failed: the same error at the same node, the same effects in one order, and the same questions,
    where the plan is sequential. Elsewhere the first failure ends the run, and which that is
    depends on the order of the answers: while one branch waits for a person, another goes on and
    may fail first. Then the other run fails too, and each chain has got as far as in the first
    run, or less far, or farther, but on the same way.
    """
    if plan.sequential:
        assert (found.error, found.effects) == (expected.error, expected.effects)
        assert found.questions == expected.questions
    if expected.error is None or found.error is None:
        assert found.error == expected.error
        assert found.state == expected.state
        assert repr(found.state) == repr(expected.state), "equal values of other types"
        assert Counter(found.effects) == Counter(expected.effects)
        assert by_chain(found.effects) == by_chain(expected.effects)
        assert found.questions == expected.questions
        return
    assert plan.deadly
    assert {found.error[0], expected.error[0]} <= {"approval-denied", "node-failed"}
    way = by_chain(expected.effects)
    for chain, effects in by_chain(found.effects).items():
        shared = min(len(effects), len(way.get(chain, ())))
        assert effects[:shared] == way.get(chain, [])[:shared]
