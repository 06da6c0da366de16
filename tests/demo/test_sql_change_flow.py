"""The flow `sql_change`, run in memory."""

from pathlib import Path

import pytest

from flowsite.demo import places
from flowsite.demo.customers import open_customers
from flowsite.demo.flows import SqlChangeState, sql_change_flow
from flowsite.demo.sql_change import RowsChanged
from runs.engine import ApprovalDecision, DeferredApproval, Executor, FlowError, FlowRunner

STATEMENT = "DELETE FROM customers WHERE last_seen < '2019-01-01'"
OLD_CUSTOMERS = "SELECT count(*) FROM customers WHERE last_seen < '2019-01-01'"
OLD_ORDERS = (
    "SELECT count(*) FROM orders JOIN customers ON customers.id = customer_id"
    " WHERE last_seen < '2019-01-01'"
)
ANSWER = {"ticket": "OPS-12", "backup": True}


@pytest.fixture(autouse=True)
def var(tmp_path: Path, settings) -> None:
    settings.FLOWSITE_VAR = tmp_path


@pytest.fixture
def runner() -> FlowRunner:
    return FlowRunner(Executor(approvals=DeferredApproval()))


def sql(statement: str):
    with open_customers(places.customers_path()) as connection:
        return connection.execute(statement).fetchone()


def approve(runner: FlowRunner, result, content=ANSWER):
    decision = ApprovalDecision.approve("reviewer", content=content)
    return runner.resume_sync(sql_change_flow, result.checkpoint, decision)


def test_the_reviewer_sees_the_statement_and_its_rows(runner):
    result = runner.run_sync(sql_change_flow, SqlChangeState())
    [customers] = sql(OLD_CUSTOMERS)
    [orders] = sql(OLD_ORDERS)
    assert result.status == "paused"
    assert result.pending.arguments == {
        "statement": STATEMENT,
        "rows": customers + orders,
        "cascaded": orders,
    }
    assert f"Change {customers + orders:,} rows" in result.pending.summary


def test_nothing_is_changed_before_the_answer(runner):
    before = sql("SELECT count(*) FROM customers")
    runner.run_sync(sql_change_flow, SqlChangeState())
    assert sql("SELECT count(*) FROM customers") == before
    assert sql("SELECT count(*) FROM changes") == (0,)


def test_an_approved_statement_is_run_and_its_rows_are_reported(runner):
    result = runner.run_sync(sql_change_flow, SqlChangeState())
    rows = result.pending.arguments["rows"]
    result = approve(runner, result)
    assert result.status == "completed"
    assert result.state.receipt.rows == rows
    assert result.state.report == f"Changed {rows} rows for ticket OPS-12."
    assert sql(OLD_CUSTOMERS) == (0,)
    assert sql("SELECT ticket, rows FROM changes") == ("OPS-12", rows)


def test_a_rejected_statement_is_not_run(runner):
    result = runner.run_sync(sql_change_flow, SqlChangeState())
    before = sql(OLD_CUSTOMERS)
    decision = ApprovalDecision.deny("reviewer")
    result = runner.resume_sync(sql_change_flow, result.checkpoint, decision)
    assert result.status == "completed"
    assert result.state.report == "The change was rejected. The statement was not run."
    assert result.state.receipt is None
    assert sql(OLD_CUSTOMERS) == before
    assert sql("SELECT count(*) FROM changes") == (0,)


@pytest.mark.parametrize(
    "content", [None, {}, {"ticket": "OPS-12"}, {"ticket": "OPS-12", "backup": False},
                {"ticket": "x", "backup": True}]
)  # fmt: skip
def test_an_approval_without_a_ticket_and_a_backup_changes_nothing(runner, content):
    result = runner.run_sync(sql_change_flow, SqlChangeState())
    before = sql(OLD_CUSTOMERS)
    with pytest.raises(FlowError):
        approve(runner, result, content)
    assert sql(OLD_CUSTOMERS) == before


def test_rows_that_came_up_meanwhile_stop_the_change(runner):
    result = runner.run_sync(sql_change_flow, SqlChangeState())
    with open_customers(places.customers_path()) as connection:
        connection.execute("INSERT INTO customers VALUES (9999, 'Late Ltd.', 'Brno', '2016-05-01')")
    before = sql(OLD_CUSTOMERS)
    with pytest.raises(FlowError) as failure:
        approve(runner, result)
    assert isinstance(failure.value.__cause__, RowsChanged)
    assert sql(OLD_CUSTOMERS) == before


def test_a_statement_that_touches_no_rows_asks_nobody(runner):
    state = SqlChangeState(statement="DELETE FROM customers WHERE id < 0")
    result = runner.run_sync(sql_change_flow, state)
    assert result.status == "completed"
    assert result.state.report == "The statement touches no rows. It was not run."


def test_a_statement_that_touches_more_rows_than_allowed_asks_nobody(runner):
    with pytest.raises(FlowError) as failure:
        runner.run_sync(sql_change_flow, SqlChangeState(max_rows=10))
    assert "more than the 10 that this run allows" in str(failure.value.__cause__)


def test_a_refused_statement_asks_nobody(runner):
    with pytest.raises(FlowError) as failure:
        runner.run_sync(sql_change_flow, SqlChangeState(statement="DROP TABLE customers"))
    assert "this begins with DROP" in str(failure.value.__cause__)
    assert sql("SELECT count(*) FROM customers") == (5000,)
