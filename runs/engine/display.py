"""Display trees: values made fit to be seen. The tree is described in ``redact``."""

import dataclasses
import datetime as dt
import enum
import json
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import RootModel

from . import marks, secrets
from .contents import TEXT_TYPES, child_annotation, child_names, children, class_name, key_text
from .marks import Secret
from .secret_names import key_rule

Node = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How much is shown; what is left out is always counted in the tree.

    ``max_text``: characters of one text. ``max_items``: items of one list or map. ``max_depth``:
    levels of nesting. ``max_nodes``, ``max_total``: nodes and characters of the whole tree.
    """

    max_text: int = 20_000
    max_items: int = 1_000
    max_depth: int = 32
    max_nodes: int = 20_000
    max_total: int = 1_000_000


DEFAULT = Limits()
_KEY_LIMIT = 200
_HEX_PREVIEW = 32
_EXACT_INT_BITS = 60_000


def redact(
    value: object, *, annotation: Any = None, key: str | None = None, limits: Limits = DEFAULT
) -> Node:
    """The display tree of ``value``, which has this type annotation and stands under this key."""
    return Walk(limits).node(value, annotation, () if key is None else (key,), 0)


def redact_text(text: str, *, limits: Limits = DEFAULT) -> str:
    """``text`` with its secrets replaced by words: ``[hidden: card number •••• 4402]``.

    Redacting twice changes nothing. For messages, log lines and events; newlines stay.
    """
    text = str.__str__(text)
    shown, _, split = _masked(text, secrets.find(text))
    return cut(shown if split is None else mask_words(split.why, split.shown), limits.max_text)


def redact_arguments(
    values: Mapping[str, Any], annotations: Mapping[str, Any], *, limits: Limits = DEFAULT
) -> Node:
    """The display tree of named values, each with the annotation that may mark it.

    The limits are those of the whole tree; no argument is ever left out.
    """
    walk, pairs = Walk(limits), list(values.items())
    return {
        "t": "map",
        "items": [
            [
                walk.key(name),
                walk.node(value, annotations.get(name), child_names(values, pairs, name), 0),
            ]
            for name, value in pairs
        ],
    }


def line(text: str) -> str:
    """``text`` on one line, with newlines and invisible characters made visible."""
    return secrets.visible(text).replace("\n", "⏎")


def plain(node: Node, *, limit: int = 500) -> str:
    """A display tree as one line of at most about ``limit`` characters, for reprs and logs."""
    bare = node["v"] if node["t"] == "text" else _plain(node)
    return cut(line(bare + _left_out(node)), limit)


def cut(text: str, limit: int) -> str:
    """``text`` cut at the limit, saying how much is left out; never inside a mask."""
    end = _cut_at(text, limit)
    return text if end == len(text) else f"{text[:end]}… ({len(text) - end:,} more characters)"


def _plain(node: Node) -> str:
    kind = node["t"]
    if kind == "text":
        return json.dumps(node["v"], ensure_ascii=False)
    if kind == "hidden":
        return mask_words(node["why"], node["v"])
    if kind == "list":
        return "[" + ", ".join(_plain(item) + _left_out(item) for item in node["items"]) + "]"
    if kind == "map":
        pairs = (f"{name}: {_plain(item)}{_left_out(item)}" for name, item in node["items"])
        return "{" + ", ".join(pairs) + "}"
    if kind == "bool":
        return "true" if node["v"] else "false"
    return str(node.get("v", "none"))


def _left_out(node: Node) -> str:
    if "more" in node:
        return f" and {node['more']:,} more"
    return f"… ({node['cut']:,} more characters)" if "cut" in node else ""


def mask_words(why: str, shown: str) -> str:
    what = why.removeprefix("looks like a").removeprefix("n ").strip()
    return f"[hidden: {what} {shown}]" if shown else f"[hidden: {what}]"


def _hidden(why: str, shown: str = "") -> Node:
    return {"t": "hidden", "why": why, "v": secrets.visible(shown)}


def _masked(
    text: str, found: list[secrets.Found]
) -> tuple[str, list[list[int]], secrets.Found | None]:
    """The text to show, where its masks are, and a secret that makes all of it unshowable."""
    split = secrets.find_split(text, found)
    if split is not None:
        what = f"{split.what}, split by invisible characters"
        return "", [], dataclasses.replace(split, what=what)
    parts: list[str] = []
    masks: list[list[int]] = []
    at = length = 0
    for item in found:
        before = secrets.visible(text[at : item.start])
        mask = mask_words(item.why, secrets.visible(item.shown))
        parts += [before, mask]
        length += len(before) + len(mask)
        masks.append([length - len(mask), length])
        at = item.end
    return "".join([*parts, secrets.visible(text[at:])]), masks, None


@lru_cache(maxsize=2048)
def _shown_name(text: str) -> str:
    return redact_text(text)


def _cut_at(text: str, limit: int) -> int:
    if len(text) <= limit:
        return len(text)
    end = max(limit, 0)
    for opening, closing in (("[hidden: ", "]"), ("⟨U+", "⟩")):
        start = text.rfind(opening, max(0, end - 160), end + len(opening) - 1)
        if start >= 0 and closing not in text[start:end]:
            end = min(end, start)
    return end


class Walk:
    """One walk over a value, with what is left of the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.nodes = limits.max_nodes
        self.characters = limits.max_total
        self.inside: set[int] = set()

    def node(self, value: object, annotation: Any, names: Sequence[str], depth: int) -> Node:
        """The display tree of one value; ``names`` are the names by which it is called."""
        self.nodes -= 1
        try:
            hidden, arms = self.mask(value, annotation, names)
            return hidden or self._shown(value, arms, names, depth)
        except Exception as error:  # reading runs the value's own code, which may do anything
            return _hidden(f"could not be read ({_class_name(error)})")

    def mask(
        self, value: object, annotation: Any, names: Sequence[str]
    ) -> tuple[Node | None, tuple[Any, ...]]:
        """The mask that a mark or a name puts on the value, and the annotation's alternatives."""
        mark, arms = marks.unfold(annotation, value)
        if mark is None and isinstance(value, marks.SECRET_TYPES):
            mark = Secret()
        if mark is not None:
            shown = secrets.last_characters(_raw_text(value), mark.keep_last)
            return _hidden("marked secret", shown), arms
        for name in names:
            rule = key_rule(secrets.clean(name), value)
            if rule is not None:
                shown = secrets.last_characters(_raw_text(value), rule.keep_last)
                return _hidden(f"key name “{self.key(name)}”", shown), arms
        return None, arms

    def key(self, text: str) -> str:
        """A key as it is shown: a key may be a secret itself."""
        return _shown_name(text) if len(text) <= _KEY_LIMIT else cut(redact_text(text), _KEY_LIMIT)

    def _shown(
        self, value: object, arms: tuple[Any, ...], names: Sequence[str], depth: int
    ) -> Node:
        if value is None:
            return {"t": "null"}
        if isinstance(value, enum.Enum):
            return self.node(value.value, arms, names, depth)
        if isinstance(value, bool):
            return {"t": "bool", "v": value}
        if isinstance(value, (int, float, Decimal)):
            return self._number(value)
        if isinstance(value, (dt.date, dt.time)):
            return self._text(value.isoformat()) | {"t": "time"}
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._bytes(bytes(value))
        if isinstance(value, TEXT_TYPES):
            return self._text(str(value))
        if isinstance(value, RootModel):
            return self.node(value.root, (*arms, type(value)), names, depth)
        return self._container(value, arms, depth)

    def _container(self, value: object, arms: tuple[Any, ...], depth: int) -> Node:
        found = children(value, self.limits.max_items)
        if found is None:
            return _hidden(f"{_class_name(value)} object, contents not shown")
        if id(value) in self.inside:
            return _hidden("contains itself")
        if depth >= self.limits.max_depth:
            return _hidden(f"nested deeper than {self.limits.max_depth} levels")
        is_map, pairs, total = found
        items: list[Any] = []
        self.inside.add(id(value))
        try:
            for key, child in pairs:
                if self.nodes <= 0:
                    break
                node = self._child(value, arms, pairs, key, child, depth)
                items.append([self._key(key, arms), node] if is_map else node)
        finally:
            self.inside.discard(id(value))
        if isinstance(value, Set):
            items.sort(key=json.dumps)  # a set has no order of its own: always show the same one
        more = {"more": total - len(items)} if total > len(items) else {}
        return {"t": "map" if is_map else "list", "items": items} | more

    def _child(
        self,
        value: object,
        arms: tuple[Any, ...],
        pairs: list[tuple[Any, Any]],
        key: object,
        child: object,
        depth: int,
    ) -> Node:
        try:
            annotation = child_annotation(value, arms, key)
            names = child_names(value, pairs, key)
        except Exception as error:  # without its names, nothing is known about the child
            return _hidden(f"could not be read ({_class_name(error)})")
        return self.node(child, annotation, names, depth + 1)

    def _key(self, key: object, arms: tuple[Any, ...]) -> str:
        try:
            mark, _ = marks.unfold(marks.for_key(arms), key)
            if mark is not None or isinstance(key, marks.SECRET_TYPES):
                return "[hidden: marked secret]"
            return self.key(key_text(key))
        except Exception as error:
            return f"[could not be read: {_class_name(error)}]"

    def _text(self, text: str) -> Node:
        found = secrets.find(text)
        if len(found) == 1 and not (text[: found[0].start] + text[found[0].end :]).strip():
            return _hidden(found[0].why, found[0].shown)
        shown, masks, split = _masked(text, found)
        if split is not None:
            return _hidden(split.why, split.shown)
        end = self._room(shown)
        node: Node = {"t": "text", "v": shown[:end]}
        if any(mask[1] <= end for mask in masks):
            node["masks"] = [mask for mask in masks if mask[1] <= end]
        return node | ({"cut": len(shown) - end} if end < len(shown) else {})

    def _number(self, value: int | float | Decimal) -> Node:
        if isinstance(value, float):
            text = float.__repr__(value)
        elif isinstance(value, Decimal):
            text = Decimal.__str__(value)
        elif int.bit_length(value) > _EXACT_INT_BITS:
            text = hex(value)  # a decimal text would take quadratic time
        else:
            text = format(Decimal(value), "f")  # exact, and without int's limit on digits
        found = secrets.find(text)
        if found and not isinstance(value, float):
            return _hidden(found[0].why, found[0].shown)
        end = self._room(text)
        return {"t": "number", "v": text[:end]} | (
            {"cut": len(text) - end} if end < len(text) else {}
        )

    def _bytes(self, value: bytes) -> Node:
        for text in (value.decode("utf-8", "ignore"), value.decode("latin-1")):
            found = secrets.find(text)
            hit = found[0] if found else secrets.find_split(text, found)
            if hit is not None:
                return _hidden(hit.why, hit.shown)
        size = "1 byte" if len(value) == 1 else f"{len(value):,} bytes"
        first = f", first {_HEX_PREVIEW}" if len(value) > _HEX_PREVIEW else ""
        preview = value[:_HEX_PREVIEW].hex(" ")
        return {"t": "text", "v": f"{size}{first}: {preview}".rstrip(": "), "of": "bytes"}

    def _room(self, text: str) -> int:
        end = _cut_at(text, min(self.limits.max_text, self.characters))
        self.characters -= end
        return end


def _class_name(value: object) -> str:
    return cut(redact_text(class_name(value)), 60)


def _raw_text(value: object) -> str:
    """The text of which the last characters may be shown; "" where there is none."""
    if isinstance(value, marks.SECRET_TYPES):
        value = value.get_secret_value()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (str, int, Decimal)) and not isinstance(value, bool):
        return str(value)
    return ""
