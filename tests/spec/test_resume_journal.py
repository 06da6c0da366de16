"""What resume does with the calls that a node had finished: the node's journal."""

from __future__ import annotations

import asyncio
import itertools
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, Field

from runs.engine import AdapterError, Tool, ToolResult, tool

from .support import Desk, Runner, State, Tools, one_node, reload, runner_on, yes

_numbers = itertools.count()


class Line(BaseModel):
    sku: str
    id: int = Field(default_factory=lambda: next(_numbers))


class Basket(BaseModel):
    lines: list[Line]
    by_name: dict[str, Line] = {}
    id: int = Field(default_factory=lambda: next(_numbers))


def test_a_finished_call_is_replayed_and_not_executed(runner: Runner, tools: Tools) -> None:
    async def work(state, ctx):
        seen = await ctx.call(tools.look, at="shelf")
        paid = await ctx.call(tools.pay, amount=5)
        return {"results": [seen, paid]}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["look shelf", "pay 5"]
    assert done.state.results == ["seen shelf, 1", "paid 5"]


def test_a_finished_call_of_a_plain_function_is_replayed(runner: Runner, tools: Tools) -> None:
    def work(state, ctx):
        seen = ctx.call_sync(tools.look, at="shelf")
        ctx.call_sync(tools.pay, amount=5)
        return {"value": seen}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert (done.state.value, tools.ran) == ("seen shelf, 1", ["look shelf", "pay 5"])


def test_replay_goes_by_the_tool(runner: Runner, tools: Tools) -> None:
    @tool
    def smell(at: Any) -> str:
        tools.ran.append(f"smell {at}")
        return f"smelled {at}"

    turned: list[bool] = []

    async def work(state, ctx):
        both = [tools.look, smell]
        if turned:
            both.reverse()
        turned.append(True)
        got = {called.name: await ctx.call(called, at="shelf") for called in both}
        await ctx.call(tools.pay, amount=5)
        return {"results": [got["look"], got["smell"]]}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert done.state.results == ["seen shelf, 1", "smelled shelf"]
    assert tools.ran == ["look shelf", "smell shelf", "pay 5"]


def test_replay_keeps_two_tools_of_one_name_apart(runner: Runner, tools: Tools) -> None:
    def other_look() -> Any:
        @tool
        def look(at: Any) -> str:
            tools.ran.append("the other look")
            return "seen otherwise"

        return look

    asked = [other_look(), tools.look]

    async def work(state, ctx):
        seen = await ctx.call(asked.pop(), at="shelf")
        await ctx.call(tools.pay, amount=5)
        return {"value": seen}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.value == "seen otherwise"
    assert tools.ran == ["look shelf", "the other look", "pay 5"]


def test_a_replayed_result_is_what_the_tool_returned_and_not_what_the_node_made_of_it(
    runner: Runner, tools: Tools
) -> None:
    @tool
    def fetch(names: list[str]) -> list[str]:
        return [*names, "fetched"]

    async def work(state, ctx):
        names = ["given"]
        fetched = await ctx.call(fetch, names=names)
        fetched.append("by the node")
        names.append("by the node")
        await ctx.call(tools.pay, amount=5)
        return {"results": fetched}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert done.state.results == ["given", "fetched", "by the node"]


def test_replay_goes_by_the_validated_arguments(runner: Runner, tools: Tools) -> None:
    @tool
    def count(of: int) -> int:
        tools.ran.append(f"count {of!r}")
        return of * 10

    spellings: list[Any] = [7, "7"]

    async def work(state, ctx):
        counted = await ctx.call(count, of=spellings.pop())
        await ctx.call(tools.pay, amount=5)
        return {"value": counted}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, paused.checkpoint, yes())
    assert done.state.value == 70
    assert tools.ran == ["count 7", "pay 5"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("shelf", "cellar"),
        (1, 1.0),
        (1, True),
        (Decimal("1.0"), Decimal("1.00")),
        (0.0, -0.0),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"a": "1"}),
    ],
    ids=repr,
)
def test_a_call_with_other_arguments_never_gets_the_recorded_result(
    runner: Runner, tools: Tools, first: Any, second: Any
) -> None:
    arguments = [second, first]

    async def work(state, ctx):
        seen = await ctx.call(tools.look, at=arguments.pop())
        await ctx.call(tools.pay, amount=5)
        return {"value": seen}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.value == f"seen {second}, 2"
    assert tools.ran == [f"look {first}", f"look {second}", "pay 5"]


def test_replay_goes_by_order_where_a_call_is_repeated(runner: Runner, tools: Tools) -> None:
    async def work(state, ctx):
        seen = [await ctx.call(tools.look, at="shelf") for _ in range(3)]
        await ctx.call(tools.pay, amount=5)
        return {"results": seen}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.results == ["seen shelf, 1", "seen shelf, 2", "seen shelf, 3"]
    assert tools.ran == ["look shelf"] * 3 + ["pay 5"]


@pytest.mark.parametrize("together", ["gather", "wait", "as_completed"])
def test_calls_started_together_replay_whatever_order_they_finished_in(
    runner: Runner, tools: Tools, together: str
) -> None:
    numbers = itertools.count()

    @tool
    async def fetch(at: str) -> int:
        number = next(numbers)
        await asyncio.sleep(0.02 - 0.005 * number)  # the first to start is the last to finish
        return number

    async def work(state, ctx):
        calls = [asyncio.ensure_future(ctx.call(fetch, at="shelf")) for _ in range(4)]
        if together == "gather":
            await asyncio.gather(*calls)
        elif together == "wait":
            await asyncio.wait(calls)
        else:
            for finished in asyncio.as_completed(calls):
                await finished
        got = [call.result() for call in calls]
        await ctx.call(tools.pay, amount=5)
        return {"results": got}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert done.state.results == [0, 1, 2, 3]
    assert next(numbers) == 4


def test_a_default_made_anew_still_replays(runner: Runner, tools: Tools) -> None:
    @tool
    def book(line: Line) -> int:
        tools.ran.append("book")
        return line.id

    async def work(state, ctx):
        booked = await ctx.call(book, line=Line(sku="tea"))
        await ctx.call(tools.pay, amount=5)
        return {"value": booked}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["book", "pay 5"]
    assert done.state.value < next(_numbers) - 1, "the result of the first run, not of a new id"


def test_a_default_made_anew_in_a_nested_model_still_replays(runner: Runner, tools: Tools) -> None:
    @tool
    def book(baskets: list[Basket]) -> str:
        tools.ran.append("book")
        return "booked"

    async def work(state, ctx):
        basket = Basket(lines=[Line(sku="tea")], by_name={"first": Line(sku="milk")})
        booked = await ctx.call(book, baskets=[basket])
        await ctx.call(tools.pay, amount=5)
        return {"value": booked}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.state.value, tools.ran) == ("booked", ["book", "pay 5"])


def test_a_default_made_anew_still_matches_its_approval(runner: Runner, tools: Tools) -> None:
    @tool(confirm=True)
    def order(basket: Basket) -> int:
        tools.ran.append(f"order {basket.id}")
        return basket.id

    async def work(state, ctx):
        return {"value": await ctx.call(order, basket=Basket(lines=[Line(sku="tea")]))}

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    shown = paused.pending.arguments["basket"].id
    done = runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (done.status, done.state.value) == ("completed", shown), "what was shown is what runs"
    assert tools.ran == [f"order {shown}"]


def test_a_replayed_call_touches_no_guard_no_ledger_and_no_listener(
    approvals: Desk, tools: Tools
) -> None:
    guarded: list[str] = []
    booked: list[str] = []
    events: list = []

    class Ledger:
        def record(self, tool: Tool, result: ToolResult, seconds: float) -> None:
            booked.append(tool.name)

    runner = runner_on(
        approvals.port,
        guards=[lambda call: guarded.append(call.tool.name)],
        ledger=Ledger(),
        events=events,
    )

    async def work(state, ctx):
        await ctx.call(tools.look, at="shelf")
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    assert (guarded, booked) == (["look"], ["look"])
    assert {event.tool for event in events if event.kind.startswith("call.")} == {"look"}
    for noted in (guarded, booked, events):
        noted.clear()
    runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert (guarded, booked) == (["pay"], ["pay"])
    assert [event.kind for event in events if event.tool == "look"] == []


class Refused(AdapterError):
    """A failure with attributes that its ``__init__`` derives from other arguments."""

    def __init__(self, status: int, *, hints: tuple[str, ...]) -> None:
        super().__init__(f"the shop answered {status}")
        self.status = status
        self.hints = hints


def test_a_replayed_failure_is_raised_again_with_class_message_and_attributes(
    runner: Runner, tools: Tools
) -> None:
    @tool
    def ask_shop(at: str) -> str:
        tools.ran.append("ask_shop")
        raise Refused(503, hints=("later", "elsewhere"))

    caught: list[Refused] = []

    async def work(state, ctx):
        try:
            await ctx.call(ask_shop, at="shelf")
        except Refused as error:
            caught.append(error)
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    assert tools.ran == ["ask_shop", "pay 5"]
    first, second = caught
    assert type(second) is Refused
    assert str(second) == str(first) == "the shop answered 503"
    assert (second.status, second.hints) == (503, ("later", "elsewhere"))
    assert second.info == first.info


def test_a_replayed_failure_of_a_foreign_class_is_raised_as_the_node_saw_it_before(
    runner: Runner, tools: Tools
) -> None:
    @tool
    def divide(by: int) -> float:
        tools.ran.append("divide")
        return 1 / by

    caught: list[AdapterError] = []

    async def work(state, ctx):
        try:
            await ctx.call(divide, by=0)
        except AdapterError as error:
            caught.append(error)
        await ctx.call(tools.pay, amount=5)

    flow = one_node(work)
    paused = runner.run_sync(flow, State())
    runner.resume_sync(flow, reload(runner, flow, paused.checkpoint), yes())
    first, second = caught
    assert (type(second), str(second), second.info) == (type(first), str(first), first.info)
    assert tools.ran == ["divide", "pay 5"]
