"""Runs a Map node: one thing for each item, several at a time."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from .errors import ApprovalPending
from .executor import Visit, is_a_stop
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
    slots = asyncio.Semaphore(action.concurrency)
    failed: dict[int, BaseException] = {}
    annotations = _annotations(action, state)

    async def one(index: int) -> None:
        async with slots:
            if failed and action.on_error == "fail":
                return
            item = replace(
                now,
                id=f"{now.id}[{index}]",
                journal=now.journal.inside(item_key(index)),
                pending=[],
                begun=set(),
            )
            value, failure = await _outcome(run_item(items[index], item), item)
            now.pending.extend(item.pending)
            if failure is not None and action.on_error == "fail":
                failed[index] = failure
            elif item.pending:
                return  # an item is kept once it waits for nobody; until then it runs again
            elif failure is not None:
                now.journal.finish_item(index, Item(skipped=True))
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
    if now.pending:
        raise ApprovalPending(now.pending[0])
    return [
        values[i] if i in values else _kept(now, now.journal.items[i], annotations)
        for i in range(len(items))
    ]


async def _outcome(work: Awaitable[Any], item: Visit) -> tuple[Any, BaseException | None]:
    """The value of an item, or what it failed with, once all that it began has ended."""
    value, failure = None, None
    try:
        try:
            value = await work
        finally:
            await item.drain()
    except ApprovalPending:
        pass  # item.pending says so
    except BaseException as error:
        if is_a_stop(error):
            raise
        failure = error
    return value, failure


def _kept(now: Visit, item: Item, annotations: Sequence[Any]) -> Any:
    return None if item.skipped else now.journal.codec.decode(item.value, *annotations)


def _annotations(action: Map, state: BaseModel) -> tuple[Any, ...]:
    """What the items' results may be: the return annotation, and the state field they go into."""
    field = type(state).model_fields[action.into].annotation
    if action.tool is not None:
        return (field, action.tool.returns)
    try:
        return (field, typing.get_type_hints(action.fn).get("return", Any))
    except NameError:  # the hint names something that is local to where the function was made
        return (field,)
