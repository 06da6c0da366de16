"""Child processes that start together, are watched together and end together."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STOP_SECONDS = 15.0


@dataclass(frozen=True)
class Child:
    """A running child with a name for people, and the file that holds all it says."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs."""
        return self.process.poll()

    def last_lines(self, count: int = 20) -> str:
        """The end of what it said."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


def start(
    name: str, command: Sequence[str], *, log: Path, cwd: Path, pass_fds: Sequence[int] = ()
) -> Child:
    """Start a child in a process group of its own, writing to `log`, which is begun anew.

    The terminal sends Ctrl-C to its own process group only, so the child hears of it from
    `stop_all` and from nobody else, and what the child starts itself can be ended with it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the command is this project's own
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    return Child(name, process, log)


def stop_all(children: Sequence[Child], *, seconds: float = STOP_SECONDS) -> None:
    """Ask every child to end, and kill what has not done so after `seconds`, with its group."""
    for child in children:
        if child.exit_code is None:
            child.process.terminate()
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(seconds)
        # Also after a good end: a child that died may have left children of its own.
        with suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()
