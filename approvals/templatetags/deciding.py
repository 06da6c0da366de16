"""What the buttons that decide say."""

from __future__ import annotations

import re

from django import template

register = template.Library()

LONGEST = 28  # characters; more doesn't fit beside a second button on a phone

_NUMBER = r"(?:\d{1,3}(?:[,.' \u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?"
_CODE = (
    "(?:AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|RON|SEK"
    "|SGD|THB|TRY|TWD|UAH|USD|ZAR)"
)
_MONEY = re.compile(
    rf"(?<![\w.,])[-\u2212]?(?:{_NUMBER}[ \u00a0]?(?:{_CODE}\b|[€$£¥])"
    rf"|(?:{_CODE} |[€$£¥][ \u00a0]?){_NUMBER}(?![\w]))"
)


@register.filter
def object_of(summary: str) -> str:
    """What a sentence is about, short enough for a button: its amount, or how it begins.

    A sentence with several amounts is not about one of them.
    """
    amounts = {match[0] for match in _MONEY.finditer(summary)}
    if len(amounts) == 1:
        return amounts.pop()
    if len(summary) <= LONGEST:
        return f"“{summary}”"
    words = summary[: LONGEST - 1]
    if " " in words[LONGEST // 2 :]:
        words = words.rpartition(" ")[0]
    return f"“{words.rstrip(' ,;:.')}…”"
