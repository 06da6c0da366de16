"""A whole site made of real processes: its own database, keys, web server and worker.

    with Site(tmp_path) as site:
        site.manage("start_run", "expenses")
        site.web.start()
        site.worker.start()
        site.wait_until(lambda: "paused" in site.shell("..."), "the run to pause")

Nothing is shared with the test's own process: look at the data with `shell`, or over HTTP.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import psycopg
from psycopg import sql

from tests.support.environment import site_environment
from tests.support.service import Service

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 30
COMMAND_SECONDS = 120

Found = TypeVar("Found")


class Site:
    """A migrated site that keeps everything it makes in `folder`.

    The database is a SQLite file, or a new PostgreSQL database where the tests' DATABASE_URL is a
    PostgreSQL server. `env` adds variables, or replaces those of `site_environment`.
    Leaving the context ends all processes and drops the database.
    """

    def __init__(
        self,
        folder: Path,
        *,
        debug: bool = False,
        threads: int = 8,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.var = folder / "var"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.services: dict[str, Service] = {}
        self._debug = debug
        self._threads = threads
        self._stack = ExitStack()
        self.env = {
            name: value
            for name, value in os.environ.items()
            if name != "DATABASE_URL" and not name.startswith(("FLOWSITE_", "DJANGO_"))
        }
        self.env |= site_environment(self.var, debug=debug) | dict(env or {})
        self.env["PYTHONUNBUFFERED"] = "1"
        self.web = self._service("web", self._web_command)
        self.worker = self.process("worker", "worker")

    def __enter__(self) -> Self:
        with self._stack as stack:
            self.var.mkdir(parents=True)
            database_url = stack.enter_context(fresh_database(self.folder))
            self.env.setdefault("DATABASE_URL", database_url)
            stack.callback(self._end_processes)
            self.manage("migrate", "--no-input", "--verbosity", "0")
            if not self._debug:
                # A production site serves the collected files only.
                self.manage("collectstatic", "--no-input", "--verbosity", "0")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def process(self, name: str, *arguments: str) -> Service:
        """A `manage.py` command that keeps running, to be started by its `start`."""
        return self._service(name, lambda: _manage_command(*arguments))

    def start_web(self) -> None:
        """Start the web server and wait until it answers."""
        self.web.start()
        self.wait_until(self._answers, "the web server to answer", needs=[self.web])

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a `manage.py` command to its end.

        Returns its exit code and what it printed. With `check`, an exit code other than 0 is an
        AssertionError that shows both.
        """
        done = subprocess.run(
            _manage_command(*arguments),
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        assert not check or done.returncode == 0, (
            f"manage.py {' '.join(arguments)} exited with {done.returncode}.\n"
            f"{done.stdout}{done.stderr}"
        )
        return done

    def shell(self, code: str) -> str:
        """Run Python in the site, in a process of its own; returns what it printed.

        The code starts with no names imported.
        """
        return self.manage("shell", "--no-imports", "-c", code).stdout.strip()

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of an SQL query on the site's database, with `%s` for each value.

        Quicker than `shell` where a test asks again and again. UUIDs come back as text.
        """
        url = self.env["DATABASE_URL"]
        if url.startswith("sqlite:///"):
            path = url.removeprefix("sqlite:///")
            given = [value.hex if isinstance(value, UUID) else value for value in values]
            with closing(sqlite3.connect(path, timeout=20)) as database:
                return database.execute(query.replace("%s", "?"), given).fetchall()
        with psycopg.connect(url, autocommit=True) as database:
            return database.execute(query.encode(), values).fetchall()

    def wait_until(
        self,
        ask: Callable[[], Found],
        what: str,
        *,
        timeout: float = WAIT_SECONDS,
        needs: list[Service] | None = None,
    ) -> Found:
        """Ask again and again until the answer is true, and return it.

        After `timeout` seconds, or as soon as one of the services in `needs` has ended, it is an
        AssertionError that names `what` was waited for.
        """
        last_moment = time.monotonic() + timeout
        while True:
            if answer := ask():
                return answer
            for service in needs or []:
                assert service.running, (
                    f"{service.name} ended while waiting for {what}.\n{service.output()}"
                )
            assert time.monotonic() < last_moment, f"waited {timeout} s for {what}"
            time.sleep(0.05)

    def _service(self, name: str, command: Callable[[], list[str]]) -> Service:
        assert name not in self.services, f"there is a process {name} already"
        service = Service(name, command, self.env, self.folder / f"{name}.log")
        self.services[name] = service
        return service

    def _web_command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "gunicorn", "flowsite.wsgi", "--no-control-socket"),
            *("--worker-class", "gthread", "--workers", "1", "--threads", str(self._threads)),
            *("--bind", f"127.0.0.1:{self.port}", "--graceful-timeout", "5"),
            *("--access-logfile", "-"),
        ]

    def _answers(self) -> bool:
        try:
            # The environment's proxies are not for an address of this machine.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"{self.url}/healthz", timeout=5) as response:
                return bool(response.status == 200)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"/healthz answered {error.code}.\n{self.web.output()}") from error
        except OSError:
            return False

    def _end_processes(self) -> None:
        faults = []
        for service in self.services.values():
            if service.running:
                try:
                    service.stop()
                except AssertionError as fault:
                    faults.append(str(fault))
        assert not faults, "\n".join(faults)


@contextmanager
def fresh_database(folder: Path) -> Iterator[str]:
    """An empty database of the kind that the tests run on; gives its DATABASE_URL."""
    server = os.environ.get("DATABASE_URL", "")
    if urlsplit(server).scheme not in ("postgres", "postgresql"):
        yield f"sqlite:///{folder / 'site.sqlite3'}"
        return
    name = f"flowsite_{uuid4().hex}"
    with psycopg.connect(_url_of(server, "postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield _url_of(server, name)
        finally:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def _url_of(server: str, database: str) -> str:
    return urlsplit(server)._replace(scheme="postgresql", path=f"/{database}").geturl()


def _manage_command(*arguments: str) -> list[str]:
    return [sys.executable, "manage.py", *arguments]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
