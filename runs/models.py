"""What a run is: its row, which is the truth about it, and its events."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: User | AnonymousUser) -> RunQuerySet:
        """The runs that a user may look at: all with the right ``runs.view_run``, else the own."""
        if not user.is_active or user.is_anonymous:
            return self.none()
        if user.has_perm("runs.view_run"):
            return self.all()
        return self.filter(started_by=user.pk)


class Run(models.Model):
    """One execution of a flow.

    ``checkpoint`` holds the sealed checkpoint, encrypted and bound to this row (see
    ``runs.storage``). ``input_shown`` and ``result_shown`` are display trees
    (``runs.engine.redact``), redacted when they were written. ``revision`` grows with every change
    that a page shows, so that a page can ask whether anything is new.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        PAUSED = "paused"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"
        ATTENTION = "attention"

    # Why a run stands still although nothing of its last walk ran and no decision was spent.
    NOTHING_RAN: ClassVar = (
        "already-decided",
        "checkpoint-tampered",
        "decision-tampered",
        "graph-changed",
        "invalid-answer",
        "unknown-flow",
        "unknown-request",
    )
    OPEN: ClassVar = (Status.QUEUED, Status.RUNNING, Status.PAUSED, Status.ATTENTION)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    flow = models.CharField(max_length=200)
    version = models.CharField(max_length=100)
    graph = models.CharField(max_length=64, help_text="digest of the flow's graph")
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+"
    )
    via = models.CharField(max_length=32, help_text="where it was started: page, command line")
    input_shown = models.JSONField()
    result_shown = models.JSONField(null=True, blank=True)
    checkpoint = models.TextField(blank=True)
    checkpoint_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_node = models.CharField(max_length=200, blank=True)
    error_message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    queued_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveBigIntegerField(default=0)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at"]
        permissions: ClassVar = [("start_run", "Can start runs")]
        indexes: ClassVar = [
            models.Index("status", "queued_at", name="run_due"),
            models.Index(F("created_at").desc(), name="run_newest"),
            models.Index("lease_until", name="run_lease", condition=Q(status="running")),
        ]

    def __str__(self) -> str:
        return f"{self.flow} {self.short_id}"

    @property
    def short_id(self) -> str:
        """The first eight hex digits: enough for a person, never used to look a run up."""
        return self.id.hex[:8]

    @property
    def is_open(self) -> bool:
        """Whether the run can still go on."""
        return self.status in self.OPEN

    @property
    def can_try_again(self) -> bool:
        """Whether it stands still for a reason that, once mended, lets it go on."""
        return self.status == self.Status.ATTENTION and self.error_code in self.NOTHING_RAN

    @property
    def requester(self) -> str:
        """Who started it, in words."""
        return self.started_by.get_username() if self.started_by else self.via


class RunEvent(models.Model):
    """Something that happened in a run; written once, never changed. ``data`` is redacted."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=32)
    node = models.CharField(max_length=200, blank=True)
    visit = models.TextField(blank=True)
    tool = models.CharField(max_length=200, blank=True)
    call_id = models.TextField(blank=True)
    data: Any = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index("run", "id", name="event_of_run")]

    def __str__(self) -> str:
        return f"{self.kind} {self.node or self.tool}".strip()


class KeyCheck(models.Model):
    """Proof that a key is the one this database was written with; holds nothing of the key."""

    key_id = models.CharField(max_length=32, primary_key=True)
    proof = models.CharField(max_length=64)
    first_seen = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.key_id
