"""Seeding the demo."""

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.models import Group
from django.core.management.base import OutputWrapper

from flowsite.demo import ledger, places
from flowsite.demo.seed import USERS, seed
from runs.models import Run

pytestmark = pytest.mark.django_db

User = get_user_model()


@pytest.fixture(autouse=True)
def var(tmp_path: Path, settings) -> None:
    settings.FLOWSITE_VAR = tmp_path


def run_seed(**options) -> str:
    text = StringIO()
    seed(OutputWrapper(text), **options)
    return text.getvalue()


def rights(name: str) -> set[str]:
    return User.objects.get(username=name).get_all_permissions()


def test_every_example_user_can_log_in():
    run_seed()
    assert {user.name for user in USERS} == {"reviewer", "requester", "auditor", "admin"}
    for user in USERS:
        assert authenticate(username=user.name, password=user.password) is not None


def test_each_example_user_may_do_its_part_and_no_more():
    run_seed()
    assert rights("reviewer") == {
        "approvals.view_approvalrequest",
        "approvals.decide_approvalrequest",
        "runs.view_run",
    }
    assert rights("requester") == {"runs.start_run"}
    assert rights("auditor") == {
        "runs.view_run",
        "approvals.view_approvalrequest",
        "approvals.view_auditentry",
    }
    assert User.objects.get(is_superuser=True).get_username() == "admin"


def test_the_first_seeding_starts_runs_as_the_requester():
    run_seed()
    flows = Run.objects.values_list("flow", "started_by__username").order_by("flow")
    assert list(flows) == [
        ("expenses", "requester"),
        ("sql_change", "requester"),
        ("sql_change", "requester"),
    ]


def test_runs_can_be_left_out():
    run_seed(runs=False)
    assert not Run.objects.exists()


def test_the_demo_files_are_made():
    run_seed()
    assert places.customers_path().is_file()
    assert ledger.payments(places.ledger_path()) == []


def test_seeding_again_changes_nothing():
    run_seed()
    reviewer = User.objects.get(username="reviewer")
    reviewer.set_password("of-my-own")
    reviewer.save()
    reviewer.groups.clear()
    auditors = Group.objects.get(name="Auditors")
    auditors.permissions.add(Group.objects.get(name="Requesters").permissions.get())
    assert run_seed() == ""
    assert authenticate(username="reviewer", password="of-my-own") is not None
    assert not reviewer.groups.exists()
    assert auditors.permissions.count() == 4
    assert Run.objects.count() == 3
    assert User.objects.count() == len(USERS)
