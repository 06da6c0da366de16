"""What every page does alike: two renderings of one URL, and an answer to a wrong method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from runs.forms import SchemaForm

PAGE_SIZE = 50

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def user_of(request: HttpRequest) -> User:
    """The user who is logged in; every view but the public ones is reached only with one."""
    return cast(User, request.user)


def htmx_of(request: HttpRequest) -> HtmxDetails:
    """What htmx says about the request; falsy where it wasn't htmx that asked."""
    return cast(HtmxDetails, request.htmx)  # type: ignore[attr-defined]


def wants_partial(request: HttpRequest) -> bool:
    """Whether only the part that changes is asked for, rather than the whole page."""
    htmx = htmx_of(request)
    return bool(htmx) and not htmx.history_restore_request


def render_page(
    request: HttpRequest,
    whole: str,
    part: str,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """The template ``part`` for htmx and ``whole``, which includes it, for everything else."""
    partial = wants_partial(request)
    response = render(
        request, part if partial else whole, context | {"partial": partial}, status=status
    )
    patch_vary_headers(response, ["HX-Request"])
    return response


def nothing_new() -> HttpResponse:
    """The answer to a poll that has seen the newest version: htmx leaves the page as it is."""
    response = HttpResponse(status=204)
    patch_vary_headers(response, ["HX-Request"])
    return response


def searched_for(request: HttpRequest) -> str:
    """The words of ``?q=``."""
    return request.GET.get("q", "").strip()


def paginate(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """The page of ``rows`` that ``?page=`` names; the nearest one where there is no such page."""
    return Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))


def place_errors(form: SchemaForm | None, errors: Mapping[str, list[str]]) -> list[str]:
    """Put the messages of ``errors`` at the fields that they name; return those of no field."""
    fields = {field.name: field for field in form.fields} if form else {}
    rest: list[str] = []
    for name, found in errors.items():
        if name in fields:
            fields[name].errors = list(found)
        else:
            rest += found
    return rest


def methods(*allowed: str) -> Callable[[View[P]], View[P]]:
    """Answer any method but ``allowed`` (and HEAD, where GET is) with a 405 page."""
    known = {*allowed, *(["HEAD"] if "GET" in allowed else [])}

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def checked(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if request.method not in known:
                return method_not_allowed(request, allowed)
            return view(request, *args, **kwargs)

        return checked

    return decorate


def method_not_allowed(request: HttpRequest, allowed: tuple[str, ...]) -> HttpResponse:
    """The 405 page; ``allowed`` are the methods that the URL takes."""
    page = render(request, "errors/405.html", {"allowed": allowed})
    response = HttpResponseNotAllowed(allowed)
    response.content = page.content
    return response
