"""Checks what a person answered against the form, and matches answers to requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jsonschema.exceptions import ValidationError as SchemaViolation
from pydantic import ValidationError

from .approval import ApprovalDecision, ApprovalRequest
from .errors import FlowError
from .nodes import Form
from .schemas import CheckTooLong, schema_of, validator_of
from .tools import CallArguments, loaded_tool
from .validation import faults_in_words, own_copy


def validate_content(form: Form, content: Any) -> Any:
    """The form's value: an instance of the model, or the content that the JSON Schema allows.

    Raises pydantic's ValidationError, jsonschema's, or CheckTooLong.
    """
    if isinstance(form, type):
        if isinstance(content, form):  # one that was made without validation is checked too
            return type(content).model_validate(dict(content), by_alias=False, by_name=True)
        try:
            text = json.dumps(content)
        except (TypeError, ValueError):  # Python's own values, from code and not from a page
            return form.model_validate(content)
        # As JSON, so that a strict model takes a date or a decimal from its text.
        return form.model_validate_json(text)
    for violation in validator_of(schema_of(form)).errors(content):
        raise violation
    return content


def answer_value(form: Form | None, decision: ApprovalDecision) -> Any:
    """What a node is given as the answer: the form's value, or ``True`` where there is no form."""
    if form is not None:
        return own_copy(validate_content(form, _given(decision)))
    return True if decision.content is None else own_copy(decision.content)


def _given(decision: ApprovalDecision) -> Any:
    """The content; an answer that says nothing is one with no field filled in."""
    return {} if decision.content is None else decision.content


def match(
    requests: Sequence[ApprovalRequest], decisions: Sequence[ApprovalDecision]
) -> dict[str, ApprovalDecision]:
    """The decisions by the id of the request that they answer.

    Everything is checked before anything is spent: each decision is one (FlowError
    ``invalid-decision``), names an open request or is the answer to the only one
    (``unknown-request``), and fits the form (``invalid-answer``).
    """
    by_id = {request.id: request for request in requests}
    matched: dict[str, ApprovalDecision] = {}
    for decision in decisions:
        if not isinstance(decision, ApprovalDecision):
            raise FlowError(
                f"{type(decision).__name__} is no decision; make one with "
                "ApprovalDecision.approve or .deny.",
                code="invalid-decision",
            )
        request = _request_of(decision, by_id)
        if request.id in matched:
            raise FlowError(f"The request {request.id} is answered twice.", code="invalid-decision")
        _check_answer(request, decision)
        matched[request.id] = decision
    return matched


def _request_of(
    decision: ApprovalDecision, open_requests: dict[str, ApprovalRequest]
) -> ApprovalRequest:
    known = ", ".join(f"{request.id} ({request.tool})" for request in open_requests.values())
    if decision.request_id is None:
        if len(open_requests) == 1:
            return next(iter(open_requests.values()))
        raise FlowError(
            f"The decision names no request, and {len(open_requests)} are open: "
            f"{known or 'none'}. Name one with request_id.",
            code="unknown-request",
        )
    if decision.request_id not in open_requests:
        raise FlowError(
            f"The request {decision.request_id} is not open in this run. Open: {known or 'none'}.",
            code="unknown-request",
        )
    return open_requests[decision.request_id]


def _check_answer(request: ApprovalRequest, decision: ApprovalDecision) -> None:
    where = f"The answer to {request.tool} in node {request.node!r}"
    if not request.tool:
        raise FlowError("The request names no tool; it can't be resumed.", code="unknown-request")
    if not decision.approved:
        return
    if decision.arguments is not None and not request.editable:
        raise FlowError(
            f"{where} edits the arguments, which only @tool(editable=True) allows. Approve it as "
            "it is, or deny it.",
            code="invalid-answer",
            node=request.node,
        )
    tool = loaded_tool(request.reference)
    if decision.arguments is not None and tool is not None:
        try:
            CallArguments.of(tool, decision.arguments)
        except FlowError as error:
            raise FlowError(
                f"{where} edits the arguments to what the tool does not take. {error}",
                code="invalid-answer",
                node=request.node,
            ) from None
    if request.form is None:
        return
    try:
        validate_content(request.form, _given(decision))
    except ValidationError as error:
        faults = faults_in_words(error, "form", own_words=True)
    except SchemaViolation as error:
        place = ".".join(map(str, error.absolute_path)) or "form"
        faults = f"{place}: does not meet {error.validator!r}"  # its message quotes the value
    except (CheckTooLong, RecursionError):
        faults = "form: it takes too long to check"
    else:
        return
    raise FlowError(
        f"{where} does not fit its form: {faults}. Nothing was decided; correct it and answer "
        "again.",
        code="invalid-answer",
        node=request.node,
    )
