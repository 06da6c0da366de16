"""LangGraph's own checkpointers, over a serializer that the caller names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from tests.outside.serializer import SealSerializer

KEYS = {"k1": b"a key of more than sixteen bytes"}


@asynccontextmanager
async def in_memory(serde: SerializerProtocol) -> AsyncIterator[BaseCheckpointSaver]:
    yield InMemorySaver(serde=serde)


@asynccontextmanager
async def in_sqlite(
    serde: SerializerProtocol, file: str = ":memory:"
) -> AsyncIterator[AsyncSqliteSaver]:
    async with aiosqlite.connect(file) as connection:
        yield AsyncSqliteSaver(connection, serde=serde)


def sealed() -> SealSerializer:
    """A serializer that builds no class at all."""
    return SealSerializer(KEYS)
