"""Everything that proves the tree: quality checks, then the suite on SQLite and on PostgreSQL.

    python -m tests                        all of it, as `make test` does
    python -m tests quality                the quality checks alone
    python -m tests sqlite -- -k inbox     some parts, with arguments for pytest after --

A failing step does not keep the next ones from running; the exit code is 0 if none failed.
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.chromium import VARIABLE as CHROMIUM
from tests.support.chromium import ChromiumMissing, find_or_install_chromium
from tests.support.postgres import PostgresUnavailable, running_server

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PARTS = ("quality", "sqlite", "postgres")
# Tests with real processes run on one of these while the others run on the rest.
PYTEST = (sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "loadgroup")


@dataclass
class Report:
    """What ran, how it ended and how long it took."""

    lines: list[tuple[str, bool, float]] = field(default_factory=list)

    def step(self, name: str, action: Callable[[], bool]) -> None:
        """Run one step under a heading and note its result; `action` is true for success."""
        print(f"\n== {name}", flush=True)
        begin = time.monotonic()
        passed = action()
        self.lines.append((name, passed, time.monotonic() - begin))

    def command(
        self, name: str, *command: str | Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.step(name, lambda: run(command, env or {}) == 0)

    def close(self) -> int:
        """Print the summary; returns the exit code."""
        width = max(len(name) for name, _, _ in self.lines)
        print("\n== Summary")
        for name, passed, seconds in self.lines:
            print(f"{name:<{width}}  {'passed' if passed else 'FAILED'}  {seconds:6.1f} s")
        failures = [name for name, passed, _ in self.lines if not passed]
        print(f"Failed: {', '.join(failures)}." if failures else "Nothing failed.", flush=True)
        return 1 if failures else 0


def run(command: Sequence[str | Path], env: Mapping[str, str]) -> int:
    """Run a command with variables added; returns its exit code.

    The command gets a process group of its own. An interruption reaches it once, through us, and
    it has the time to clean up; what it then leaves running is ended with the group.
    """
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | env, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            print("It did not end by itself and is killed.", file=sys.stderr)
        raise
    finally:
        with suppress(ProcessLookupError):  # nothing is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def check_quality(report: Report, var: Path) -> None:
    """Style, types, the direction of imports, and Django's checks of a production site."""
    manage = (sys.executable, "-W", "error", "manage.py")
    production = {
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "flowsite.settings",
        "FLOWSITE_DEBUG": "0",
        "FLOWSITE_FLOW_APPS": "flowsite.demo",
        "FLOWSITE_HOSTS": "example.org",
        "FLOWSITE_KEYS": "k1:" + base64.b64encode(secrets.token_bytes(32)).decode(),
        "FLOWSITE_TLS": "",
        "FLOWSITE_VAR": str(var),
    }
    report.command("ruff check", BIN / "ruff", "check")
    report.command("ruff format", BIN / "ruff", "format", "--check")
    report.command("mypy", BIN / "mypy")
    report.command("import contracts", BIN / "lint-imports", "--no-cache", "--no-logo")
    report.command("templates", BIN / "djlint", "templates", "--lint", "--quiet")
    report.command(
        "check --deploy", *manage, "check", "--deploy", "--fail-level", "WARNING", env=production
    )
    report.command(
        "migrations are complete", *manage, "makemigrations", "--check", "--dry-run", env=production
    )


def find_browser(report: Report) -> None:
    """Find or install Chromium once, for all test processes."""

    def find() -> bool:
        try:
            os.environ[CHROMIUM] = find_or_install_chromium()
        except ChromiumMissing as fault:
            print(fault)
            return False
        print(os.environ[CHROMIUM])
        return True

    report.step("Chromium", find)


def test_on_postgres(report: Report, arguments: Sequence[str]) -> None:
    """Start a PostgreSQL server and run the suite on it."""

    def test() -> bool:
        try:
            with running_server() as server:
                print(server.programs, flush=True)
                return run([*PYTEST, *arguments], {"DATABASE_URL": server.url}) == 0
        except PostgresUnavailable as fault:
            print(fault)
            return False

    report.step("pytest on PostgreSQL", test)


def main() -> int:
    own, for_pytest = _split(sys.argv[1:])
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of: {', '.join(PARTS)}")
    parts = parser.parse_args(own).parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")

    # An end from outside takes the same way as Ctrl-C: everything that was started is ended.
    # Set for SIGINT too, since a shell starts background jobs with that ignored.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.default_int_handler)
    report = Report()
    try:
        if "quality" in parts:
            with tempfile.TemporaryDirectory(prefix="flowsite-check-") as var:
                check_quality(report, Path(var))
        if "sqlite" in parts or "postgres" in parts:
            find_browser(report)
        if "sqlite" in parts:
            report.command("pytest on SQLite", *PYTEST, *for_pytest, env={"DATABASE_URL": ""})
        if "postgres" in parts:
            test_on_postgres(report, for_pytest)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    return report.close()


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments before and after the first --."""
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


if __name__ == "__main__":
    sys.exit(main())
