"""The site's own pages: the way in, the probes, and the pages for errors."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.csrf import requires_csrf_token

from flowsite import readiness
from runs.pages import htmx_of, method_not_allowed, methods, user_of


@methods("GET")
def home(request: HttpRequest) -> HttpResponse:
    """The inbox for who may decide, otherwise the runs."""
    may_decide = user_of(request).has_perm("approvals.decide_approvalrequest")
    return redirect("inbox" if may_decide else "runs")


class LoginForm(AuthenticationForm):
    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": "This user name and password don't match. Capital letters count.",
    }


class Login(LoginView):
    """The log-in; a wrong name or password comes back as 422 with the form."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        context = self.get_context_data(form=form)
        return self.render_to_response(context, status=HTTPStatus.UNPROCESSABLE_ENTITY)


class Logout(LogoutView):
    """The log-out, by POST alone."""

    def http_method_not_allowed(
        self, request: HttpRequest, *args: object, **kwargs: object
    ) -> HttpResponse:
        return method_not_allowed(request, ("POST",))


@login_not_required
@methods("GET")
def healthz(request: HttpRequest) -> HttpResponse:
    """The process is alive; asks nothing else of anything."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@login_not_required
@methods("GET")
def readyz(request: HttpRequest) -> HttpResponse:
    """200 if the site can work, otherwise 503 with what to do about it, one problem a line."""
    found = readiness.problems()
    return HttpResponse(
        "\n".join(found or ["ok"]) + "\n",
        status=HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK,
        content_type="text/plain; charset=utf-8",
    )


@requires_csrf_token
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponse(render_to_string("errors/400.html"), status=HTTPStatus.BAD_REQUEST)


@requires_csrf_token
def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    context = {"reason": str(exception)}
    return render(request, "errors/403.html", context, status=HTTPStatus.FORBIDDEN)


@requires_csrf_token
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "errors/404.html", status=HTTPStatus.NOT_FOUND)


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """The 500 page, or the 503 page where it was the database that failed; needs nothing else."""
    if isinstance(sys.exc_info()[1], (OperationalError, InterfaceError)):
        return readiness.unavailable("database")
    page = render_to_string("errors/500.html")
    return HttpResponse(page, status=HTTPStatus.INTERNAL_SERVER_ERROR)


@requires_csrf_token
@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that this session didn't make; for htmx, the page is loaded anew, drafts kept."""
    page = render_to_string("errors/csrf.html", {"again": request.get_full_path()})
    response = HttpResponse(page, status=HTTPStatus.FORBIDDEN)
    if htmx_of(request):
        response.headers["HX-Refresh"] = "true"
    return response
