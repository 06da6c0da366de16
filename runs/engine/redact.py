"""Redaction: the one function between a value and the eyes that look at it.

``redact`` turns any value into a *display tree*, plain JSON in which a mask is a node of its own,
so that no user data can pose as one:

    {"t": "text", "v": str}           "masks": [[start, end], ...] are the masked parts of "v";
                                      "of": "bytes" where it describes bytes
    {"t": "number", "v": str}         the exact text
    {"t": "bool", "v": bool}          {"t": "null"}
    {"t": "time", "v": str}           ISO 8601
    {"t": "hidden", "why": str, "v": str}    "v" is "•••• 4402" or ""; also for what is not shown
                                      for another reason (an object's contents, too deep)
    {"t": "list", "items": [node, ...]}
    {"t": "map", "items": [[key text, node], ...]}

What a limit leaves out is counted: "cut" (characters) on a text or number, "more" (items) on a
list or map. Hidden is what is marked (``Secret``, ``SecretStr``), what stands under the key name of
a secret, and what looks like one. Cutting comes after redacting. Nothing here raises on a hostile
value; what cannot be read is shown as such.
"""

from .display import Limits, Node, line, plain, redact, redact_arguments, redact_text
from .marks import Secret
from .sentence import fill

__all__ = [
    "Limits",
    "Node",
    "Secret",
    "fill",
    "line",
    "plain",
    "redact",
    "redact_arguments",
    "redact_text",
]
