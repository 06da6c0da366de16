"""The journal of a visit: its finished calls, and the answers it was given."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from . import canonical
from .approval import Answer, ApprovalRequest
from .canonical import Json
from .errors import ErrorInfo, FlowError
from .graph import Flow
from .tools import CallArguments, Tool


@dataclass(frozen=True, repr=False)
class ToolResult:
    """How one call ended: with a value, or with an error."""

    tool: str
    call_id: str
    arguments: Any = None
    value: Any = None
    error: ErrorInfo | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    def to_dict(self) -> dict[str, Any]:
        """The result as a dict, without the arguments."""
        return {
            "tool": self.tool,
            "call_id": self.call_id,
            "value": self.value,
            "error": None if self.error is None else vars(self.error),
        }

    def __repr__(self) -> str:
        return f"<result of {self.tool}: {'ok' if self.error is None else self.error.type}>"


@dataclass(frozen=True)
class Codec:
    """How values outside the canonical form are sealed and built again, by the user's functions."""

    encoder: Callable[[Any], Any] | None = None
    decoder: Callable[[str, Any], Any] | None = None

    def encode(self, value: Any, path: str) -> Json:
        return canonical.encode(value, path=path, encoder=self.encoder)

    def decode(self, data: Json, *annotations: Any) -> Any:
        return canonical.decode(
            data, classes=canonical.reachable(*annotations), decoder=self.decoder
        )

    def check(self, data: Json, *annotations: Any) -> None:
        """UnknownClass where ``decode`` would refuse; builds nothing."""
        canonical.check(data, classes=canonical.reachable(*annotations), decoder=self.decoder)

    def keep(self, value: Any, what: str, *annotations: Any) -> tuple[Json, str | None]:
        """The value in canonical form, or why it can't be had again later, in words."""
        try:
            data = self.encode(value, what)
            self.check(data, *annotations)
        except canonical.NotSealable as error:
            return None, str(error)
        except canonical.UnknownClass as error:
            return None, (
                f"{what} is of the class {error.name}, which the return annotation does not name; "
                "annotate it, or pass seal_encoder and seal_decoder"
            )
        return data, None


@dataclass(repr=False)
class Entry:
    """One finished call: canonical data, so that nothing a node does later can change it.

    ``tool`` is the tool's reference, since two tools may share a name. ``answered_by`` is the id
    of the request whose answer let the call run, or, where ``denied`` holds who refused it and
    why, kept it from running. ``unsealable`` says why the result can't be replayed; the call ran,
    so a pause of this visit must fail.
    """

    tool: str
    passed: str | None
    call_id: str
    order: int
    value: Json = None
    error: Json = None
    answered_by: str | None = None
    denied: Json = None
    unsealable: str | None = None

    def to_json(self) -> Json:
        return {
            "tool": self.tool,
            "passed": self.passed,
            "call_id": self.call_id,
            "order": self.order,
            "value": self.value,
            "error": self.error,
            "answered_by": self.answered_by,
            "denied": self.denied,
        }


@dataclass(repr=False)
class Item:
    """A finished item of a Map: its value in canonical form, or that it was skipped.

    ``answered_by`` are the requests whose answers its calls used; they are used for good.
    """

    value: Json = None
    skipped: bool = False
    unsealable: str | None = None
    answered_by: list[str] = field(default_factory=list)

    def to_json(self) -> Json:
        return {
            "value": self.value,
            "skipped": self.skipped,
            "answered_by": list(self.answered_by),
        }


@dataclass
class Answers:
    """What people answered to a visit's requests.

    ``new`` are the ids of the answers that came with this resume; ``used`` those that a request
    of this run of the node has taken.
    """

    given: Sequence[Answer] = ()
    new: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)

    def take(
        self, *, run_id: str, reference: str, passed: str | None, call_id: str | None
    ) -> Answer | None:
        """The first unused answer to such a request, marked as used.

        ``call_id`` counts for calls whose id repeats on a re-run.
        """
        return self._first(
            lambda request: (
                request.answers_call(run_id=run_id, reference=reference, passed=passed)
                and (call_id is None or request.call_id == call_id)
            )
        )

    def take_for_node(self, call_id: str) -> Answer | None:
        """The answer to a node's own gate or question, marked as used."""
        return self._first(lambda request: request.call_id == call_id)

    def _first(self, fits: Callable[[ApprovalRequest], bool]) -> Answer | None:
        for request, decision in self.given:
            if request.id not in self.used and fits(request):
                self.used.add(request.id)
                return request, decision
        return None


class Journal:
    """What a visit, an item of a Map, or a visit of a nested flow has done so far.

    A recorded result is handed out once, to a call of the same tool with the same arguments, in
    the order in which such calls were started; a call with other arguments is never given it.
    Unfinished items of a Map and visits of nested flows have journals of their own inside, by
    key. ``answers`` is one for the whole tree.
    """

    def __init__(self, codec: Codec, answers: Answers, data: Any = None) -> None:
        data = data or {}
        self.codec = codec
        self.answers = answers
        self.entries = [Entry(**entry) for entry in data.get("entries", ())]
        self.items = {int(key): Item(**item) for key, item in data.get("items", {}).items()}
        self._inside = {
            key: Journal(codec, answers, inside) for key, inside in data.get("inside", {}).items()
        }
        # An answer that let a call run, or kept it from running, answers no other one, also where
        # the node does not come to that call again.
        answers.used.update(self._own_answers())
        self._nested: Counter[str] = Counter()
        self._order = max((entry.order for entry in self.entries), default=0)
        self._recorded: dict[tuple[str, str | None], deque[Entry]] = defaultdict(deque)
        for entry in sorted(self.entries, key=lambda entry: entry.order):
            self._recorded[entry.tool, entry.passed].append(entry)

    def inside(self, key: str) -> Journal:
        """The journal of an item or of a nested visit."""
        return self._inside.setdefault(key, Journal(self.codec, self.answers))

    def place_of_nested(self, flow: Flow, state: BaseModel) -> str:
        """The key of a nested flow: what it is begun with, numbered among equals."""
        try:
            begun_with = canonical.dumps(self.codec.encode(state, "state"))
        except canonical.NotSealable:
            begun_with = ""  # it can't pause; places go by the order in which they are begun
        name = f"{flow.name}:{flow.version}:{begun_with}"
        key = f"{flow.name}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        self._nested[key] += 1
        return f"{key}-{self._nested[key]}"

    def replay(self, tool: Tool, arguments: CallArguments) -> Entry | None:
        """The recorded call that this call repeats; None for a new call."""
        recorded = self._recorded.get((tool.reference, arguments.passed))
        if not recorded or arguments.passed is None:
            return None
        return recorded.popleft()

    def begin(self) -> int:
        """The place of a call that starts now."""
        self._order += 1
        return self._order

    def finish_denied(
        self,
        tool: Tool,
        arguments: CallArguments,
        answer: Answer,
        *,
        order: int,
    ) -> None:
        """Record a refusal: a re-run of the node is refused again at this place."""
        request, decision = answer
        self.entries.append(
            Entry(
                tool.reference,
                arguments.passed,
                request.call_id,
                order,
                answered_by=request.id,
                denied=[decision.by, decision.reason],
            )
        )

    def finish(
        self,
        tool: Tool,
        arguments: CallArguments,
        result: ToolResult,
        *,
        order: int,
        answered_by: str | None,
    ) -> None:
        """Record a finished call. What can't be sealed leaves a marker that says so."""
        entry = Entry(
            tool.reference, arguments.passed, result.call_id, order, answered_by=answered_by
        )
        if arguments.passed is None:
            entry.unsealable = f"the arguments of {tool.name} can't be sealed"
        elif result.error is not None:
            entry.error, entry.unsealable = self.codec.keep(
                vars(result.error), f"the error of {tool.name} (call {result.call_id})"
            )
        else:
            entry.value, entry.unsealable = self.codec.keep(
                result.value, f"the result of {tool.name} (call {result.call_id})", tool.returns
            )
        self.entries.append(entry)

    def finish_item(self, index: int, item: Item) -> None:
        """Keep a finished item; its journal has served."""
        self.items[index] = item
        journal = self._inside.pop(item_key(index), None)
        item.answered_by = [] if journal is None else sorted(journal.answers_used())

    def answers_used(self) -> set[str]:
        """The ids of the requests whose answers calls of this journal used, at any depth."""
        inside = (journal.answers_used() for journal in self._inside.values())
        return self._own_answers().union(*inside)

    def _own_answers(self) -> set[str]:
        of_calls = {entry.answered_by for entry in self.entries if entry.answered_by is not None}
        return of_calls.union(*(item.answered_by for item in self.items.values()))

    def result_of(self, entry: Entry, tool: Tool) -> ToolResult:
        """The recorded result, built anew."""
        if entry.error is not None:
            info = ErrorInfo(**self.codec.decode(entry.error))
            return ToolResult(tool.name, entry.call_id, error=info)
        return ToolResult(
            tool.name, entry.call_id, value=self.codec.decode(entry.value, tool.returns)
        )

    def raise_if_unsealable(self, node: str) -> None:
        """FlowError (state-not-sealable) that names what can't be replayed."""
        markers = [entry.unsealable for entry in self.entries]
        markers += [item.unsealable for item in self.items.values()]
        for marker in filter(None, markers):
            raise FlowError(
                f"Node {node!r} can't pause: {marker.rstrip('.')}. It ran and is not repeated.",
                code="state-not-sealable",
                node=node,
            )
        for inside in self._inside.values():
            inside.raise_if_unsealable(node)

    def left_over(self) -> list[Entry]:
        """Recorded calls that this run of the node did not repeat."""
        left = [entry for recorded in self._recorded.values() for entry in recorded]
        return [*left, *(entry for inside in self._inside.values() for entry in inside.left_over())]

    def to_json(self) -> Json:
        data: dict[str, Json] = {}
        if self.entries:
            data["entries"] = [entry.to_json() for entry in self.entries]
        if self.items:
            data["items"] = {str(index): item.to_json() for index, item in self.items.items()}
        inside: dict[str, Json] = {}
        for key, journal in self._inside.items():
            if part := journal.to_json():
                inside[key] = part
        if inside:
            data["inside"] = inside
        return data


def item_key(index: int) -> str:
    """The key of a Map item's own journal."""
    return f"item-{index}"
