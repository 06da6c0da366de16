"""The commands of a fresh clone say what is missing, and `make run` keeps what is there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # A make that runs these tests must not look like this one's parent.
    env = {name: os.environ[name] for name in os.environ.keys() - {"MAKEFLAGS", "MAKELEVEL"}}
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True)


# Does what the Makefile asks of Python, and notes what it would have installed.
STAND_IN = """#!/bin/sh
case "$*" in
    "-m venv --clear .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip install "*) echo "$*" >> installed.txt ;;
    "manage.py demo") echo "the demo runs" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a stand-in for Python, and nothing set up yet."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    (tmp_path / "python").write_text(STAND_IN)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def run_demo(clone: Path) -> str:
    answer = make(clone, "run", f"PYTHON={clone / 'python'}")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.endswith("the demo runs\n")
    return answer.stdout


def installs(clone: Path) -> list[str]:
    return (clone / "installed.txt").read_text().splitlines()


def test_a_python_that_is_too_old_is_named_with_the_way_out(clone: Path) -> None:
    (clone / "python").write_text("#!/bin/sh\nexit 1\n")
    answer = make(clone, "run", f"PYTHON={clone / 'python'}")
    assert answer.returncode != 0
    assert f"needs Python 3.11 or newer; tried: {clone / 'python'}" in answer.stderr
    assert "make run PYTHON=/path/to/python3.11" in answer.stderr


def test_the_first_run_installs_with_hashes_and_the_second_does_not(clone: Path) -> None:
    assert "Installing the packages of requirements.txt" in run_demo(clone)
    assert run_demo(clone) == "the demo runs\n"
    (only,) = installs(clone)
    assert "--require-hashes -r requirements.txt" in only


def test_a_changed_lock_file_is_installed_again(clone: Path) -> None:
    run_demo(clone)
    with (clone / "requirements.txt").open("a") as lock:
        lock.write("# changed\n")
    assert "Installing the packages of requirements.txt" in run_demo(clone)
    assert run_demo(clone) == "the demo runs\n"
    assert len(installs(clone)) == 2


def test_an_install_that_failed_is_tried_again(clone: Path) -> None:
    (clone / "python").write_text(STAND_IN.replace("echo", "exit 1; echo", 1))
    assert make(clone, "run", f"PYTHON={clone / 'python'}").returncode != 0
    (clone / ".venv/bin/python").write_text(STAND_IN)
    assert "Installing the packages of requirements.txt" in run_demo(clone)


def test_an_environment_that_no_longer_runs_is_made_anew(clone: Path) -> None:
    run_demo(clone)
    (clone / ".venv/bin/python").unlink()
    assert "Making .venv" in run_demo(clone)


def test_manage_without_django_says_how_to_get_it() -> None:
    # -S leaves out the folder that packages are installed in.
    answer = subprocess.run(
        [sys.executable, "-S", "manage.py", "check"], cwd=ROOT, capture_output=True, text=True
    )
    assert answer.returncode == 1
    assert "make run" in answer.stderr
    assert "Traceback" not in answer.stderr
