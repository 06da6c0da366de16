"""JSON Schemas of forms: read strictly, checked in bounded time, never fetched.

The one truth about what a form accepts, for the engine and for the pages alike.
"""

from .limits import FormSchemaError
from .schema import FormSource, Schema, is_model, schema_of
from .validators import CheckTooLong, validator_of

__all__ = [
    "CheckTooLong",
    "FormSchemaError",
    "FormSource",
    "Schema",
    "is_model",
    "schema_of",
    "validator_of",
]
