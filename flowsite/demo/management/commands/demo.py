"""`manage.py demo`: the whole site on this machine, with example users, data and runs."""

import errno
import http.client
import signal
import socket
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections

from flowsite.demo import places, processes, seed

START_SECONDS = 60
THREADS = 8


class Command(BaseCommand):
    help = (
        "Prepare the database and the example data, then run the web server and a worker "
        "until Ctrl-C. For trying the site only: the log-ins are public."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port; 0 takes a free one")
        parser.add_argument(
            "--no-seed-runs", action="store_true", help="start no runs on a site that has none"
        )

    def handle(self, *args: Any, host: str, port: int, no_seed_runs: bool, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError(
                "The demo makes users whose passwords are public, so it runs in debug mode only. "
                "Set FLOWSITE_DEBUG=1 to try it, and see the README for how to put a site into "
                "production."
            )
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: stopping.set())
        with _listen(host, port) as listener:
            self._prepare(runs=not no_seed_runs)
            if not stopping.is_set():
                self._serve(listener, stopping)
        self.stdout.write("Stopped.")

    def _prepare(self, *, runs: bool) -> None:
        self.stdout.write("Preparing the database and the example data.")
        try:
            call_command("migrate", interactive=False, verbosity=0)
            seed.seed(self.stdout, runs=runs)
        except OperationalError as error:
            raise CommandError(
                f"The database cannot be used: {str(error).strip()}\n"
                "Check DATABASE_URL; without it the demo uses a SQLite file under "
                f"{settings.FLOWSITE_VAR}."
            ) from error
        call_command("collectstatic", interactive=False, verbosity=0)
        # The children open their own.
        connections.close_all()

    def _serve(self, listener: socket.socket, stopping: threading.Event) -> None:
        children: list[processes.Child] = []
        try:
            children.append(_start_web(listener))
            children.append(_start_worker())
            # The web server has it now; when it ends, the port is to be free.
            address = listener.getsockname()
            listener.close()
            if self._wait_until_up(address, children, stopping):
                self._welcome(address)
            while not stopping.wait(0.2) and not _ended(children):
                pass
        finally:
            # Looked at before the others are stopped, which ends them too.
            ended = [] if stopping.is_set() else _ended(children)
            processes.stop_all(children)
        if ended:
            raise CommandError(_why(ended[0]))

    def _wait_until_up(
        self,
        address: tuple[Any, ...],
        children: Sequence[processes.Child],
        stopping: threading.Event,
    ) -> bool:
        """True once the site answers, False when it will not because of an end."""
        for _ in range(START_SECONDS * 5):
            if _healthy(address):
                return True
            if stopping.wait(0.2) or _ended(children):
                return False
        raise CommandError(
            f"The site has not answered for {START_SECONDS} seconds. {children[0].log} may say why."
        )

    def _welcome(self, address: tuple[Any, ...]) -> None:
        width = max(len(user.name) for user in seed.USERS)
        lines = ["", f"Flowsite is running at {_url(address)}", "", "Log in as:"]
        for user in seed.USERS:
            name, password = user.name.ljust(width), user.password.ljust(width + 5)
            lines.append(f"  {name}  password {password}  {user.can}")
        lines += [
            "",
            f"Payments are written to    {places.ledger_path()}",
            f"SQL changes are made in    {places.customers_path()}",
            f"The processes' logs are in {places.log_folder()}",
        ]
        if not _is_loopback(address):
            lines += [
                "",
                "Anyone who reaches this address can log in with these passwords. It answers to",
                f"the names in FLOWSITE_HOSTS, now: {', '.join(settings.ALLOWED_HOSTS)}",
            ]
        lines += ["", "Press Ctrl-C to stop."]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Taken here and handed on, so that a taken port is known at once."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the port as given: the one in the address has been cut to 16 bits.
        return socket.create_server((address[0], port), family=family, backlog=128)
    except OverflowError as error:
        raise CommandError(f"{port} is not a port. Give one from 1 to 65535.") from error
    except OSError as error:
        raise CommandError(_why_not(error, host, port)) from error


def _why_not(error: OSError, host: str, port: int) -> str:
    another = port + 1 if 1024 <= port < 65535 else 8000
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken. Choose another: manage.py demo --port {another}"
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights. Choose another: manage.py demo --port {another}"
    return f"This machine has no address {host}. Leave --host out for 127.0.0.1."


def _start_web(listener: socket.socket) -> processes.Child:
    command = [sys.executable, "-m", "gunicorn", "flowsite.wsgi"]
    command += ["--bind", f"fd://{listener.fileno()}", "--log-level", "warning"]
    command += ["--worker-class", "gthread", "--threads", str(THREADS), "--no-control-socket"]
    return processes.start(
        "web server",
        command,
        log=places.log_folder() / "web.log",
        cwd=settings.BASE_DIR,
        pass_fds=[listener.fileno()],
    )


def _start_worker() -> processes.Child:
    return processes.start(
        "worker",
        [sys.executable, "manage.py", "worker"],
        log=places.log_folder() / "worker.log",
        cwd=settings.BASE_DIR,
    )


def _ended(children: Sequence[processes.Child]) -> list[processes.Child]:
    return [child for child in children if child.exit_code is not None]


def _why(child: processes.Child) -> str:
    said = child.last_lines()
    return (
        f"The {child.name} ended by itself (exit code {child.exit_code}), so the demo was "
        f"stopped.\n" + (f"It last said:\n\n{said}\n\n" if said else "") + f"All of it: {child.log}"
    )


def _healthy(address: tuple[Any, ...]) -> bool:
    host = settings.ALLOWED_HOSTS[0].lstrip(".*") or "localhost"
    # Not urllib, which would ask a proxy that the environment names.
    connection = http.client.HTTPConnection(_reachable(address), address[1], timeout=5)
    try:
        connection.request("GET", "/healthz", headers={"Host": host})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _reachable(address: tuple[Any, ...]) -> str:
    """The host to connect to; an address that means every interface is one of this machine."""
    host = str(address[0])
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _is_loopback(address: tuple[Any, ...]) -> bool:
    return str(address[0]).startswith("127.") or address[0] == "::1"


def _url(address: tuple[Any, ...]) -> str:
    host = _reachable(address)
    return f"http://[{host}]:{address[1]}/" if ":" in host else f"http://{host}:{address[1]}/"
