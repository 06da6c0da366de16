"""A few small flows for tests of runs and approvals, found by the registry while a test runs.

    @pytest.fixture(autouse=True)
    def flows_of_the_test(monkeypatch):
        flows.install(monkeypatch)

What the tools do is only noted: ``effects`` lists it in order. A test that needs something to
happen inside a tool puts a function into ``during`` under the tool's first argument.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator

from runs import registry
from runs.engine import (
    END,
    START,
    ApprovalDenied,
    Call,
    Context,
    Flow,
    Gate,
    Human,
    Secret,
    tool,
)

PASSWORD = "plover-Xyzzy-77"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
CARD = "4111 1111 1111 1111"
WITHOUT_BACKUP = "Make a backup first, or reject the change."

effects: list[str] = []
during: dict[str, Callable[[], object]] = {}


def install(monkeypatch: pytest.MonkeyPatch, *more: Flow) -> None:
    """Let the registry know these flows beside those of the installed apps; forget effects."""
    effects.clear()
    during.clear()
    known = {name: dict(versions) for name, versions in registry._registered().items()}
    for flow in (*ALL, *more):
        flow.check()
        known.setdefault(flow.name, {})[flow.version] = flow
    monkeypatch.setattr(registry, "_found", known)


def _note(step: str) -> str:
    effects.append(step)
    if step in during:
        during[step]()
    return step


@tool
def act(step: str) -> str:
    """Something that needs nobody's yes."""
    return _note(step)


@tool(confirm=True, summary="Do {step}")
def ask(step: str) -> str:
    """Something that a person must allow."""
    return _note(step)


@tool(confirm=True, risk=lambda step: "very high, " * 10)
def risky(step: str) -> str:
    """Something whose risk is told at length."""
    return _note(step)


class Steps(BaseModel):
    done: list[str] = []
    refused: str = ""
    left: str = ""
    right: str = ""
    note: str = ""


# ---- one: a call before, a call that is asked for, a call after; a refusal is noted --------------


def prepare(state: Steps, ctx: Context) -> dict[str, Any]:
    return {"done": [ctx.call_sync(act, step="prepare")]}


def pay(state: Steps, ctx: Context) -> dict[str, Any]:
    before = ctx.call_sync(act, step="look up")
    try:
        return {"done": [*state.done, before, ctx.call_sync(ask, step="pay")]}
    except ApprovalDenied as refusal:
        return {"refused": refusal.decision.reason or ""}


def tidy(state: Steps, ctx: Context) -> dict[str, Any]:
    return {"done": [*state.done, ctx.call_sync(act, step="tidy")]}


one = Flow("one", state=Steps, description="Pay something, once a reviewer has said yes.")
one.node("prepare", prepare)
one.node("pay", pay)
one.node("tidy", tidy)
one.edge(START, "prepare")
one.edge("prepare", "pay")
one.edge("pay", "tidy")
one.edge("tidy", END)


# ---- small: nothing but one call that is asked for ----------------------------------------------


class Empty(BaseModel):
    pass


small = Flow("small", state=Empty)
small.node("pay", Call(ask, args={"step": "pay"}))
small.edge(START, "pay")
small.edge("pay", END)


# ---- pair: two calls side by side, met again ----------------------------------------------------

pair = Flow("pair", state=Steps)
pair.node("left", Call(ask, args={"step": "left"}, into="left"))
pair.node("right", Call(ask, args={"step": "right"}, into="right"))
pair.node("tidy", tidy)
pair.edge(START, "left")
pair.edge(START, "right")
pair.edge(["left", "right"], "tidy")
pair.edge("tidy", END)


# ---- both: one function that asks for two calls at once -----------------------------------------


async def both_at_once(state: Steps, ctx: Context) -> dict[str, Any]:
    left, right = await asyncio.gather(ctx.call(ask, step="left"), ctx.call(ask, step="right"))
    return {"left": left, "right": right}


both = Flow("both", state=Steps)
both.node("both", both_at_once)
both.edge(START, "both")
both.edge("both", END)


# ---- question and gate: forms -------------------------------------------------------------------


class Answer(BaseModel):
    ticket: str = Field(min_length=3, max_length=40)
    backup: bool = Field(False, validate_default=True)

    @field_validator("backup")
    @classmethod
    def _needs_backup(cls, backup: bool) -> bool:
        if not backup:
            raise ValueError(WITHOUT_BACKUP)
        return backup


class Change(BaseModel):
    statement: str = "DELETE"
    answer: Answer | None = None
    ticket: str = ""


question = Flow("question", state=Change)
question.node("question", Human("Run {statement}?", form=Answer, into="answer"))
question.edge(START, "question")
question.edge("question", END, port="approved")
question.edge("question", END, port="rejected")


def change(state: Change, ctx: Context) -> dict[str, Any]:
    ctx.call_sync(act, step="change")
    return {"ticket": ctx.answer.ticket}


def statement(state: Change) -> dict[str, Any]:
    return {"statement": state.statement}


gate = Flow("gate", state=Change)
gate.node("change", change, gate=Gate(payload=statement, form=Answer, risk="high"))
gate.edge(START, "change")
gate.edge("change", END)


# ---- bounds: a form whose schema holds numbers that databases spell in their own way -------------

BOUNDS = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "minimum": -0.0, "maximum": 1e16, "multipleOf": 1e-7},
        "zebra": {"type": "number", "maximum": 100.0},
        "ant": {"type": "number", "exclusiveMaximum": 1.5e300},
    },
    "required": ["amount"],
}

bounds = Flow("bounds", state=Change)
bounds.node("question", Human("Run {statement}?", form=BOUNDS))
bounds.edge(START, "question")
bounds.edge("question", END, port="approved")
bounds.edge("question", END, port="rejected")


# ---- broken, unkind and long-winded -------------------------------------------------------------


def fails(state: Steps, ctx: Context) -> dict[str, Any]:
    raise RuntimeError(f"the server refused {TOKEN} and the card {CARD}")


broken = Flow("broken", state=Steps)
broken.node("fails", fails)
broken.edge(START, "fails")
broken.edge("fails", END)

HOSTILE = "nul \0, half a pair \ud800, right to left \u202e, " + "x" * 30_000


@tool(summary="{text}", confirm=True)
def echo(text: str) -> str:
    """Give the text back."""
    return text


@tool
def choke(text: str) -> str:
    """Fail with the text."""
    raise RuntimeError(text)


def repeat(state: Steps, ctx: Context) -> dict[str, Any]:
    try:
        ctx.call_sync(choke, text=HOSTILE)
    except Exception:
        return {"note": ctx.call_sync(echo, text=HOSTILE)}
    return {}


hostile = Flow("hostile", state=Steps)
hostile.node("repeat", repeat)
hostile.edge(START, "repeat")
hostile.edge("repeat", END)


# ---- secrets: everywhere that a value can stand -------------------------------------------------


class Vault(BaseModel):
    password: SecretStr
    found: Annotated[str, Secret()] = ""
    told: str = ""


class Login(BaseModel):
    user: str
    password: str


class KeyForm(BaseModel):
    pin: SecretStr


@tool(confirm=True, summary="Log in with {password}, then {note}")
def log_in(password: SecretStr, note: str, header: dict[str, str]) -> Login:
    """Give the log-in back as it is."""
    return Login(user="robot", password=password.get_secret_value())


@tool
def refuse(password: SecretStr) -> None:
    """Fail, and tell a token."""
    raise RuntimeError(f"no entry with the token {TOKEN}")


def open_vault(state: Vault, ctx: Context) -> dict[str, Any]:
    login = ctx.call_sync(
        log_in,
        password=state.password,
        note=f"use {TOKEN}",
        header={"Authorization": f"Basic {PASSWORD}"},
    )
    try:
        ctx.call_sync(refuse, password=state.password)
    except Exception as error:
        return {"found": login.password, "told": str(error)}
    return {}


vault = Flow("vault", state=Vault)
vault.node("open", open_vault, gate=Gate(form=KeyForm))
vault.edge(START, "open")
vault.edge("open", END)

ALL = (one, small, pair, both, question, gate, bounds, broken, hostile, vault)
