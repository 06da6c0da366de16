"""``langgraph-checkpoint-conformance`` over LangGraph's checkpointers with the seal's codec."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import CapabilityReport, ProgressCallbacks
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from tests.outside.savers import KEYS, in_memory, in_sqlite
from tests.outside.serializer import SealSerializer

SAVERS: dict[
    str, Callable[[SerializerProtocol], AbstractAsyncContextManager[BaseCheckpointSaver]]
] = {"memory": in_memory, "sqlite": in_sqlite}


class Counting(SealSerializer):
    """Counts what went through it."""

    def __init__(self) -> None:
        super().__init__(KEYS)
        self.used = Counter[str]()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        self.used["sealed"] += 1
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.used["opened"] += 1
        return super().loads_typed(data)


class Changing(SealSerializer):
    """Does not give back what it was given: texts come back in capitals."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        value = super().loads_typed(data)
        return value.upper() if isinstance(value, str) else value


def conformance(
    saver: str, serde: SerializerProtocol
) -> tuple[CapabilityReport, dict[str, str | None]]:
    """The suite's report, and each test that ran with its error, ``None`` where it passed."""
    ran: dict[str, str | None] = {}

    def note(capability: str, test: str, passed: bool, error: str | None) -> None:
        ran[f"{capability}.{test}"] = None if passed else error or "failed"

    @checkpointer_test(name=saver)
    async def fresh() -> AsyncGenerator[BaseCheckpointSaver, None]:
        async with SAVERS[saver](serde) as made:
            yield made

    report = asyncio.run(validate(fresh, progress=ProgressCallbacks(on_test_result=note)))
    return report, ran


@pytest.mark.parametrize("saver", SAVERS)
def test_the_suite_passes_over_the_seal_with_no_test_left_out(saver: str) -> None:
    serde = Counting()
    report, ran = conformance(saver, serde)
    _, with_their_own = conformance(saver, JsonPlusSerializer())
    assert {test: error for test, error in ran.items() if error} == {}
    assert report.passed_all_base()
    assert ran.keys() == with_their_own.keys()
    assert serde.used["sealed"] > len(ran)
    assert serde.used["opened"] > len(ran)
    print(f"{saver}: {len(ran)} tests passed, {dict(serde.used)}")


@pytest.mark.parametrize("saver", SAVERS)
def test_what_the_savers_do_not_offer_is_all_that_did_not_run(saver: str) -> None:
    report, _ = conformance(saver, Counting())
    left_out = {name for name, result in report.results.items() if not result.detected}
    assert left_out == {"copy_thread", "delete_for_runs", "prune"}


@pytest.mark.parametrize("saver", SAVERS)
def test_the_suite_notices_a_serializer_that_changes_values(saver: str) -> None:
    report, ran = conformance(saver, Changing(KEYS))
    assert not report.passed_all_base()
    assert ran["put_writes.test_put_writes_basic"]
