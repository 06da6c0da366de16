"""Icons, states, times and links of the pages, each written in one place."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# status: (tone, icon, words); tone and icon never stand without the words
STATES = {
    "queued": ("quiet", "clock", "queued"),
    "running": ("busy", "play", "running"),
    "paused": ("warn", "pause", "paused"),
    "completed": ("good", "check", "completed"),
    "failed": ("bad", "cross", "failed"),
    "cancelled": ("quiet", "stop", "cancelled"),
    "attention": ("bad", "alert", "needs attention"),
    "pending": ("warn", "clock", "waiting"),
    "approved": ("good", "check", "approved"),
    "rejected": ("bad", "cross", "rejected"),
    "expired": ("quiet", "clock", "expired"),
    "superseded": ("quiet", "again", "asked anew"),
    "approve": ("good", "check", "approved"),
    "reject": ("bad", "cross", "rejected"),
}

MINUTE, HOUR, DAY = 60, 3_600, 86_400


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon of the sprite, as large as the text beside it; the words are the text's."""
    return format_html(
        '<svg class="icon" width="16" height="16" aria-hidden="true">'
        '<use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


@register.simple_tag
def pill(tone: str, icon_name: str, words: str) -> SafeString:
    """A state: a tone, an icon (or none, for ``""``) and a word."""
    return format_html(
        '<span class="pill {}">{}<span>{}</span></span>',
        tone,
        icon(icon_name) if icon_name else "",
        words,
    )


@register.simple_tag
def status(value: str) -> SafeString:
    """The state of a run, a request or a decision."""
    return pill(*STATES.get(value, ("quiet", "", value)))


@register.simple_tag
def risk(value: str) -> SafeString:
    """How dangerous the author of a tool called it."""
    if value == "high":
        return pill("bad", "alert", "high risk")
    return pill("quiet", "", f"{value} risk")


def span(seconds: float) -> str:
    """A length of time in its two largest units, from minutes up."""
    if seconds < MINUTE:
        return "under a minute"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)} min"
    if seconds < DAY:
        hours, minutes = int(seconds // HOUR), int(seconds % HOUR // MINUTE)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = int(seconds // DAY), int(seconds % DAY // HOUR)
    return f"{days} d {hours} h" if hours and days < 7 else f"{days} d"


def _time(at: datetime, words: str, mode: str) -> SafeString:
    local = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" title="{}" data-{}>{}</time>',
        at.isoformat(timespec="seconds"),
        f"{local.day} {local:%b %Y, %H:%M:%S %Z}",
        mode,
        words,
    )


@register.simple_tag
def ago(at: datetime) -> SafeString:
    """How long ago something was; the exact time on hover and in print."""
    seconds = (timezone.now() - at).total_seconds()
    return _time(at, "just now" if seconds < MINUTE else f"{span(seconds)} ago", "ago")


@register.simple_tag
def since(at: datetime) -> SafeString:
    """How long something has lasted; the moment it began on hover and in print."""
    return _time(at, span((timezone.now() - at).total_seconds()), "since")


@register.filter
def took(seconds: float | None) -> str:
    """How long something took, as short as it can be said."""
    if seconds is None:
        return ""
    if seconds < 0.0995:
        return f"{max(round(seconds * 1000), 1)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    return span(seconds)


@register.filter
def milliseconds(value: float | None) -> str:
    """The same of milliseconds, as events have them."""
    return took(value / 1000) if isinstance(value, (int, float)) else ""


@register.simple_tag
def exactly(at: datetime) -> SafeString:
    """The time of day to the millisecond; the date on hover and in print."""
    local = timezone.localtime(at)
    return _time(at, f"{local:%H:%M:%S}.{local.microsecond // 1000:03}", "exact")


@register.filter
def digest(value: str) -> str:
    """A digest's first eight digits in two groups: enough for a person to compare."""
    return f"{value[:4]} {value[4:8]}".strip()


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """This page's query string with some parameters changed, or left out where ``""``.

    The page number and what a poll has seen belong to what was asked before and are left out.
    """
    request: HttpRequest = context["request"]
    parameters = request.GET.copy()
    for name in ("page", "seen"):
        parameters.pop(name, None)
    for name, value in changes.items():
        parameters.pop(name, None)
        if value not in ("", None):
            parameters[name] = str(value)
    encoded = parameters.urlencode()
    return f"?{encoded}" if encoded else request.path
