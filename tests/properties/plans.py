"""Random flows as plain data: what hypothesis draws, shrinks and prints.

A flow is drawn as nested blocks, so that everything forked is joined, every cycle ends, and no
node is reached over plain edges by two branches that run side by side (how often it were visited
would depend on who waits for whom).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

HARMLESS = ("look", "think", "ask", "maybe", "edit")
"""The tools that do what they are told: ``ask`` and ``edit`` ask a person, ``maybe`` sometimes."""
FAILING = ("stumble", "refuse", "ask_stumble")
"""The tools that fail; ``ask_stumble`` once a person has said yes."""
FORMS = ("", "model", "schema")


@dataclass(frozen=True)
class Step:
    """One call of a tool, or one nested flow, ``times`` times over with the same arguments.

    ``caught``: the node goes on when it fails or is refused.
    """

    tool: str = ""
    flow: Plan | None = None
    times: int = 1
    caught: bool = True


Chain = tuple[Step, ...]
"""Steps that follow one another; each one's arguments tell what the earlier ones gave."""


@dataclass(frozen=True)
class Work:
    """What a node does.

    ``kind``: a function that awaits its calls (``await``), a plain one (``plain``), one that
    gathers chains (``gather``) or follows them in threads of its own (``threads``); a ``call``; a
    Map over a tool (``map``) or over a function (``map-await``, ``map-plain``); a ``human``.
    ``form`` is that of the question, ``gate`` the form of the node's gate, where it has one.
    """

    kind: str
    chains: tuple[Chain, ...] = ()
    tool: str = ""
    items: int = 0
    concurrency: int = 1
    skip: bool = True
    form: str = ""
    gate: str | None = None


@dataclass(frozen=True)
class Leaf:
    """A node."""

    work: Work


@dataclass(frozen=True)
class Seq:
    """One block after the other."""

    parts: tuple[Block, ...]


@dataclass(frozen=True)
class Fork:
    """Blocks side by side, joined after them."""

    branches: tuple[Block, ...]


@dataclass(frozen=True)
class Choice:
    """One of two blocks, ``None`` being nothing at all.

    ``how``: the head names a port (``go``), a route looks at what it gave (``route``), it is a
    question (``human``), or a call or gate that may be refused (``refusal``).
    """

    how: str
    head: Work
    branches: tuple[Block | None, Block | None]


@dataclass(frozen=True)
class Loop:
    """A block that is gone through ``turns`` times, by a route or by ports."""

    body: Block
    turns: int
    routed: bool


Block = Leaf | Seq | Fork | Choice | Loop


@dataclass(frozen=True)
class Plan:
    """A flow. In a ``deadly`` one a failure or a refusal may go uncaught and end the run."""

    block: Block
    deadly: bool
    open_ended: bool

    @property
    def sequential(self) -> bool:
        """Whether never more than one thing goes on at a time, so that there is one order."""
        return _sequential(self.block)


def _sequential(block: Block | None) -> bool:
    if block is None:
        return True
    if isinstance(block, Fork):
        return False
    if isinstance(block, Seq):
        return all(map(_sequential, block.parts))
    if isinstance(block, Loop):
        return _sequential(block.body)
    if isinstance(block, Choice):
        return _one_at_a_time(block.head) and all(map(_sequential, block.branches))
    return _one_at_a_time(block.work)


def _one_at_a_time(work: Work) -> bool:
    nested = [step.flow for chain in work.chains for step in chain if step.flow is not None]
    return (
        (work.kind in ("await", "plain", "call", "human") or work.kind == "map-await")
        and (work.kind != "map-await" or work.items <= 1)
        and all(flow.sequential for flow in nested)
    )


@st.composite
def plans(
    draw: Draw, *, nodes: int = 8, depth: int = 2, deadly: bool | None = None, parallel: bool = True
) -> Plan:
    """Flows of up to ``nodes`` drawn nodes, with flows nested in them ``depth`` levels deep.

    ``deadly``: None for some of either; ``parallel``: False for flows that are sequential.
    """
    if deadly is None:
        deadly = draw(st.integers(0, 4)) == 4
    size = draw(st.integers(1, nodes))
    block = _Drawing(draw, depth, deadly, parallel).block(size)
    return Plan(block, deadly, draw(st.booleans()))


@st.composite
def maps(draw: Draw) -> Plan:
    """Flows of one Map over a tool that asks for each item, and fails where one is refused."""
    items = draw(st.integers(2, 5))
    work = Work(
        "map",
        tool=draw(st.sampled_from(("ask", "edit", "ask_stumble"))),
        items=items,
        concurrency=draw(st.integers(1, items)),
        skip=False,
    )
    return Plan(Leaf(work), deadly=True, open_ended=True)


@st.composite
def repetitions(draw: Draw) -> Plan:
    """Flows that ask the same questions several times, in a nested flow that is run as often."""
    chain = (Step(draw(st.sampled_from(("ask", "edit", "maybe"))), times=draw(st.integers(1, 2))),)
    kind = draw(st.sampled_from(("await", "map-await", "map-plain")))
    inner = Work(kind, (chain,), items=draw(st.integers(1, 2)), concurrency=2)
    flow = Plan(Leaf(inner), deadly=False, open_ended=True)
    outer = Work("await", ((Step(flow=flow, times=draw(st.integers(2, 3))), Step("ask")),))
    return Plan(Leaf(outer), deadly=False, open_ended=True)


class _Drawing:
    def __init__(self, draw: Draw, depth: int, deadly: bool, parallel: bool) -> None:
        self._draw = draw
        self._depth = depth
        self._deadly = deadly
        self._parallel = parallel

    def block(self, size: int) -> Block:
        if size == 1:
            return Leaf(self.work())
        kinds = ["seq", "choice", "loop"] + ["fork"] * 2 * self._parallel
        kind = self._one_of(*kinds)
        if kind == "choice":
            return self._choice(size - 1)
        if kind == "loop":
            return Loop(self.block(size - 1), self._between(1, 3), self._bool())
        parts = tuple(map(self.block, self._split(size)))
        return Seq(parts) if kind == "seq" else Fork(parts)

    def _choice(self, size: int) -> Choice:
        how = self._one_of("go", "route", "human", "refusal")
        if how == "human":
            head = self._human()
        elif how == "refusal":
            head = self._call("ask") if self._bool() else self._function(self._one_of(*FORMS))
        else:
            head = self._function(self._gate())
        first = self._between(0, size)
        branches = [self.block(part) if part else None for part in (first, size - first)]
        return Choice(how, head, (branches[0], branches[1]))

    def work(self) -> Work:
        kind = self._one_of("function", "function", "function", "call", "map", "human")
        if kind == "function":
            return self._function(self._gate())
        if kind == "call":
            return self._call(self._one_of(*self._tools(caught=False)))
        if kind == "human":
            return self._human()
        return self._map()

    def _function(self, gate: str | None) -> Work:
        kinds = ["await", "plain"] + ["gather", "gather", "threads"] * self._parallel
        kind = self._one_of(*kinds)
        if kind in ("await", "plain"):
            return Work(kind, (self._chain(4),), gate=gate)
        special = self._between(0, 5)
        if special == 0:  # the same call, begun several times at once
            step = Step(self._one_of(*HARMLESS, *FAILING))
            return Work(kind, ((step,),) * self._between(2, 4), gate=gate)
        if special == 1 and self._depth:  # flows that begin in another order on a re-run
            return Work(kind, tuple((self._step(), self._flow()) for _ in range(2)), gate=gate)
        chains = tuple(self._chain(2) for _ in range(self._between(2, 3)))
        return Work(kind, chains, gate=gate)

    def _chain(self, length: int, *, skips: bool = False) -> Chain:
        return tuple(self._step(skips) for _ in range(self._between(0, length)))

    def _step(self, skips: bool = False) -> Step:
        if self._depth and self._between(0, 5) == 5:
            return self._flow(skips)
        caught = self._between(0, 3) > 0
        times = self._one_of(1, 1, 1, 2, 3)
        return Step(self._one_of(*self._tools(caught)), times=times, caught=caught)

    def _flow(self, skips: bool = False) -> Step:
        # Which failure ends a parallel flow first depends on the order of the answers, so what
        # catches a failure has sequential flows only.
        flow = self._draw(
            plans(
                nodes=2 * self._depth - 1,
                depth=self._depth - 1,
                deadly=self._deadly,
                parallel=self._parallel and not (self._deadly and skips),
            )
        )
        caught = flow.sequential and self._bool()
        return Step(flow=flow, times=self._between(1, 2), caught=caught)

    def _call(self, tool: str) -> Work:
        return Work("call", tool=tool, gate=self._gate())

    def _map(self) -> Work:
        skip = self._bool()
        kind = (
            self._one_of("map", "map", "map-await", "map-plain") if self._parallel else "map-await"
        )
        items = self._between(0, 4) if self._parallel else self._between(0, 1)
        return Work(
            kind,
            items=items,
            concurrency=self._between(1, 4),
            skip=skip,
            gate=self._gate(),
            tool=self._one_of(*self._tools(caught=skip)) if kind == "map" else "",
            chains=() if kind == "map" else (self._chain(3, skips=skip),),
        )

    def _human(self) -> Work:
        return Work("human", form=self._one_of(*FORMS), gate=self._gate())

    def _gate(self) -> str | None:
        return None if self._between(0, 7) < 5 else str(self._one_of(*FORMS))

    def _tools(self, caught: bool) -> tuple[str, ...]:
        return HARMLESS + FAILING * (caught or self._deadly)

    def _split(self, size: int) -> list[int]:
        first = self._between(1, size - 1)
        rest = size - first
        if rest > 1 and self._bool():
            second = self._between(1, rest - 1)
            return [first, second, rest - second]
        return [first, rest]

    def _between(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def _one_of(self, *values: Any) -> Any:
        return self._draw(st.sampled_from(values))

    def _bool(self) -> bool:
        return bool(self._draw(st.booleans()))
