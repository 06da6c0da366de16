"""The commands: start_run, worker, sweep."""

import json
import secrets
import threading
from datetime import timedelta
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from runs import keycheck
from runs.keys import KeyRing
from runs.models import KeyCheck, Run
from tests.support import flows
from tests.support.make import START as MAY_START
from tests.support.make import (
    approve,
    everything,
    only_request,
    paused,
    person,
    set_aside,
    started,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def run_command(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


def refused(*arguments):
    """What a command says that is refused; everything must be as it was."""
    before = everything()
    with pytest.raises(CommandError) as caught:
        run_command(*arguments)
    assert everything() == before
    return str(caught.value)


# ---- start_run ----------------------------------------------------------------------------------


def test_start_run_prints_the_id_of_the_run_it_started():
    run = Run.objects.get(pk=UUID(run_command("start_run", "one", "--input", '{"note": "hi"}')))
    assert (run.flow, run.status, run.started_by, run.via) == (
        "one",
        "queued",
        None,
        "command line",
    )
    assert run.requester == "command line"
    assert dict(run.input_shown["items"])["note"]["v"] == "hi"


def test_start_run_without_input_takes_the_defaults():
    assert Run.objects.get(pk=UUID(run_command("start_run", "small"))).flow == "small"


def test_start_run_reads_its_input_from_a_file(tmp_path):
    file = tmp_path / "input.json"
    file.write_text(json.dumps({"note": "schön"}), encoding="utf-8")
    run = Run.objects.get(pk=UUID(run_command("start_run", "one", "--input", f"@{file}")))
    assert dict(run.input_shown["items"])["note"]["v"] == "schön"


def test_start_run_as_a_user_starts_it_for_them():
    user = person("starter", MAY_START)
    run = Run.objects.get(pk=UUID(run_command("start_run", "one", "--as", "starter")))
    assert (run.started_by, run.via) == (user, "command line")


def test_start_run_takes_a_version():
    assert "'one' in version '7'" in refused("start_run", "one", "--flow-version", "7")


def test_start_run_of_an_unknown_flow_names_the_known_ones():
    told = refused("start_run", "eno")
    assert told.startswith("No run was started. There is no flow 'eno'.")
    assert "one, pair" in told


@pytest.mark.parametrize("input", ["{", "", "note: hi", "{'note': 1}", "1" * 5_000])
def test_start_run_refuses_what_is_no_json(input):
    assert refused("start_run", "one", "--input", input).startswith("The input can't be used: ")


def test_start_run_refuses_input_that_is_nested_too_deeply():
    told = refused("start_run", "one", "--input", "[" * 200_000)
    assert told == "The input is nested too deeply."


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ('{"note": 7}', "\n  note: "),
        ('{"note": 7, "done": 1}', "\n  done: "),
        ('{"note": NaN}', "\n  note: "),
        ("[]", "\n  input: "),
        ("null", "\n  input: "),
    ],
)
def test_start_run_says_at_which_field_the_input_is_wrong(input, said):
    told = refused("start_run", "one", "--input", input)
    assert told.startswith("No run was started; one can't use this input:")
    assert said in told


def test_start_run_says_which_file_can_not_be_read(tmp_path):
    missing = tmp_path / "missing.json"
    assert str(missing) in refused("start_run", "one", "--input", f"@{missing}")
    assert "can't be read" in refused("start_run", "one", "--input", f"@{tmp_path}")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe{}")
    assert "can't be read" in refused("start_run", "one", "--input", f"@{binary}")


def test_start_run_as_an_unknown_user_is_refused():
    assert refused("start_run", "one", "--as", "nobody") == "There is no user 'nobody'."


def test_start_run_as_a_user_without_the_right_is_refused():
    person("guest")
    told = refused("start_run", "one", "--as", "guest")
    assert told == "No run was started. You don't have the right to start runs."


def test_start_run_without_its_database_says_what_to_check(monkeypatch):
    def fail(*args, **kwargs):
        raise OperationalError("no such table: runs_run")

    monkeypatch.setattr(Run, "save", fail)
    told = refused("start_run", "one")
    assert "no such table" in told
    assert "DATABASE_URL" in told
    assert "manage.py migrate" in told


# ---- worker -------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_worker_walks_what_is_due_and_ends():
    run, decided = started("one"), paused("small")
    approve(only_request(decided))
    printed = run_command("worker", "--batch")
    run.refresh_from_db()
    decided.refresh_from_db()
    assert (run.status, decided.status) == ("paused", "completed")
    assert "is ready. Flows: " in printed
    assert "small 1" in printed
    assert not DBTaskResult.objects.exclude(status="SUCCESSFUL").exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "sweep"]


@pytest.mark.django_db(transaction=True)
def test_a_worker_goes_on_after_a_run_that_breaks_it(monkeypatch):
    bad, good = started("one"), started("small")
    from runs import work

    walk = work._Walk.go

    def go(self, taken_over):
        if self._run.pk == bad.pk:
            raise OperationalError("gone")
        walk(self, taken_over)

    monkeypatch.setattr(work._Walk, "go", go)
    run_command("worker", "--batch")
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.status, bad.status) == ("paused", "running")


def test_a_worker_with_other_keys_than_the_databases_refuses_to_work(settings):
    KeyCheck.objects.all().delete()
    assert keycheck.problems() == []
    run = started("one")
    (key_id,) = settings.FLOWSITE_KEYS
    settings.FLOWSITE_KEYS = KeyRing({key_id: secrets.token_bytes(32)})
    told = refused("worker", "--batch")
    assert f"The key {key_id!r} in FLOWSITE_KEYS is not the key of that name" in told
    settings.FLOWSITE_KEYS = KeyRing({"other": secrets.token_bytes(32)})
    assert f"sealed with the key {key_id!r}" in refused("worker", "--batch")
    run.refresh_from_db()
    assert run.status == "queued"


def test_a_worker_without_its_database_says_what_to_check(monkeypatch):
    def fail():
        raise OperationalError("no such table: runs_keycheck")

    monkeypatch.setattr(keycheck, "problems", fail)
    told = refused("worker", "--batch")
    assert "no such table" in told
    assert "DATABASE_URL" in told


# ---- sweep --------------------------------------------------------------------------------------


def test_sweep_prints_what_it_found():
    assert run_command("sweep") == (
        "Queued again: 0 whose message was lost or late, 0 whose worker stopped, "
        "0 that were decided, 0 whose flow is there again."
    )
    run, decided = started("small"), paused("small")
    set_aside(run, queued_at=timezone.now() - timedelta(hours=1))
    approve(only_request(decided))
    set_aside(decided, status="paused")
    assert run_command("sweep") == (
        "Queued again: 1 whose message was lost or late, 0 whose worker stopped, "
        "1 that were decided, 0 whose flow is there again."
    )


def test_start_run_starts_nothing_with_keys_that_are_not_this_databases(settings):
    started("one")
    keycheck.problems()
    settings.FLOWSITE_KEYS = KeyRing({"test": bytes(32)})
    before = everything()
    assert "not the key of that name" in refused("start_run", "one")
    assert everything() == before
