"""Display trees (``runs.engine.redact``) as HTML.

Everything in a tree is data from outside and is escaped here, whatever it holds. What is masked
looks masked and says why; what a limit left out is said in words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from runs.advice import ADVICE, DEFAULT
from runs.engine.redact import Node, redact
from runs.templatetags.ui import icon

register = template.Library()

BEGINNING = 280  # characters of a long text that are shown before it is opened
BEGINNING_LINES = 6
HINT = 60
PARTS = {"t", "v", "items", "why", "of", "masks", "cut", "more"}  # of a tree's node
NOTHING = SafeString("")


Draw = Callable[[Any], SafeString]


def whatever_is_stored(draw: Draw) -> Draw:
    """Draw a tree that is none as a row that says so: whoever looks at a damaged row sees that."""

    @wraps(draw)
    def drawn(tree: Any) -> SafeString:
        try:
            return draw(tree)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
            return _row("", _more("This can't be shown: it was changed outside of Flowsite."))

    return drawn


@register.simple_tag
@whatever_is_stored
def facts(tree: Node) -> SafeString:
    """A tree as a table of facts, or as the one value that it is."""
    if tree["t"] != "map":
        return format_html('<div class="asked">{}</div>', _value(tree))
    return format_html('<table class="facts"><tbody>{}</tbody></table>', fact_rows(tree))


@register.simple_tag
@whatever_is_stored
def fact_rows(tree: Node) -> SafeString:
    """A tree as rows of a table of facts."""
    if tree["t"] != "map":
        return _row("value", _value(tree))
    rows = format_html_join("", "{}", ((_row(key, _value(node)),) for key, node in tree["items"]))
    if tree.get("more"):
        rows += _row("", _more(f"{tree['more']:,} more are not shown here"))
    if not rows:
        rows = _row("", _none("nothing"))
    return rows


@register.simple_tag
def data(values: dict[str, Any]) -> SafeString:
    """The data of an event or an audit entry: plain JSON by name, and trees among it."""
    rows = ((name, value if _is_tree(value) else redact(value)) for name, value in values.items())
    return facts({"t": "map", "items": [[name, node] for name, node in rows]})


def _is_tree(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("t"), str) and value.keys() <= PARTS


@register.filter
def first_words(tree: Node | None) -> str:
    """The first value in a tree that can be read at a glance; ``""`` where there is none."""
    if not tree:
        return ""
    if tree["t"] in ("text", "number", "time"):
        text = " ".join(tree["v"].split())
        return text if len(text) <= HINT else f"{text[:HINT].rstrip()}…"
    items = tree.get("items", [])[:20]
    found = (first_words(item[1] if tree["t"] == "map" else item) for item in items)
    return next((words for words in found if words), "")


@register.filter
def partly_masked(tree: Node | None) -> bool:
    """Whether a part of a text in the tree is masked: what runs is not all that can be read."""
    if not isinstance(tree, dict):
        return False
    items = tree.get("items") or []
    children = [item[-1] for item in items if item] if tree.get("t") == "map" else items
    return bool(tree.get("masks")) or any(partly_masked(child) for child in children)


@register.filter
def advice(code: str) -> str:
    """What to do about a run that ended with an error code."""
    return ADVICE.get(code, DEFAULT)


def _row(key: str, value: SafeString) -> SafeString:
    return format_html('<tr><th scope="row"><bdi>{}</bdi></th><td>{}</td></tr>', key, value)


def _none(words: str) -> SafeString:
    return format_html('<span class="value-none">{}</span>', words)


def _more(words: str) -> SafeString:
    return format_html('<span class="more">{}</span>', words)


def _value(node: Node) -> SafeString:
    kind = node["t"]
    if kind == "text":
        return _text(node)
    if kind == "hidden":
        return _masked(node["why"], node["v"])
    if kind == "list":
        return _list(node)
    if kind == "map":
        return facts(node) if node["items"] else _none("nothing")
    if kind == "null":
        return _none("none")
    if kind == "bool":
        return format_html("{}", "yes" if node["v"] else "no")
    shown = format_html('<span class="value-{}">{}</span>', kind, node["v"])
    return shown + _left_out(node)


def _masked(why: str, shown: str) -> SafeString:
    words = f"{shown} · {why}" if shown else f"hidden: {why}"
    return format_html('<span class="masked">{}{}</span>', icon("hidden"), words)


def _left_out(node: Node) -> SafeString:
    if not node.get("cut"):
        return NOTHING
    return format_html(" {}", _more(f"({node['cut']:,} more characters are not shown here)"))


def _list(node: Node) -> SafeString:
    if not node["items"]:
        return _none("empty list")
    items = format_html_join("", "<li>{}</li>", ((_value(item),) for item in node["items"]))
    if node.get("more"):
        items += format_html("<li>{}</li>", _more(f"{node['more']:,} more are not shown here"))
    return format_html('<ol class="items">{}</ol>', items)


def _text(node: Node) -> SafeString:
    text, masks = node["v"], node.get("masks", [])
    if not text:
        return _none("empty text")
    whole = format_html(
        '<span class="value-text">{}</span>{}', _with_masks(text, masks), _left_out(node)
    )
    end = _beginning(text, masks)
    if end == len(text):
        return whole
    # In a container of its own, so that the sheet can take the beginning away once all is shown.
    return format_html(
        '<div class="value"><span class="value-text beginning">{}…</span>'
        '<details class="long"><summary><span class="closed">show all {} characters</span>'
        '<span class="opened">show less</span></summary>{}</details></div>',
        _with_masks(text[:end], [mask for mask in masks if mask[1] <= end]),
        f"{len(text) + node.get('cut', 0):,}",
        whole,
    )


def _beginning(text: str, masks: list[list[int]]) -> int:
    """Where the beginning of a long text ends: never inside a mask."""
    lines = text.split("\n", BEGINNING_LINES)
    end = len(text) if len(lines) <= BEGINNING_LINES else len(text) - len(lines[-1]) - 1
    if end > BEGINNING + 60:
        end = BEGINNING
    for start, stop in masks:
        if start < end < stop:
            end = start
    return end


def _with_masks(text: str, masks: list[list[int]]) -> SafeString:
    parts, at = [], 0
    for start, end in masks:
        parts += [format_html("{}", text[at:start]), _mask(text[start:end])]
        at = end
    return format_html_join("", "{}", ((part,) for part in [*parts, text[at:]]))


def _mask(words: str) -> SafeString:
    """A masked part of a text; its words are the tree's: ``[hidden: why shown]``."""
    bare = words.removeprefix("[").removesuffix("]")
    return format_html('<span class="masked">{}{}</span>', icon("hidden"), bare)
