"""The world outside the flows: what their tools did, and what people say to whom."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel, create_model, field_validator, model_validator

from runs.engine import (
    AdapterError,
    ApprovalDecision,
    ApprovalRequest,
    ApprovalStore,
    MemoryStore,
    Tool,
    tool,
)
from runs.engine.approval import Answer

FIELDS = tuple(f"n{place}" for place in range(32))
"""The state fields, one for each node that a plan can have: those drawn, and those that close or
open a block."""

touched: Counter[str] = Counter()
"""How often code of the models below ran: validators and ``model_post_init``."""


class Watched(BaseModel):
    """A model that counts what runs of it."""

    @model_validator(mode="before")
    @classmethod
    def _validated(cls, data: Any) -> Any:
        touched["validator"] += 1
        return data

    def model_post_init(self, context: Any) -> None:
        touched["model_post_init"] += 1


class Receipt(Watched):
    """What a tool gives: ``nth`` counts the calls of it with the same arguments."""

    tool: str
    nth: int


class Grade(Watched):
    """A form."""

    grade: int

    @field_validator("grade")
    @classmethod
    def _is_small(cls, grade: int) -> int:
        touched["validator"] += 1
        if grade > 9:
            raise ValueError("at most 9")
        return grade


LEVEL = {
    "type": "object",
    "properties": {"level": {"type": "integer", "minimum": 0}},
    "required": ["level"],
}
"""A form that is a JSON Schema."""


_definitions: dict[str, Any] = {name: (Any, None) for name in FIELDS}
_Fields = create_model("_Fields", __base__=Watched, **_definitions)


class Facts(_Fields):
    """The state of every flow. ``path`` says where it is nested, ``given`` what its caller knew;
    a node writes the field of its own name. ``kinds`` names what the fields may hold."""

    path: str = ""
    given: str = ""
    kinds: Receipt | Grade | None = None


class Stumbled(AdapterError):
    """A tool's failure with an attribute of its own."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def number(*facts: Any) -> int:
    """A number that these facts decide."""
    return int.from_bytes(blake2b(repr(facts).encode(), digest_size=6).digest(), "big")


def digest(*facts: Any) -> str:
    """A short text that these facts decide, types included."""
    return f"{number(*facts):x}"


Effect = tuple[str, str, str, str]
"""The chain of calls that it belongs to, the tool, and the rest of its arguments."""


class World:
    """Where the effects of one run are noted, by tools that it makes for itself.

    ``at`` tells the tools which chain calls them; ``seen`` is a digest of all that the caller
    knows, so a result that is handed to the wrong call shows in every later effect.
    """

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.functions = 0
        self._nth: Counter[Effect] = Counter()
        self._lock = threading.Lock()
        self.tools = {made.name: made for made in _tools(self)}

    def touch(self) -> None:
        """A function of the flow runs."""
        self.functions += 1

    def note(self, tool: str, at: str, seen: str, note: str) -> int:
        """The effect of a call; returns how often there was one like it, this one included."""
        effect = (chain_of(at), tool, seen, note)
        with self._lock:
            self.effects.append(effect)
            self._nth[effect] += 1
            return self._nth[effect]

    def touched(self) -> int:
        """How often any code of the flow, its tools or its models has run."""
        return self.functions + len(self.effects) + touched.total()


def chain_of(at: str) -> str:
    """The chain of calls that a place is in."""
    return at.removesuffix(MUST)


MUST = "!"
"""Ends the name of a place where a refusal would end a run that is not meant to fail."""


def needs_a_yes(tool: str, at: str, seen: str) -> bool:
    """Whether a person must allow this call."""
    if tool == "maybe":
        return number(chain_of(at), seen) % 2 == 0
    return tool in ("ask", "edit", "ask_stumble")


def allowed(answers: Iterable[Answer]) -> Counter[Effect]:
    """The effects that these answers allow, with the arguments that they allow."""
    return Counter(
        (chain_of(arguments["at"]), request.tool, arguments["seen"], arguments["note"])
        for request, decision in answers
        if request.kind == "tool" and decision.approved
        for arguments in [decision.arguments or request.arguments or {}]
    )


def _tools(world: World) -> Sequence[Tool]:
    async def _yield(*facts: Any) -> None:
        for _ in range(number(*facts) % 4):
            await asyncio.sleep(0)

    @tool
    async def look(at: str, seen: str, note: str = "-") -> Receipt:
        await _yield(at, seen)
        return Receipt(tool="look", nth=world.note("look", at, seen, note))

    @tool
    def think(at: str, seen: str, note: str = "-") -> tuple[str, int]:
        return ("thought", world.note("think", at, seen, note))

    @tool
    async def stumble(at: str, seen: str, note: str = "-") -> str:
        nth = world.note("stumble", at, seen, note)
        raise Stumbled(f"stumbled for the {nth}. time", code=nth)

    @tool
    def refuse(at: str, seen: str, note: str = "-") -> str:
        raise ValueError(f"refused for the {world.note('refuse', at, seen, note)}. time")

    @tool(confirm=True)
    def ask(at: str, seen: str, note: str = "-") -> str:
        return f"asked {world.note('ask', at, seen, note)}"

    @tool(confirm=lambda at, seen, note: needs_a_yes("maybe", at, seen))
    async def maybe(at: str, seen: str, note: str = "-") -> list[Receipt]:
        return [Receipt(tool="maybe", nth=world.note("maybe", at, seen, note))]

    @tool(confirm=True, editable=True)
    async def edit(at: str, seen: str, note: str = "-") -> dict[str, int]:
        await _yield(seen, at)
        return {note: world.note("edit", at, seen, note)}

    @tool(confirm=True)
    async def ask_stumble(at: str, seen: str, note: str = "-") -> str:
        nth = world.note("ask_stumble", at, seen, note)
        raise Stumbled(f"stumbled after the {nth}. yes", code=nth)

    return (look, think, stumble, refuse, ask, maybe, edit, ask_stumble)


def decision_for(request: ApprovalRequest, seed: int) -> ApprovalDecision:
    """What a person says to a request: the tool or node and its arguments decide it, and nothing
    else does."""
    arguments = dict(request.arguments or {})
    dice = number(seed, request.tool, sorted(arguments.items()))
    if dice % 4 == 0 and not str(arguments.get("at", "")).endswith(MUST):
        return ApprovalDecision.deny(
            "reviewer", reason=f"reason {dice % 97}", request_id=request.id
        )
    content: Any = None
    if isinstance(request.form, type):
        content = {"grade": dice % 9}
    elif isinstance(request.form, Mapping):
        content = {"level": dice % 9}
    edited = {**arguments, "note": f"edited {dice % 5}"} if dice % 3 == 0 else None
    return ApprovalDecision.approve(
        "reviewer",
        content=content,
        arguments=edited if request.editable else None,
        request_id=request.id,
    )


def questions(answers: Iterable[Answer]) -> list[str]:
    """What was answered, whatever the ids: the tools or nodes with the arguments."""
    return sorted(
        repr((request.tool, sorted((request.arguments or {}).items()))) for request, _ in answers
    )


class KnownAnswers:
    """The port of a run whose answers are all known: it answers at once, and notes to what."""

    store: ApprovalStore | None = None

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.answered: list[Answer] = []

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        decision = decision_for(request, self._seed)
        self.answered.append((request, decision))
        return decision


class NotingStore(MemoryStore):
    """A store that notes each answer that was spent."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[Answer] = []

    async def settle(
        self,
        answers: Sequence[Answer],
        earlier: Sequence[Answer],
        others: Sequence[ApprovalRequest] = (),
    ) -> set[str]:
        held = await super().settle(answers, earlier, others)
        self.answered.extend(answers)
        return held


def by_chain(effects: Iterable[Effect]) -> dict[str, list[Effect]]:
    """The effects of each chain, in the order in which they happened."""
    chains: dict[str, list[Effect]] = {}
    for effect in effects:
        chains.setdefault(effect[0], []).append(effect)
    return chains
