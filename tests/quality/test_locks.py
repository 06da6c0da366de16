"""The lock files hold all that is declared, with hashes and without any address."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.txt", "requirements-test.txt")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def entries(lock: str) -> list[str]:
    """The requirements with their hashes, each as one line."""
    lines = (ROOT / lock).read_text().replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def pins(lock: str) -> dict[str, str]:
    """The version of each package."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", "\n".join(entries(lock)), re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", text)[0].lower() for text in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_has_hashes(lock: str) -> None:
    assert entries(lock)
    assert [entry for entry in entries(lock) if "--hash=sha256:" not in entry] == []


def test_what_is_declared_is_locked() -> None:
    declared = names(PROJECT["dependencies"])
    for_tests = names(PROJECT["optional-dependencies"]["test"])
    assert declared - set(pins("requirements.txt")) == set()
    assert (declared | for_tests) - set(pins("requirements-test.txt")) == set()


def test_tests_run_with_the_versions_that_are_installed_for_use() -> None:
    tested = pins("requirements-test.txt")
    assert {name: tested[name] for name in pins("requirements.txt")} == pins("requirements.txt")
