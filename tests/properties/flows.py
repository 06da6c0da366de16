"""From a plan to a flow that runs in a world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.engine import (
    END,
    START,
    Context,
    Flow,
    Gate,
    Go,
)

from .nodes import FORM, NodeFunctions
from .plans import Block, Choice, Fork, Leaf, Loop, Plan, Seq, Work
from .world import FIELDS, Facts, World, digest, number

Exit = tuple[tuple[str, ...], str | None]
"""A way out of a block: all of these nodes have ended, the last of them by this port."""

PLAIN = Work("await", ((),))
"""A node that calls nothing: it closes what has several ways out, and opens several ways in."""


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
    return Builder(plan, world, name).flow


class Builder:
    """Builds one flow, block by block, and the flows nested in it."""

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
        node = NodeFunctions(self, name, work, loops, goes, must=not (self._deadly or refusable))
        gate = None if work.gate is None else Gate(payload=node.payload, form=FORM[work.gate])
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
