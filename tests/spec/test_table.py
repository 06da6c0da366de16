"""The table in README.md leads from every row of the specification to tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
README = HERE / "README.md"

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
    for line in README.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            key, _, tests = (cell.strip() for cell in line.strip("| ").split(" | "))
            rows.append((key.strip("`"), re.findall(r"`([^`]+)`", tests)))
    return rows


def specification_tests() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """All tests in this folder by their ids, but those of this file."""
    return {
        f"{path.name}::{node.name}": node
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
    assert named - specification_tests().keys() == set()


def test_every_test_of_the_specification_stands_in_the_table() -> None:
    named = {test for _, tests in table() for test in tests}
    assert specification_tests().keys() - named == set()


def test_the_tests_that_run_in_memory_only_are_listed_with_the_reason() -> None:
    listed = re.findall(r"^- `([^`]+)`: (.+)\.$", README.read_text(encoding="utf-8"), re.MULTILINE)
    marked = [
        (name, str(ast.literal_eval(mark.args[0])))
        for name, test in specification_tests().items()
        for mark in test.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "memory_only"
    ]
    assert sorted(listed) == sorted(marked)
