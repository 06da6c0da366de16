"""The pages of runs and flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRedirect

from runs import actions, registry
from runs.calls import calls
from runs.engine import Flow
from runs.forms import Field, SchemaForm
from runs.models import Run, RunEvent, RunQuerySet
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
from runs.storage import key_id_of
from runs.timeline import timeline

NEWEST_CALLS = 20  # what a run's page shows at once; the earlier ones open on demand
MAX_EVENTS = 2_000
RECENT_RUNS = 10

# The tabs of the list: their name in the URL, their words, and the statuses they show.
TABS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", "All", tuple(Run.Status.values)),
    ("attention", "Needs attention", (Run.Status.ATTENTION,)),
    ("active", "Active", (Run.Status.QUEUED, Run.Status.RUNNING)),
    ("paused", "Paused", (Run.Status.PAUSED,)),
    ("failed", "Failed", (Run.Status.FAILED,)),
    ("completed", "Completed", (Run.Status.COMPLETED,)),
    ("cancelled", "Cancelled", (Run.Status.CANCELLED,)),
)


@methods("GET")
def runs(request: HttpRequest) -> HttpResponse:
    """The runs that the user may see, newest first: by status and by words."""
    words = searched_for(request)
    chosen = request.GET.get("status", "")
    statuses = {name: statuses for name, _, statuses in TABS}.get(chosen)
    if statuses is None:
        raise Http404("There is no such list of runs.")
    found = _search(Run.objects.visible_to(user_of(request)), words)
    counts = dict(found.order_by().values_list("status").annotate(Count("pk")))
    rows = found.filter(status__in=statuses).select_related("started_by")
    context = {
        "page": paginate(request, rows.defer("checkpoint", "result_shown", "error_message")),
        "tabs": _tabs(counts, chosen),
        "words": words,
        "chosen": chosen,
        "section": "runs",
    }
    return render_page(request, "runs/runs.html", "runs/_run_list.html", context)


def _search(rows: RunQuerySet, words: str) -> RunQuerySet:
    if not words:
        return rows
    return rows.filter(
        Q(flow__icontains=words)
        | Q(started_by__username__icontains=words)
        | Q(started_by__isnull=True, via__icontains=words)
        | Q(id__startswith=words)
    )


def _tabs(counts: dict[str, int], chosen: str) -> list[dict[str, Any]]:
    """The tabs that have runs, beside the first and the chosen one."""
    tabs = [
        {
            "name": name,
            "words": words,
            "count": sum(counts.get(status, 0) for status in statuses),
            "chosen": name == chosen,
        }
        for name, words, statuses in TABS
    ]
    return [tab for tab in tabs if tab["count"] or tab["chosen"] or not tab["name"]]


@methods("GET", "POST")
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run. A poll names the version it has ``seen``, and gets 204 while that is the newest.

    POST tries a run again that stands still, and leads back to its page.
    """
    if request.method == "POST":
        return _try_again(request, run_id)
    visible = Run.objects.visible_to(user_of(request)).select_related("started_by")
    run = get_object_or_404(visible, pk=run_id)
    version = f"{run.revision}-{run.status}"
    if htmx_of(request) and request.GET.get("seen") == version:
        return nothing_new()
    asked = run.requests.visible_to(user_of(request))
    requests = list(asked.defer("arguments", "form_schema").prefetch_related("decisions"))
    context = story(run)
    made = calls(context["events"], stopped=not run.is_open)
    context |= {
        "section": "runs",
        "run": run,
        "version": version,
        "requests": requests,
        "open_count": sum(approval.is_open for approval in requests),
        "calls": made[-NEWEST_CALLS:],
        "earlier_calls": made[:-NEWEST_CALLS],
        "checkpoint_size": len(run.checkpoint),
        "seal_key": key_id_of(run.checkpoint),
    }
    return render_page(request, "runs/run.html", "runs/_run_body.html", context)


def _try_again(request: HttpRequest, run_id: UUID) -> HttpResponse:
    try:
        actions.try_again(run_id, by=user_of(request))
    except Run.DoesNotExist as error:
        raise Http404("There is no such run, or it isn't yours to see.") from error
    except actions.NotStandingStill as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, "The run is queued again.")
    return redirect("run", run_id)


def story(run: Run) -> dict[str, Any]:
    """What the pages tell of a run's course: its ``events``, ``timeline`` and ``ahead``.

    ``ahead`` are the nodes that the run hasn't come to. Of very many events, the newest are told.
    """
    newest = run.events.order_by("-id")[: MAX_EVENTS + 1]
    events: list[RunEvent] = list(newest)[::-1]
    stopped = not run.is_open or run.status == Run.Status.ATTENTION
    until = (run.finished_at or run.changed_at) if stopped else timezone.now()
    drawn = timeline(events, until, stopped=stopped)
    return {
        "events": events[-MAX_EVENTS:],
        "events_left_out": len(events) > MAX_EVENTS,
        "timeline": drawn,
        "ahead": _ahead(run, events) if run.is_open else [],
    }


def _ahead(run: Run, events: Iterable[RunEvent]) -> list[str]:
    try:
        flow = registry.get_flow(run.flow, run.version)
    except registry.UnknownFlow:
        return []
    been = {event.node for event in events}
    return [name for name in flow.nodes if name not in been]


@methods("GET")
def flows(request: HttpRequest) -> HttpResponse:
    """Every flow there is, with the user's runs of it counted."""
    visible = Run.objects.visible_to(user_of(request)).order_by()
    counted = visible.values("flow").annotate(
        all=Count("pk"), open=Count("pk", filter=Q(status__in=Run.OPEN))
    )
    counts = {row["flow"]: row for row in counted}
    rows = [{"flow": flow, "runs": counts.get(flow.name)} for flow in registry.flows()]
    context = {"rows": rows, "section": "flows"}
    return render_page(request, "runs/flows.html", "runs/flows.html", context)


@methods("GET", "POST")
def flow(request: HttpRequest, name: str) -> HttpResponse:
    """One flow; a POST starts a run and leads there, or is 422 with the form and its input."""
    try:
        flow = registry.get_flow(name)
    except registry.UnknownFlow as error:
        raise Http404(str(error)) from error
    if request.method == "POST":
        return _start(request, flow)
    return _flow_page(request, flow, _form(flow))


def _form(flow: Flow, data: QueryDict | None = None) -> SchemaForm:
    return SchemaForm(flow.state, prefix="form.", data=data)


def _is_asked(field: Field) -> bool:
    """Whether a person fills it in; a field of the state marked ``readOnly`` is the run's own."""
    return not field.schema.get("readOnly")


def _asked(form: SchemaForm) -> dict[str, Any]:
    asked = {field.name for field in form.fields if _is_asked(field)}
    return {name: value for name, value in form.content.items() if name in asked}


@permission_required("runs.start_run", raise_exception=True)
def _start(request: HttpRequest, flow: Flow) -> HttpResponse:
    form = _form(flow, request.POST)
    errors: Mapping[str, list[str]] = {}
    if form.is_valid():
        try:
            run = actions.start_run(flow.name, _asked(form), by=user_of(request), via="page")
        except actions.InvalidInput as invalid:
            errors = invalid.errors
        else:
            if htmx_of(request):
                return HttpResponseClientRedirect(reverse("run", args=[run.pk]))
            return redirect("run", run.pk)
    return _flow_page(request, flow, form, errors=errors, status=HTTPStatus.UNPROCESSABLE_ENTITY)


def _flow_page(
    request: HttpRequest,
    flow: Flow,
    form: SchemaForm,
    *,
    errors: Mapping[str, list[str]] | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    visible = Run.objects.visible_to(user_of(request)).filter(flow=flow.name)
    recent = visible.select_related("started_by").defer("checkpoint", "result_shown")
    problems = place_errors(form, errors or {})
    form.fields = [field for field in form.fields if _is_asked(field) or field.errors]
    context = {
        "flow": flow,
        "form": form,
        "problems": problems,
        "recent": recent[:RECENT_RUNS],
        "section": "flows",
    }
    return render_page(request, "runs/flow.html", "runs/_start.html", context, status=status)
