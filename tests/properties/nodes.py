"""What the nodes of a planned flow do: the functions behind them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from runs.engine import AdapterError, ApprovalDenied, Call, Context, Flow, FlowError, Go, Human, Map
from runs.engine.nodes import Action, Form

from .plans import Chain, Plan, Step, Work
from .world import LEVEL, MUST, Facts, Grade, Receipt, digest, number

if TYPE_CHECKING:
    from .flows import Builder

FORM: dict[str, Form | None] = {"": None, "model": Grade, "schema": LEVEL}

Results = list[Receipt | Any]
"""What a chain gives. An item of a Map names the classes in its result, so that it can be kept."""


class NodeFunctions:
    """The functions of one node."""

    def __init__(
        self,
        builder: Builder,
        name: str,
        work: Work,
        loops: tuple[str, ...],
        goes: bool,
        must: bool,
    ) -> None:
        self._builder = builder
        self._world = builder.world
        self._name = name
        self._work = work
        self._loops = loops
        self._goes = goes
        self._must = must
        for chain in work.chains:
            for step in chain:
                if step.flow is not None:
                    builder.nested(step.flow)

    def action(self, reads: tuple[str, ...]) -> Action:
        work = self._work
        if work.kind == "human":
            shown = " ".join(f"{{{field}}}" for field in ("path", "given", *self._loops, *reads))
            return Human(f"Go on from {shown}?", form=FORM[work.form], into=self._name)
        if work.kind == "call":
            tool = self._world.tools[work.tool]
            return Call(tool, into=self._name, args={"note": "static"}, select=self.arguments)
        if work.kind.startswith("map"):
            fn = {"map-await": self.item, "map-plain": self.plain_item}.get(work.kind)
            return Map(
                over=self.items,
                into=self._name,
                tool=self._world.tools[work.tool] if fn is None else None,
                fn=fn,
                concurrency=work.concurrency,
                on_error="skip" if work.skip else "fail",
            )
        return {
            "await": self.awaiting,
            "plain": self.plain,
            "gather": self.gathering,
            "threads": self.threading,
        }[work.kind]

    def at(self, state: Facts, more: str = "") -> str:
        turns = "".join(f"@{getattr(state, loop) or 0}" for loop in self._loops)
        return f"{state.path}{self._name}{turns}{more}"

    def seen(self, state: Facts) -> str:
        return self._builder.seen(self._name, state)

    def payload(self, state: Facts) -> dict[str, Any]:
        self._world.touch()
        at = self.at(state) + MUST * self._must
        return {"at": at, "seen": self.seen(state)}

    def arguments(self, state: Facts) -> dict[str, Any]:
        return self.payload(state)

    def items(self, state: Facts) -> list[dict[str, Any]]:
        self._world.touch()
        must = MUST * (self._work.kind == "map" and not self._work.skip and self._must)
        return [
            {"at": self.at(state, f"[{place}]") + must, "seen": self.seen(state)}
            for place in range(self._work.items)
        ]

    async def item(self, item: dict[str, Any], state: Facts, ctx: Context) -> Results:
        self._world.touch()
        return await self._follow(ctx, self._work.chains[0], item["at"], item["seen"])

    def plain_item(self, item: dict[str, Any], state: Facts, ctx: Context) -> Results:
        self._world.touch()
        return self._follow_sync(ctx, self._work.chains[0], item["at"], item["seen"])

    async def awaiting(self, state: Facts, ctx: Context) -> Any:
        self._world.touch()
        chain = self._work.chains[0]
        results = await self._follow(ctx, chain, self.at(state), self.seen(state))
        return self._changes([ctx.answer, results])

    def plain(self, state: Facts, ctx: Context) -> Any:
        self._world.touch()
        chain = self._work.chains[0]
        results = self._follow_sync(ctx, chain, self.at(state), self.seen(state))
        return self._changes([ctx.answer, results])

    async def gathering(self, state: Facts, ctx: Context) -> Any:
        self._world.touch()
        seen = self.seen(state)
        results = await asyncio.gather(
            *(self._follow(ctx, chain, at, seen) for chain, at in self._side_by_side(state))
        )
        return self._changes([ctx.answer, self._in_one_order(results)])

    def threading(self, state: Facts, ctx: Context) -> Any:
        self._world.touch()
        seen = self.seen(state)
        with ThreadPoolExecutor(len(self._work.chains)) as threads:
            followed = [
                threads.submit(self._follow_sync, ctx, chain, at, seen)
                for chain, at in self._side_by_side(state)
            ]
        return self._changes([ctx.answer, self._in_one_order([f.result() for f in followed])])

    def _side_by_side(self, state: Facts) -> list[tuple[Chain, str]]:
        """The chains with their places. Equal calls begun together are all at one place, for
        they are to be the same call."""
        equal = self._equal_calls
        return [
            (chain, self.at(state, "~" if equal else f"~{place}"))
            for place, chain in enumerate(self._work.chains)
        ]

    @property
    def _equal_calls(self) -> bool:
        chains = self._work.chains
        return (
            len(set(chains)) == 1
            and [step.flow for step in chains[0]] == [None]
            and chains[0][0].times == 1
        )

    def _in_one_order(self, results: list[list[Any]]) -> list[Any]:
        """Which of several equal calls ran first is nobody's business."""
        return sorted(results, key=repr) if self._equal_calls else results

    def _changes(self, results: list[Any]) -> Any:
        changes = {self._name: results}
        if not self._goes:
            return changes
        return Go("left" if number(results) % 2 else "right", changes)

    # ---- chains: twice, since plain code can't await

    async def _follow(self, ctx: Context, chain: Chain, at: str, seen: str) -> list[Any]:
        results: list[Any] = []
        for step in chain:
            knows = digest(seen, results)
            for _ in range(step.times):
                try:
                    if step.flow is not None:
                        inner, start = self._inner(step.flow, at, knows)
                        results.append(digest(await ctx.run_flow(inner, start)))
                    else:
                        called = self._world.tools[step.tool]
                        results.append(await ctx.call(called, **self._with(step, at, knows)))
                except (FlowError, AdapterError) as error:
                    results.append(self._told(step, error))
        return results

    def _follow_sync(self, ctx: Context, chain: Chain, at: str, seen: str) -> list[Any]:
        results: list[Any] = []
        for step in chain:
            knows = digest(seen, results)
            for _ in range(step.times):
                try:
                    if step.flow is not None:
                        inner, start = self._inner(step.flow, at, knows)
                        results.append(digest(ctx.run_flow_sync(inner, start)))
                    else:
                        called = self._world.tools[step.tool]
                        results.append(ctx.call_sync(called, **self._with(step, at, knows)))
                except (FlowError, AdapterError) as error:
                    results.append(self._told(step, error))
        return results

    def _inner(self, plan: Plan, at: str, knows: str) -> tuple[Flow, Facts]:
        flow = self._builder.nested(plan)
        return flow, Facts(path=f"{at}/{flow.name}.", given=knows)

    def _with(self, step: Step, at: str, knows: str) -> dict[str, str]:
        # In a Map item that may be skipped, too, an uncaught refusal ends nothing.
        skips = self._work.kind.startswith("map") and self._work.skip
        must = not (step.caught or skips or self._builder.deadly)
        return {"at": at + MUST * must, "seen": knows}

    def _told(self, step: Step, error: FlowError | AdapterError) -> Any:
        """What a node keeps of an error that it catches; raises what it doesn't."""
        if not step.caught:
            raise error
        if isinstance(error, ApprovalDenied):
            return ["denied", error.decision.reason]
        if isinstance(error, FlowError):
            if step.flow is None:
                raise error
            return ["broke", error.code, error.node]
        return ["failed", type(error).__name__, str(error), getattr(error, "code", None)]
