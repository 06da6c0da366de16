"""Who was asked, what they saw, what they said, and the trail of it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from runs.models import Run

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


ARGUMENTS_COLUMN = "approvals.ApprovalRequest.arguments"
CONTENT_COLUMN = "approvals.Decision.content"


class ApprovalRequestQuerySet(models.QuerySet["ApprovalRequest"]):
    def visible_to(self, user: User | AnonymousUser) -> ApprovalRequestQuerySet:
        """All with the right ``approvals.view_approvalrequest``, else those of the own runs."""
        if not user.is_active or user.is_anonymous:
            return self.none()
        if user.has_perm("approvals.view_approvalrequest"):
            return self.all()
        return self.filter(run__started_by=user.pk)

    def decidable_by(self, user: User | AnonymousUser) -> ApprovalRequestQuerySet:
        """The open requests that a user may decide: with the right
        ``approvals.decide_approvalrequest``, and never for a run of one's own."""
        if not user.is_active or not user.has_perm("approvals.decide_approvalrequest"):
            return self.none()
        return (
            self.visible_to(user)
            .filter(status=ApprovalRequest.Status.PENDING)
            .filter(Q(run__started_by__isnull=True) | ~Q(run__started_by=user.pk))
        )


class ApprovalRequest(models.Model):
    """One question to a person about a run.

    ``summary`` and ``shown`` (a display tree, see ``runs.engine.redact``) are what a reviewer
    reads, redacted when they were written. ``arguments`` holds the raw arguments, encrypted and
    bound to this row. ``digest`` covers all that was shown and will run; a decision must name it.
    ``consumed_at`` is when the run went on with the decision.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        REJECTED = "rejected"
        EXPIRED = "expired"
        CANCELLED = "cancelled"
        SUPERSEDED = "superseded"

    class Kind(models.TextChoices):
        TOOL = "tool", "tool call"
        GATE = "gate"
        HUMAN = "human", "question"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="requests")
    kind = models.CharField(max_length=8, choices=Kind)
    status = models.CharField(max_length=12, choices=Status, default=Status.PENDING)
    flow = models.CharField(max_length=200, help_text="whose node asks: the run's, or one nested")
    flow_version = models.CharField(max_length=100)
    node = models.CharField(max_length=200)
    visit = models.TextField()
    tool = models.CharField(max_length=300, help_text="the tool, or node:<flow>.<node>")
    call_id = models.TextField()
    summary = models.CharField(max_length=500)
    about = models.CharField(max_length=300, blank=True, help_text="what the tool does")
    risk = models.CharField(max_length=32, blank=True)
    shown = models.JSONField()
    form_schema: Any = models.JSONField(null=True, blank=True)
    arguments = models.TextField()
    digest = models.CharField(max_length=64)
    requested_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    consumed_at = models.DateTimeField(null=True, blank=True)

    objects = ApprovalRequestQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["requested_at"]
        permissions: ClassVar = [("decide_approvalrequest", "Can approve and reject")]
        indexes: ClassVar = [
            models.Index("status", "requested_at", name="request_open"),
            models.Index(F("decided_at").desc(), name="request_decided"),
        ]

    def __str__(self) -> str:
        return self.summary

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.PENDING

    @property
    def final_decision(self) -> Decision | None:
        """The decision that closed the request, if a person closed it."""
        return max(self.decisions.all(), key=lambda decision: decision.decided_at, default=None)


class Decision(models.Model):
    """What one person said to a request; written once, never changed.

    ``content`` is the form's answer, encrypted and bound to this row; ``content_shown`` is its
    display tree. ``by_name`` keeps who it was in words, whatever becomes of the account. ``seal``
    tells a decision that was made through Flowsite from a row that was written by other hands.
    """

    class Verdict(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    request = models.ForeignKey(ApprovalRequest, models.CASCADE, related_name="decisions")
    verdict = models.CharField(max_length=8, choices=Verdict)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    content = models.TextField(blank=True)
    content_shown: Any = models.JSONField(null=True, blank=True)
    digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField()
    seal = models.CharField(max_length=100)

    class Meta:
        ordering: ClassVar = ["decided_at"]
        constraints: ClassVar = [
            models.UniqueConstraint("request", "by", name="one_decision_of_a_person"),
        ]

    def __str__(self) -> str:
        return f"{self.get_verdict_display()} by {self.by_name}"


class AppendOnly(Exception):
    """Raised on an attempt to change or delete an audit entry."""


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def visible_to(self, user: User | AnonymousUser) -> AuditEntryQuerySet:
        """All with the right ``approvals.view_auditentry``, else none."""
        if user.is_active and user.has_perm("approvals.view_auditentry"):
            return self.all()
        return self.none()

    def update(self, **kwargs: Any) -> NoReturn:
        raise AppendOnly("Audit entries are only ever added.")

    def delete(self) -> NoReturn:
        raise AppendOnly("Audit entries are only ever added.")

    def bulk_create(self, objs: Any, *args: Any, **kwargs: Any) -> list[AuditEntry]:
        if kwargs.get("update_conflicts"):
            raise AppendOnly("Audit entries are only ever added.")
        return super().bulk_create(objs, *args, **kwargs)


class AuditEntry(models.Model):
    """Who did what and when; only ever added.

    Runs and requests are named by id and not by foreign key: an entry outlives what it speaks of.
    ``data`` is redacted when it is written.
    """

    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )
    actor_name = models.CharField(max_length=150)
    action = models.CharField(max_length=64)
    run_id = models.UUIDField(null=True, blank=True, db_index=True)
    request_id = models.UUIDField(null=True, blank=True, db_index=True)
    summary = models.CharField(max_length=500, blank=True)
    data: Any = models.JSONField(default=dict)

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly("Audit entries are only ever added.")
        # Without this, an entry made with the id of another would overwrite that one.
        super().save(*args, **(kwargs | {"force_insert": True}))

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly("Audit entries are only ever added.")
