"""``manage.py start_run FLOW [--input JSON|@FILE] [--as USER]``."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from runs import keycheck
from runs.actions import InvalidInput, start_run
from runs.registry import UnknownFlow


class Command(BaseCommand):
    help = "Start a run of a flow; a worker walks it. Prints the run's id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("flow", help="the flow's name")
        parser.add_argument(
            "--input", default="{}", help="the flow's input: JSON, or @FILE with JSON in it"
        )
        parser.add_argument("--flow-version", help="a version other than the newest")
        parser.add_argument(
            "--as", dest="username", help="the user that starts it, who then can't decide on it"
        )

    def handle(
        self,
        *,
        flow: str,
        input: str,
        flow_version: str | None,
        username: str | None,
        **options: Any,
    ) -> None:
        try:
            if problems := keycheck.problems():
                raise CommandError("No run was started. " + "\n".join(problems))
            run = start_run(
                flow,
                _read(input),
                by=_user(username),
                via="command line",
                version=flow_version,
            )
        except InvalidInput as error:
            faults = "".join(
                f"\n  {field or 'input'}: {message}"
                for field, messages in error.errors.items()
                for message in messages
            )
            raise CommandError(
                f"No run was started; {flow} can't use this input:{faults}"
            ) from error
        except (UnknownFlow, PermissionDenied) as error:
            raise CommandError(f"No run was started. {error}") from error
        except DatabaseError as error:
            raise CommandError(
                f"No run was started, because the database can't be used: {error}\n"
                "Check DATABASE_URL, and run manage.py migrate if this is a new database."
            ) from error
        self.stdout.write(str(run.pk))


def _read(source: str) -> Any:
    try:
        text = Path(source[1:]).read_text() if source.startswith("@") else source
        return json.loads(text, object_pairs_hook=_without_doubles)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"The input file can't be read: {error}") from error
    except ValueError as error:
        raise CommandError(f"The input can't be used: {error}") from error
    except RecursionError as error:
        raise CommandError("The input is nested too deeply.") from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {double[:100]!r} stands in it twice")
    return dict(pairs)


def _user(username: str | None) -> Any:
    if username is None:
        return None
    users = get_user_model()
    try:
        return users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist:
        raise CommandError(f"There is no user {username!r}.") from None
