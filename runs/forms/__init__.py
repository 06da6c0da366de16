"""Forms from schemas: the page's fields and the check of the answer, from one source.

A *form source* is a pydantic model class or a JSON Schema (2020-12). ``SchemaForm`` draws it and
reads what a page submits; ``check`` judges an answer that has already been read. Both give the
same verdict, and neither ever fetches anything.

What has a field of its own, and what falls back to JSON for that part only:

=====================================================  ==========================================
in the schema                                          on the page
=====================================================  ==========================================
string; format date, time, date-time, email, uri, ...  a line of text, date or time
string, format or widget "multi-line"                  several lines of text
string, ``writeOnly`` or format "password"             a hidden line, never sent back to the page
integer, number, pydantic's Decimal                    a line of text, read without loss
boolean                                                a checkbox; two choices where it may be
                                                       left open (null, or optional, no default)
``enum``, ``const``, titled ``const`` alternatives     radio buttons up to four, a list from five
any of these "or null"                                 the same; left empty it is null
objects, arrays, other unions, maps, no type           JSON, checked like the rest
=====================================================  ==========================================

Hints in ``json_schema_extra``, or as ``x-`` keys: ``order`` (a number), ``widget`` ("multi-line",
"select", "radios", "password"), ``placeholder``, ``help``.
"""

from runs.engine.schemas.limits import FormSchemaError
from runs.engine.schemas.schema import FormSource, Schema, schema_of

from .checking import Errors, check
from .field import Choice, Field
from .form import SchemaForm

__all__ = [
    "Choice",
    "Errors",
    "Field",
    "FormSchemaError",
    "FormSource",
    "Schema",
    "SchemaForm",
    "check",
    "schema_of",
]
