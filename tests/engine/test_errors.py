"""Errors: what they say, what they carry, and that no secret is in them."""

import asyncio
import copy
import pickle
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretStr

from runs.engine import (
    AdapterError,
    ApprovalAlreadyDecided,
    ApprovalDenied,
    ApprovalPending,
    ErrorInfo,
    FlowError,
    FlowResult,
    Gate,
    Human,
    Secret,
    ToolResult,
    tool,
)

from .support import State, World, approve, deny, fails, flow_of, question

SECRET = "hunter2-hunter2"


class HttpError(AdapterError):
    """Takes other arguments than its message."""

    def __init__(self, status: int, *, url: str, details: dict[str, Any]) -> None:
        super().__init__(f"{status} from {url}")
        self.status = status
        self.details = details


class ManyArguments(AdapterError):
    """Has no single message."""


class OwnText(AdapterError):
    def __str__(self) -> str:
        return f"{self.args[0]}/{self.args[1]}"


class OwnNew(AdapterError):
    def __new__(cls, code: int, text: str) -> "OwnNew":
        return super().__new__(cls, code, text)

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Sub(HttpError):
    pass


@tool(confirm=True)
def pay(amount: int) -> int:
    return amount


def twice(error: BaseException) -> list[AdapterError]:
    """What a node catches of a tool that raises ``error``, on its run and on its re-run."""
    caught: list[AdapterError] = []
    ran: list[int] = []

    @tool
    async def failing() -> None:
        ran.append(1)
        raise error

    async def node(state: State, ctx: Any) -> None:
        try:
            await ctx.call(failing)
        except AdapterError as failure:
            caught.append(failure)
        await ctx.call(pay, amount=1)

    world, flow = World(), flow_of(node)
    assert world.resume(flow, world.run(flow), approve()).status == "completed"
    assert ran == [1]
    return caught


@pytest.mark.parametrize(
    "error",
    [
        AdapterError("plain"),
        AdapterError(),
        HttpError(503, url="https://a.example", details={"tries": (1, 2), "cost": Decimal("1.0")}),
        Sub(404, url="x", details={}),
        ManyArguments(1, "two"),
        OwnText("a", "b"),
        OwnNew(7, "seven"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_replayed_failure_has_the_class_message_and_attributes_of_the_first(
    error: AdapterError,
) -> None:
    first, second = twice(error)
    assert first is error
    assert type(second) is type(first)
    assert str(second) == str(first)
    assert vars(second) == vars(first)


def test_notes_of_an_error_are_replayed_too() -> None:
    error = AdapterError("plain")
    error.add_note("tried twice")
    assert twice(error)[1].__notes__ == ["tried twice"]


class Missing(KeyError):
    pass


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        Missing("key"),
        OSError(2, "No such file"),
        ExceptionGroup("g", [ValueError("x")]),
    ],
)
def test_a_foreign_exception_is_wrapped_the_same_on_both_runs(error: Exception) -> None:
    first, second = twice(error)
    assert type(first) is type(second) is AdapterError
    assert str(first) == str(second)
    assert str(first).startswith(type(error).__name__ + ": ")
    assert first.__cause__ is error
    assert first.info.type.endswith(":" + type(error).__qualname__)
    assert first.info == second.info


def test_a_flow_error_of_a_tool_is_a_failure_of_the_tool() -> None:
    first, second = twice(FlowError("inner", code="node-failed"))
    assert str(first) == str(second) == "FlowError: inner"


def test_an_adapter_class_that_is_not_loaded_comes_back_plain_and_is_not_imported() -> None:
    info = ErrorInfo("antigravity:Error", "gone", {"a": 1}, adapter="antigravity:Error")
    error = info.rebuild()
    assert type(error) is AdapterError
    assert str(error) == "gone"


def test_attributes_that_cannot_be_sealed_fail_the_pause_and_name_the_call() -> None:
    @tool
    def failing() -> None:
        raise HttpError(500, url="x", details={"lock": object()})

    async def node(state: State, ctx: Any) -> None:
        try:
            await ctx.call(failing)
        except HttpError:
            await ctx.call(pay, amount=1)

    world = World()
    with fails("state-not-sealable") as caught:
        world.run(flow_of(node))
    assert "failing" in str(caught.value)
    assert world.store.pending() == []


def test_an_exception_of_a_node_is_the_cause_of_its_flow_error() -> None:
    error = LookupError("gone")

    async def node(state: State, ctx: Any) -> None:
        raise error

    with fails("node-failed") as caught:
        World().run(flow_of(node))
    assert caught.value.node == "node"
    assert caught.value.__cause__ is error
    assert "'node'" in str(caught.value)
    assert "LookupError: gone" in str(caught.value)


def test_a_flow_error_of_a_node_keeps_its_code_and_gets_its_node() -> None:
    async def node(state: State, ctx: Any) -> None:
        raise FlowError("mine", code="my-code")

    with fails("my-code") as caught:
        World().run(flow_of(node))
    assert caught.value.node == "node"


def test_a_failure_of_a_tool_is_the_cause_too() -> None:
    @tool
    def failing() -> None:
        raise HttpError(500, url="x", details={})

    async def node(state: State, ctx: Any) -> None:
        await ctx.call(failing)

    with fails("node-failed") as caught:
        World().run(flow_of(node))
    assert isinstance(caught.value.__cause__, HttpError)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  our own


def test_errors_pickle_with_what_they_say() -> None:
    error = FlowError("what happened", code="node-failed", node="a")
    for again in (pickled(error), copy.copy(error)):
        assert (str(again), again.code, again.node) == ("what happened", "node-failed", "a")
    decided = pickled(ApprovalAlreadyDecided("was decided", node="a"))
    assert (str(decided), decided.code) == ("was decided", "already-decided")


class Credentials(BaseModel):
    user: str = "claims-desk"
    password: str = SECRET


class Vault(BaseModel):
    """A state with secrets by type, by mark, by name, and deep inside."""

    token: SecretStr = SecretStr(SECRET)
    marked: Annotated[str, Secret()] = SECRET
    password: str = SECRET
    login: Credentials = Credentials()
    headers: list[tuple[str, str]] = [("Authorization", f"Bearer {SECRET}")]
    value: Any = None


@tool(confirm=True, summary="Send {marked} and {password} as {login}")
def send(
    token: SecretStr,
    marked: Annotated[str, Secret()],
    password: str,
    login: Credentials,
    headers: list[tuple[str, str]],
) -> Annotated[str, Secret()]:
    return SECRET


@tool
def send_at_once(
    token: SecretStr, marked: Annotated[str, Secret()], password: str, login: Credentials
) -> Annotated[str, Secret()]:
    return SECRET


@tool
def refuse(marked: Annotated[str, Secret()]) -> None:
    raise ValueError("was refused")


async def sends(state: Vault, ctx: Any) -> dict[str, Any]:
    await ctx.call(
        send_at_once,
        token=state.token,
        marked=state.marked,
        password=state.password,
        login=state.login,
    )
    with suppress(AdapterError):
        await ctx.call(refuse, marked=state.marked)
    sent = await ctx.call(
        send,
        token=state.token,
        marked=state.marked,
        password=state.password,
        login=state.login,
        headers=state.headers,
    )
    return {"value": sent}


def test_no_secret_is_in_a_repr_or_an_event() -> None:
    world, flow = World(), flow_of(sends, state=Vault)
    paused = world.run(flow, Vault())
    assert paused.checkpoint is not None
    assert paused.pending is not None
    (visit,) = paused.checkpoint.visits
    shown = [
        repr(paused),
        str(paused),
        repr(paused.checkpoint),
        repr(visit),
        repr(paused.pending),
        repr(paused.pending.shown()),
        paused.pending.summary,
        repr(ApprovalPending(paused.pending)),
        repr(approve(content={"password": SECRET}, arguments={"marked": SECRET})),
    ]
    done = world.resume(flow, paused, approve())
    assert done.state.value == SECRET
    shown += [repr(event) for event in world.events]
    assert any("call.finished" in text for text in shown)
    for text in shown:
        assert SECRET not in text


def test_no_secret_is_in_the_repr_of_a_finished_run() -> None:
    assert SECRET not in repr(FlowResult("completed", "run", Vault()))


def test_no_secret_is_in_the_repr_of_a_tool_result() -> None:
    result = ToolResult("send", "call", {"password": SECRET, "login": Credentials()}, value=1)
    assert SECRET not in repr(result)
    assert "arguments" not in result.to_dict()


def test_no_secret_is_in_the_repr_of_a_loaded_checkpoint_or_its_parts() -> None:
    world, flow = World(), flow_of(sends, state=Vault)
    paused = world.run(flow, Vault())
    assert paused.checkpoint is not None
    text = world.runner.dump_checkpoint(paused.checkpoint)
    loaded = world.runner.load_checkpoint(flow, text)
    assert SECRET not in repr(loaded) + repr(loaded.visits) + repr(loaded.requests)


def test_no_secret_is_in_the_error_of_a_refusal() -> None:
    world, flow = World(), flow_of(sends, state=Vault)
    with pytest.raises(ApprovalDenied) as caught:
        world.resume(flow, world.run(flow, Vault()), deny(reason="not now"))
    assert SECRET not in str(caught.value) + repr(caught.value)


def test_no_secret_is_in_the_error_of_a_wrong_call_or_answer() -> None:
    async def wrong(state: State, ctx: Any) -> None:
        await ctx.call(send_at_once, token=[SECRET], marked=5, password={SECRET: 1}, login=SECRET)

    with fails("invalid-arguments") as caught:
        World().run(flow_of(wrong))
    assert SECRET not in str(caught.value)

    class Form(BaseModel):
        password: int

    world, flow = World(), question(Human("Log in", form=Form))
    with fails("invalid-answer") as caught:
        world.resume(flow, world.run(flow), approve(content={"password": SECRET}))
    assert SECRET not in str(caught.value)


def test_no_secret_of_known_look_is_in_the_error_of_a_node_that_quotes_one() -> None:
    async def node(state: State, ctx: Any) -> None:
        raise ValueError("GET https://user:pa55word@host.example/ failed")

    world = World()
    with fails("node-failed") as caught:
        world.run(flow_of(node))
    assert "pa55word" not in str(caught.value) + repr(world.events)


def test_a_secret_argument_is_not_in_the_events_of_a_tool_that_quotes_it() -> None:
    @tool
    def quotes(marked: Annotated[str, Secret()], token: SecretStr) -> None:
        raise ValueError(f"{marked} and {token.get_secret_value()} were refused")

    async def node(state: State, ctx: Any) -> None:
        try:
            await ctx.call(quotes, marked=SECRET, token=SecretStr(SECRET))
        except AdapterError:
            return

    world = World()
    world.run(flow_of(node))
    assert SECRET not in repr(world.events)


def test_a_pickled_pause_holds_no_arguments() -> None:
    world, flow = World(), flow_of(sends, state=Vault)
    request = world.run(flow, Vault()).pending
    assert request is not None
    assert SECRET.encode() not in pickle.dumps(ApprovalPending(request))
    again = pickled(ApprovalPending(request))
    assert again.request.id == request.id
    assert again.request.arguments is None
    assert again.request.passed is None


def test_a_state_that_cannot_be_sealed_is_named_by_its_path_and_not_quoted() -> None:
    async def node(state: State, ctx: Any) -> None:
        await ctx.call(pay, amount=1)

    class Holder:
        def __repr__(self) -> str:
            return SECRET

    world = World()
    with fails("state-not-sealable") as caught:
        world.run(flow_of(node), State(items=[{"deep": (1, Holder())}]))
    assert 'state.items[0]["deep"][1]' in str(caught.value)
    assert SECRET not in str(caught.value)
    assert world.store.pending() == []


def test_messages_of_gates_hide_what_names_say_is_secret() -> None:
    gate = Gate(payload=lambda state: {"api_key": SECRET}, message="With {api_key}?")

    async def node(state: State, ctx: Any) -> None:
        await asyncio.sleep(0)

    world = World()
    paused = world.run(flow_of(node, gate=gate))
    assert SECRET not in repr(paused) + repr(world.events)
