"""Counting what a SQL statement would touch, and running it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flowsite.demo import sql_change
from flowsite.demo.customers import CUSTOMERS, open_customers
from flowsite.demo.sql_change import (
    DryRun,
    RowsChanged,
    SqlChangeError,
    StatementRefused,
    dry_run,
    run_change,
)

OLD = "DELETE FROM customers WHERE last_seen < '2019-01-01'"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "demo" / "customers.sqlite3"


def value(path: Path, query: str):
    with open_customers(path) as connection:
        return connection.execute(query).fetchone()[0]


def content(path: Path) -> list[str]:
    with open_customers(path) as connection:
        return list(connection.iterdump())


def change(path: Path, statement: str, expected_rows: int, run: str = "run-1"):
    return run_change(path, statement, expected_rows=expected_rows, run=run, ticket="OPS-12")


def test_the_database_is_made_with_customers_and_orders(path):
    assert value(path, "SELECT count(*) FROM customers") == CUSTOMERS == 5_000
    assert value(path, "SELECT count(*) FROM orders") > CUSTOMERS
    assert value(path, "SELECT count(*) FROM customers WHERE last_seen < '2019-01-01'") > 0


def test_the_database_is_the_same_wherever_it_is_made(path, tmp_path):
    assert content(path) == content(tmp_path / "other.sqlite3")


def test_a_database_that_is_there_is_kept(path):
    change(path, "DELETE FROM orders", value(path, "SELECT count(*) FROM orders"))
    assert value(path, "SELECT count(*) FROM orders") == 0


def test_a_dry_run_counts_the_rows_and_those_that_go_with_them(path):
    customers = value(path, "SELECT count(*) FROM customers WHERE last_seen < '2019-01-01'")
    orders = value(
        path,
        "SELECT count(*) FROM orders JOIN customers ON customers.id = customer_id"
        " WHERE last_seen < '2019-01-01'",
    )
    assert dry_run(path, OLD) == DryRun(rows=customers + orders, cascaded=orders)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("UPDATE customers SET city = 'Porto' WHERE id <= 10", 10),
        ("update customers set city = 'Porto' where id <= 10;", 10),
        ("INSERT INTO orders (customer_id, ordered_on, total) VALUES (1, '2025-01-01', '5')", 1),
        ("-- why\n/* and; how */ UPDATE customers SET name = '; DROP' WHERE id = 3", 1),
        ("WITH some AS (SELECT 7 AS id) UPDATE customers SET city = '' "
         "WHERE id IN (SELECT id FROM some)", 1),
        ("DELETE FROM customers WHERE id < 0", 0),
    ],
)  # fmt: skip
def test_a_dry_run_counts_every_kind_of_change(path, statement, rows):
    assert dry_run(path, statement) == DryRun(rows=rows, cascaded=0)


def test_a_dry_run_leaves_the_database_as_it_was(path):
    before, file = content(path), path.read_bytes()
    dry_run(path, "UPDATE customers SET name = upper(name)")
    dry_run(path, OLD)
    assert content(path) == before
    assert path.read_bytes() == file


def test_an_approved_change_is_made_and_noted(path):
    rows = dry_run(path, OLD).rows
    receipt = change(path, OLD, rows)
    assert (receipt.rows, receipt.run, receipt.ticket) == (rows, "run-1", "OPS-12")
    assert value(path, "SELECT count(*) FROM customers WHERE last_seen < '2019-01-01'") == 0
    noted = value(
        path, "SELECT run || ' ' || ticket || ' ' || rows || ' ' || statement FROM changes"
    )
    assert noted == f"run-1 OPS-12 {rows} {OLD}"


def test_a_change_that_touches_another_number_of_rows_is_undone(path):
    rows = dry_run(path, OLD).rows
    change(path, "UPDATE customers SET last_seen = '2018-01-01' WHERE id = "
           "(SELECT max(id) FROM customers WHERE last_seen > '2024-01-01')", 1)  # fmt: skip
    before = content(path)
    with pytest.raises(RowsChanged, match=f"; {rows:,} were approved. Nothing was changed"):
        change(path, OLD, rows, run="run-2")
    assert content(path) == before


def test_a_run_makes_its_change_once(path):
    statement = "INSERT INTO orders (customer_id, ordered_on, total) VALUES (1, '2025-01-01', '5')"
    change(path, statement, 1)
    before = content(path)
    with pytest.raises(SqlChangeError, match="made its change before"):
        change(path, statement, 1)
    assert content(path) == before


REFUSED = [
    ("", "this holds no statement"),
    ("-- only a comment", "this holds no statement"),
    ("SELECT 1", "this begins with SELECT"),
    ("DROP TABLE customers", "this begins with DROP"),
    ("CREATE TABLE more (id)", "this begins with CREATE"),
    ("ALTER TABLE customers ADD more", "this begins with ALTER"),
    ("ATTACH 'other.sqlite3' AS other", "this begins with ATTACH"),
    ("PRAGMA foreign_keys = 0", "this begins with PRAGMA"),
    ("VACUUM", "this begins with VACUUM"),
    ("/**/COMMIT", "this begins with COMMIT"),
    ("EXPLAIN DELETE FROM customers", "this begins with EXPLAIN"),
    ("WITH some AS (SELECT 1) SELECT * FROM some", "returns rows"),
    ("DELETE FROM orders RETURNING id", "returns rows"),
    ("DELETE FROM orders; DELETE FROM customers", "more than one statement"),
    ("DELETE FROM orders; COMMIT", "more than one statement"),
    ("DELETE FROM changes", "the table changes is out of reach"),
    ("DELETE FROM orders WHERE id IN (SELECT id FROM changes)", "changes is out of reach"),
    ("DELETE FROM orders WHERE (SELECT sql FROM sqlite_master) > ''", "sqlite_master is out of"),
    ("DELETE FROM orders WHERE id IN (SELECT cid FROM pragma_table_info('orders'))", "refused"),
    ("INSERT OR REPLACE INTO customers VALUES (1, '', '', '')", "REPLACE hides"),
    ("UPDATE/**/OR/**/REPLACE customers SET id = 2 WHERE id = 1", "REPLACE hides"),
    ("WITH c AS (SELECT 1) REPLACE INTO customers SELECT * FROM customers", "REPLACE hides"),
    ("DELETE FROM orders WHERE note = 'password=' OR note = 'x'", "looks like a secret"),
    ("DELETE FROM orders /*-----BEGIN PRIVATE KEY-----*/ WHERE id = 1", "looks like a secret"),
    ("DELETE FROM orders WHERE note = 'a\u202eb'", "an invisible character"),
    ("INSERT OR ROLLBACK INTO customers VALUES (1, '', '', '')", "UNIQUE constraint failed"),
    ("DELETE FROM orders WHERE random() > 0", r"random\(\) can't be run here"),
    ("UPDATE customers SET city = hex(zeroblob(9))", r"zeroblob\(\) can't be run here"),
    ("DELETE FROM nowhere", "no such table: nowhere"),
    ("DELETE FROM orders WHERE id = ?", "Incorrect number of bindings"),
    ("DELETE FROM orders WHERE note = 'a\0b'", "a character that no text has"),
    ("DELETE FROM orders WHERE note = '\ud800'", "a character that no text has"),
    ("DELETE FROM orders --" + "x" * 10_000, "longer than 10,000 characters"),
]


@pytest.mark.parametrize(("statement", "why"), REFUSED)
def test_anything_but_one_plain_change_is_refused(path, statement, why):
    before = content(path)
    with pytest.raises(StatementRefused, match=why):
        dry_run(path, statement)
    with pytest.raises(StatementRefused, match=why):
        change(path, statement, 1)
    assert content(path) == before


def test_the_authorizer_refuses_what_the_first_word_would_not(path, monkeypatch):
    monkeypatch.setattr(sql_change, "check_statement", lambda statement: None)
    other = path.parent / "other.sqlite3"
    for statement in (
        "PRAGMA user_version = 7",
        f"ATTACH '{other}' AS other",
        "DROP TABLE orders",
        "CREATE TRIGGER t AFTER DELETE ON orders BEGIN SELECT 1; END",
        "COMMIT",
    ):
        with pytest.raises(StatementRefused, match="The statement is refused"):
            dry_run(path, statement)
    assert not other.exists()


def test_the_name_of_a_function_may_be_replace(path):
    statement = "UPDATE customers SET name = name WHERE id = 1 OR replace(city, 'x', '') = '?'"
    assert dry_run(path, statement).rows == 1


def test_a_statement_that_takes_too_long_is_stopped(path, monkeypatch):
    monkeypatch.setattr(sql_change, "MAX_SECONDS", 0.05)
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "DELETE FROM orders WHERE id IN (SELECT i FROM n WHERE i < 0)"
    )
    with pytest.raises(StatementRefused, match="was stopped"):
        dry_run(path, endless)


def test_no_transaction_is_left_open_behind_a_refusal(path):
    with pytest.raises(StatementRefused):
        dry_run(path, "DELETE FROM orders RETURNING id")
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("DELETE FROM orders")
