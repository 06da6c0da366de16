"""Which values the seal's codec takes from LangGraph, and which it refuses by design."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command, Interrupt, Send

from runs.engine import canonical
from tests.outside.savers import KEYS, sealed
from tests.outside.serializer import SealSerializer


class Point(NamedTuple):
    x: int


@dataclass
class Order:
    number: int


@pytest.mark.parametrize(
    "value",
    [
        pytest.param((1, [(2, 3)]), id="tuples"),
        pytest.param(
            datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), id="fold"
        ),
        pytest.param(
            datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")), id="named-offset"
        ),
        pytest.param(2**70, id="large-int"),
        pytest.param("\ud800", id="lone-surrogate"),
        pytest.param([bytearray(b"x")], id="bytearray-in-list"),
    ],
)
def test_a_value_comes_back_exactly_as_it_was_also_where_langgraph_changes_it(value: Any) -> None:
    serde = sealed()
    found = serde.loads_typed(serde.dumps_typed(value))
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        Send("node", {"number": 1}),
        Command(goto="node"),
        Interrupt("a question"),
        ValueError("a node's failure"),
        Order(1),
        Point(1),
        deque([1]),
        defaultdict(int),
        OrderedDict(number=1),
        PurePosixPath("file"),
        re.compile("a"),
        ip_address("127.0.0.1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_canonical_form_is_refused_by_its_place(
    value: Any,
) -> None:
    name = canonical.class_name(type(value))
    with pytest.raises(canonical.NotSealable, match=re.escape(f'value["held"][0] ({name})')):
        sealed().dumps_typed({"held": [value]})


def test_messages_are_models_and_come_back_where_an_annotation_reaches_them() -> None:
    serde = SealSerializer(KEYS, annotations=[HumanMessage | AIMessage])
    call = {"name": "refund", "args": {"amount": 49}, "id": "c1", "type": "tool_call"}
    messages = [
        HumanMessage("Refund 49, please.", id="m1"),
        AIMessage("", id="m2", tool_calls=[call]),
    ]
    found = serde.loads_typed(serde.dumps_typed(messages))
    assert found == messages
    assert [type(message) for message in found] == [HumanMessage, AIMessage]


def test_a_message_class_that_no_annotation_reaches_is_not_built() -> None:
    serde = SealSerializer(KEYS, annotations=[HumanMessage])
    written = serde.dumps_typed([ToolMessage("done", tool_call_id="c1")])
    with pytest.raises(canonical.UnknownClass, match=r"langchain_core\.messages\.tool:ToolMessage"):
        serde.loads_typed(written)
