"""Flows at module level, which another process can import."""

from __future__ import annotations

from runs.engine import Call, Flow, tool

from .support import State, one_node

spent: list[str] = []


@tool
def look() -> str:
    spent.append("look")
    return "seen"


@tool(confirm=True)
def pay(amount: int) -> str:
    spent.append(f"pay {amount}")
    return f"paid {amount}"


async def look_and_pay(state: State, ctx):
    seen = await ctx.call(look)
    paid = await ctx.call(pay, amount=state.amount)
    return {"results": [seen, paid]}


def paying() -> Flow:
    """Looks, and pays ``amount`` once somebody has said yes; ``spent`` notes both."""
    return one_node(look_and_pay)


def only_paying() -> Flow:
    """A Call node that pays ``amount``."""
    return one_node(Call(pay, select=lambda state: {"amount": state.amount}, into="value"))
