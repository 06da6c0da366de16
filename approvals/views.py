"""The inbox, one request, and the audit trail."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.db.models import Count, Max, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django_htmx.http import trigger_client_event

from approvals.actions import AlreadyDecided, InvalidAnswer, StalePage, decide, why_not
from approvals.digest import is_intact
from approvals.forms import form_for
from approvals.models import ApprovalRequest, ApprovalRequestQuerySet, AuditEntry, Decision
from runs.forms import SchemaForm
from runs.models import Run
from runs.pages import (
    htmx_of,
    methods,
    nothing_new,
    paginate,
    place_errors,
    render_page,
    searched_for,
    user_of,
)
from runs.views import story

TABS = {"you": "For you", "open": "All open", "decided": "Decided"}
# What lists don't show and needn't load.
HEAVY = (
    "arguments",
    "shown",
    "form_schema",
    *(f"run__{name}" for name in ("checkpoint", "input_shown", "result_shown", "error_message")),
)
DONE = {
    Decision.Verdict.APPROVE: "Approved. The run goes on.",
    Decision.Verdict.REJECT: "Rejected. It will not run.",
}


@methods("GET")
def inbox(request: HttpRequest) -> HttpResponse:
    """The requests that wait for the user, all open ones, or the decided ones.

    A poll names the version it has ``seen``, and gets 204 while that is the newest.
    """
    user = user_of(request)
    may_decide = user.has_perm("approvals.decide_approvalrequest")
    tab = request.GET.get("tab") or ("you" if may_decide else "open")
    if tab not in TABS:
        raise Http404("There is no such list of requests.")
    words = searched_for(request)
    found = _search(ApprovalRequest.objects.visible_to(user), words)
    mine = ApprovalRequest.objects.decidable_by(user).order_by().values("pk")
    pending = Q(status=ApprovalRequest.Status.PENDING)
    state = found.order_by().aggregate(
        you=Count("pk", filter=Q(pk__in=mine)),
        open=Count("pk", filter=pending),
        decided=Count("pk", filter=~pending),
        last_asked=Max("requested_at"),
        last_decided=Max("decided_at"),
    )
    version = hashlib.blake2s(repr(sorted(state.items())).encode(), digest_size=8).hexdigest()
    if htmx_of(request) and request.GET.get("seen") == version:
        return nothing_new()
    context = {
        "page": paginate(request, _rows(found, tab, user)),
        "tab": tab,
        "tabs": [
            {"name": name, "words": label, "count": state[name], "chosen": name == tab}
            for name, label in TABS.items()
            if name != "you" or may_decide
        ],
        "words": words,
        "version": version,
        "section": "inbox",
    }
    return render_page(request, "approvals/inbox.html", "approvals/_inbox_list.html", context)


def _search(rows: ApprovalRequestQuerySet, words: str) -> ApprovalRequestQuerySet:
    if not words:
        return rows
    return rows.filter(
        Q(summary__icontains=words)
        | Q(run__flow__icontains=words)
        | Q(run__started_by__username__icontains=words)
        | Q(run__started_by__isnull=True, run__via__icontains=words)
    )


def _rows(found: ApprovalRequestQuerySet, tab: str, user: User) -> ApprovalRequestQuerySet:
    """One tab's requests: what waits, the oldest first; what was decided, the newest first."""
    rows = found.select_related("run__started_by").defer(*HEAVY)
    if tab == "decided":
        closed = rows.exclude(status=ApprovalRequest.Status.PENDING)
        return closed.prefetch_related("decisions").order_by("-decided_at", "-requested_at")
    rows = rows.annotate(has_form=Q(form_schema__isnull=False))
    if tab == "you":
        mine = ApprovalRequest.objects.decidable_by(user).order_by().values("pk")
        return rows.filter(pk__in=mine)
    return rows.filter(status=ApprovalRequest.Status.PENDING)


@methods("GET", "POST")
def request(request: HttpRequest, request_id: UUID) -> HttpResponse:
    """One request. GET shows it and changes nothing; POST decides it.

    A poll names the version it has ``seen``: it gets 204 while that is the newest, and otherwise
    what stands beside the form, never the form.
    """
    approval = _find(request, request_id)
    if request.method == "POST":
        return _decide(request, approval)
    seen = request.GET.get("seen")
    if not (htmx_of(request) and seen):
        form = form_for(approval) if approval.is_open else None
        return _request_page(request, approval, form)
    if seen == _version(approval):
        return nothing_new()
    closed_meanwhile = "pending" in seen and not approval.is_open
    context = _context(request, approval) | {"notice": "meanwhile" if closed_meanwhile else ""}
    part = "approvals/_request_live.html"
    return render_page(request, part, part, context)


def _find(request: HttpRequest, request_id: UUID) -> ApprovalRequest:
    visible = ApprovalRequest.objects.visible_to(user_of(request))
    try:
        return (
            visible.select_related("run__started_by")
            .prefetch_related("decisions")
            .get(pk=request_id)
        )
    except ApprovalRequest.DoesNotExist as error:
        raise Http404("There is no such request, or it isn't yours to see.") from error


def _decide(request: HttpRequest, approval: ApprovalRequest) -> HttpResponse:
    """Take the decision, or say why it can't be taken: 403, 409 or 422, with what was typed.

    What ``decide`` would refuse anyway is left for it to refuse: of an answer that is both late
    and incomplete, the person learns that it is late.
    """
    user, reason = user_of(request), request.POST.get("reason", "")
    form = form_for(approval, data=request.POST)
    page = partial(_request_page, request, form=form, reason=reason)
    try:
        verdict = Decision.Verdict(request.POST.get("verdict", ""))
    except ValueError:
        errors = {"": ["Choose to approve or to reject; nothing was decided."]}
        return page(approval, errors=errors, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    if verdict == Decision.Verdict.REJECT and form is not None:
        form.set_errors_aside()  # a rejection takes no answer
    digest, content = request.POST.get("digest", ""), None
    if approval.is_open and digest == approval.digest and not _refusal(approval, user):
        if verdict == Decision.Verdict.APPROVE and form is not None:
            if not form.is_valid():
                return page(approval, status=HTTPStatus.UNPROCESSABLE_ENTITY)
            content = form.content
        if _asks_twice(request, approval, verdict):
            return page(approval, confirming=verdict)
    try:
        decide(approval.pk, by=user, verdict=verdict, digest=digest, reason=reason, content=content)
    except ApprovalRequest.DoesNotExist as error:
        raise Http404("There is no such request, or it isn't yours to see.") from error
    except AlreadyDecided:
        fresh = _find(request, approval.pk)
        return _request_page(request, fresh, notice="late", status=HTTPStatus.CONFLICT)
    except StalePage as stale:
        fresh = _find(request, approval.pk)
        form = form_for(fresh, data=request.POST)
        return page(fresh, form=form, stale=stale.message, status=HTTPStatus.CONFLICT)
    except InvalidAnswer as invalid:
        return page(approval, errors=invalid.errors, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return _done(request, approval, verdict)


def _asks_twice(request: HttpRequest, approval: ApprovalRequest, verdict: Decision.Verdict) -> bool:
    """Whether a step of its own comes first; not where the answer can't be taken as it is."""
    complete = verdict == Decision.Verdict.APPROVE or bool(request.POST.get("reason", "").strip())
    return approval.risk == "high" and complete and request.POST.get("confirmed") != "1"


def _done(
    request: HttpRequest, approval: ApprovalRequest, verdict: Decision.Verdict
) -> HttpResponse:
    if not htmx_of(request):
        messages.success(request, _done_words(approval, verdict))
        return redirect("request", approval.pk)
    response = _request_page(
        request, _find(request, approval.pk), notice=_done_words(approval, verdict)
    )
    return trigger_client_event(response, "flowsite:decided", {"request": str(approval.pk)})


def _refusal(approval: ApprovalRequest, user: User) -> str:
    """Why this user can't decide this request now, in words; empty where they can."""
    if not approval.is_open:
        return ""
    if not is_intact(approval):
        return "It was changed in the database after it was asked. Tell whoever runs this site."
    return why_not(approval, user)


def _done_words(approval: ApprovalRequest, verdict: Decision.Verdict) -> str:
    if approval.run.status == Run.Status.ATTENTION:
        return "Your decision is kept. The run needs attention before it goes on; see its page."
    return DONE[verdict]


def _request_page(
    request: HttpRequest,
    approval: ApprovalRequest,
    form: SchemaForm | None = None,
    *,
    reason: str = "",
    confirming: str = "",
    notice: str = "",
    stale: str = "",
    errors: Mapping[str, list[str]] | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """The page of a request, as it is now.

    ``notice`` is ``late`` for an answer that came after another, or words to show as they are;
    ``stale`` says why the page that was answered doesn't count; ``confirming`` is the verdict
    that is asked for a second time.
    """
    user = user_of(request)
    by_field = dict(errors or {})
    reason_errors = by_field.pop("reason", [])
    context = _context(request, approval) | {
        "form": form,
        "reason": reason,
        "reason_errors": reason_errors,
        "problems": place_errors(form, by_field),
        "confirming": confirming,
        "notice": notice,
        "stale": stale,
        "refusal": _refusal(approval, user),
        "next": None if approval.is_open else _next(user),
    }
    return render_page(
        request, "approvals/request.html", "approvals/_request_body.html", context, status=status
    )


def _context(request: HttpRequest, approval: ApprovalRequest) -> dict[str, Any]:
    """What both the page and its live part show."""
    siblings = approval.run.requests.visible_to(user_of(request))
    waiting = siblings.filter(status=ApprovalRequest.Status.PENDING).exclude(pk=approval.pk)
    return {
        "section": "inbox",
        "approval": approval,
        "run": approval.run,
        "version": _version(approval),
        "also_waiting": waiting.only("summary", "run")[:5],
        **story(approval.run),
    }


def _version(approval: ApprovalRequest) -> str:
    return f"{approval.run.revision}-{approval.status}"


def _next(user: User) -> ApprovalRequest | None:
    """The request that has waited longest for this user."""
    return ApprovalRequest.objects.decidable_by(user).only("summary").first()


@methods("GET")
@permission_required("approvals.view_auditentry", raise_exception=True)
def audit(request: HttpRequest) -> HttpResponse:
    """The audit trail, newest first; of one run or one request where the URL names it."""
    entries = AuditEntry.objects.visible_to(user_of(request))
    chosen: dict[str, str] = {}
    problem = ""
    for name in ("run", "request"):
        if text := request.GET.get(name, "").strip():
            chosen[name] = text
            try:
                entries = entries.filter(**{f"{name}_id__range": _ids_from(text)})
            except ValueError:
                problem = f"{text[:40]!r} is not the id of a {name}, nor how one begins."
                entries = entries.none()
    context = {
        "page": paginate(request, entries),
        "chosen": chosen,
        "problem": problem,
        "section": "audit",
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK
    page = "approvals/audit.html"
    return render_page(request, page, page, context, status=status)


def _ids_from(beginning: str) -> tuple[UUID, UUID]:
    """The first and the last id that begins so, as pages show ids in short; ValueError."""
    digits = beginning.replace("-", "")
    if len(digits) > 32:
        raise ValueError("an id has 32 digits")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
