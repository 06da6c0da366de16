"""A tool checks its arguments by its signature, and is confirmed by what it declares."""

import asyncio
import functools
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr

from runs.engine import ApprovalDenied, Call, Secret, Tool, tool
from runs.engine.tools import CallArguments, loaded_tool

from .support import State, World, approve, deny, fails, flow_of


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Line(BaseModel):
    name: str
    number: int = Field(default_factory=iter(range(1, 1000)).__next__)


def values(made: Tool, **arguments: Any) -> dict[str, Any]:
    return dict(CallArguments.of(made, arguments).values)


def passed(made: Tool, **arguments: Any) -> str | None:
    return CallArguments.of(made, arguments).passed


def calling(made: Tool, **arguments: Any) -> Any:
    async def node(state: State, ctx: Any) -> dict[str, Any]:
        return {"value": await ctx.call(made, **arguments)}

    return flow_of(node)


def test_the_signature_becomes_a_model_that_converts_and_checks() -> None:
    @tool
    def pay(amount: Decimal, payee: str, *, urgent: bool = False) -> str:
        """Pay someone."""
        return payee

    assert pay.name == "pay"
    assert pay.description == "Pay someone."
    assert pay.returns is str
    assert values(pay, amount="1.50", payee="x") == {
        "amount": Decimal("1.50"),
        "payee": "x",
        "urgent": False,
    }


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "amount"),
        ({"amount": "many"}, "amount"),
        ({"amount": 1, "extra": 2}, "extra"),
        ({"amount": None}, "amount"),
        ({"amount": [1]}, "amount"),
    ],
)
def test_missing_extra_and_wrong_arguments_are_refused_by_name(
    arguments: dict[str, Any], named: str
) -> None:
    @tool
    def pay(amount: int) -> int:
        return amount

    with fails("invalid-arguments") as caught:
        pay.validate(arguments)
    assert named in str(caught.value)
    assert "pay" in str(caught.value)


def no_value(value: str) -> str:
    raise ValueError(f"{value} is not allowed")


def test_the_message_about_wrong_arguments_never_quotes_them() -> None:
    @tool
    def send(
        number: int = 0,
        short: Annotated[str, Field(max_length=2)] = "",
        one_of: Literal["a"] = "a",
        pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
        named: dict[str, int] | None = None,
        checked: Annotated[str, AfterValidator(no_value)] = "",
        token: SecretStr | None = None,
    ) -> None: ...

    wrong: dict[str, Any] = {
        "number": "hunter2",
        "short": "hunter2",
        "one_of": "hunter2",
        "pet": {"kind": "hunter2"},
        "named": {"hunter2": "x"},
        "checked": "hunter2",
        "token": ["hunter2"],
    }
    for name, value in wrong.items():
        with fails("invalid-arguments") as caught:
            send.validate({name: value})
        assert name in str(caught.value)
        assert "hunter2" not in str(caught.value), name
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_defaults_are_shown_and_run_but_are_no_part_of_what_was_passed() -> None:
    @tool
    def number(
        text: str,
        line: Line | None = None,
        key: int = Field(default_factory=iter(range(9)).__next__),
    ) -> None: ...

    assert values(number, text="a") == {"text": "a", "line": None, "key": 0}
    assert values(number, text="a")["key"] == 1
    assert passed(number, text="a") == passed(number, text="a")
    assert passed(number, text="a", line={"name": "x"}) == passed(
        number, text="a", line=Line(name="x")
    )
    assert passed(number, text="a", line={"name": "x", "number": 5}) != passed(
        number, text="a", line={"name": "x"}
    )
    assert passed(number, text="a", key=3) != passed(number, text="a")


def test_a_mutable_default_is_not_shared_between_calls() -> None:
    @tool
    def collect(found: list[int] = []) -> None: ...  # noqa: B006  that is the case

    values(collect)["found"].append(1)
    assert values(collect) == {"found": []}


@pytest.mark.parametrize(
    "function",
    [lambda x, /: x, lambda *x: x, lambda **x: x],
    ids=["positional-only", "*args", "**kwargs"],
)
def test_parameters_without_names_are_refused_when_the_tool_is_made(function: Any) -> None:
    with pytest.raises(TypeError, match="parameters have names"):
        tool(function)


def test_parameters_may_be_called_like_methods_of_a_model() -> None:
    @tool
    def odd(
        copy: int, schema: int, json: int, dict: int, validate: int, construct: int, root: int
    ) -> int:
        return copy + schema + json + dict + validate + construct + root

    arguments = {name: 1 for name in odd.params.model_fields}
    assert len(arguments) == 7
    assert values(odd, **arguments) == arguments
    assert World().run(calling(odd, **arguments)).state.value == 7


@pytest.mark.parametrize(
    "name",
    ["model_config", "model_extra", "model_fields_set", "model_fields", "_hidden", "__class__"],
)
def test_a_parameter_is_taken_as_it_is_or_refused_and_never_dropped(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def odd({name}): return {name}", scope)  # noqa: S102
    try:
        made = tool(scope["odd"])
    except (TypeError, NameError) as error:
        assert name in str(error)  # noqa: PT017
    else:
        assert values(made, **{name: "mine"}) == {name: "mine"}


def test_arguments_called_like_parameters_of_call_reach_the_tool() -> None:
    @tool
    def odd(self: str, tool: str, call_id: str, visit: str, arguments: str) -> list[str]:
        return [self, tool, call_id, visit, arguments]

    arguments = {"self": "a", "tool": "b", "call_id": "c", "visit": "d", "arguments": "e"}
    assert World().run(calling(odd, **arguments)).state.value == list("abcde")


def test_static_methods_can_be_tools() -> None:
    class Bank:
        @staticmethod
        @tool
        def double(amount: int) -> int:
            return amount * 2

    assert World().run(calling(Bank.double, amount=2)).state.value == 4


def test_a_partial_a_method_or_a_callable_object_works_or_is_refused_with_a_way_out() -> None:
    def pay(amount: int, fee: int) -> int:
        return amount + fee

    class Payer:
        def __call__(self, amount: int) -> int:
            return amount

        def pay(self, amount: int) -> int:
            return amount

    for odd in (functools.partial(pay, fee=1), Payer(), Payer().pay, staticmethod(pay)):
        try:
            made = tool(odd)
        except TypeError as error:
            assert "@tool" in str(error)  # noqa: PT017
        else:
            assert World().run(calling(made, amount=1)).status == "completed"


def test_async_tools_are_awaited() -> None:
    @tool
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    assert World().run(calling(later, number=1)).state.value == 2


def test_a_tool_is_not_called_directly() -> None:
    @tool
    def pay(amount: int) -> int:
        return amount

    with pytest.raises(TypeError, match=r"ctx\.call"):
        pay(1)
    assert pay.fn(1) == 1


def test_only_tools_are_called_through_the_context() -> None:
    with fails("node-failed") as caught:
        World().run(calling(print))  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_tool_is_found_by_its_function_and_nothing_is_imported_for_a_name() -> None:
    @tool
    def pay(amount: int) -> int:
        return amount

    assert loaded_tool(pay.reference) is pay
    assert loaded_tool("antigravity:pay") is None


def test_confirm_is_asked_once_for_a_call_with_its_defaults_and_not_for_its_answer() -> None:
    asked: list[dict[str, Any]] = []

    def over_limit(**arguments: Any) -> bool:
        asked.append(arguments)
        return len(asked) == 1

    @tool(confirm=over_limit)
    def pay(amount: int, fee: int = 2) -> int:
        return amount + fee

    @tool(confirm=True)
    def close() -> None: ...

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        paid = await ctx.call(pay, amount=5)
        await ctx.call(close)
        return {"value": paid}

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    assert asked == [{"amount": 5, "fee": 2}]
    paused = world.resume(flow, paused, approve())  # the answer is used
    assert paused.pending is not None
    assert paused.pending.tool == "close"
    done = world.resume(flow, paused, approve())  # the call is replayed
    assert done.state.value == 7
    assert len(asked) == 1


def test_a_call_that_needs_no_yes_runs_at_once() -> None:
    @tool(confirm=lambda amount: amount > 10)
    def pay(amount: int) -> int:
        return amount

    assert World().run(calling(pay, amount=10)).status == "completed"
    assert World().run(calling(pay, amount=11)).status == "paused"


def broken(amount: int) -> bool:
    raise LookupError("no limits today")


def nothing(amount: int) -> Any:
    return None


def words(amount: int) -> Any:
    return "no"


@pytest.mark.parametrize("confirm", [broken, nothing, words], ids=["raises", "None", "text"])
def test_a_confirm_function_without_a_clear_answer_never_lets_the_call_run(confirm: Any) -> None:
    ran: list[int] = []

    @tool(confirm=confirm)
    def pay(amount: int) -> None:
        ran.append(amount)

    world = World()
    try:
        world.run(calling(pay, amount=1))
    except Exception:
        assert world.store.pending() == []
    assert ran == []


def test_confirm_and_risk_cannot_change_what_runs() -> None:
    def emptied(names: list[str]) -> bool:
        names.clear()
        return False

    @tool(confirm=emptied)
    def send(names: list[str]) -> list[str]:
        return list(names)

    assert World().run(calling(send, names=["a"])).state.value == ["a"]


def test_risk_is_a_word_or_a_function_of_the_arguments() -> None:
    @tool(confirm=True, risk=lambda amount: "high" if amount > 10 else None)
    def pay(amount: int) -> None: ...

    @tool(confirm=True, risk="low")
    def send() -> None: ...

    def risk(made: Tool, **arguments: Any) -> str:
        (request,) = World().run(calling(made, **arguments)).requests
        return request.risk

    assert risk(pay, amount=11) == "high"
    assert risk(pay, amount=1) == ""
    assert risk(send) == "low"


def test_the_summary_is_filled_from_the_arguments_without_their_secrets() -> None:
    @tool(confirm=True, summary="Pay {amount} to {payee} with {token}")
    def pay(amount: int, payee: str, token: Annotated[str, Secret()]) -> None: ...

    (request,) = World().run(calling(pay, amount=5, payee="ACME", token="hunter2")).requests
    assert request.summary.startswith("Pay 5 to ACME with ")
    assert "hunter2" not in request.summary


def test_a_summary_that_names_no_parameter_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises((TypeError, ValueError, KeyError), match="amont"):

        @tool(confirm=True, summary="Pay {amont}")
        def pay(amount: int) -> None: ...


def test_two_tools_of_one_name_do_not_share_answers() -> None:
    ran: list[str] = []

    def first() -> Tool:
        @tool(confirm=True)
        def send(to: str) -> None:
            ran.append("first")

        return send

    def second() -> Tool:
        @tool(confirm=True)
        def send(to: str) -> None:
            ran.append("second")

        return send

    one, two = first(), second()

    async def node(state: State, ctx: Any) -> None:
        await asyncio.gather(ctx.call(one, to="x"), ctx.call(two, to="x"))

    world, flow = World(), flow_of(node)
    paused = world.run(flow)
    (for_two,) = [r for r in paused.requests if r.reference == two.reference]
    assert world.resume(flow, paused, approve(for_two)).status == "paused"
    assert ran == ["second"]


def test_two_tools_of_one_name_do_not_share_results() -> None:
    def made(value: str) -> Tool:
        scope: dict[str, Any] = {"__name__": f"module_{value}"}
        exec(f"def read() -> str: return {value!r}", scope)  # noqa: S102
        return tool(scope["read"])

    one, two = made("one"), made("two")

    @tool(confirm=True)
    def close() -> None: ...

    turn = iter([[one, two], [two, one]])

    async def node(state: State, ctx: Any) -> dict[str, Any]:
        found = {id(each): await ctx.call(each) for each in next(turn)}
        await ctx.call(close)
        return {"items": [found[id(one)], found[id(two)]]}

    world, flow = World(), flow_of(node)
    done = world.resume(flow, world.run(flow), approve())
    assert done.state.items == ["one", "two"]


def test_a_denied_call_is_denied_again_on_every_re_run() -> None:
    """Although a later call with the same arguments was approved and recorded."""
    ran: list[str] = []

    @tool(confirm=True)
    def pay(amount: int) -> None:
        ran.append("pay")

    @tool(confirm=True)
    def notify() -> None:
        ran.append("notify")

    async def node(state: State, ctx: Any) -> None:
        try:
            await ctx.call(pay, amount=1)
        except ApprovalDenied:
            await ctx.call(pay, amount=1)
            await ctx.call(notify)

    world, flow = World(), flow_of(node)
    paused = world.resume(flow, world.run(flow), deny())
    paused = world.resume(flow, paused, approve())
    assert paused.pending is not None
    assert paused.pending.tool == "notify"
    assert world.resume(flow, paused, approve()).status == "completed"
    assert ran == ["pay", "notify"]


def test_select_gives_the_arguments_that_are_not_static() -> None:
    @tool
    def add(one: int, two: int) -> int:
        return one + two

    call = Call(add, into="value", args={"one": 1}, select=lambda state: {"two": state.number})
    assert World().run(flow_of(call), State(number=4)).state.value == 5
    wrong = Call(add, args={"one": 1}, select=lambda state: None)  # type: ignore[arg-type,return-value]
    with fails("node-failed"):
        World().run(flow_of(wrong))
