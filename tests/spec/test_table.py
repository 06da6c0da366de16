"""The table in README.md leads from every row of the specification to tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent

# Every row of the specification. A row that is lost from the table fails here.
ROWS = [
    "pauses",
    "resume-goes-on",
    "diagram",
    "result-status",
    "result-pending",
    "result-checkpoint",
    "resume-finished-calls",
    "resume-map-items",
    "resume-item-journals",
    "resume-nested-flows",
    "resume-failures",
    "resume-answers",
    "resume-denied",
    "resume-outliving-tasks",
    "resume-other-records",
    "resume-two-approvals",
    "resume-parity",
    "safety-sealed",
    "safety-graph",
    "safety-key",
    "safety-once",
    "safety-store",
    "safety-own-store",
    "safety-memory",
    "safety-no-tool",
    "safety-function-names",
    "safety-changed-bodies",
    "safety-refused-settle",
    "safety-dropped-arguments",
    "safety-copies",
    "values-types",
    "values-plain",
    "values-dicts",
    "values-bytes",
    "values-series",
    "values-leaves",
    "values-clocks",
    "values-models",
    "values-other",
    "closed-no-pause",
    "closed-path",
    "closed-gate",
    "closed-tool-approval",
    "closed-siblings",
    "closed-results",
    "storing-memory",
    "storing-text",
    "storing-pickle",
    "loading-reachable",
    "loading-results",
    "loading-decoder",
    "loading-refused",
    "limits-no-store",
    "limits-pickles",
    "limits-growth",
    "limits-custom-types",
]


def table() -> list[tuple[str, list[str]]]:
    """The rows of README.md: key and test ids."""
    rows = []
    for line in (HERE / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            key, _, tests = (cell.strip() for cell in line.strip("| ").split(" | "))
            rows.append((key.strip("`"), re.findall(r"`([^`]+)`", tests)))
    return rows


def specification_tests() -> set[str]:
    """The ids of all tests in this folder but those of this file."""
    return {
        f"{path.name}::{node.name}"
        for path in HERE.glob("test_*.py")
        if path.name != Path(__file__).name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def test_the_table_has_every_row_of_the_specification_once() -> None:
    assert [key for key, _ in table()] == ROWS


def test_every_row_leads_to_a_test() -> None:
    assert [key for key, tests in table() if not tests] == []


def test_every_test_named_in_the_table_exists() -> None:
    named = {test for _, tests in table() for test in tests}
    assert named - specification_tests() == set()


def test_every_test_of_the_specification_stands_in_the_table() -> None:
    named = {test for _, tests in table() for test in tests}
    assert specification_tests() - named == set()
