"""What a node function is given beside the state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from pydantic import BaseModel

from .errors import FlowError
from .executor import Executor, Visit
from .graph import Flow
from .tools import Tool

RunNested = Callable[[Flow, BaseModel, Visit], Awaitable[Any]]


class Context:
    """A node's hold on its run.

    ``run_id`` names the run and ``answer`` is what a person answered to this node's own gate:
    the form's content, ``True`` where there was no form, ``None`` before anyone answered.
    """

    def __init__(
        self, executor: Executor, visit: Visit, run_nested: RunNested, answer: Any
    ) -> None:
        self._executor = executor
        self._visit = visit
        self._run_nested = run_nested
        self._loop = asyncio.get_running_loop()
        self._open = True
        self.answer = answer

    @property
    def run_id(self) -> str:
        return self._visit.run_id

    async def call(self, tool: Tool, /, **arguments: Any) -> Any:
        """Call a tool; returns its value, on a re-run of the node the recorded one.

        Raises AdapterError where the tool failed and ApprovalDenied where a person refused it.
        """
        return await self.call_on(self._executor, tool, **arguments)

    async def call_on(self, executor: Executor, tool: Tool, /, **arguments: Any) -> Any:
        """``call`` on an executor of the node's own, with its guards, ledger and approval port;
        the results are in this node's journal all the same."""
        if not isinstance(tool, Tool):
            raise TypeError(f"A node calls a @tool, not a {type(tool).__name__}.")
        self._require_open(tool.name)
        return await executor.call(self._visit, tool, arguments)

    async def run_flow(self, flow: Flow, state: BaseModel) -> Any:
        """Run another flow inside this node; returns its last state.

        Where it pauses, this node pauses. On a re-run it is walked again from its start, with
        every finished call replayed. Raises what the flow raises.
        """
        self._require_open(flow.name)
        return await self._run_nested(flow, state, self._visit)

    def call_sync(self, tool: Tool, /, **arguments: Any) -> Any:
        """``call`` for plain node functions, which run in a thread of their own."""
        return self._wait(self.call(tool, **arguments))

    def run_flow_sync(self, flow: Flow, state: BaseModel) -> Any:
        """``run_flow`` for plain node functions."""
        return self._wait(self.run_flow(flow, state))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        work.close()
        raise FlowError(
            f"Node {self._visit.node!r} is async; it awaits ctx.call and ctx.run_flow instead of "
            "using their _sync forms.",
            code="node-failed",
            node=self._visit.node,
        )

    def _require_open(self, what: str) -> None:
        if not self._open:
            raise FlowError(
                f"{what} was called after node {self._visit.node!r} had ended, so it got no "
                "answer and no journal, and did not run. Await every call before the node "
                "function returns.",
                code="node-failed",
                node=self._visit.node,
            )

    def close(self) -> None:
        """The node has ended: nothing may be called through this context any more."""
        self._open = False
