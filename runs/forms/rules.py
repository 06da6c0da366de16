"""What the help under a field says about the values it takes."""

from runs.engine.schemas.exact import show_number
from runs.engine.schemas.schema import Schema


def text_rules(schema: Schema) -> list[str]:
    """Return the rules for a text: its length, and how to write what is not plain text."""
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    rules = []
    if most is not None:
        upper = show_number(most)
        rules.append(
            f"{show_number(least)} to {upper} characters"
            if least > 1
            else f"At most {upper} characters"
        )
    elif least > 1:
        rules.append(f"At least {show_number(least)} characters")
    if schema.get("format") == "date-time":
        rules.append("Date, time and zone, such as 2026-11-30 14:30Z or 2026-11-30 14:30+01:00")
    elif schema.get("format") == "duration":
        rules.append("A duration, such as P1DT2H for one day and two hours")
    return rules


def number_rules(schema: Schema) -> list[str]:
    """Return the rules for a number: its bounds and steps."""
    rules = []
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        rules.append(f"From {show_number(least)} to {show_number(most)}")
    elif least is not None:
        rules.append(f"At least {show_number(least)}")
    elif most is not None:
        rules.append(f"No more than {show_number(most)}")
    if schema.get("exclusiveMinimum") is not None:
        rules.append(f"More than {show_number(schema['exclusiveMinimum'])}")
    if schema.get("exclusiveMaximum") is not None:
        rules.append(f"Less than {show_number(schema['exclusiveMaximum'])}")
    if schema.get("multipleOf") is not None:
        rules.append(f"In steps of {show_number(schema['multipleOf'])}")
    return rules
