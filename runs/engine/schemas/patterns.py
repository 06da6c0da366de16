"""Regular expressions of a schema, run in time that grows only with the text's length.

Python's own engine can be made to run for ever by a short pattern and a short text. The engine
that pydantic brings along (Rust's ``regex``) can't: it has no look-around and no back-references,
and it bounds the size of what it compiles. A pattern that needs those is refused when the schema
is read.
"""

from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from .limits import FormSchemaError


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> SchemaValidator:
    """Compile a pattern, or raise ``FormSchemaError`` with the engine's reason."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except (SchemaError, UnicodeError) as error:
        lines = str(error).strip().splitlines()
        raise FormSchemaError(
            f"The pattern {pattern[:80]!r} can't be checked in bounded time: {lines[-1].strip()}"
        ) from error


def matches(pattern: str, text: str) -> bool:
    """Whether ``pattern`` is found anywhere in ``text`` (JSON Schema's patterns are unanchored)."""
    return compile_pattern(pattern).isinstance_python(text)
