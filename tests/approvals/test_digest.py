"""The digest over what was shown and what will run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.digest import is_intact, raw_arguments, same_text, seal_arguments
from approvals.models import ApprovalRequest
from runs.storage import Unreadable
from tests.support import flows
from tests.support.make import request_of, set_aside


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


@pytest.mark.django_db
def test_a_request_as_it_was_asked_is_intact_and_gives_its_arguments():
    request = request_of("small")
    assert is_intact(request)
    assert raw_arguments(request) == {"step": "pay"}


@pytest.mark.django_db
def test_two_like_requests_have_digests_of_their_own():
    assert request_of("small").digest != request_of("small").digest


def test_the_digest_does_not_tell_arguments_that_are_hidden():
    """The same row sealed twice with the same arguments has two digests, so none can be guessed."""
    request = ApprovalRequest(tool="pay", shown={"t": "map", "items": []})
    digests = set()
    for _ in range(2):
        seal_arguments(request, {"pin": "1234"}, "graph")
        digests.add(request.digest)
    assert len(digests) == 2


@pytest.mark.parametrize("part", ["arguments", "graph"])
def test_the_digest_covers_arguments_and_graph(part, monkeypatch):
    monkeypatch.setattr("approvals.digest.secrets.token_hex", lambda size: "the same")
    request = ApprovalRequest(tool="pay", shown={})
    seal_arguments(request, {"amount": 1}, "graph")
    first = request.digest
    seal_arguments(request, {"amount": 1}, "graph")
    assert request.digest == first
    given = {"arguments": {"amount": 1}, "graph": "graph"} | {part: "other"}
    seal_arguments(request, given["arguments"], given["graph"])
    assert request.digest != first


@pytest.mark.django_db
def test_a_request_whose_arguments_can_not_be_read_is_not_intact():
    request = request_of("small")
    set_aside(request, arguments=request_of("small").arguments)
    request.refresh_from_db()
    assert not is_intact(request)
    with pytest.raises(Unreadable):
        raw_arguments(request)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1e16, 10**16),
        (1.5e300, 15 * 10**299),
        (-0.0, 0.0),
        (0.0, 0),
        (100.0, 100),
        (-2.50, -2.5),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_data_is_the_same_however_a_database_spells_it(one, other):
    assert same_text(one) == same_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, -1),
        (1, 10),
        (10, 100),
        (0.1, 0.01),
        (101, 11),
        (1, "1"),
        (1, True),
        (0, False),
        (0, None),
        (10**30, 10**30 + 1),
        ({"number": "1e0"}, {"number": "1e1"}),
        ([1, 2], [2, 1]),
    ],
)
def test_data_that_differs_stays_different(one, other):
    assert same_text(one) != same_text(other)


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS, NUMBERS)
def test_numbers_have_the_same_text_exactly_where_they_are_equal(one, other):
    assert (same_text(one) == same_text(other)) is (exact(one) == exact(other))


def exact(number):
    """The number as JSON writes it, compared without rounding."""
    from fractions import Fraction

    return Fraction(json.dumps(number))
