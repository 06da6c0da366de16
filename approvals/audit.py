"""The audit trail: one way to write an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.utils import timezone

from .models import AuditEntry

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def record(
    action: str,
    *,
    actor: AbstractBaseUser | None,
    actor_name: str,
    run_id: UUID | None = None,
    request_id: UUID | None = None,
    summary: str = "",
    data: Mapping[str, Any] = {},
) -> AuditEntry:
    """Add an entry, within the transaction of what it tells of. ``data`` is redacted already."""
    return AuditEntry.objects.create(
        at=timezone.now(),
        actor_id=None if actor is None else actor.pk,
        actor_name=actor_name,
        action=action,
        run_id=run_id,
        request_id=request_id,
        summary=summary[:500],
        data=dict(data),
    )
