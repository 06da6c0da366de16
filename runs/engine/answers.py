"""Checks what a person answered against the form, and matches answers to requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from .approval import ApprovalDecision, ApprovalRequest
from .errors import FlowError
from .nodes import Form


def validate_content(form: Form, content: Any) -> Any:
    """The form's value: an instance of the model, or the content that the JSON Schema allows.

    Raises pydantic's ValidationError, or jsonschema's.
    """
    if isinstance(form, type):
        if isinstance(content, form):
            return content
        return form.model_validate({} if content is None else content)
    content = {} if content is None else content
    Draft202012Validator(form, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(content)
    return content


def answer_value(form: Form | None, decision: ApprovalDecision) -> Any:
    """What a node is given as the answer: the form's value, or ``True`` where there is no form."""
    if form is not None:
        return validate_content(form, decision.content)
    return True if decision.content is None else decision.content


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
            raise FlowError(
                f"The request {request.id} is answered twice.", code="invalid-decision"
            )
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
    if request.form is None:
        return
    try:
        validate_content(request.form, decision.content)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'form'}: {fault['msg']}"
            for fault in error.errors(
                include_input=False, include_url=False, include_context=False
            )
        )
    except Exception as error:  # jsonschema's own, whose base class differs between versions
        faults = str(getattr(error, "message", error)).splitlines()[0]
    else:
        return
    raise FlowError(
        f"{where} does not fit its form: {faults}. Nothing was decided; correct it and answer "
        "again.",
        code="invalid-answer",
        node=request.node,
    )


def plain_content(content: Any) -> Any:
    """Content as data that can be sealed and checked again: a model's fields, else itself."""
    return content.model_dump(mode="json") if isinstance(content, BaseModel) else content
