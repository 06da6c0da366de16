"""The ledger: a SQLite file with one row for every claim that was paid."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel

from flowsite.demo.claims import ClaimsError

# Amounts are text, so that they stay exact. A run pays a claim once, whatever calls the ledger.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS payments (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    claim TEXT NOT NULL,
    payee TEXT NOT NULL,
    account TEXT NOT NULL,
    amount TEXT NOT NULL,
    currency TEXT NOT NULL,
    paid_at TEXT NOT NULL,
    UNIQUE (run, claim)
)
"""


class AlreadyPaid(ClaimsError):
    """This run has paid this claim before."""


class Receipt(BaseModel):
    """A payment as it stands in the ledger. `paid_at` is in UTC."""

    payment: int
    run: str
    claim: str
    payee: str
    amount: Decimal
    currency: str
    paid_at: datetime


def pay(
    path: Path, *, run: str, claim: str, payee: str, account: str, amount: Decimal, currency: str
) -> Receipt:
    """Write one payment to the ledger at `path`, in one transaction, and return its receipt.

    The file is made when it is missing. A second payment of a claim by the same run is refused
    by the table itself, and raises `AlreadyPaid`.
    """
    paid_at = datetime.now(UTC)
    values = (run, claim, payee, account, str(amount), currency, paid_at.isoformat())
    try:
        with _ledger(path) as connection, connection:
            cursor = connection.execute(
                "INSERT INTO payments (run, claim, payee, account, amount, currency, paid_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                values,
            )
    except sqlite3.IntegrityError as error:
        raise AlreadyPaid(
            f"Claim {claim} was paid by this run before; it was not paid again."
        ) from error
    assert cursor.lastrowid is not None  # noqa: S101 - an INSERT that went through has one
    return Receipt(
        payment=cursor.lastrowid,
        run=run,
        claim=claim,
        payee=payee,
        amount=amount,
        currency=currency,
        paid_at=paid_at,
    )


def payments(path: Path, *, run: str | None = None) -> list[Receipt]:
    """The payments in the ledger, oldest first; only those of `run` where one is given."""
    with _ledger(path) as connection:
        rows = connection.execute(
            "SELECT id AS payment, run, claim, payee, amount, currency, paid_at FROM payments"
            " WHERE ?1 IS NULL OR run = ?1 ORDER BY id",
            (run,),
        )
        return [Receipt.model_validate(dict(row)) for row in rows]


@contextmanager
def _ledger(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute(_SCHEMA)
        yield connection
