"""What can go wrong in a flow, and the pause, which is not an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import redact

if TYPE_CHECKING:
    from .approval import ApprovalDecision, ApprovalRequest


class FlowError(Exception):
    """A run can't go on, or can't be started or resumed.

    ``code`` is one of the fixed codes that programs compare (``checkpoint-tampered``,
    ``state-not-sealable``, ``graph-changed``, ``unknown-request``, ``node-failed``,
    ``step-limit``, ``state-conflict``, ``outcome-unknown``, ``approval-denied``,
    ``already-decided``, ``invalid-graph``, ``invalid-decision``, ``invalid-answer``,
    ``invalid-arguments``). The message says what happened, where, and what to do. ``node`` is the
    name of the node it happened in, where there is one. An exception of a node's own is the
    ``__cause__``.
    """

    def __init__(self, message: str, *, code: str, node: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.node = node

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_it_was, (type(self), self.args, self.__dict__)


class ApprovalDenied(FlowError):
    """A person said no. Raised in the node that asked, which may catch it and go on without."""

    def __init__(
        self, message: str, *, request: ApprovalRequest, decision: ApprovalDecision
    ) -> None:
        super().__init__(message, code="approval-denied", node=request.node)
        self.request = request
        self.decision = decision

    def __reduce__(self) -> tuple[Any, ...]:
        facts = self.__dict__ | {"request": self.request.without_arguments()}
        return _as_it_was, (type(self), self.args, facts)


class ApprovalAlreadyDecided(FlowError):
    """The decision was taken before, or the checkpoint was resumed before; nothing ran."""

    def __init__(self, message: str, *, node: str | None = None) -> None:
        super().__init__(message, code="already-decided", node=node)


class ApprovalPending(BaseException):
    """Leaves a node whose call waits for a person.

    Not an ``Exception``: ``except Exception`` in a node must not swallow a pause. A node that
    swallows it all the same is paused nevertheless. Pickled, it drops the raw arguments.
    """

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(f"{request.tool} waits for an approval")
        self.request = request

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.request.without_arguments(),)


class Interrupted(BaseException):
    """The walk must stop here and now, and neither finish nor pause the run.

    Raised by an event listener that can't do its part (the database is gone, the claim on the run
    is lost). Not an ``Exception``, so that no node can go on past it.
    """


class AdapterError(Exception):
    """What a node sees when a tool failed.

    Tools raise subclasses of their own, which reach the node as they are; any other exception of
    a tool is wrapped in a plain ``AdapterError`` whose ``__cause__`` it is. On replay the
    exception is rebuilt from ``info`` with the same class, message and attributes, so a node that
    catches it takes the same way again.
    """

    @property
    def info(self) -> ErrorInfo:
        """What is kept of this error in the journal."""
        return getattr(self, "_info", None) or ErrorInfo.of(self)


@dataclass(frozen=True)
class ErrorInfo:
    """A failure as data: the class as ``module:qualname``, its message, attributes and args."""

    type: str
    message: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] | None = None
    adapter: str = f"{AdapterError.__module__}:{AdapterError.__qualname__}"

    @classmethod
    def of(cls, error: BaseException) -> ErrorInfo:
        name = f"{type(error).__module__}:{type(error).__qualname__}"
        if not isinstance(error, AdapterError):
            return cls(name, _text_of(error))
        attributes = {key: value for key, value in vars(error).items() if key not in _OURS}
        return cls(name, _text_of(error), attributes, error.args, adapter=name)

    def rebuild(self) -> AdapterError:
        """The exception again, without running its ``__init__``.

        The class is looked up among the loaded subclasses of AdapterError and never imported by
        its name; one that is not loaded comes back as a plain AdapterError.
        """
        error_class = _loaded_adapters().get(self.adapter, AdapterError)
        error: AdapterError = Exception.__new__(error_class)  # a __new__ of its own may want more
        error.args = (self.message,) if self.args is None else self.args
        error.__dict__.update(self.attributes)
        if self.type != self.adapter:
            error.__dict__["_info"] = self
        return error


# What the executor notes on an error for itself; no part of the failure.
_OURS = frozenset({"_info", "_shown"})


def message_shown(error: BaseException) -> str:
    """The message of an error for people: redacted, and without the secret arguments of the call
    that failed, which the tool may have quoted."""
    shown: str | None = getattr(error, "_shown", None)
    return redact.redact_text(_text_of(error)) if shown is None else shown


def _as_it_was(kind: type[FlowError], args: tuple[Any, ...], facts: dict[str, Any]) -> FlowError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message can't be read)"


def as_adapter_error(error: BaseException) -> AdapterError:
    """The form in which a node sees a tool's exception; its own AdapterErrors stay what they are.

    The message names the class of a foreign exception and quotes its text.
    """
    if isinstance(error, AdapterError):
        return error
    info = ErrorInfo.of(error)
    wrapped = ErrorInfo(type=info.type, message=f"{type(error).__name__}: {info.message}").rebuild()
    wrapped.__cause__ = error
    return wrapped


def _loaded_adapters() -> dict[str, type[AdapterError]]:
    found: dict[str, type[AdapterError]] = {}
    waiting: list[type[AdapterError]] = [AdapterError]
    while waiting:
        error_class = waiting.pop()
        found[f"{error_class.__module__}:{error_class.__qualname__}"] = error_class
        waiting.extend(error_class.__subclasses__())
    return found
