"""What leaves the process in pickles, copies and dicts, and what comes back from them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from runs.engine import (
    ApprovalAlreadyDecided,
    ApprovalDecision,
    ApprovalPending,
    ApprovalRequest,
    Call,
    ToolResult,
)

from .flows import paying, spent
from .support import Desk, State, StorelessPort, Tools, one_node, runner_on, yes


def test_a_tool_result_as_a_dict_drops_the_arguments() -> None:
    result = ToolResult("pay", "call-1", arguments={"iban": "DE02 1234"}, value="paid")
    told = result.to_dict()
    assert "DE02 1234" not in repr(told)
    assert (told["tool"], told["call_id"], told["value"]) == ("pay", "call-1", "paid")
    assert not told.get("arguments")


def test_a_pickled_pending_drops_the_arguments() -> None:
    flow = paying()
    pending = runner_on(StorelessPort()).run_sync(flow, State(amount=98765)).pending
    assert pending.arguments["amount"] == 98765
    data = pickle.dumps(ApprovalPending(pending))
    assert b"98765" not in pickle.dumps(ApprovalPending(pending), protocol=0)
    again = pickle.loads(data)  # noqa: S301  our own
    assert isinstance(again, ApprovalPending)
    assert (again.request.id, again.request.tool) == (pending.id, pending.tool)
    assert not again.request.arguments


def test_a_pending_rebuilt_from_a_pickle_asks_the_port_again(tools: Tools) -> None:
    class Remote(StorelessPort):
        """Raises what came back from another process."""

        async def request(self, request: ApprovalRequest) -> ApprovalDecision:
            self.asked.append(request)
            raise pickle.loads(pickle.dumps(ApprovalPending(request)))  # noqa: S301

    port = Remote()
    runner = runner_on(port)
    flow = one_node(Call(tools.pay, args={"amount": 5}))
    paused = runner.run_sync(flow, State())
    again = runner.resume_sync(flow, paused.checkpoint, yes())
    assert (again.status, len(port.asked), tools.ran) == ("paused", 2, [])


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_a_pending_result_pickles_and_deep_copies(approvals: Desk, how: str) -> None:
    spent.clear()
    runner = runner_on(approvals.port)
    flow = paying()
    paused = runner.run_sync(flow, State(amount=5))
    twin = copied(paused, how)
    assert (twin.status, twin.pending.id) == ("paused", paused.pending.id)
    assert twin.state == paused.state
    done = runner.resume_sync(flow, twin.checkpoint, yes())
    assert (done.status, spent) == ("completed", ["look", "pay 5"])


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
def test_the_ports_store_stays_in_the_process(approvals: Desk, how: str) -> None:
    spent.clear()
    runner = runner_on(approvals.port)
    flow = paying()
    paused = runner.run_sync(flow, State(amount=5))
    twin = copied(paused, how)
    assert approvals.pending() == [paused.pending.id]
    runner.resume_sync(flow, twin.checkpoint, yes())
    assert approvals.pending() == [], "the copy is settled with the one store"
    with pytest.raises(ApprovalAlreadyDecided):
        runner.resume_sync(flow, paused.checkpoint, yes())
    assert spent == ["look", "pay 5"]


def copied(result: Any, how: str) -> Any:
    if how == "deepcopy":
        return copy.deepcopy(result)
    return pickle.loads(pickle.dumps(result))  # noqa: S301  our own
