"""Tools: functions that do work, with what a person must know before they do it."""

from __future__ import annotations

import inspect
import re
import string
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from . import canonical
from .errors import FlowError
from .validation import faults_in_words, own_copy


@dataclass(frozen=True, eq=False, repr=False)
class Tool:
    """A function that flows call through ``ctx.call`` or a ``Call`` node.

    ``params`` is a pydantic model made from the function's signature; it checks the arguments.
    A tool isn't called directly, because that would go past its approval and the journal;
    ``tool.fn`` is the plain function, for tests.
    """

    name: str
    fn: Callable[..., Any]
    params: type[BaseModel]
    returns: Any
    description: str = ""
    confirm: bool | Callable[..., bool] = False
    summary: str | None = None
    editable: bool = False
    idempotent: bool = False
    risk: str | Callable[..., str | None] | None = None
    policy: Any = None
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """``module:qualname`` of the function: what the tool is in graph digests."""
        return canonical.class_name(self.fn)

    @property
    def about(self) -> str:
        """What the tool does, in the first paragraph of its description, on one line."""
        return " ".join(self.description.partition("\n\n")[0].split())

    def validate(self, arguments: Mapping[str, Any]) -> BaseModel:
        """Check arguments against the signature; FlowError (invalid-arguments) says what is off.

        The message names the parameters and never quotes their values, which may be secrets.
        """
        try:
            return self.params.model_validate(dict(arguments), by_alias=False, by_name=True)
        except ValidationError as error:
            raise FlowError(
                f"The call of {self.name} has arguments that it does not take: "
                f"{faults_in_words(error, 'arguments')}",
                code="invalid-arguments",
            ) from None

    def needs_confirmation(self, arguments: Mapping[str, Any]) -> bool:
        """Whether this call needs a person's yes; FlowError where ``confirm`` doesn't say."""
        needed = self.confirm(**own_copy(arguments)) if callable(self.confirm) else self.confirm
        if needed is not True and needed is not False:
            raise FlowError(
                f"The confirm function of {self.name} returned {type(needed).__name__}; it says "
                "True or False. The call did not run.",
                code="node-failed",
            )
        return needed

    def risk_of(self, arguments: Mapping[str, Any]) -> str:
        """The risk shown to the reviewer for these arguments; empty where none is declared."""
        risk = self.risk(**own_copy(arguments)) if callable(self.risk) else self.risk
        return str(risk or "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"Call the tool {self.name} through ctx.call({self.name}, ...) or a Call node; a "
            f"direct call would skip its approval and its journal. In tests, use {self.name}.fn."
        )

    def __repr__(self) -> str:
        return f"<tool {self.name}>"


# Names that pydantic keeps for itself, so that such a parameter would silently not be there.
_NOT_PARAMETERS = frozenset(name for name in dir(BaseModel) if name.startswith("model_"))

_loaded: dict[str, Tool] = {}


def _check_summary(function: Callable[..., Any], summary: str, fields: Mapping[str, Any]) -> None:
    try:
        named = {name for _, name, _, _ in string.Formatter().parse(summary) if name is not None}
    except ValueError as error:
        raise TypeError(f"The summary of {function.__qualname__} is malformed: {error}.") from None
    for name in sorted(named):
        if re.split(r"[.\[]", name)[0] not in fields:
            raise TypeError(
                f"The summary of {function.__qualname__} names {name!r}, which is no parameter."
            )


def loaded_tool(reference: str) -> Tool | None:
    """The tool whose module is loaded already; nothing is imported because a text names it."""
    return _loaded.get(reference)


@overload
def tool(fn: Callable[..., Any]) -> Tool: ...
@overload
def tool(
    *,
    confirm: bool | Callable[..., bool] = ...,
    summary: str | None = ...,
    editable: bool = ...,
    idempotent: bool = ...,
    risk: str | Callable[..., str | None] | None = ...,
    policy: Any = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    fn: Callable[..., Any] | None = None,
    *,
    confirm: bool | Callable[..., bool] = False,
    summary: str | None = None,
    editable: bool = False,
    idempotent: bool = False,
    risk: str | Callable[..., str | None] | None = None,
    policy: Any = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a plain or ``async`` function a tool.

    ``confirm``: a person must say yes first; or a function of the arguments that says whether.
    ``summary``: the one sentence a reviewer reads, filled from the arguments
    (``"Pay {amount} to {payee}"``). ``editable``: a reviewer may change the arguments.
    ``idempotent``: may run again after a crash. ``risk``: a word for the reviewer (``"high"``
    asks for a second confirmation), or a function of the arguments. ``policy``: who may decide,
    handed to the approval port as it is.
    """

    def make(function: Callable[..., Any]) -> Tool:
        if not inspect.isfunction(function):
            raise TypeError(
                f"@tool stands on a function (def or async def), not on {function!r}; wrap it in "
                "a function of its own."
            )
        for name, given in (("confirm", confirm), ("risk", risk)):
            if inspect.iscoroutinefunction(given):
                raise TypeError(
                    f"The {name} function of {function.__qualname__} is async; it is plain."
                )
        hints = typing.get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise TypeError(
                    f"The tool {function.__qualname__} has the parameter {parameter}; a tool's "
                    "parameters have names, so that a reviewer can read them."
                )
            if parameter.name.startswith("_") or parameter.name in _NOT_PARAMETERS:
                raise TypeError(
                    f"The tool {function.__qualname__} can't have a parameter named "
                    f"{parameter.name!r}; give it another name."
                )
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (hints.get(parameter.name, Any), default)
        with warnings.catch_warnings():
            # A parameter may be called "copy" or "schema"; the model's methods aren't used.
            warnings.filterwarnings("ignore", message=".*shadows an attribute.*")
            params = create_model(
                f"{function.__name__}_arguments",
                __config__=ConfigDict(
                    extra="forbid", arbitrary_types_allowed=True, protected_namespaces=()
                ),
                __module__=function.__module__,
                **fields,
            )
        if summary is not None:
            _check_summary(function, summary, fields)
        made = Tool(
            name=function.__name__,
            fn=function,
            params=params,
            returns=hints.get("return", Any),
            description=inspect.getdoc(function) or "",
            confirm=confirm,
            summary=summary,
            editable=editable,
            idempotent=idempotent,
            risk=risk,
            policy=policy,
            annotations={name: annotation for name, (annotation, _) in fields.items()},
        )
        _loaded[made.reference] = made
        return made

    return make if fn is None else make(fn)


@dataclass(frozen=True, repr=False)
class CallArguments:
    """The validated arguments of one call.

    ``values`` holds every parameter, defaults included: what is shown and what runs. ``passed``
    is the canonical text of what the caller passed, unset fields left out at every depth: what
    the journal goes by, so that a default made anew on a re-run still finds its result. It is
    None where an argument can't be sealed.
    """

    values: Mapping[str, Any]
    passed: str | None

    @classmethod
    def of(
        cls,
        called: Tool,
        arguments: Mapping[str, Any],
        encoder: Callable[[Any], Any] | None = None,
    ) -> CallArguments:
        """Validate; FlowError (invalid-arguments) where the tool does not take them."""
        model = called.validate(arguments)
        # Nobody who holds a part of the arguments can change them after they were checked.
        values = {name: own_copy(model.__dict__[name]) for name in type(model).model_fields}
        given = {name: values[name] for name in values if name in model.model_fields_set}
        try:
            passed = canonical.dumps(
                canonical.encode(given, path=called.name, encoder=encoder, exclude_unset=True)
            )
        except canonical.NotSealable:
            passed = None
        return cls(values, passed)
