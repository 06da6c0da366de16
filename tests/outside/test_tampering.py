"""What the seal notices in LangGraph's SQLite tables, and what lies outside it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint

from runs.engine.seal import BrokenSeal
from tests.outside.savers import in_sqlite, sealed

AMOUNT = 49


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def stored_then(file: Path, *statements: str) -> CheckpointTuple:
    """Thread a's checkpoint as read again, after someone ran statements on the database."""

    async def walk() -> CheckpointTuple:
        async with in_sqlite(sealed(), str(file)) as saver:
            for thread, amount in (("a", AMOUNT), ("b", 4900)):
                checkpoint = empty_checkpoint() | {
                    "channel_values": {"amount": amount},
                    "channel_versions": {"amount": 1},
                }
                stored = await saver.aput(
                    config(thread),
                    checkpoint,
                    {"source": "loop", "step": 0, "parents": {}},
                    {"amount": 1},
                )
                await saver.aput_writes(stored, [("amount", amount + 1)], f"task-{thread}")
            for statement in statements:
                await saver.conn.execute(statement)
            await saver.conn.commit()
        async with in_sqlite(sealed(), str(file)) as saver:
            found = await saver.aget_tuple(config("a"))
            assert found is not None
            return found

    return asyncio.run(walk())


def test_an_untouched_checkpoint_and_its_writes_are_read_from_the_file(tmp_path: Path) -> None:
    found = stored_then(tmp_path / "runs.sqlite")
    assert found.checkpoint["channel_values"] == {"amount": AMOUNT}
    assert found.pending_writes == [("task-a", "amount", AMOUNT + 1)]


def changed(table: str, column: str, old: str, new: str) -> str:
    return (
        f"UPDATE {table} SET {column} = "  # noqa: S608
        f"CAST(replace(CAST({column} AS TEXT), '{old}', '{new}') AS BLOB)"
    )


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (changed("checkpoints", "checkpoint", '"amount":49', '"amount":94'), "authentication code"),
        (changed("writes", "value", '"body":50', '"body":51'), "authentication code"),
        (
            "UPDATE checkpoints SET checkpoint = CAST(checkpoint || x'FF' AS BLOB)",
            "form of a sealed text",
        ),
        ("UPDATE checkpoints SET checkpoint = x'81A16101'", "form of a sealed text"),
        ("UPDATE checkpoints SET type = 'msgpack'", "type 'msgpack'"),
        ("UPDATE writes SET type = 'pickle'", "type 'pickle'"),
    ],
)
def test_a_changed_checkpoint_or_write_is_refused(tmp_path: Path, statement: str, why: str) -> None:
    with pytest.raises(BrokenSeal, match=why):
        stored_then(tmp_path / "runs.sqlite", statement)


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        pytest.param(
            changed("checkpoints", "metadata", '"step": 0', '"step": 7'),
            lambda found: found.metadata["step"] == 7,
            id="metadata, which this saver writes as JSON of its own",
        ),
        pytest.param(
            "UPDATE checkpoints SET checkpoint = (SELECT checkpoint FROM checkpoints "
            "WHERE thread_id = 'b') WHERE thread_id = 'a'",
            lambda found: found.checkpoint["channel_values"] == {"amount": 4900},
            id="a sealed value moved whole, as a serializer is not told whose value it reads",
        ),
    ],
)
def test_outside_the_seal_as_a_serializer_lies(
    tmp_path: Path, statement: str, read: Callable[[CheckpointTuple], bool]
) -> None:
    assert read(stored_then(tmp_path / "runs.sqlite", statement))
