"""Reading and checking expense claims."""

from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from flowsite.demo.claims import COLUMNS, ClaimsError, in_euros, only, read_claims
from flowsite.demo.places import CLAIMS_FOLDER

TODAY = date(2025, 7, 1)
GOOD = "C-1,2024-09-02,Librería Norte,XX00DEMO1234,office,Paper,12.50,EUR"


def check(folder: Path, *lines: str, header: str = ",".join(COLUMNS)):
    (folder / "some.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    return read_claims(folder, "some.csv", today=TODAY)


def codes(folder: Path, line: str) -> list[str]:
    return [finding.code for finding in check(folder, line).findings]


def test_every_line_of_the_shipped_file_is_a_claim_or_has_a_finding():
    found = read_claims(CLAIMS_FOLDER, "claims.csv", today=TODAY)
    assert found.lines == 216
    assert len(found.claims) == 202
    assert Counter(finding.code for finding in found.findings) == {
        "refund": 4,
        "missing-amount": 3,
        "unknown-currency": 2,
        "missing-account": 1,
        "future-date": 1,
        "broken-line": 1,
        "bad-amount": 1,
        "bad-date": 1,
        "duplicate-claim": 1,
    }
    lines = {claim.line for claim in found.claims} | {finding.line for finding in found.findings}
    assert len(lines) == found.lines


def test_four_claims_of_the_shipped_file_are_over_the_default_limit():
    found = read_claims(CLAIMS_FOLDER, "claims.csv", today=TODAY)
    over = [c.claim for c in found.claims if in_euros(c.amount, c.currency) > 500]
    assert over == ["C-0023", "C-0078", "C-0131", "C-0187"]


def test_quoted_commas_line_breaks_and_letters_of_all_kinds_are_read_as_written():
    claims = read_claims(CLAIMS_FOLDER, "claims.csv", today=TODAY).claims
    payees = {claim.payee for claim in claims}
    assert {"Kavárna u Mostu, s.r.o.", "Köhler & Søn", "株式会社サンプル"} <= payees
    descriptions = {claim.description for claim in claims}
    assert 'Room "Sol", two nights' in descriptions
    assert "Two deliveries:\nMonday and Thursday" in descriptions


def test_a_good_line_has_no_finding(tmp_path):
    found = check(tmp_path, GOOD)
    assert found.findings == []
    [claim] = found.claims
    assert (claim.line, claim.claim, claim.date) == (2, "C-1", date(2024, 9, 2))
    assert (claim.amount, claim.currency) == (Decimal("12.50"), "EUR")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (",2024-09-02,Shop,XX1,office,Paper,12.50,EUR", "missing-claim"),
        ("C-1,,Shop,XX1,office,Paper,12.50,EUR", "missing-date"),
        ("C-1,2024-09-02,,XX1,office,Paper,12.50,EUR", "missing-payee"),
        ("C-1,2024-09-02,Shop,,office,Paper,12.50,EUR", "missing-account"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,  ,EUR", "missing-amount"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,12.50,", "missing-currency"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,12.50,BTC", "unknown-currency"),
        ("C-1,2025-07-02,Shop,XX1,office,Paper,12.50,EUR", "future-date"),
        ("C-1,02.09.2024,Shop,XX1,office,Paper,12.50,EUR", "bad-date"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,-12.50,EUR", "refund"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,0.00,EUR", "bad-amount"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,NaN,EUR", "bad-amount"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,1e9,EUR", "bad-amount"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,12.505,EUR", "bad-amount"),
        ("C-1,2024-09-02,Shop,XX1,office,Paper,12.50", "broken-line"),
        ("C-1,2024-09-02,Shop, Main Street,XX1,office,Paper,12.50,EUR", "broken-line"),
        ('C-1,2024-09-02,"Bar "Sol"",XX1,meals,Lunch,12.50,EUR', "broken-line"),
    ],
)
def test_a_line_that_cannot_be_paid_has_the_finding_that_says_why(tmp_path, line, code):
    assert codes(tmp_path, line) == [code]
    assert check(tmp_path, line).claims == []


def test_a_claim_dated_today_is_not_in_the_future(tmp_path):
    assert codes(tmp_path, "C-1,2025-07-01,Shop,XX1,office,Paper,12.50,EUR") == []


def test_empty_category_and_description_are_no_fault(tmp_path):
    assert codes(tmp_path, "C-1,2024-09-02,Shop,XX1,,,12.50,EUR") == []


def test_all_that_is_wrong_with_a_line_is_told_at_once(tmp_path):
    line = "C-1,2999-01-01,Shop,XX1,office,Paper,,EURO"
    assert codes(tmp_path, line) == ["missing-amount", "future-date", "unknown-currency"]


def test_of_two_lines_with_one_number_only_the_first_is_a_claim(tmp_path):
    found = check(tmp_path, GOOD, GOOD)
    assert [claim.line for claim in found.claims] == [2]
    [finding] = found.findings
    assert (finding.line, finding.code) == (3, "duplicate-claim")
    assert "line 2" in finding.message


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    long = 'C-1,2024-09-02,Shop,XX1,office,"One\nTwo",12.50,EUR'
    found = check(tmp_path, long, "", "C-2,2024-09-02,Shop,XX1,office,Paper,,EUR")
    assert [claim.line for claim in found.claims] == [2]
    assert [finding.line for finding in found.findings] == [5]


def test_the_lines_after_a_broken_one_are_still_read(tmp_path):
    found = check(tmp_path, 'C-0,2024-09-02,"Bar "Sol"",XX1,meals,Lunch,12.50,EUR', GOOD)
    assert [claim.claim for claim in found.claims] == ["C-1"]


def test_a_quotation_mark_that_is_never_closed_spoils_the_file(tmp_path):
    with pytest.raises(ClaimsError, match="line 3: a quotation mark is never closed"):
        check(tmp_path, GOOD, 'C-2,2024-09-02,"Bar Sol,XX1,meals,Lunch,12.50,EUR', GOOD)


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path):
    text = f"\ufeff{','.join(COLUMNS)}\r\n{GOOD}\r\n"
    (tmp_path / "some.csv").write_bytes(text.encode())
    assert len(read_claims(tmp_path, "some.csv", today=TODAY).claims) == 1


@pytest.mark.parametrize("header", ["", "claim,amount", ",".join(reversed(COLUMNS))])
def test_a_file_with_other_columns_is_refused(tmp_path, header):
    with pytest.raises(ClaimsError, match="must name the columns claim, date, payee"):
        check(tmp_path, GOOD, header=header)


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "some.csv").write_bytes(GOOD.encode("latin-1"))
    with pytest.raises(ClaimsError, match="not UTF-8 text"):
        read_claims(tmp_path, "some.csv", today=TODAY)


def test_a_file_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "some.csv").write_bytes(b"x" * 1_000_001)
    with pytest.raises(ClaimsError, match="larger than 1,000,000 bytes"):
        read_claims(tmp_path, "some.csv", today=TODAY)


@pytest.mark.parametrize("file", ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a\0b"])
def test_a_file_outside_the_folder_is_refused(tmp_path, file):
    with pytest.raises(ClaimsError, match="from the demo's data folder only"):
        read_claims(tmp_path, file, today=TODAY)


def test_a_link_does_not_lead_out_of_the_folder(tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir()
    check(tmp_path, GOOD)
    (folder / "link.csv").symlink_to(tmp_path / "some.csv")
    with pytest.raises(ClaimsError, match="from the demo's data folder only"):
        read_claims(folder, "link.csv", today=TODAY)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ClaimsError, match=r"no file 'none\.csv'"):
        read_claims(tmp_path, "none.csv", today=TODAY)


def test_one_claim_can_be_picked_with_all_that_was_found_about_it(tmp_path):
    found = check(tmp_path, GOOD, GOOD, "C-2,2024-09-02,Shop,XX1,,,12.50,EUR")
    picked = only(found, "C-1")
    assert picked.lines == 2
    assert [claim.claim for claim in picked.claims] == ["C-1"]
    assert [finding.code for finding in picked.findings] == ["duplicate-claim"]


def test_picking_a_claim_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ClaimsError, match="no claim 'C-9'"):
        only(check(tmp_path, GOOD), "C-9")


def test_a_currency_without_a_rate_is_an_error():
    with pytest.raises(ClaimsError, match="'BTC' has no accounting rate"):
        in_euros(Decimal(1), "BTC")
