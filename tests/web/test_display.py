"""How values, times, buttons and the course of a run are written on pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from approvals.templatetags.deciding import object_of
from runs.engine.redact import Limits, redact
from runs.templatetags.display import data, facts, first_words, partly_masked
from runs.templatetags.ui import span, took
from runs.timeline import MAX_ROWS, timeline

BEGIN = datetime(2026, 11, 3, 10, 0, tzinfo=UTC)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).replace("&quot;", '"').split())


# ---- values -------------------------------------------------------------------------------------


def test_values_are_written_as_people_say_them():
    shown = words(facts(redact({"paid": True, "memo": None, "note": "", "tags": [], "more": {}})))
    assert shown == "paid yes memo none note empty text tags empty list more nothing"


def test_what_is_hidden_says_why_and_how_it_ends():
    tree = redact({"password": "x", "card": "4111 1111 1111 1111", "pin": SecretStr("9")})
    shown = words(facts(tree))
    assert "hidden: key name “password”" in shown
    assert "•••• 1111 · looks like a card number" in shown
    assert facts(tree).count('class="masked"') == 3


def test_a_masked_part_of_a_text_stands_apart_from_words_that_only_look_like_it():
    tree = redact({"note": "[hidden: not really] but card 4111 1111 1111 1111 is"})
    html = facts(tree)
    assert html.count('class="masked"') == 1
    assert "[hidden: not really]" in words(html)
    assert "4111" not in html
    assert partly_masked(tree)


def test_a_tree_is_partly_masked_only_where_a_part_of_a_text_is():
    assert not partly_masked(None)
    assert not partly_masked(redact({"password": "x", "note": ["[hidden: not really]", 1]}))
    assert partly_masked(redact({"notes": [{"text": "see https://a:b@example.org/ for it"}]}))


def test_a_long_text_is_there_whole_behind_its_beginning():
    text = "word " * 200 + "the end"
    html = facts(redact({"memo": text}))
    assert "<details" in html
    assert "show all 1,007 characters" in words(html)
    assert "the end" in html


def test_what_a_limit_left_out_is_counted():
    html = facts(redact({"text": "x" * 50, "list": [1, 2, 3, 4]}, limits=Limits(10, 3)))
    assert "40 more characters are not shown here" in words(html)
    assert "1 more are not shown here" in words(html)


def test_keys_and_values_are_escaped_at_every_depth():
    html = facts(redact({"<b>": [{"<i>": "<script>"}]}))
    for raw in ("<b>", "<i>", "<script>"):
        assert raw not in html


def test_data_of_an_entry_is_redacted_and_its_trees_are_drawn():
    html = data({"reason": "token: ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2, "answer": redact({"a": 1})})
    assert "ghp_" not in html
    assert "answer a 1" in words(html)


def test_the_first_words_skip_what_is_hidden():
    assert first_words(redact({"password": "x", "file": "claims.csv"})) == "claims.csv"
    assert first_words(redact({})) == ""


# ---- times and buttons --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (5, "under a minute"),
        (60, "1 min"),
        (3_600, "1 h"),
        (11_520, "3 h 12 min"),
        (180_000, "2 d 2 h"),
        (864_000, "10 d"),
    ],
)
def test_spans_are_said_in_their_two_largest_units(seconds, said):
    assert span(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0001, "1 ms"), (0.04, "40 ms"), (0.2, "0.2 s"), (12, "12 s")]
)
def test_short_times_are_said_shortly(seconds, said):
    assert took(seconds) == said


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("Pay 1,480.00 EUR to Köhler & Søn", "1,480.00 EUR"),
        ("Refund €49 now", "€49"),
        ("Move 5 EUR out of 60 EUR to the other account", "“Move 5 EUR out of 60 EUR…”"),
        ("Delete 1,204 rows from customers", "“Delete 1,204 rows from…”"),
        ("Roll out 4.12?", "“Roll out 4.12?”"),
    ],
)
def test_a_button_names_the_amount_or_how_the_sentence_begins(summary, said):
    assert object_of(summary) == said


# ---- the course of a run ------------------------------------------------------------------------


@dataclass
class Event:
    after: float
    kind: str
    node: str
    visit: str = ""

    @property
    def at(self) -> datetime:
        return BEGIN + timedelta(seconds=self.after)


def test_a_visit_that_waited_is_work_then_waiting_then_work():
    events = [
        Event(0, "node.started", "pay", "v1"),
        Event(1, "node.suspended", "pay", "v1"),
        Event(601, "node.started", "pay", "v1"),
        Event(602, "node.finished", "pay", "v1"),
    ]
    (row,) = timeline(events, BEGIN, stopped=True).rows
    assert [stretch.kind for stretch in row.stretches] == ["work", "wait", "work"]
    assert (row.state, row.seconds) == ("finished", 602)
    assert row.stretches[0].x == 0
    assert row.stretches[1].width > row.stretches[0].width
    ends = row.stretches[-1].x + row.stretches[-1].width
    assert ends == pytest.approx(100)


@pytest.mark.parametrize(("stopped", "state"), [(False, "waiting"), (True, "stopped")])
def test_what_has_no_end_goes_on_until_now_or_was_cut_short(stopped, state):
    events = [Event(0, "node.started", "pay", "v"), Event(1, "node.suspended", "pay", "v")]
    (row,) = timeline(events, BEGIN + timedelta(seconds=61), stopped=stopped).rows
    assert (row.state, row.seconds) == (state, 61)


def test_visits_of_one_node_are_counted_and_the_newest_are_drawn():
    events = [Event(n, "node.started", "again", f"v{n}") for n in range(MAX_ROWS + 5)]
    drawn = timeline(events, BEGIN + timedelta(hours=1), stopped=False)
    assert (len(drawn.rows), drawn.left_out) == (MAX_ROWS, 5)
    assert drawn.rows[-1].number == MAX_ROWS + 5


def test_events_without_length_are_drawn_without_a_division_by_nothing():
    events = [Event(0, "node.started", "a", "v"), Event(0, "node.finished", "a", "v")]
    (row,) = timeline(events, BEGIN, stopped=True).rows
    assert row.stretches[0].width > 0
