"""The ledger of paid claims."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from flowsite.demo.ledger import AlreadyPaid, Receipt, pay, payments


def pay_one(path: Path, *, run: str = "run-1", claim: str = "C-1") -> Receipt:
    return pay(
        path,
        run=run,
        claim=claim,
        payee="Köhler & Søn",
        account="XX00DEMO1234",
        amount=Decimal("1240.10"),
        currency="EUR",
    )


def test_a_payment_is_in_the_ledger_as_its_receipt_says(tmp_path):
    before = datetime.now(UTC)
    receipt = pay_one(tmp_path / "new" / "ledger.sqlite3")
    assert payments(tmp_path / "new" / "ledger.sqlite3") == [receipt]
    assert receipt.amount == Decimal("1240.10")
    assert before <= receipt.paid_at <= datetime.now(UTC)


def test_the_ledger_keeps_the_account_and_the_exact_amount(tmp_path):
    pay_one(tmp_path / "ledger.sqlite3")
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as connection:
        row = connection.execute("SELECT account, amount FROM payments").fetchone()
    assert row == ("XX00DEMO1234", "1240.10")


def test_a_run_pays_a_claim_once(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    receipt = pay_one(path)
    with pytest.raises(AlreadyPaid, match="C-1 was paid by this run before"):
        pay_one(path)
    assert payments(path) == [receipt]


def test_of_many_payments_at_once_one_goes_through(tmp_path):
    path = tmp_path / "ledger.sqlite3"

    def attempt(_: int) -> bool:
        try:
            pay_one(path)
        except AlreadyPaid:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(16))) == 1
    assert len(payments(path)) == 1


def test_payments_can_be_listed_by_run(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    first, second = pay_one(path, run="run-1"), pay_one(path, run="run-2")
    assert payments(path) == [first, second]
    assert payments(path, run="run-2") == [second]
