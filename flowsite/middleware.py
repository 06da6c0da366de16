"""What every answer of the site goes through.

``content_security_policy`` sets the headers that tell a browser what a page may do,
``site_ready`` answers in place of the site while its database or its keys can't be used,
``no_nul_characters`` refuses addresses that no database could look up, and ``htmx_redirects``
sends the whole browser, and not a part of a page, to the log-in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.cache import patch_vary_headers

from flowsite.readiness import unavailable
from runs import keycheck
from runs.pages import htmx_of

GetResponse = Callable[[HttpRequest], HttpResponseBase]

logger = logging.getLogger(__name__)

# Everything a page loads comes from this site, and nothing is written inline. Django's own admin
# works under the same policy.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
# Django's own pages for a mistake, which only debug mode shows, are written inline.
DEBUG_POLICY = POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
PERMISSIONS = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Set the security policy, and keep pages out of every cache unless a view said otherwise."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        from_debug = settings.DEBUG and response.status_code in (404, 500)
        policy = DEBUG_POLICY if from_debug else POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return middleware


class site_ready:  # noqa: N801 - named like its neighbours in the settings
    """Answer 503, with a page that needs neither database nor session, while the site can't work.

    That is while ``keycheck.problems`` reports any (asked until it reports none for the first
    time, then no more in this process), and whenever the database can't be reached.
    ``/healthz`` and ``/readyz`` answer for themselves.
    """

    OPEN = ("/healthz", "/readyz")

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.known_good = False

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info in self.OPEN:
            return self.get_response(request)
        if not self.known_good:
            try:
                problems = keycheck.problems()
            except DatabaseError as error:
                return self._failed(error)
            if problems:
                logger.error("The site answers 503: %s", " ".join(problems))
                return unavailable("keys")
            self.known_good = True
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Load the session and the user, which later middleware does where it can't be helped."""
        if request.path_info in self.OPEN:
            return None
        try:
            _ = request.user.is_authenticated
        except (OperationalError, InterfaceError) as error:
            return self._failed(error)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer for a view that lost the database."""
        if isinstance(error, (OperationalError, InterfaceError)):
            return self._failed(error)
        return None

    @staticmethod
    def _failed(error: Exception) -> HttpResponse:
        logger.error("The site answers 503: %s", error)
        return unavailable("database")


def no_nul_characters(get_response: GetResponse) -> GetResponse:
    """Refuse an address with a NUL character, which PostgreSQL takes in no text: 400.

    What is posted is checked by the forms, each at its field.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if "\0" in unquote(request.get_full_path()):
            raise BadRequest("The address holds a NUL character.")
        return get_response(request)

    return middleware


def _page_of(request: HttpRequest) -> SplitResult:
    """The page that the person is on, as the browser says; the front page where that is no URL."""
    try:
        return urlsplit(htmx_of(request).current_url_abs_path or "/")
    except ValueError:
        return urlsplit("/")


def htmx_redirects(get_response: GetResponse) -> GetResponse:
    """Make a redirect to the log-in, asked for by htmx, one of the whole browser.

    The log-in leads back to the page that the person was on, rather than to the URL of the part
    that htmx asked for.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if htmx_of(request) and response.status_code in (301, 302, 303):
            there = urlsplit(response.headers["Location"])
            login_url = resolve_url(settings.LOGIN_URL)
            if there.path == login_url and not there.netloc:
                back = _page_of(request)
                page = urlunsplit(("", "", back.path, back.query, ""))
                redirect = redirect_to_login(page, login_url)
                response = HttpResponse(status=204, headers={"HX-Redirect": redirect.url})
                patch_vary_headers(response, ["HX-Request"])
        return response

    return middleware
