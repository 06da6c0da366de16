"""The demo's users, groups, files and first runs. Seeding again adds only what is missing."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.management.base import OutputWrapper
from django.db import transaction

from flowsite.demo import customers, ledger, places
from runs.actions import start_run
from runs.models import Run


@dataclass(frozen=True)
class ExampleUser:
    """Someone to log in as. The password is public: it is for trying the site only."""

    name: str
    group: str | None
    can: str

    @property
    def password(self) -> str:
        return f"{self.name}-demo"


GROUPS = {
    "Reviewers": (
        "approvals.view_approvalrequest",
        "approvals.decide_approvalrequest",
        "runs.view_run",
    ),
    "Requesters": ("runs.start_run",),
    "Auditors": ("runs.view_run", "approvals.view_approvalrequest", "approvals.view_auditentry"),
}

USERS = (
    ExampleUser("reviewer", "Reviewers", "approves and rejects"),
    ExampleUser("requester", "Requesters", "starts runs and sees its own"),
    ExampleUser("auditor", "Auditors", "reads runs, requests and the audit trail"),
    ExampleUser("admin", None, "may do everything"),
)

FIRST_RUNS: tuple[tuple[str, dict[str, object]], ...] = (
    # The whole file last: it pays some 200 claims before it first asks.
    ("sql_change", {}),
    ("sql_change", {"statement": "DELETE FROM orders WHERE ordered_on < '2018-01-01'"}),
    ("expenses", {}),
)


def seed(stdout: OutputWrapper, *, runs: bool = True) -> None:
    """Make the groups, users and files of the demo where they are missing.

    What is there already is kept: rights that were added to a group, changed passwords, the
    ledger. With `runs`, the requester starts a few on a site that has none. The database part is
    atomic. Writes a line to `stdout` for what was made.
    """
    with customers.open_customers(places.customers_path()):
        pass  # opening makes it
    ledger.payments(places.ledger_path())
    with transaction.atomic():
        for name, permissions in GROUPS.items():
            _group(name, permissions)
        made = [user.name for user in USERS if _user(user)]
        if made:
            stdout.write(f"Made the users {', '.join(made)}.")
        if runs and not Run.objects.exists():
            requester = get_user_model().objects.get(username="requester")
            for flow, values in FIRST_RUNS:
                start_run(flow, values, by=requester)
            stdout.write(f"Started {len(FIRST_RUNS)} runs as requester.")


def _group(name: str, permissions: tuple[str, ...]) -> None:
    group, _ = Group.objects.get_or_create(name=name)
    for permission in permissions:
        app, codename = permission.split(".")
        group.permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )


def _user(example: ExampleUser) -> bool:
    """Whether the user had to be made; one that is there is left alone."""
    users = get_user_model().objects
    if users.filter(username=example.name).exists():
        return False
    if example.group is None:
        users.create_superuser(example.name, password=example.password)
    else:
        user = users.create_user(example.name, password=example.password)
        user.groups.add(Group.objects.get(name=example.group))
    return True
