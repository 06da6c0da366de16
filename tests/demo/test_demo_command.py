"""`manage.py demo`, as a process of its own with its children."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from flowsite.demo.seed import USERS
from tests.support.environment import site_environment

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 60

pytestmark = pytest.mark.processes


@dataclass
class Demo:
    """A demo that was started, with what it has printed so far in a file."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        return self.log.read_text()

    def wait_until(self, ask: Callable[[], object], what: str) -> None:
        last_moment = time.monotonic() + WAIT_SECONDS
        while not ask():
            assert time.monotonic() < last_moment, f"waited for {what}:\n{self.output}"
            time.sleep(0.05)

    def wait_until_welcome(self) -> str:
        """The address that it printed."""
        self.wait_until(
            lambda: "Press Ctrl-C" in self.output or self.process.poll() is not None, "the welcome"
        )
        found = re.search(r"running at http://(\S+)/", self.output)
        assert found, self.output
        return found[1]

    def children(self) -> list[psutil.Process]:
        return list(psutil.Process(self.process.pid).children(recursive=True))

    def child(self, word: str) -> psutil.Process:
        """The direct child with this word on its command line."""
        [found] = [
            child
            for child in psutil.Process(self.process.pid).children()
            if word in child.cmdline()
        ]
        return found

    def wait(self) -> int:
        """The exit code."""
        return self.process.wait(WAIT_SECONDS)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.wait()


def start_demo(folder: Path, *arguments: str, debug: bool = True) -> Demo:
    """Start a demo that keeps its files in `folder / "var"`."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= site_environment(folder / "var", debug=debug)
    log = folder / "demo.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Demo(process, log)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts demos that are stopped when the test ends."""
    with ExitStack() as stack:

        def make(*arguments: str, debug: bool = True) -> Demo:
            demo = start_demo(tmp_path, *arguments, debug=debug)
            stack.callback(lambda: demo.process.poll() is None and demo.stop())
            return demo

        yield make


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """A demo that was started on an empty folder, and stopped once it was up."""
    demo = start_demo(tmp_path_factory.mktemp("first"), "--port", "0")
    try:
        demo.wait_until_welcome()
    finally:
        demo.stop()
    return demo


@pytest.fixture
def again(first: Demo, tmp_path: Path, start: Callable[..., Demo]) -> Demo:
    """A demo that is started on a copy of what the first one left."""
    shutil.copytree(first.log.parent / "var", tmp_path / "var")
    return start("--port", "0")


def running(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended; one that nobody has taken note of yet has."""
    return [
        process
        for process in processes
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    ]


def get(address: str, path: str) -> int:
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_demo_prepares_everything_and_prints_the_log_ins(first):
    assert "Made the users reviewer, requester, auditor, admin." in first.output
    assert "Started 3 runs as requester." in first.output
    for user in USERS:
        assert re.search(rf"{user.name} +password {user.password} ", first.output)


def test_the_address_is_printed_once_the_site_answers(again):
    assert get(again.wait_until_welcome(), "/healthz") == 200


def test_starting_again_keeps_the_data(again):
    again.wait_until_welcome()
    assert "Made the users" not in again.output
    assert "Started" not in again.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_all_of_it_cleanly(again, number):
    address = again.wait_until_welcome()
    children = again.children()
    assert len(children) >= 3  # the web server, its worker process, and the worker
    assert again.stop(number) == 0
    assert again.output.endswith("Stopped.\n")
    assert "Traceback" not in again.output
    assert running(children) == []
    with pytest.raises(ConnectionRefusedError):
        get(address, "/healthz")


@pytest.mark.parametrize(("word", "name"), [("gunicorn", "web server"), ("worker", "worker")])
def test_if_one_process_dies_the_other_is_stopped_and_the_dead_one_is_named(again, word, name):
    again.wait_until_welcome()
    children = again.children()
    again.child(word).kill()
    assert again.wait() == 1
    assert f"The {name} ended by itself (exit code -9)" in again.output
    assert re.search(r"All of it: \S+\.log$", again.output.strip())
    assert "Traceback" not in again.output
    assert running(children) == []


def test_a_taken_port_is_told_before_anything_is_done(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        demo = start("--port", str(port))
        assert demo.wait() == 1
    assert f"Port {port} on 127.0.0.1 is taken. Choose another: manage.py demo" in demo.output
    assert not (tmp_path / "var" / "demo").exists()


def test_an_address_of_another_machine_is_refused(start):
    demo = start("--host", "192.0.2.1")
    assert demo.wait() == 1
    assert "This machine has no address 192.0.2.1." in demo.output


def test_a_number_that_is_no_port_is_refused(start):
    demo = start("--port", "70000")
    assert demo.wait() == 1
    assert "70000 is not a port." in demo.output


def test_the_demo_refuses_to_run_outside_debug_mode(start, tmp_path):
    demo = start(debug=False)
    assert demo.wait() == 1
    assert "whose passwords are public" in demo.output
    assert not (tmp_path / "var" / "demo").exists()
