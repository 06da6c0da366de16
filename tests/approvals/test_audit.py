"""The audit trail: entries are added and never changed."""

import uuid

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from approvals import audit
from approvals.models import AppendOnly, AuditEntry
from tests.support.make import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry():
    return audit.record(
        "request.approved",
        actor=person("reviewer"),
        actor_name="reviewer",
        run_id=uuid.uuid4(),
        request_id=uuid.uuid4(),
        summary="Do pay",
        data={"reason": "because"},
    )


def kept(entry):
    """The entry is in the database as it was written."""
    stored = AuditEntry.objects.get(pk=entry.pk)
    return (stored.action, stored.actor_name, stored.summary, stored.data) == (
        "request.approved",
        "reviewer",
        "Do pay",
        {"reason": "because"},
    ) and AuditEntry.objects.count() == 1


def test_an_entry_says_who_did_what_to_what_and_when(entry):
    stored = AuditEntry.objects.get()
    assert stored.actor == entry.actor
    assert (stored.run_id, stored.request_id, stored.at) == (
        entry.run_id,
        entry.request_id,
        entry.at,
    )
    assert kept(entry)


def test_a_long_summary_is_cut_to_its_column():
    entry = audit.record("x", actor=None, actor_name="flowsite", summary="x" * 600)
    entry.refresh_from_db()
    assert len(entry.summary) == 500


CHANGES = {
    "save": lambda entry: entry.save(),
    "save of a fresh look": lambda entry: AuditEntry.objects.get(pk=entry.pk).save(),
    "save of one field": lambda entry: entry.save(update_fields=["summary"]),
    "delete": lambda entry: entry.delete(),
    "delete of a fresh look": lambda entry: AuditEntry.objects.get(pk=entry.pk).delete(),
    "update": lambda entry: AuditEntry.objects.filter(pk=entry.pk).update(summary="x"),
    "update of all": lambda entry: AuditEntry.objects.update(summary="x"),
    "delete of all": lambda entry: AuditEntry.objects.all().delete(),
    "bulk_update": lambda entry: AuditEntry.objects.bulk_update([entry], ["summary"]),
    "update_or_create": lambda entry: AuditEntry.objects.update_or_create(
        pk=entry.pk, defaults={"summary": "x"}
    ),
    "bulk_create over it": lambda entry: AuditEntry.objects.bulk_create(
        [entry], update_conflicts=True, update_fields=["summary"], unique_fields=["id"]
    ),
}


@pytest.mark.parametrize("way", CHANGES)
def test_an_entry_can_not_be_changed_or_deleted(entry, way):
    entry.summary = "Do nothing"
    with pytest.raises(AppendOnly, match="only ever added"), transaction.atomic():
        CHANGES[way](entry)
    assert kept(entry)


def test_a_new_entry_with_the_id_of_another_does_not_overwrite_it(entry):
    other = AuditEntry(pk=entry.pk, at=entry.at, actor_name="x", action="x")
    with pytest.raises(IntegrityError), transaction.atomic():
        other.save()
    assert kept(entry)


def test_who_has_acted_can_not_be_deleted(entry):
    with pytest.raises(ProtectedError):
        entry.actor.delete()
    assert kept(entry)


def test_several_entries_can_be_added_at_once(entry):
    AuditEntry.objects.bulk_create(
        [AuditEntry(at=entry.at, actor_name="x", action="x") for _ in range(2)]
    )
    assert AuditEntry.objects.count() == 3
