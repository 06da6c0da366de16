"""A sealed text that was changed in any way is refused, and no code of the flow has run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runs.engine import FlowError

from .plans import HARMLESS, Chain, Leaf, Plan, Step, Work, plans
from .running import Interrupted, seeds
from .tally import examples, tally, unhurried
from .world import touched

SMALL = Plan(Leaf(Work("await", ((Step("look"), Step("ask")),))), deadly=False, open_ended=True)


@st.composite
def paused_runs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Interrupted:
    """Random runs that wait for people, after a few pauses."""
    run = Interrupted(draw(plans(deadly=False)), draw(seeds))
    random = Random(draw(seeds))  # noqa: S311
    run.begin()
    for _ in range(draw(st.integers(0, 3))):
        if run.outcome is None:
            run.go_on(random)
    assume(run.texts)
    return run


@contextmanager
def refused(run: Interrupted) -> Iterator[Callable[[Any], None]]:
    """Gives a function that asserts that a text is refused; no code has run at the end."""
    runner, flow = run.runner(), run.flow()
    before = run.world.touched()

    def refuse(text: Any) -> None:
        tally.refused += 1
        with pytest.raises(FlowError) as refusal:
            runner.load_checkpoint(flow, text)
        assert refusal.value.code == "checkpoint-tampered"

    yield refuse
    assert run.world.touched() == before


@settings(unhurried, max_examples=examples(40))
@given(run=paused_runs(), seed=seeds, character=st.characters())
def test_one_changed_inserted_or_missing_character_is_refused(
    run: Interrupted, seed: int, character: str
) -> None:
    text, random = run.texts[-1], Random(seed)  # noqa: S311
    with refused(run) as refuse:
        for sign in (character, *random.sample('0123456789abcdef{}[],:"\\ \n-+.etrufalsn', 6)):
            place = random.randrange(len(text))
            if text[place] != sign:
                refuse(text[:place] + sign + text[place + 1 :])
            refuse(text[:place] + sign + text[place:])
            refuse(text[:place] + text[place + 1 :])


@settings(unhurried, max_examples=examples(40))
@given(run=paused_runs(), seed=seeds, more=st.text(min_size=1))
def test_a_truncated_or_longer_text_is_refused(run: Interrupted, seed: int, more: str) -> None:
    text, random = run.texts[-1], Random(seed)  # noqa: S311
    with refused(run) as refuse:
        for _ in range(5):
            refuse(text[: random.randrange(len(text))])
            refuse(text[1 + random.randrange(len(text)) :])
        for longer in (text + more, more + text, text + "\n", " " + text, text + "\0", text * 2):
            refuse(longer)
        for other in (text.encode(), text.encode() + b"\0", bytearray(text.encode()), None):
            refuse(other)


@settings(unhurried, max_examples=examples(40))
@given(run=paused_runs(), seed=seeds)
def test_parts_that_have_changed_places_are_refused(run: Interrupted, seed: int) -> None:
    """Within one text, and between the texts of one run, which one key has sealed."""
    text, random = run.texts[-1], Random(seed)  # noqa: S311
    with refused(run) as refuse:
        for _ in range(5):
            a, b, c, d = sorted(random.sample(range(len(text) + 1), 4))
            swapped = text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
            if swapped != text:
                refuse(swapped)
        for other in run.texts[:-1]:
            for cut in (random.randrange(len(text)), text.index(',"mac":')):
                left = len(text) - cut
                for mixed in (text[:cut] + other[cut:], text[:cut] + other[-left:]):
                    if mixed not in (text, other):
                        refuse(mixed)


@settings(unhurried, max_examples=examples(40))
@given(run=paused_runs(), seed=seeds)
def test_the_same_data_written_in_another_way_is_refused(run: Interrupted, seed: int) -> None:
    text, random = run.texts[-1], Random(seed)  # noqa: S311
    data = json.loads(text)
    with refused(run) as refuse:
        refuse(json.dumps(data))
        refuse(json.dumps(data, separators=(",", ":"), sort_keys=True))
        refuse(text.replace('"seal":1', '"seal":1.0'))
        refuse(text.replace(data["mac"], data["mac"].swapcase()))
        letter = random.choice([found.start() for found in re.finditer("[a-z]", text)])
        refuse(f"{text[:letter]}\\u{ord(text[letter]):04x}{text[letter + 1 :]}")
        body = data["body"]
        for part in ("visits", "steps", "counts", "joins", "state"):
            changed = {**data, "body": {**body, part: None}}
            refuse(json.dumps(changed, separators=(",", ":")))
            del changed["body"][part]
            refuse(json.dumps(changed, separators=(",", ":")))


def test_every_single_place_of_a_text_counts() -> None:
    run = Interrupted(SMALL, seed=0)
    run.begin()
    text = run.texts[-1]
    with refused(run) as refuse:
        for place, sign in enumerate(text):
            refuse(text[:place] + chr(ord(sign) ^ 1) + text[place + 1 :])
            refuse(text[:place])
            refuse(text[place + 1 :])


@settings(unhurried, max_examples=examples(20))
@given(run=paused_runs())
def test_the_text_as_it_was_sealed_loads_and_dumps_unchanged_without_running_code(
    run: Interrupted,
) -> None:
    text = run.texts[-1]
    runner, flow = run.runner(), run.flow()
    before = run.world.touched()
    loaded = runner.load_checkpoint(flow, text)
    assert runner.dump_checkpoint(loaded) == text
    assert run.world.touched() == before


def test_code_that_runs_is_counted() -> None:
    """What the tests above rely on: tools, functions, validators and model_post_init count."""
    every: Chain = tuple(Step(tool) for tool in HARMLESS)
    work = Work("plain", (every,), gate="model")
    run = Interrupted(Plan(Leaf(work), deadly=False, open_ended=True), seed=1)
    kinds = touched.copy()
    run.to_the_end(Random(0))  # noqa: S311
    assert run.world.functions > 0
    assert len(run.world.effects) >= 2
    assert all((touched - kinds)[kind] > 0 for kind in ("validator", "model_post_init"))
