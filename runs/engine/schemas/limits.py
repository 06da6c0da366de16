"""How much a form may hold. What is past a limit is refused with a message, never cut.

The same numbers stand in messages, so a person can see what was too much.
"""

from typing import Final

#: Fields of one form, and submitted keys that carry the form's prefix.
MAX_FIELDS: Final = 1_000
#: Bytes of one field's text, in UTF-8.
MAX_TEXT: Final = 100 * 1024
#: Digits of a whole number. Python refuses to write out much longer ones.
MAX_DIGITS: Final = 4_000
#: Levels of nesting in an answer.
MAX_DEPTH: Final = 50
#: Values (lists, objects and what is in them) in an answer.
MAX_VALUES: Final = 20_000
#: Characters of a schema's pattern.
MAX_PATTERN: Final = 1_000
#: Levels of nesting in a schema.
MAX_SCHEMA_DEPTH: Final = 64
#: Subschemas in a schema.
MAX_SUBSCHEMAS: Final = 20_000
#: Keywords that one check may evaluate: a small schema can ask for more work than ever ends.
MAX_CHECKS: Final = 100_000
#: Messages that one check reports.
MAX_ERRORS: Final = 100


class FormSchemaError(ValueError):
    """A schema that no form can be made from. The message is for the flow's author."""
