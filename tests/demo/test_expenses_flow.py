"""The flow `expenses`, run in memory."""

from decimal import Decimal
from pathlib import Path

import pytest

from flowsite.demo import ledger, places
from flowsite.demo.flows import ExpensesState, expenses, pay_claim
from runs.engine import ApprovalDecision, DeferredApproval, Executor, FlowError, FlowRunner

OVER_LIMIT = ["C-0023", "C-0078", "C-0131", "C-0187"]
WITHIN_LIMIT = ["C-0060", "C-0077"]


@pytest.fixture(autouse=True)
def var(tmp_path: Path, settings) -> None:
    settings.FLOWSITE_VAR = tmp_path


@pytest.fixture
def runner() -> FlowRunner:
    return FlowRunner(Executor(approvals=DeferredApproval()))


@pytest.fixture
def short_file(tmp_path: Path, monkeypatch) -> None:
    """Eight lines of the shipped file take its place, so that a run is over quickly."""
    wanted = ("C-0018", *WITHIN_LIMIT, *OVER_LIMIT)
    shipped = (places.CLAIMS_FOLDER / "claims.csv").read_text().splitlines(keepends=True)
    lines = [line for line in shipped if line.startswith(("claim,", *wanted))]
    (tmp_path / "claims.csv").write_text("".join(lines))
    monkeypatch.setattr(places, "CLAIMS_FOLDER", tmp_path)


def paid() -> list[str]:
    return [payment.claim for payment in ledger.payments(places.ledger_path())]


def decide(runner: FlowRunner, result, approve: bool):
    by = ApprovalDecision.approve if approve else ApprovalDecision.deny
    return runner.resume_sync(expenses, result.checkpoint, by("reviewer", reason="because"))


def test_all_claims_within_the_limit_are_paid_without_asking(runner):
    result = runner.run_sync(expenses, ExpensesState())
    assert result.status == "paused"
    assert len(set(paid())) == len(paid()) == 198
    assert not set(paid()) & set(OVER_LIMIT)


def test_a_claim_of_exactly_the_limit_is_paid_without_asking(runner):
    result = runner.run_sync(expenses, ExpensesState(claim="C-0060"))
    assert (result.status, paid()) == ("completed", ["C-0060"])


@pytest.mark.usefixtures("short_file")
def test_the_reviewer_is_asked_about_one_claim_after_the_other(runner):
    result = runner.run_sync(expenses, ExpensesState())
    asked: list[str] = []
    while result.status == "paused":
        assert paid() == WITHIN_LIMIT + asked
        asked.append(result.pending.arguments["claim"])
        result = decide(runner, result, approve=True)
    assert asked == OVER_LIMIT
    assert paid() == WITHIN_LIMIT + OVER_LIMIT


def test_the_request_says_what_will_be_paid_and_hides_the_account(runner):
    request = runner.run_sync(expenses, ExpensesState(claim="C-0023")).pending
    assert request.summary == "Pay 1,240.00 EUR to Köhler & Søn for claim C-0023"
    assert request.tool == "pay_claim"
    account = request.arguments["account"]
    assert account not in repr(request)
    assert account[-4:] in repr(request)


def test_a_payment_that_would_hurt_is_a_high_risk(runner):
    assert runner.run_sync(expenses, ExpensesState(claim="C-0187")).pending.risk == "high"
    assert runner.run_sync(expenses, ExpensesState(claim="C-0023")).pending.risk == ""


def test_a_foreign_amount_is_held_against_the_limit_in_euros(runner):
    # 18,400 CZK are 736 euros.
    assert runner.run_sync(expenses, ExpensesState(claim="C-0131")).status == "paused"
    higher = ExpensesState(claim="C-0131", limit=Decimal(736))
    assert runner.run_sync(expenses, higher).status == "completed"


@pytest.mark.usefixtures("short_file")
def test_a_refused_claim_leaves_nothing_in_the_ledger_and_the_run_goes_on(runner):
    result = runner.run_sync(expenses, ExpensesState())
    for approve in (True, False, True, False):
        result = decide(runner, result, approve)
    assert result.status == "completed"
    assert paid() == [*WITHIN_LIMIT, "C-0023", "C-0131"]
    refused = [(refusal.claim, refusal.reason) for refusal in result.state.refused]
    assert refused == [("C-0078", "because"), ("C-0187", "because")]


@pytest.mark.usefixtures("short_file")
def test_the_report_agrees_with_the_ledger(runner):
    result = runner.run_sync(expenses, ExpensesState())
    for approve in (True, False, True, True):
        result = decide(runner, result, approve)
    total: dict[str, Decimal] = {}
    for payment in ledger.payments(places.ledger_path()):
        total[payment.currency] = total.get(payment.currency, Decimal(0)) + payment.amount
    assert result.state.paid == 5
    assert result.state.paid_total == total
    assert result.state.report.splitlines() == [
        "Lines read: 8",
        "Paid: 5 (18,400.00 CZK, 7,965.47 EUR)",
        "Refused: 1 (C-0078)",
        "Findings: 2 (1 duplicate-claim, 1 missing-amount)",
    ]


def test_one_claim_can_be_paid_alone(runner):
    result = runner.run_sync(expenses, ExpensesState(claim="C-0023"))
    assert (result.status, paid()) == ("paused", [])
    result = decide(runner, result, approve=True)
    assert (result.status, paid()) == ("completed", ["C-0023"])


def test_one_claim_can_be_refused_alone(runner):
    result = runner.run_sync(expenses, ExpensesState(claim="C-0078"))
    result = decide(runner, result, approve=False)
    assert (result.status, paid()) == ("completed", [])
    assert result.state.report.splitlines()[1:3] == ["Paid: 0", "Refused: 1 (C-0078)"]


def test_a_claim_that_has_a_finding_is_reported_and_not_paid(runner):
    result = runner.run_sync(expenses, ExpensesState(claim="C-0018"))
    assert (result.status, paid()) == ("completed", [])
    assert "Findings: 1 (1 missing-amount)" in result.state.report


def test_each_run_pays_for_itself(runner):
    runner.run_sync(expenses, ExpensesState(claim="C-0060"))
    runner.run_sync(expenses, ExpensesState(claim="C-0060"))
    assert paid() == ["C-0060", "C-0060"]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"file": "../../etc/passwd"}, "from the demo's data folder only"),
        ({"file": "other.csv"}, "no file 'other.csv'"),
        ({"claim": "C-9999"}, "no claim 'C-9999'"),
    ],
)
def test_what_cannot_be_read_ends_the_run_with_the_reason(runner, state, message):
    with pytest.raises(FlowError) as failure:
        runner.run_sync(expenses, ExpensesState(**state))
    assert message in str(failure.value.__cause__)
    assert paid() == []


def test_what_the_run_fills_in_cannot_be_given_at_the_start(runner):
    forged = ExpensesState(claim="C-0060", paid=7, paid_total={"EUR": Decimal(9)})
    result = runner.run_sync(expenses, forged)
    assert (result.state.paid, result.state.paid_total) == (1, {"EUR": Decimal("500.00")})


def test_the_payment_itself_guards_the_limit():
    arguments = {
        "claim": "C-1",
        "payee": "Shop",
        "account": "XX1",
        "amount": Decimal("500.01"),
        "currency": "EUR",
        "limit": Decimal(500),
        "run": "run-1",
    }
    assert pay_claim.needs_confirmation(arguments)
    assert not pay_claim.needs_confirmation(arguments | {"amount": Decimal("500.00")})
