"""The import contracts of pyproject.toml catch what they are there to catch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = ("flowsite", "approvals", "runs", "runs/engine")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    command = [str(program), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """Packages of the same names with nothing in them, under the same contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module in MODULES:
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").touch()
        (tmp_path / module / "part.py").touch()
    return tmp_path


def test_imports_down_the_house_are_allowed(small_tree: Path) -> None:
    (small_tree / "flowsite/part.py").write_text("import approvals.part\nimport runs.part\n")
    (small_tree / "approvals/part.py").write_text("import runs.part\nimport runs.engine.part\n")
    (small_tree / "runs/part.py").write_text("import django\nimport runs.engine.part\n")
    (small_tree / "runs/engine/__init__.py").write_text("import runs.engine.part\n")
    assert lint_imports(small_tree).returncode == 0


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("approvals/part.py", "flowsite.part"),
        ("runs/part.py", "flowsite.part"),
        ("runs/part.py", "approvals.part"),
        ("runs/engine/part.py", "approvals.part"),
        ("runs/engine/part.py", "runs.part"),
        ("runs/engine/part.py", "django"),
        ("runs/engine/part.py", "django.db.models"),
    ],
)
def test_imports_up_the_house_are_refused(small_tree: Path, module: str, forbidden: str) -> None:
    (small_tree / module).write_text(f"import {forbidden}\n")
    answer = lint_imports(small_tree)
    assert answer.returncode == 1
    assert "BROKEN" in answer.stdout


def test_using_the_engine_loads_no_django() -> None:
    code = "import sys, runs.engine; print(sorted(n for n in sys.modules if n == 'django'))"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
