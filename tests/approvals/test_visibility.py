"""Who sees and who decides which requests: the lists and the rule say the same."""

import pytest
from django.contrib.auth.models import AnonymousUser

from approvals.actions import NotAllowed, why_not
from approvals.models import ApprovalRequest, AuditEntry
from runs.models import Run
from tests.support import flows
from tests.support.make import (
    DECIDE,
    VIEW,
    approve,
    person,
    reject,
    request_of,
    reviewer,
    set_aside,
)
from tests.support.make import START as MAY_START

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flows_of_the_test(monkeypatch):
    flows.install(monkeypatch)


def superuser():
    user = person("kind")
    user.is_superuser = True
    user.save()
    return user


def left():
    user = superuser()
    user.is_active = False
    user.save()
    return user


# What kind of user it is, and of "own" and "others" which requests they see and may decide.
KINDS = {
    "a superuser": (superuser, {"own", "others"}, {"others"}),
    "one who has left": (left, set(), set()),
    "one without rights": (lambda: person("kind"), {"own"}, set()),
    "a starter": (lambda: person("kind", MAY_START), {"own"}, set()),
    "a viewer": (lambda: person("kind", VIEW), {"own", "others"}, set()),
    "one who may decide and not look": (lambda: person("kind", DECIDE), {"own"}, set()),
    "a reviewer": (lambda: reviewer("kind"), {"own", "others"}, {"others"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_lists_and_rule_agree_for(kind):
    make, sees, decides = KINDS[kind]
    user = make()
    own, others = request_of("small"), request_of("small")
    set_aside(own.run, started_by_id=user.pk)
    named = {"own": own, "others": others}
    visible = set(ApprovalRequest.objects.visible_to(user))
    decidable = set(ApprovalRequest.objects.decidable_by(user))
    assert visible == {named[name] for name in sees}
    assert decidable == {named[name] for name in decides}
    for request in named.values():
        request = ApprovalRequest.objects.get(pk=request.pk)
        if request in visible:
            assert (why_not(request, user) == "") is (request in decidable)
        if request in decidable:
            approve(request, by=user)
        else:
            with pytest.raises((NotAllowed, ApprovalRequest.DoesNotExist)):
                approve(request, by=user)


def test_who_is_not_logged_in_sees_and_decides_nothing():
    request_of("small")
    for rows in (
        ApprovalRequest.objects.visible_to(AnonymousUser()),
        ApprovalRequest.objects.decidable_by(AnonymousUser()),
        AuditEntry.objects.visible_to(AnonymousUser()),
        Run.objects.visible_to(AnonymousUser()),
    ):
        assert not rows.exists()


def test_a_request_of_a_run_that_nobody_started_may_be_decided():
    request = request_of("small", by=None)
    assert request in ApprovalRequest.objects.decidable_by(reviewer())


def test_two_starters_see_their_own_requests_only():
    one, other = person("one", MAY_START), person("other", MAY_START)
    request, _ = request_of("small", by=one), request_of("small", by=other)
    assert list(ApprovalRequest.objects.visible_to(one)) == [request]


def test_a_decided_request_stays_visible_and_can_be_decided_no_more():
    user = reviewer()
    approved, rejected = request_of("small"), request_of("small")
    approve(approved, by=user)
    reject(rejected, by=user)
    assert set(ApprovalRequest.objects.visible_to(user)) == {approved, rejected}
    assert not ApprovalRequest.objects.decidable_by(user).exists()


def test_the_audit_trail_is_for_who_has_the_right_to_it():
    request_of("small")
    auditor = person("auditor", "approvals.view_auditentry")
    assert AuditEntry.objects.visible_to(auditor).count() == 1
    assert not AuditEntry.objects.visible_to(reviewer()).exists()
    auditor.is_active = False
    assert not AuditEntry.objects.visible_to(auditor).exists()
