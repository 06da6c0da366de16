"""The demo's two flows: paying expense claims, and changing a customer database by SQL."""

from collections import Counter
from decimal import Decimal
from typing import Annotated, Any

from django.utils import timezone
from pydantic import BaseModel, Field, field_validator

from flowsite.demo import claims, ledger, places, sql_change
from runs.engine import END, START, ApprovalDenied, Context, Flow, Gate, Secret, tool

# ---- expenses -----------------------------------------------------------------------------------

HIGH_RISK_EUROS = Decimal(5000)

_BY_THE_RUN: dict[str, Any] = {"readOnly": True}
"""Marks a state field that the run fills in, so that nobody is asked for it at the start."""


class Refusal(BaseModel):
    """A claim that a reviewer said no to."""

    claim: str
    payee: str
    amount: Decimal
    currency: str
    reason: str


class ExpensesState(BaseModel):
    """Which claims to pay, and how far the run has come with them."""

    file: str = Field("claims.csv", description="A CSV file in the demo's data folder.")
    limit: Decimal = Field(
        Decimal(500), ge=0, description="In euros. Paying a claim over it needs a reviewer's yes."
    )
    claim: str | None = Field(
        None, description="The number of the only claim to pay; empty for the whole file."
    )

    lines: int = Field(0, json_schema_extra=_BY_THE_RUN)
    findings: list[claims.Finding] = Field([], json_schema_extra=_BY_THE_RUN)
    within_limit: list[claims.Claim] = Field([], json_schema_extra=_BY_THE_RUN)
    over_limit: list[claims.Claim] = Field([], json_schema_extra=_BY_THE_RUN)
    paid: int = Field(0, json_schema_extra=_BY_THE_RUN)
    paid_total: dict[str, Decimal] = Field({}, json_schema_extra=_BY_THE_RUN)
    refused: list[Refusal] = Field([], json_schema_extra=_BY_THE_RUN)
    report: str = Field("", json_schema_extra=_BY_THE_RUN)


@tool
def read_claims(file: str, claim: str | None = None) -> claims.ClaimsFile:
    """Read and check the claims in a CSV file; only one of them where its number is given."""
    today = timezone.localdate()
    found = claims.read_claims(places.CLAIMS_FOLDER, file, today=today)
    return found if claim is None else claims.only(found, claim)


def over_limit(*, amount: Decimal, currency: str, limit: Decimal, **_: Any) -> bool:
    """Whether a payment needs a person's yes."""
    return claims.in_euros(amount, currency) > limit


def payment_risk(*, amount: Decimal, currency: str, **_: Any) -> str | None:
    """High for a payment that would hurt."""
    return "high" if claims.in_euros(amount, currency) > HIGH_RISK_EUROS else None


@tool(
    confirm=over_limit,
    risk=payment_risk,
    summary="Pay {amount:,.2f} {currency} to {payee} for claim {claim}",
)
def pay_claim(
    claim: str,
    payee: str,
    account: Annotated[str, Secret(keep_last=4)],
    amount: Annotated[Decimal, Field(gt=0)],
    currency: str,
    limit: Decimal,
    run: str,
) -> ledger.Receipt:
    """Write the payment of one claim to the ledger, once in a run.

    A claim over `limit` (in euros) needs a reviewer's yes first.
    """
    return ledger.pay(
        places.ledger_path(),
        run=run,
        claim=claim,
        payee=payee,
        account=account,
        amount=amount,
        currency=currency,
    )


def _payment(claim: claims.Claim, state: ExpensesState, ctx: Context) -> dict[str, Any]:
    fields = claim.model_dump(include={"claim", "payee", "account", "amount", "currency"})
    return {**fields, "limit": state.limit, "run": str(ctx.run_id)}


def _plus(total: dict[str, Decimal], claim: claims.Claim) -> dict[str, Decimal]:
    return {**total, claim.currency: total.get(claim.currency, Decimal(0)) + claim.amount}


def read(state: ExpensesState, ctx: Context) -> dict[str, Any]:
    """Read the file and part the claims into those that need a yes and those that do not."""
    found = ctx.call_sync(read_claims, file=state.file, claim=state.claim or None)
    asking = [c for c in found.claims if claims.in_euros(c.amount, c.currency) > state.limit]
    return {
        "lines": found.lines,
        "findings": found.findings,
        "within_limit": [c for c in found.claims if c not in asking],
        "over_limit": asking,
        "paid": 0,
        "paid_total": {},
        "refused": [],
    }


def pay_within_limit(state: ExpensesState, ctx: Context) -> dict[str, Any]:
    """Pay all that needs nobody's yes."""
    total = state.paid_total
    for claim in state.within_limit:
        ctx.call_sync(pay_claim, **_payment(claim, state, ctx))
        total = _plus(total, claim)
    return {"paid": state.paid + len(state.within_limit), "paid_total": total, "within_limit": []}


def pay_over_limit(state: ExpensesState, ctx: Context) -> dict[str, Any]:
    """Pay the next claim over the limit, or note that it was refused; one claim a visit."""
    claim, *others = state.over_limit
    try:
        ctx.call_sync(pay_claim, **_payment(claim, state, ctx))
    except ApprovalDenied as denied:
        fields = claim.model_dump(include={"claim", "payee", "amount", "currency"})
        refusal = Refusal(**fields, reason=denied.decision.reason or "")
        return {"over_limit": others, "refused": [*state.refused, refusal]}
    total = _plus(state.paid_total, claim)
    return {"over_limit": others, "paid": state.paid + 1, "paid_total": total}


def next_claim(state: ExpensesState) -> str:
    """Whether a claim over the limit is left."""
    return "ask" if state.over_limit else "done"


def report(state: ExpensesState, ctx: Context) -> dict[str, Any]:
    """Say in a few lines what came of the claims."""
    total = ", ".join(f"{amount:,.2f} {code}" for code, amount in sorted(state.paid_total.items()))
    refused = ", ".join(refusal.claim for refusal in state.refused)
    codes = Counter(finding.code for finding in state.findings)
    found = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    return {
        "report": "\n".join(
            [
                f"Lines read: {state.lines}",
                f"Paid: {state.paid}" + (f" ({total})" if total else ""),
                f"Refused: {len(state.refused)}" + (f" ({refused})" if refused else ""),
                f"Findings: {len(state.findings)}" + (f" ({found})" if found else ""),
            ]
        )
    }


expenses = Flow(
    "expenses",
    state=ExpensesState,
    version="1",
    description="Pay the claims in a file; those over a limit once a reviewer has said yes.",
)
expenses.node("read", read)
expenses.node("pay_within_limit", pay_within_limit)
expenses.node("pay_over_limit", pay_over_limit)
expenses.node("report", report)
expenses.edge(START, "read")
expenses.edge("read", "pay_within_limit")
for _node in ("pay_within_limit", "pay_over_limit"):
    expenses.route(_node, next_claim, {"ask": "pay_over_limit", "done": "report"})
expenses.edge("report", END)


# ---- sql_change ---------------------------------------------------------------------------------


class ChangeForm(BaseModel):
    """What a reviewer vouches for."""

    ticket: str = Field(
        title="Ticket", min_length=3, max_length=40, description="Where the change was asked for."
    )
    backup: bool = Field(
        False,
        title="There is a backup of today",
        # Checked when it is left out too: that is how a form says no.
        validate_default=True,
    )

    @field_validator("backup")
    @classmethod
    def _needs_backup(cls, backup: bool) -> bool:
        if not backup:
            raise ValueError("Make a backup first, or reject the change.")
        return backup


class SqlChangeState(BaseModel):
    """The statement to run, and what is known about it."""

    statement: str = Field(
        "DELETE FROM customers WHERE last_seen < '2019-01-01'",
        max_length=sql_change.MAX_LENGTH,
        json_schema_extra={"widget": "multi-line"},
        description="One INSERT, UPDATE or DELETE on the tables customers and orders.",
    )
    max_rows: int = Field(
        1000, ge=1, description="A statement that touches more rows is not put before a reviewer."
    )

    rows: int = Field(0, json_schema_extra=_BY_THE_RUN)
    cascaded: int = Field(0, json_schema_extra=_BY_THE_RUN)
    receipt: sql_change.ChangeReceipt | None = Field(None, json_schema_extra=_BY_THE_RUN)
    report: str = Field("", json_schema_extra=_BY_THE_RUN)


@tool
def count_rows(statement: str) -> sql_change.DryRun:
    """Count the rows that a statement would touch, in a transaction that is rolled back."""
    return sql_change.dry_run(places.customers_path(), statement)


@tool
def change_rows(
    statement: str, expected_rows: int, ticket: str, run: str
) -> sql_change.ChangeReceipt:
    """Run the statement in one transaction, if it touches the number of rows that was approved."""
    return sql_change.run_change(
        places.customers_path(), statement, expected_rows=expected_rows, run=run, ticket=ticket
    )


def dry_run(state: SqlChangeState, ctx: Context) -> dict[str, Any]:
    """Find out what the statement would do."""
    found = ctx.call_sync(count_rows, statement=state.statement)
    if found.rows > state.max_rows:
        raise sql_change.SqlChangeError(
            f"The statement would touch {found.rows:,} rows, more than the {state.max_rows:,} "
            "that this run allows. Narrow it, or start a run with a larger max_rows."
        )
    outcome = "" if found.rows else "The statement touches no rows. It was not run."
    return {"rows": found.rows, "cascaded": found.cascaded, "report": outcome}


def any_rows(state: SqlChangeState) -> str:
    """Whether there is anything to ask about."""
    return "some" if state.rows else "none"


def shown(state: SqlChangeState) -> dict[str, Any]:
    """What the reviewer sees: the statement and all that the dry run found."""
    return {"statement": state.statement, "rows": state.rows, "cascaded": state.cascaded}


def change(state: SqlChangeState, ctx: Context) -> dict[str, Any]:
    """Do what was approved."""
    receipt = ctx.call_sync(
        change_rows,
        statement=state.statement,
        expected_rows=state.rows,
        ticket=ctx.answer.ticket,
        run=str(ctx.run_id),
    )
    return {
        "receipt": receipt,
        "report": f"Changed {receipt.rows:,} rows for ticket {receipt.ticket}.",
    }


def kept(state: SqlChangeState, ctx: Context) -> dict[str, Any]:
    """Say that nothing was done."""
    return {"report": "The change was rejected. The statement was not run."}


sql_change_flow = Flow(
    "sql_change",
    state=SqlChangeState,
    version="1",
    description="Change the customer database by SQL, once a reviewer has seen what it would do.",
)
sql_change_flow.node("dry_run", dry_run)
sql_change_flow.node(
    "change",
    change,
    gate=Gate(
        payload=shown,
        form=ChangeForm,
        message="Change {rows:,} rows of the customer database",
        risk="high",
    ),
)
sql_change_flow.node("kept", kept)
sql_change_flow.edge(START, "dry_run")
sql_change_flow.route("dry_run", any_rows, {"some": "change", "none": END})
sql_change_flow.edge("change", END)
sql_change_flow.edge("change", "kept", port="rejected")
sql_change_flow.edge("kept", END)
