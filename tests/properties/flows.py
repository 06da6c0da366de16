"""From a plan to a flow that runs in a world."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from runs.engine import (
    END,
    START,
    AdapterError,
    ApprovalDenied,
    Call,
    Context,
    Flow,
    FlowError,
    Gate,
    Go,
    Human,
    Map,
)
from runs.engine.nodes import Action, Form

from .plans import Block, Chain, Choice, Fork, Leaf, Loop, Plan, Seq, Step, Work
from .world import FIELDS, LEVEL, MUST, Facts, Grade, Receipt, World, digest, number

Exit = tuple[tuple[str, ...], str | None]
"""A way out of a block: all of these nodes have ended, the last of them by this port."""

Results = list[Receipt | Any]
"""What a chain gives. An item of a Map names the classes in its result, so that it can be kept."""

PLAIN = Work("await", ((),))
"""A node that calls nothing: it closes what has several ways out, and opens several ways in."""

_forms: dict[str, Form | None] = {"": None, "model": Grade, "schema": LEVEL}


@dataclass(frozen=True)
class Part:
    """A built block: the nodes it begins with, its ways out, all its nodes, and those of its
    ``first`` nodes that begin only once its fork begins."""

    entries: tuple[str, ...]
    exits: tuple[Exit, ...]
    names: tuple[str, ...]
    first: tuple[str, ...]


def flow_of(plan: Plan, world: World, name: str = "flow") -> Flow:
    """The flow of a plan, made anew, with every flow that is nested in it."""
    return _Builder(plan, world, name).flow


class _Builder:
    def __init__(self, plan: Plan, world: World, name: str) -> None:
        self.flow = Flow(name, state=Facts)
        self._world = world
        self._deadly = plan.deadly
        self._names = iter(FIELDS)
        self._reads: dict[str, tuple[str, ...]] = {}
        self._nested: dict[int, Flow] = {}
        whole = self._block(plan.block, (), ())
        for entry in whole.entries:
            self.flow.edge(START, entry)
        for sources, port in whole.exits:
            if plan.open_ended and port is None:
                continue
            self.flow.edge(sources, END, port=port)

    # ---- blocks: ``reads`` are the fields of the nodes that have ended before, ``loops`` those
    # ---- that count the turns of the cycles around

    def _block(self, block: Block, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        if isinstance(block, Leaf):
            return self._leaf(block.work, reads, loops)
        if isinstance(block, Seq):
            return self._seq(block, reads, loops)
        if isinstance(block, Fork):
            return self._fork(block, reads, loops)
        if isinstance(block, Choice):
            return self._choice(block, reads, loops)
        return self._loop(block, reads, loops)

    def _leaf(self, work: Work, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        name = next(self._names)
        self._node(name, work, reads, loops)
        ports = ("approved", "rejected") if work.kind == "human" else (None,)
        return Part((name,), tuple(((name,), port) for port in ports), (name,), (name,))

    def _seq(self, block: Seq, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        parts: list[Part] = []
        for each in block.parts:
            part = self._block(each, reads, loops)
            if parts:
                self._lead(parts[-1].exits, part.entries)
            parts.append(part)
            reads += part.names
        names = tuple(name for part in parts for name in part.names)
        return Part(parts[0].entries, parts[-1].exits, names, parts[0].first)

    def _fork(self, block: Fork, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        branches = [self._one_exit(each, reads, loops) for each in block.branches]
        for branch in branches:
            # All begin in one wave, so the others' fields are as they were before the fork.
            others = tuple(n for other in branches if other is not branch for n in other.names)
            for name in branch.first:
                self._reads[name] += others
        return Part(
            tuple(name for branch in branches for name in branch.entries),
            ((tuple(name for branch in branches for name in branch.exits[0][0]), None),),
            tuple(name for branch in branches for name in branch.names),
            tuple(name for branch in branches for name in branch.first),
        )

    def _choice(self, block: Choice, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        head = next(self._names)
        how = block.how
        self._node(head, block.head, reads, loops, goes=how == "go", refusable=how == "refusal")
        ports = {"human": ("approved", "rejected"), "refusal": (None, "rejected")}.get(how)
        ports = ports or ("left", "right")
        names: tuple[str, ...] = (head,)
        exits: list[Exit] = []
        targets: dict[str, str] = {}
        for port, each in zip(ports, block.branches, strict=True):
            if each is None and how != "route":
                exits.append(((head,), port))
                continue
            part = self._one_entry(each or Leaf(PLAIN), (*reads, head), loops)
            if how == "route":
                targets[str(port)] = part.entries[0]
            else:
                self._lead((((head,), port),), part.entries)
            exits += part.exits
            names += part.names
        if targets:

            def choose(state: Facts) -> str:
                self._world.touch()
                return "left" if number(getattr(state, head)) % 2 else "right"

            self.flow.route(head, choose, targets)
        return Part((head,), tuple(exits), names, (head,))

    def _loop(self, block: Loop, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        tail = next(self._names)
        body = self._one_entry(block.body, reads, (*loops, tail))

        def over(turn: int) -> str:
            return "done" if turn % block.turns == 0 else "again"

        async def count(state: Facts, ctx: Context) -> Any:
            self._world.touch()
            turn = (getattr(state, tail) or 0) + 1
            return {tail: turn} if block.routed else Go(over(turn), {tail: turn})

        def choose(state: Facts) -> str:
            self._world.touch()
            return over(getattr(state, tail))

        self.flow.node(tail, count)
        self._lead(body.exits, (tail,))
        if not block.routed:
            self.flow.edge(tail, body.entries[0], port="again")
            return Part(body.entries, (((tail,), "done"),), (*body.names, tail), ())
        after = self._leaf(PLAIN, (*reads, *body.names, tail), loops)
        self.flow.route(tail, choose, {"again": body.entries[0], "done": after.entries[0]})
        return Part(body.entries, after.exits, (*body.names, tail, *after.names), ())

    def _one_exit(self, block: Block, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        part = self._block(block, reads, loops)
        if len(part.exits) == 1 and part.exits[0][1] is None:
            return part
        close = self._leaf(PLAIN, reads + part.names, loops)
        self._lead(part.exits, close.entries)
        return Part(part.entries, close.exits, part.names + close.names, part.first)

    def _one_entry(self, block: Block, reads: tuple[str, ...], loops: tuple[str, ...]) -> Part:
        if not _begins_with_a_fork(block):
            return self._block(block, reads, loops)
        opened = self._leaf(PLAIN, reads, loops)
        part = self._block(block, reads + opened.names, loops)
        self._lead(opened.exits, part.entries)
        return Part(opened.entries, part.exits, opened.names + part.names, opened.names)

    def _lead(self, exits: Sequence[Exit], targets: Sequence[str]) -> None:
        for sources, port in exits:
            for target in targets:
                self.flow.edge(sources, target, port=port)

    # ---- nodes

    def _node(
        self,
        name: str,
        work: Work,
        reads: tuple[str, ...],
        loops: tuple[str, ...],
        *,
        goes: bool = False,
        refusable: bool = False,
    ) -> None:
        self._reads[name] = reads
        node = _NodeOf(self, name, work, loops, goes, must=not (self._deadly or refusable))
        gate = None if work.gate is None else Gate(payload=node.payload, form=_forms[work.gate])
        self.flow.node(name, node.action(reads), gate=gate)

    @property
    def world(self) -> World:
        return self._world

    @property
    def deadly(self) -> bool:
        return self._deadly

    def seen(self, name: str, state: Facts) -> str:
        """What a node knows: its flow's input, and what its reads hold."""
        return digest(state.given, [getattr(state, field) for field in self._reads[name]])

    def nested(self, plan: Plan) -> Flow:
        """The flow of a nested plan, made with this one."""
        if id(plan) not in self._nested:
            name = f"{self.flow.name}-{len(self._nested)}"
            self._nested[id(plan)] = flow_of(plan, self._world, name)
        return self._nested[id(plan)]


def _begins_with_a_fork(block: Block) -> bool:
    if isinstance(block, Seq):
        return _begins_with_a_fork(block.parts[0])
    return isinstance(block, Fork)


class _NodeOf:
    """The functions of one node."""

    def __init__(
        self,
        builder: _Builder,
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
            return Human(f"Go on from {shown}?", form=_forms[work.form], into=self._name)
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
