"""One long-running process of a site under test, with its output in a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 20

Command = Callable[[], Sequence[str]]


class Service:
    """A process that can be started, stopped, killed and started again.

    `command` is asked for at each start. The output of all starts goes to the file `log`.
    """

    def __init__(self, name: str, command: Command, env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self._command = command
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def start(self) -> None:
        """Start the process; it is an error if it runs already."""
        assert not self.running, f"{self.name} runs already"
        # No session of its own: what is left of an interrupted test run is ended by its group.
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(),
                cwd=Path(__file__).parents[2],
                env=dict(self._env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> int:
        """Ask the process to end (SIGTERM) and return its exit code.

        A process that has not ended after 20 s is killed, which is an AssertionError.
        """
        assert self._process is not None, f"{self.name} was not started"
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} had not ended {STOP_SECONDS} s after SIGTERM and was killed.\n"
                f"{self.output()}"
            ) from None

    def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash of the machine would."""
        assert self._process is not None, f"{self.name} was not started"
        self._process.kill()
        self._process.wait()

    def send(self, signal_number: int) -> None:
        os.kill(self.pid, signal_number)

    def wait(self, timeout: float) -> int:
        """Wait until the process ends by itself; returns its exit code."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.wait(timeout)

    def output(self) -> str:
        """What the process has printed so far, over all its starts."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""
