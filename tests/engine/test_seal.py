"""The seal: a text that was changed anywhere is refused before anything in it is read."""

import json
import random
from typing import Any

import pytest

from runs.engine import Executor, Flow, FlowResult, FlowRunner, canonical, tool
from runs.engine.seal import BrokenSeal, Sealed, Sealer

from .support import KEY, State, World, approve, fails, flow_of

OTHER = b"another key, as long as the first"


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


async def node(state: State, ctx: Any) -> dict[str, Any]:
    return {"value": await ctx.call(pay, amount=state.number)}


FLOW = flow_of(node)


def paused_text(number: int = 1) -> str:
    world = World()
    result = world.run(FLOW, State(number=number))
    assert result.checkpoint is not None
    return world.runner.dump_checkpoint(result.checkpoint)


def runner(key: Any = KEY) -> FlowRunner:
    return FlowRunner(Executor(), checkpoint_key=key)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two sealed texts; from here on the test fails where one is read before it is verified."""
    sealed = paused_text(1), paused_text(2)

    def reached(*args: Any, **kwargs: Any) -> None:
        pytest.fail("the text was decoded")

    for name in ("loads", "decode", "check"):
        monkeypatch.setattr(canonical, name, reached)
    monkeypatch.setattr(json, "loads", reached)
    return sealed


def test_a_changed_character_at_any_place_is_refused_before_anything_is_decoded(
    texts: tuple[str, str],
) -> None:
    text, _ = texts
    loading = runner()
    others = random.Random(7)  # noqa: S311  no secret is made here
    for place, old in enumerate(text):
        alphabet = {chr(ord(old) ^ 1), " ", '"', "0", others.choice("abcdef{}[],:\n\x00é")} - {old}
        for new in alphabet:
            with fails("checkpoint-tampered"):
                loading.load_checkpoint(FLOW, text[:place] + new + text[place + 1 :])


def test_every_truncated_or_shortened_text_is_refused(texts: tuple[str, str]) -> None:
    text, _ = texts
    loading = runner()
    for place in range(len(text)):
        for cut in (text[:place], text[place + 1 :], text[:place] + text[place + 1 :]):
            with fails("checkpoint-tampered"):
                loading.load_checkpoint(FLOW, cut)


@pytest.mark.parametrize("more", [" ", "\n", "\x00", "}", ',"x":1}', "\ufeff", "\udc80"])
def test_anything_added_before_inside_or_after_is_refused(
    texts: tuple[str, str], more: str
) -> None:
    text, _ = texts
    for changed in (
        text + more,
        more + text,
        text[:-1] + more + "}",
        text.replace("{", "{" + more),
    ):
        with fails("checkpoint-tampered"):
            runner().load_checkpoint(FLOW, changed)


def test_an_upper_case_code_is_refused() -> None:
    text = paused_text()
    with fails("checkpoint-tampered"):
        runner().load_checkpoint(FLOW, text[:-70] + text[-70:].upper())


def test_parts_of_two_checkpoints_cannot_be_put_together(texts: tuple[str, str]) -> None:
    one, two = texts
    for place in range(0, min(len(one), len(two)), 7):
        for mixed in (one[:place] + two[place:], two[:place] + one[place:]):
            if mixed not in (one, two):
                with fails("checkpoint-tampered"):
                    runner().load_checkpoint(FLOW, mixed)
    head, body, tail = one.index("body"), one.rindex(',"mac"'), two.rindex(',"mac"')
    with fails("checkpoint-tampered"):
        runner().load_checkpoint(FLOW, one[:head] + one[head:body] + two[tail:])


@pytest.mark.parametrize("text", [None, b"{}", 5, [], "", "{}", "null", '{"seal":1}', "x" * 500])
@pytest.mark.usefixtures("texts")
def test_what_is_no_sealed_text_is_refused(text: Any) -> None:
    with fails("checkpoint-tampered"):
        runner().load_checkpoint(FLOW, text)


def test_another_version_of_the_format_is_refused_even_with_a_right_code() -> None:
    sealed = Sealer({"": KEY}).seal('{"a":1}')
    with pytest.raises(BrokenSeal):
        Sealer({"": KEY}).open(sealed.text.replace('"seal":1', '"seal":2'))


def test_a_text_of_another_key_is_refused(texts: tuple[str, str]) -> None:
    with fails("checkpoint-tampered") as caught:
        runner(OTHER).load_checkpoint(FLOW, texts[0])
    assert "Nothing ran" in str(caught.value)


def test_the_first_key_seals_and_all_verify() -> None:
    old = Sealer({"old": KEY}).seal("[1]")
    both = Sealer({"new": OTHER, "old": KEY})
    assert both.open(old.text) == old
    assert both.seal("[1]").key == "new"
    assert Sealer({"new": OTHER}).open(both.seal("[1]").text).body == "[1]"


def test_a_key_that_is_not_here_is_named() -> None:
    text = Sealer({"march": KEY}).seal("[1]").text
    with pytest.raises(BrokenSeal, match="'march'"):
        Sealer({"april": KEY}).open(text)


def test_one_key_does_not_pass_for_another_of_the_same_bytes() -> None:
    sealer = Sealer({"a": KEY, "b": KEY})
    sealed = sealer.seal("[1]")
    with pytest.raises(BrokenSeal):
        sealer.open(sealed.text.replace('"key":"a"', '"key":"b"'))


@pytest.mark.parametrize("key", [b"", b"x" * 15, "x" * 32, bytearray(32), 5])
def test_a_key_that_is_too_short_or_no_bytes_is_refused(key: Any) -> None:
    with pytest.raises(ValueError, match="16"):
        runner(key)
    with pytest.raises(ValueError, match="16"):
        runner({"a": KEY, "b": key})


@pytest.mark.parametrize("key_id", ["a b", "k" * 33, 'x","y', "é", "a\n", 5, None])
def test_a_key_id_that_could_not_be_read_again_is_refused_at_once(key_id: Any) -> None:
    with pytest.raises(ValueError, match="id"):
        runner({key_id: KEY})


def test_no_keys_at_all_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="key"):
        runner({})


def test_sixteen_bytes_are_enough() -> None:
    assert Sealer({"": b"x" * 16}).seal("[1]").mac


@pytest.mark.parametrize("mac", [None, b"x" * 64, 5, "", "é" * 64, "\udc80", "0" * 63, "0" * 64])
def test_a_code_that_is_no_text_or_not_right_is_refused(mac: Any) -> None:
    with pytest.raises(BrokenSeal):
        Sealer({"": KEY}).verify(Sealed("[1]", "", mac))


@pytest.mark.parametrize("key_id", [None, 5, b"", [], "x"])
def test_a_sealed_value_with_another_key_id_is_refused(key_id: Any) -> None:
    sealer = Sealer({"": KEY})
    with pytest.raises(BrokenSeal):
        sealer.verify(Sealed("[1]", key_id, sealer.seal("[1]").mac))


def test_without_a_key_checkpoints_resume_in_this_process() -> None:
    one, two = runner(None), runner(None)
    paused = one.run_sync(FLOW, State(number=3))
    assert paused.checkpoint is not None
    text = one.dump_checkpoint(paused.checkpoint)
    loaded = two.load_checkpoint(FLOW, text)
    done: FlowResult = two.resume_sync(FLOW, loaded, approve())
    assert done.state.value == 3
    with fails("checkpoint-tampered"):
        runner().load_checkpoint(FLOW, text)


def test_the_key_appears_in_no_repr() -> None:
    made = runner()
    assert KEY.decode() not in repr(vars(made)) + repr(made)
    assert isinstance(FLOW, Flow)
