"""What tests of pages need: people logged in, answers to requests, pages as they are read."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from approvals.models import ApprovalRequest
from runs.models import Run

AUDIT = "approvals.view_auditentry"
VIEW_RUNS = "runs.view_run"
HTMX = {"HX-Request": "true"}


def as_user(user: User, **options: Any) -> Client:
    """A browser, without scripts, in which the user is logged in."""
    client = Client(**options)
    client.force_login(user)
    return client


def url_of(thing: Run | ApprovalRequest) -> str:
    return f"/{'runs' if isinstance(thing, Run) else 'approvals'}/{thing.pk}/"


def source_of(response: Any) -> str:
    text: str = response.content.decode()
    return text


def text_of(response: Any) -> str:
    """The words of a page, as they are read."""
    without_tags = re.sub(r"<[^>]*>", " ", source_of(response))
    return " ".join(without_tags.replace("&#x27;", "'").split())


def answer(client: Client, request: ApprovalRequest, *, headers: Any = None, **fields: str) -> Any:
    """Post an answer to a request, as its page would."""
    return client.post(url_of(request), {"digest": request.digest} | fields, headers=headers)


def is_partial(response: Any) -> bool:
    return "<!doctype html>" not in source_of(response)


def poll_url(response: Any, element: str) -> str:
    """The URL that an element of a page asks for news, or ``""``."""
    tag = re.search(rf'<[a-z]+ id="{element}"[^>]*>', source_of(response))
    assert tag, f"the page has no {element}"
    found = re.search(r'hx-get="([^"]*)"', tag[0])
    return found[1].replace("&amp;", "&") if found else ""


def copy_of(row: ApprovalRequest, **changes: Any) -> ApprovalRequest:
    """A request like another, not yet saved."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return ApprovalRequest(**values | changes)
