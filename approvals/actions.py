"""The verbs of approvals: each checks the right, and writes state, audit entry and wake-up in one
transaction."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from runs import forms
from runs.actions import lock_run, wake_run
from runs.engine import canonical
from runs.engine.redact import redact, redact_text
from runs.storage import encrypt

from . import audit
from .digest import is_intact
from .forms import FormUnavailable, form_source
from .models import CONTENT_COLUMN, ApprovalRequest, Decision
from .seals import seal_decision

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MAX_REASON = 2_000


class NotAllowed(PermissionDenied):
    """This person may not decide this request; the message says why."""


class AlreadyDecided(Exception):
    """Someone was first, or the request was closed; ``request`` is as it is now."""

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(outcome_in_words(request))
        self.request = request


class StalePage(Exception):
    """What the page showed isn't what would run, or can't be checked; nothing was decided."""

    def __init__(self, request: ApprovalRequest, message: str) -> None:
        super().__init__(message)
        self.request = request
        self.message = message


class InvalidAnswer(ValueError):
    """The answer doesn't fit; ``errors`` are messages by field, ``""`` for the whole form and
    ``"reason"`` for the reason."""

    def __init__(self, errors: Mapping[str, list[str]]) -> None:
        super().__init__("; ".join(m for messages in errors.values() for m in messages))
        self.errors = errors


def why_not(request: ApprovalRequest, user: User) -> str:
    """Why a user may not decide a request, in words; empty where they may (see
    ``ApprovalRequest.objects.decidable_by``, which lists by the same rule)."""
    if not (user.is_active and user.has_perm("approvals.decide_approvalrequest")):
        return "You don't have the right to approve or reject."
    if request.run.started_by_id == user.pk:
        return "You started this run, so someone else must decide."
    return ""


def outcome_in_words(request: ApprovalRequest) -> str:
    """What became of a request, who did it and when, in one sentence."""
    decision = request.final_decision
    if decision is not None and request.status in (
        ApprovalRequest.Status.APPROVED,
        ApprovalRequest.Status.REJECTED,
    ):
        when = decision.decided_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{decision.by_name} {request.status} this request on {when}."
    return f"This request is {request.status}."


def decide(
    request_id: UUID,
    *,
    by: User,
    verdict: str,
    digest: str,
    reason: str = "",
    content: Mapping[str, Any] | None = None,
) -> Decision:
    """Approve or reject a request, once.

    The run and the request are locked; right, status, what was shown (``digest``, as the page
    carried it) and the answer are checked under the locks; the decision, the request's outcome,
    the audit entry and the run's wake-up are written. All of it commits or none. ``content`` is
    the form's answer as JSON-able data; a rejection needs a reason instead.

    Raises ApprovalRequest.DoesNotExist (also for a request that ``by`` may not see), NotAllowed,
    AlreadyDecided, StalePage, InvalidAnswer; each leaves everything as it was.
    """
    with transaction.atomic():
        run_id = ApprovalRequest.objects.visible_to(by).values_list("run_id").get(pk=request_id)[0]
        run = lock_run(run_id)
        request = ApprovalRequest.objects.select_for_update().get(pk=request_id)
        request.run = run
        if refusal := why_not(request, by):
            raise NotAllowed(refusal)
        if not request.is_open:
            raise AlreadyDecided(request)
        _check_shown(request, digest)
        approved = _verdict(verdict) == Decision.Verdict.APPROVE
        value = _check_answer(request, approved, reason, content)
        now = timezone.now()
        decision = Decision(
            request=request,
            verdict=verdict,
            by=by,
            by_name=by.get_username(),
            reason=redact_text(reason.strip()),
            digest=request.digest,
            decided_at=now,
        )
        if approved and request.form_schema is not None:
            plain = canonical.dumps(canonical.encode(dict(content or {}), path="answer"))
            decision.content = encrypt(plain, column=CONTENT_COLUMN, row=decision.pk)
            decision.content_shown = redact(value)
        seal_decision(decision)
        decision.save(force_insert=True)
        request.status = (
            ApprovalRequest.Status.APPROVED if approved else ApprovalRequest.Status.REJECTED
        )
        request.decided_at = now
        request.save(update_fields=["status", "decided_at"])
        audit.record(
            f"request.{request.status}",
            actor=by,
            actor_name=decision.by_name,
            run_id=run.pk,
            request_id=request.pk,
            summary=request.summary,
            data={
                "tool": request.tool,
                "digest": request.digest,
                "reason": decision.reason,
                "answer": decision.content_shown,
            },
        )
        wake_run(
            run,
            "approval.answered",
            node=request.node,
            data={
                "request": str(request.pk),
                "outcome": request.status,
                "by": decision.by_name,
                "summary": request.summary,
            },
        )
    return decision


def _verdict(verdict: str) -> Decision.Verdict:
    try:
        return Decision.Verdict(verdict)
    except ValueError:
        raise InvalidAnswer({"": ["Choose approve or reject."]}) from None


def _check_shown(request: ApprovalRequest, digest: str) -> None:
    if not request.run.is_open:
        raise StalePage(request, "The run has ended, so there is nothing left to decide.")
    if not is_intact(request) or request.decisions.exists():
        raise StalePage(
            request,
            "This request was changed in the database after it was asked, so it can't be decided. "
            "Tell whoever runs this site.",
        )
    if not hmac.compare_digest(digest.encode(), request.digest.encode()):
        raise StalePage(
            request,
            "The page you answered showed something else than what would run. Read it again as it "
            "is here, then decide.",
        )


def _check_answer(
    request: ApprovalRequest, approved: bool, reason: str, content: Mapping[str, Any] | None
) -> Any:
    """The form's value; InvalidAnswer, StalePage."""
    errors: dict[str, list[str]] = {}
    if not approved and not any(c.isprintable() and not c.isspace() for c in reason):
        errors["reason"] = ["Say why you reject it."]
    if len(reason) > MAX_REASON:
        errors["reason"] = [f"No more than {MAX_REASON} characters; this has {len(reason)}."]
    if "\0" in reason:
        errors["reason"] = ["The reason holds a NUL character; take it out."]
    value = None
    if approved:
        try:
            source = form_source(request)
        except FormUnavailable as error:
            raise StalePage(request, str(error)) from error
        if source is not None:
            value, form_errors = forms.check(source, content or {})
            errors |= form_errors
    if errors:
        raise InvalidAnswer(errors)
    return value
