"""One SQL statement on the customer database: counted in a dry run, then run for real.

Only a single INSERT, UPDATE or DELETE on the tables `customers` and `orders` is let through.
SQLite's own authorizer decides that while it compiles the statement, so that no way of writing
one gets around it; the text is looked at before for clearer messages, for `REPLACE`, and for what
a reviewer could not read.
"""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from flowsite.demo.customers import open_customers
from runs.engine import AdapterError
from runs.engine.redact import redact_text

TABLES = frozenset({"customers", "orders"})
VERBS = ("INSERT", "UPDATE", "DELETE")
MAX_LENGTH = 10_000
MAX_SECONDS = 10.0

_NOT_CODE = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL
)
_REPLACES = re.compile(r"\bOR\s+REPLACE\b(?!\s*\()|\bREPLACE\s+INTO\b", re.IGNORECASE)
_WRITES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
# With these, the rows that were counted need not be the rows that go, or memory runs out.
_REFUSED_FUNCTIONS = frozenset({"random", "randomblob", "zeroblob", "load_extension"})
_HARMLESS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


class SqlChangeError(AdapterError):
    """The statement cannot be run as asked, and nothing was changed; the message says why."""


class StatementRefused(SqlChangeError):
    """The statement is not one INSERT, UPDATE or DELETE that the database accepts."""


class RowsChanged(SqlChangeError):
    """The statement would now touch another number of rows than was approved."""


class DryRun(BaseModel):
    """What a statement would touch: `rows` in all, `cascaded` of them through foreign keys."""

    rows: int
    cascaded: int


class ChangeReceipt(BaseModel):
    """A change that went through. `changed_at` is in UTC."""

    change: int
    run: str
    ticket: str
    rows: int
    changed_at: datetime


def dry_run(path: Path, statement: str) -> DryRun:
    """Count the rows that `statement` would touch, in a transaction that is rolled back.

    The database is left as it was. Raises `StatementRefused`.
    """
    check_statement(statement)
    with open_customers(path) as connection, _transaction(connection):
        direct, total = _execute(connection, statement)
        connection.execute("ROLLBACK")
    return DryRun(rows=total, cascaded=total - direct)


def run_change(
    path: Path, statement: str, *, expected_rows: int, run: str, ticket: str
) -> ChangeReceipt:
    """Run `statement` and note it in the table `changes`, both in one transaction.

    Raises `RowsChanged` if it does not touch exactly `expected_rows` rows, `SqlChangeError` if
    this run has made its change before, and `StatementRefused`; nothing is changed then.
    """
    check_statement(statement)
    changed_at = datetime.now(UTC)
    with open_customers(path) as connection, _transaction(connection):
        _, rows = _execute(connection, statement)
        if rows != expected_rows:
            raise RowsChanged(
                f"The statement would now touch {rows:,} rows; {expected_rows:,} were approved. "
                "Nothing was changed. Start a new run to see and approve the new number."
            )
        try:
            change = connection.execute(
                "INSERT INTO changes (run, ticket, statement, rows, changed_at)"
                " VALUES (?, ?, ?, ?, ?) RETURNING id",
                (run, ticket, statement, rows, changed_at.isoformat()),
            ).fetchone()[0]
        except sqlite3.IntegrityError as error:
            raise SqlChangeError(
                "This run has made its change before; it was not made again."
            ) from error
        connection.execute("COMMIT")
    return ChangeReceipt(change=change, run=run, ticket=ticket, rows=rows, changed_at=changed_at)


def check_statement(statement: str) -> None:
    """Raise `StatementRefused` for what can be told from the text alone."""
    if len(statement) > MAX_LENGTH:
        raise StatementRefused(f"The statement is longer than {MAX_LENGTH:,} characters.")
    if "\0" in statement or not _encodable(statement):
        raise StatementRefused("The statement holds a character that no text has. Remove it.")
    code = _NOT_CODE.sub(" ", statement)
    verb = (code.split() or [""])[0].upper()
    if verb not in (*VERBS, "WITH"):
        found = f"this begins with {verb[:20]}" if verb else "this holds no statement"
        raise StatementRefused(f"Only one INSERT, UPDATE or DELETE can be run here; {found}.")
    if _REPLACES.search(code):
        # SQLite does not count the rows that a conflict removes, so the number would be too small.
        raise StatementRefused("REPLACE hides which rows go. Delete them in a run of its own.")
    if redact_text(statement) != statement:
        # Pages mask what looks like a secret, and a reviewer must see all that runs.
        raise StatementRefused(
            "Part of the statement looks like a secret or is an invisible character, so that a "
            "reviewer could not read all of it. Write it without that."
        )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A write transaction that the body ends; rolled back where the body raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # A conflict clause such as OR ROLLBACK may have ended it already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _execute(connection: sqlite3.Connection, statement: str) -> tuple[int, int]:
    """Execute under guard; the rows touched by the statement itself, and in all."""
    refusals: list[str] = []

    def authorize(
        action: int, first: str | None, second: str | None, database: str | None, via: str | None
    ) -> int:
        table = (first or "").lower()
        function = (second or "").lower() if action == sqlite3.SQLITE_FUNCTION else ""
        if function in _REFUSED_FUNCTIONS:
            refusals.append(f"{function}() can't be run here")
            return sqlite3.SQLITE_DENY
        if action in _HARMLESS or (action == sqlite3.SQLITE_READ and table in TABLES):
            return sqlite3.SQLITE_OK
        if action in _WRITES and table in TABLES:
            return sqlite3.SQLITE_OK
        if action in _WRITES or action == sqlite3.SQLITE_READ:
            refusals.append(f"the table {first} is out of reach")
        else:
            refusals.append("it does more than change rows")
        return sqlite3.SQLITE_DENY

    deadline = time.monotonic() + MAX_SECONDS
    before = connection.total_changes
    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    try:
        cursor = connection.execute(statement)
    # One that holds two statements is a bare Warning before Python 3.12.
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise StatementRefused(_reason(error, refusals)) from error
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
    if cursor.description is not None:
        raise StatementRefused(
            "The statement returns rows. Only one INSERT, UPDATE or DELETE without RETURNING "
            "can be run here."
        )
    if not connection.in_transaction:
        raise StatementRefused("The statement ended its transaction. Leave that to the run.")
    # Not `cursor.rowcount`, which is -1 for a statement that begins with WITH.
    direct = connection.execute("SELECT changes()").fetchone()[0]
    return direct, connection.total_changes - before


def _reason(error: Exception, refusals: list[str]) -> str:
    if refusals:
        allowed = " and ".join(sorted(TABLES))
        return (
            f"The statement is refused: {refusals[0]}. "
            f"Only one INSERT, UPDATE or DELETE on {allowed} can be run here."
        )
    if "one statement" in str(error):
        return "There is more than one statement. Run each in a run of its own."
    if "interrupted" in str(error):
        return f"The statement took longer than {MAX_SECONDS:.0f} seconds and was stopped."
    return f"The database does not accept the statement: {str(error).rstrip('.')}."
