"""The customer database that `sql_change` works on: companies and their orders, made up here."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path

CUSTOMERS = 5_000

_SCHEMA = (
    """
    CREATE TABLE customers (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        city TEXT NOT NULL,
        last_seen TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY,
        customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
        ordered_on TEXT NOT NULL,
        total TEXT NOT NULL
    )
    """,
    "CREATE INDEX orders_customer ON orders (customer_id)",
    # One row for every approved change that went through, written in the change's transaction.
    """
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE,
        ticket TEXT NOT NULL,
        statement TEXT NOT NULL,
        rows INTEGER NOT NULL,
        changed_at TEXT NOT NULL
    )
    """,
)

_TRADES = ("Bakery", "Clinic", "Foundry", "Garage", "Hotel", "Print", "Shipping", "Textiles")
_FORMS = ("A/S", "GmbH", "Ltd.", "Lda.", "Oy", "S.A.", "s.r.o.", "Sp. z o.o.")
_CITIES = ("Brno", "Cádiz", "Århus", "Gdańsk", "Köln", "Porto", "Tampere", "Zürich")
_NEWEST = date(2025, 6, 30)


@contextmanager
def open_customers(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database at `path`, which is made and filled when it is missing.

    The connection begins no transaction by itself, enforces foreign keys, and is closed at the
    end; a transaction still open then is rolled back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        _fill(connection)
        yield connection


def _fill(connection: sqlite3.Connection) -> None:
    """Make the tables and rows in one transaction, unless they are there."""
    made = "SELECT count(*) FROM sqlite_master WHERE name = 'customers'"
    if connection.execute(made).fetchone()[0]:
        return
    connection.execute("BEGIN EXCLUSIVE")
    # Looked at again under the lock: another process may have been faster.
    if not connection.execute(made).fetchone()[0]:
        for statement in _SCHEMA:
            connection.execute(statement)
        # Seeded, so that every copy of the demo shows the same numbers; nothing here is secret.
        chance = random.Random(5_000)  # noqa: S311
        for customer in range(1, CUSTOMERS + 1):
            # The power puts most customers close to the newest day and a few far back.
            seen = _NEWEST - timedelta(days=int(3_650 * chance.random() ** 6))
            city, trade = chance.choice(_CITIES), chance.choice(_TRADES)
            name = f"{city} {trade} {customer} {chance.choice(_FORMS)}"
            connection.execute(
                "INSERT INTO customers VALUES (?, ?, ?, ?)",
                (customer, name, city, seen.isoformat()),
            )
            for order in range(chance.randrange(4)):
                ordered = seen - timedelta(days=30 * order)
                total = f"{chance.randrange(1_000, 500_000) / 100:.2f}"
                connection.execute(
                    "INSERT INTO orders (customer_id, ordered_on, total) VALUES (?, ?, ?)",
                    (customer, ordered.isoformat(), total),
                )
    connection.execute("COMMIT")
