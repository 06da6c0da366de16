"""What every page shows around its own content."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest

from approvals.models import ApprovalRequest


def navigation(request: HttpRequest) -> dict[str, Any]:
    """How many requests wait for this user, and the groups they are in.

    Both are functions, asked at most once each and only by a page that shows them, so that a page
    that doesn't needs no database.
    """

    @cache
    def waiting_for_you() -> int:
        return ApprovalRequest.objects.decidable_by(request.user).count()

    @cache
    def groups() -> str:
        return ", ".join(request.user.groups.order_by("name").values_list("name", flat=True))

    return {"waiting_for_you": waiting_for_you, "user_groups": groups}
