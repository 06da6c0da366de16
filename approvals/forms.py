"""The form of a request: its source in the flow's code, and its fields on the page."""

from __future__ import annotations

from typing import Any

from runs.engine.nodes import Form, Gate, Human
from runs.forms import FormSchemaError, SchemaForm, schema_of
from runs.registry import UnknownFlow, get_flow

from .digest import same_text
from .models import ApprovalRequest

PREFIX = "form."


class FormUnavailable(Exception):
    """The answer can't be checked by the code that asked for it; the message says why."""


def form_source(request: ApprovalRequest) -> Form | None:
    """The form that the flow's code gives for a request: the model whose validators count.

    FormUnavailable where the flow isn't registered as it was, or the form has changed since the
    request was made: the reviewer would answer another question than the one that was asked.
    """
    if request.form_schema is None:
        return None
    try:
        node = get_flow(request.flow, request.flow_version).nodes.get(request.node)
    except UnknownFlow as error:
        raise FormUnavailable(str(error)) from error
    asked = None
    if node is not None:
        asked = node.action if request.kind == ApprovalRequest.Kind.HUMAN else node.gate
    form = asked.form if isinstance(asked, Human | Gate) else None
    if form is None or same_text(schema_of(form)) != same_text(request.form_schema):
        raise FormUnavailable(
            "The form of this request has changed in the flow's code since it was asked. Register "
            "the flow as it was under its old version, or let the run be started again."
        )
    return form


def form_for(request: ApprovalRequest, data: Any = None) -> SchemaForm | None:
    """The form to draw for a request, filled with what was posted.

    Where the flow's code can't check the answer the form is drawn from the schema that was
    stored with the request; deciding is refused then.
    """
    if request.form_schema is None:
        return None
    source: Any
    try:
        source = form_source(request)
    except FormUnavailable:
        source = request.form_schema
    try:
        return SchemaForm(source, prefix=PREFIX, data=data)
    except FormSchemaError:  # the stored schema was changed; the page says that of the request
        return None
