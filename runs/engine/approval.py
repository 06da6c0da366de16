"""The approval port: how the engine asks for a person's yes, and keeps what was said."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from . import canonical, redact
from .canonical import Json
from .errors import ApprovalAlreadyDecided, ApprovalPending, FlowError
from .nodes import Form

Kind = Literal["tool", "gate", "human"]


@dataclass(frozen=True, repr=False)
class ApprovalRequest:
    """One question to a person.

    ``flow`` is the flow whose node asks, which may be nested in the run's. ``tool`` is the tool's
    name, or ``node:<flow>.<node>`` for a gate or a question.
    ``arguments`` are the raw arguments (of a gate: its payload; of a question: the state fields
    its message names); reprs show them redacted. ``passed`` is the canonical text that an answer
    must match. ``call_id`` repeats on a re-run for a Call node and is new for a call of a node
    function (``repeats``). ``reference`` is the tool's ``module:qualname``. ``annotations``,
    ``form``, ``policy``, ``editable`` and ``about`` (what the tool does, in a line) come from the
    flow's code and are not sealed; ``sealed``
    is the canonical form of the arguments in a request that was loaded.
    """

    id: str
    run_id: str
    flow: str
    flow_version: str
    node: str
    visit: str
    kind: Kind
    tool: str
    call_id: str
    arguments: Mapping[str, Any] | None
    passed: str | None
    summary: str
    risk: str = ""
    repeats: bool = False
    reference: str = ""
    requested_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    about: str = field(default="", compare=False)
    annotations: Mapping[str, Any] = field(default_factory=dict, compare=False)
    form: Form | None = field(default=None, compare=False)
    policy: Any = field(default=None, compare=False)
    editable: bool = field(default=False, compare=False)
    sealed: Json = field(default=None, compare=False)

    def shown(self) -> dict[str, Any]:
        """The display tree of the arguments (see ``redact``): all that a person may see."""
        return redact.redact_arguments(self.arguments or {}, self.annotations)

    def without_arguments(self) -> ApprovalRequest:
        """The request with nothing raw in it, as it leaves the process in a pickle."""
        return replace(
            self,
            arguments=None,
            passed=None,
            annotations={},
            form=None,
            policy=None,
            sealed=None,
        )

    def canonical_arguments(self) -> Json:
        """The raw arguments in canonical form; NotSealable where one has none."""
        if self.arguments is None:
            return self.sealed
        return canonical.encode(self.arguments, path=f"arguments of {self.tool}")

    def answers_call(self, *, run_id: str, reference: str, passed: str | None) -> bool:
        """Whether an answer to this request answers such a call of a tool."""
        return (self.kind, self.run_id, self.reference) == ("tool", run_id, reference) and (
            passed is not None and self.passed == passed
        )

    def __repr__(self) -> str:
        return f"<request {self.id} {self.tool}: {redact.plain(self.shown())}>"


@dataclass(frozen=True, repr=False)
class ApprovalDecision:
    """What a person answered; made by ``approve`` or ``deny`` only.

    ``content`` is the form's answer and ``arguments`` the edited arguments, both raw data that is
    checked before the decision is taken. ``request_id`` may be left out where one request is open.
    """

    approved: bool
    by: str
    reason: str | None = None
    content: Any = None
    arguments: Mapping[str, Any] | None = None
    request_id: str | None = None

    def __post_init__(self) -> None:
        if self.approved is not True and self.approved is not False:
            raise FlowError(
                f"A decision is made by ApprovalDecision.approve or .deny; "
                f"{type(self.approved).__name__} is no answer.",
                code="invalid-decision",
            )
        if not isinstance(self.by, str) or not self.by.strip():
            raise FlowError("A decision names who made it (by=...).", code="invalid-decision")
        if not isinstance(self.request_id, str | None):
            raise FlowError("A decision names its request by its id.", code="invalid-decision")
        if not isinstance(self.arguments, Mapping | None):
            raise FlowError("Edited arguments are a mapping.", code="invalid-decision")

    @classmethod
    def approve(
        cls,
        by: str,
        reason: str | None = None,
        content: Any = None,
        arguments: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> ApprovalDecision:
        """A yes, with the form's answer and, where the tool allows it, other arguments."""
        return cls(True, by, reason, content, arguments, request_id)

    @classmethod
    def deny(
        cls, by: str, reason: str | None = None, request_id: str | None = None
    ) -> ApprovalDecision:
        """A no."""
        return cls(False, by, reason, request_id=request_id)

    @property
    def verb(self) -> str:
        return "approved" if self.approved else "rejected"

    def __repr__(self) -> str:
        return f"<{self.verb} by {self.by!r}>"


Answer = tuple[ApprovalRequest, ApprovalDecision]


class ApprovalStore(Protocol):
    """Where a port keeps its records. Each method is atomic.

    A record is *pending*, then *decided*, then *consumed* (a run went on with the decision). It is
    consumed once.
    """

    async def add(self, request: ApprovalRequest) -> None:
        """Keep a new pending record."""

    async def find_pending(self, request: ApprovalRequest) -> ApprovalRequest | None:
        """The pending record of the same run and call id, if there is one."""

    async def settle(
        self,
        answers: Sequence[Answer],
        earlier: Sequence[Answer],
        others: Sequence[ApprovalRequest],
    ) -> set[str]:
        """Spend the answers: each pending record is decided with its answer, or found decided
        so, and consumed; all of them or none.

        Records of ``earlier`` answers that are held here must be consumed with that decision;
        those of ``others``, the open requests that are not answered now, must not be consumed:
        the checkpoint was resumed before where one is. Returns the ids of the answered records
        that are held here; ApprovalAlreadyDecided, with nothing changed, where one is consumed or
        decided otherwise.
        """

    async def withdraw(self, request: ApprovalRequest, reason: str) -> ApprovalDecision | None:
        """Deny and consume a pending record that nobody needs to answer any more.

        Where a decision is on record already it is consumed and returned: it was given, and must
        not be lost.
        """


class ApprovalPort(Protocol):
    """How the executor asks. A port without a store has ``store = None``."""

    store: ApprovalStore | None

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask; return a decision, or raise ApprovalPending with the request that is on record."""


class DeferredApproval:
    """The port that always asks later: each request becomes a pending record of its store."""

    def __init__(self, store: ApprovalStore | None = None) -> None:
        self.store: ApprovalStore | None = store if store is not None else MemoryStore()

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        assert self.store is not None  # noqa: S101  set above; the protocol allows None
        known = await self.store.find_pending(request)
        if known is None:
            await self.store.add(request)
        raise ApprovalPending(known or request)


@dataclass
class _Record:
    request: ApprovalRequest
    decision: ApprovalDecision | None = None
    consumed: bool = False


class MemoryStore:
    """An approval store of this process."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._lock = threading.Lock()

    async def add(self, request: ApprovalRequest) -> None:
        with self._lock:
            self._records[request.id] = _Record(request)

    async def find_pending(self, request: ApprovalRequest) -> ApprovalRequest | None:
        with self._lock:
            for record in self._records.values():
                known = record.request
                if record.decision is None and (known.run_id, known.call_id) == (
                    request.run_id,
                    request.call_id,
                ):
                    return known
        return None

    async def settle(
        self,
        answers: Sequence[Answer],
        earlier: Sequence[Answer],
        others: Sequence[ApprovalRequest],
    ) -> set[str]:
        with self._lock:
            for request in others:
                record = self._records.get(request.id)
                if record is not None and record.consumed:
                    raise already_decided(request, record.decision)
            for request, decision in earlier:
                record = self._records.get(request.id)
                if record is not None and not (record.consumed and record.decision == decision):
                    raise already_decided(request, record.decision)
            held = []
            for request, decision in answers:
                record = self._records.get(request.id)
                if record is None:
                    continue
                if record.consumed or record.decision not in (None, decision):
                    raise already_decided(request, record.decision)
                held.append((record, decision))
            for record, decision in held:
                record.decision, record.consumed = decision, True
            return {record.request.id for record, _ in held}

    async def withdraw(self, request: ApprovalRequest, reason: str) -> ApprovalDecision | None:
        with self._lock:
            record = self._records.get(request.id)
            if record is None or record.consumed:
                return None
            given, record.consumed = record.decision, True
            record.decision = given or ApprovalDecision.deny(by="flowsite", reason=reason)
            return given

    def decide(self, request_id: str, decision: ApprovalDecision) -> None:
        """Put a decision on record without going on; the run resumes with the same decision."""
        with self._lock:
            record = self._records[request_id]
            if record.decision is not None:
                raise already_decided(record.request, record.decision)
            record.decision = decision

    def pending(self) -> list[ApprovalRequest]:
        """The open requests, oldest first."""
        with self._lock:
            return [r.request for r in self._records.values() if r.decision is None]


def already_decided(
    request: ApprovalRequest, decision: ApprovalDecision | None
) -> ApprovalAlreadyDecided:
    """The error for whoever comes second; it names what was decided and by whom."""
    what = f"It was {decision.verb} by {decision.by}" if decision else "It is still open"
    return ApprovalAlreadyDecided(
        f"The request {request.id} for {request.tool} can't be answered with this decision. "
        f"{what}. Nothing ran; resume with the decision on record.",
        node=request.node,
    )


def new_id() -> str:
    """A fresh identifier: a UUID in its usual form."""
    return str(uuid.uuid4())
