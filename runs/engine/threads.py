"""Runs plain functions off the event loop.

Tools, which call nothing of the engine, share the loop's pool. Node functions and the like get a
thread each: they wait for tools, and a pool full of waiting functions would let none of these run.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

Around = Callable[[Callable[[], Any]], Any]
"""Called in the thread with the function to run; opens and closes what that needs."""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    called = getattr(function, "__call__", None)  # noqa: B004  an object may be called too
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


async def in_pool(function: Callable[[], Any], around: Around) -> Any:
    """Run in a thread of the loop's pool."""
    context = copy_context()
    return await asyncio.to_thread(context.run, _guarded, function, around)


async def in_own_thread(function: Callable[[], Any], around: Around) -> Any:
    """Run in a thread made for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():  # its caller was cancelled
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = context.run(_guarded, function, around)
        except BaseException as error:  # it belongs to whoever awaits the future
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:  # the loop was closed; nobody waits any more
            return

    threading.Thread(target=run, name=f"flow-{getattr(function, '__name__', 'node')}").start()
    return await future


def _guarded(function: Callable[[], Any], around: Around) -> Any:
    try:
        return around(function)
    except StopIteration as error:
        # A future can't hold it; in an async function Python makes the same of it.
        raise RuntimeError("The function raised StopIteration") from error
