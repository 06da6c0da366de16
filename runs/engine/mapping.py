"""Runs a Map node: one thing for each item, several at a time."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from .errors import ApprovalPending
from .executor import Visit
from .journal import Item, item_key
from .nodes import Map

RunItem = Callable[[Any, Visit], Awaitable[Any]]


async def run_map(
    action: Map, items: Sequence[Any], now: Visit, run_item: RunItem, state: BaseModel
) -> list[Any]:
    """The results in the order of the items; None for one that was skipped.

    Finished and skipped items are kept in the visit's journal and not run again. An item that
    waits for a person doesn't hold up the others; once they have ended, ApprovalPending leaves.
    With ``on_error="fail"`` no further item is begun after a failure.
    """
    gate = asyncio.Semaphore(action.concurrency)
    failed: dict[int, Exception] = {}
    waiting: list[ApprovalPending] = []
    annotations = _annotations(action, state)

    async def one(index: int) -> None:
        async with gate:
            if failed and action.on_error == "fail":
                return
            item_visit = replace(
                now, id=f"{now.id}[{index}]", journal=now.journal.inside(item_key(index))
            )
            try:
                value = await run_item(items[index], item_visit)
            except ApprovalPending as pending:
                waiting.append(pending)
            except Exception as error:
                if action.on_error == "skip":
                    now.journal.finish_item(index, Item(skipped=True))
                else:
                    failed[index] = error
            else:
                data, why_not = now.journal.codec.keep(
                    value, f"item {index} of {now.node!r}", *annotations
                )
                now.journal.finish_item(index, Item(data, unsealable=why_not))
                values[index] = value

    values: dict[int, Any] = {}
    await asyncio.gather(*(one(i) for i in range(len(items)) if i not in now.journal.items))
    if failed:
        raise failed[min(failed)]
    if waiting:
        raise waiting[0]
    return [
        values[i] if i in values else _kept(now, now.journal.items[i], annotations)
        for i in range(len(items))
    ]


def _kept(now: Visit, item: Item, annotations: Sequence[Any]) -> Any:
    return None if item.skipped else now.journal.codec.decode(item.value, *annotations)


def _annotations(action: Map, state: BaseModel) -> tuple[Any, ...]:
    """What the items' results may be: the return annotation, and the state field they go into."""
    field = type(state).model_fields[action.into].annotation
    if action.tool is not None:
        return (field, action.tool.returns)
    return (field, typing.get_type_hints(action.fn).get("return", Any))
