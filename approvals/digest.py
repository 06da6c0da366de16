"""The digest that binds a decision to what was shown and what will run."""

from __future__ import annotations

import hashlib
import json
import secrets
from decimal import Decimal

from runs.storage import Unreadable, decrypt, encrypt

from .models import ARGUMENTS_COLUMN, ApprovalRequest


def seal_arguments(request: ApprovalRequest, arguments: object, graph: str) -> None:
    """Put the raw arguments (canonical form) into the row, and the digest over all of it.

    A random value is digested with them and kept beside them, encrypted, so that nobody can find
    out a hidden argument from the digest by trying.
    """
    raw = json.dumps(
        {"salt": secrets.token_hex(16), "arguments": arguments, "graph": graph}, sort_keys=True
    )
    request.arguments = encrypt(raw, column=ARGUMENTS_COLUMN, row=request.pk)
    request.digest = _digest(request, raw)


def raw_arguments(request: ApprovalRequest) -> object:
    """The raw arguments in canonical form; Unreadable where the row was tampered with."""
    return json.loads(_raw(request))["arguments"]


def is_intact(request: ApprovalRequest) -> bool:
    """Whether the row still is what it was when it was asked: text shown, arguments, form, run."""
    try:
        return _digest(request, _raw(request)) == request.digest
    except Unreadable:
        return False


def _raw(request: ApprovalRequest) -> str:
    return decrypt(request.arguments, column=ARGUMENTS_COLUMN, row=request.pk)


def _digest(request: ApprovalRequest, raw: str) -> str:
    covered = {
        "run": str(request.run_id),
        "flow": [request.flow, request.flow_version],
        "node": request.node,
        "visit": request.visit,
        "kind": request.kind,
        "tool": request.tool,
        "call_id": request.call_id,
        "summary": request.summary,
        "about": request.about,
        "risk": request.risk,
        "shown": request.shown,
        "form": request.form_schema,
        "raw": raw,
    }
    return hashlib.sha256(same_text(covered).encode()).hexdigest()


def same_text(data: object) -> str:
    """JSON data as text that is the same before and after a database has kept it.

    PostgreSQL orders keys in its own way, and spells numbers so: 1e+16 comes back as
    10000000000000000, and -0.0 as 0.0.
    """
    written = json.dumps(data, sort_keys=True)
    return json.dumps(json.loads(written, parse_int=_number, parse_float=_number))


def _number(text: str) -> dict[str, str]:
    sign, digits, exponent = Decimal(text).as_tuple()
    all_digits = "".join(map(str, digits))
    shortest = all_digits.strip("0")
    if not shortest:
        return {"number": "0"}
    zeros = len(all_digits) - len(all_digits.rstrip("0"))
    return {"number": f"{'-' * sign}{shortest}e{int(exponent) + zeros}"}
