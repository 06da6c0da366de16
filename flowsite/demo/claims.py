"""Expense claims: reading them from a CSV file and checking each line.

A line that has any finding is not paid. It is reported instead, with its line number, what is
wrong and what to do about it.
"""

import csv
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from runs.engine import AdapterError, Secret

COLUMNS = ("claim", "date", "payee", "account", "category", "description", "amount", "currency")
REQUIRED = ("claim", "date", "payee", "account", "amount", "currency")
MAX_BYTES = 1_000_000

EURO_RATES = {
    "EUR": Decimal("1"),
    "CHF": Decimal("1.05"),
    "CZK": Decimal("0.040"),
    "DKK": Decimal("0.134"),
    "GBP": Decimal("1.17"),
    "JPY": Decimal("0.0062"),
    "USD": Decimal("0.92"),
}
"""The accounting rates of the demo company: euros for one unit of each currency it pays in."""

_AMOUNT = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,2})?")


class ClaimsError(AdapterError):
    """The claims cannot be read or paid as asked; the message says why and what to do."""


class Claim(BaseModel):
    """A claim that passed every check. `amount` is positive, in units of `currency`."""

    line: int
    claim: str
    date: date
    payee: str
    account: Annotated[str, Secret(keep_last=4)]
    category: str
    description: str
    amount: Decimal
    currency: str


class Finding(BaseModel):
    """One thing that keeps one line from being paid."""

    line: int
    claim: str
    code: str
    message: str


class ClaimsFile(BaseModel):
    """A file's lines, sorted into claims that can be paid and findings about the others."""

    lines: int
    claims: list[Claim]
    findings: list[Finding]


def in_euros(amount: Decimal, currency: str) -> Decimal:
    """`amount` at the accounting rate; `ClaimsError` for a currency that has none."""
    rate = EURO_RATES.get(currency)
    if rate is None:
        raise ClaimsError(f"{currency!r} has no accounting rate. Use {_known_currencies()}.")
    return amount * rate


def read_claims(folder: Path, file: str, *, today: date) -> ClaimsFile:
    """Read and check the claims in `file`, a CSV file in `folder`.

    A line that cannot be read or paid is a finding. `ClaimsError` is for what spoils the whole
    file: it lies outside `folder`, is missing, too large, not UTF-8, has other columns, or has a
    quotation mark that is never closed.
    """
    text = _text(_inside(folder, file), file)
    rows = _rows(text, file)
    header = next(rows, (1, []))[1]
    if tuple(cell.strip() for cell in header or []) != COLUMNS:
        raise ClaimsError(f"{file}: the first line must name the columns {', '.join(COLUMNS)}.")

    result = ClaimsFile(lines=0, claims=[], findings=[])
    first_lines: dict[str, int] = {}
    for line, row in rows:
        result.lines += 1
        if row is None or len(row) != len(COLUMNS):
            number = row[0].strip() if row else ""
            wrong = f"has {len(row)} of {len(COLUMNS)} columns" if row else "is not valid CSV"
            message = f"The line {wrong}. Correct its commas and quotation marks."
            result.findings.append(
                Finding(line=line, claim=number, code="broken-line", message=message)
            )
            continue
        cells = dict(zip(COLUMNS, (cell.strip() for cell in row), strict=True))
        faults = check_line(cells, today=today, first_lines=first_lines)
        if cells["claim"]:
            first_lines.setdefault(cells["claim"], line)
        if faults:
            result.findings.extend(
                Finding(line=line, claim=cells["claim"], code=code, message=message)
                for code, message in faults
            )
        else:
            result.claims.append(Claim.model_validate({"line": line, **cells}))
    return result


def only(found: ClaimsFile, number: str) -> ClaimsFile:
    """What `found` says about one claim; `ClaimsError` if no line has this number."""
    chosen = [claim for claim in found.claims if claim.claim == number]
    findings = [finding for finding in found.findings if finding.claim == number]
    lines = {claim.line for claim in chosen} | {finding.line for finding in findings}
    if not lines:
        raise ClaimsError(f"There is no claim {number!r} in the file. Check its number.")
    return ClaimsFile(lines=len(lines), claims=chosen, findings=findings)


def check_line(
    cells: dict[str, str], *, today: date, first_lines: dict[str, int]
) -> list[tuple[str, str]]:
    """All that is wrong with one line, as (code, message) pairs; an empty list if nothing is.

    `cells` has a stripped text for every column; `first_lines` says on which line each claim
    number was seen before.
    """
    faults = [
        (f"missing-{column}", f"The {column} is empty. Ask the claimant for it.")
        for column in REQUIRED
        if not cells[column]
    ]
    number, day, amount, currency = (cells[c] for c in ("claim", "date", "amount", "currency"))
    if number in first_lines:
        seen = first_lines[number]
        faults.append(
            ("duplicate-claim", f"Claim {number} stands on line {seen} already. Remove one.")
        )
    if day:
        try:
            parsed = date.fromisoformat(day)
        except ValueError:
            faults.append(("bad-date", f"{day!r} is not a date. Write it as YYYY-MM-DD."))
        else:
            if parsed > today:
                faults.append(("future-date", f"{day} is in the future. Check the date."))
    if currency and currency not in EURO_RATES:
        faults.append(
            ("unknown-currency", f"{currency!r} is not paid here. Use {_known_currencies()}.")
        )
    if amount:
        if not _AMOUNT.fullmatch(amount) or Decimal(amount) == 0:
            faults.append(
                ("bad-amount", f"{amount!r} is not an amount to pay. Write it as 1234.50.")
            )
        elif Decimal(amount) < 0:
            refund = f"{-Decimal(amount):,.2f} {currency}".strip()
            faults.append(("refund", f"This is a refund of {refund}. Settle it by hand."))
    return faults


def _known_currencies() -> str:
    return ", ".join(sorted(EURO_RATES))


def _inside(folder: Path, file: str) -> Path:
    root = folder.resolve()
    try:
        # Resolved first, so that neither "..", an absolute path nor a link leads out.
        path = (root / file).resolve()
        inside = path.is_relative_to(root) and path != root
    except (ValueError, OSError):
        inside = False
    if not inside:
        raise ClaimsError(
            f"Claims are read from the demo's data folder only, and {file!r} is not in it. "
            "Give the name of a file there, such as claims.csv."
        )
    if not path.is_file():
        raise ClaimsError(f"There is no file {file!r} in the demo's data folder.")
    return path


def _text(path: Path, file: str) -> str:
    with path.open("rb") as source:
        raw = source.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ClaimsError(f"{file} is larger than {MAX_BYTES:,} bytes. Split it.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ClaimsError(f"{file} is not UTF-8 text (byte {error.start}). Save it so.") from error


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str] | None]]:
    """The records that are not blank, each with the line it begins on; `None` for a broken one."""
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):
                # Everything after the mark was taken for its cell: no line of it can be trusted.
                raise ClaimsError(
                    f"{file}, line {line}: a quotation mark is never closed, so the rest of the "
                    "file cannot be read. Correct the line and start again."
                ) from error
            yield line, None
        else:
            if row:
                yield line, row
