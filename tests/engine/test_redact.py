"""What may be seen of a value: marks, key names, looks, limits, and hostile input."""

import base64
import enum
import json
import re
import uuid
from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretBytes, SecretStr

from runs.engine.redact import (
    Limits,
    Secret,
    fill,
    line,
    plain,
    redact,
    redact_arguments,
    redact_text,
)

HIDDEN = "s3cr3t-Zq9"  # what must never be seen in the table below
CARD = "4242 4242 4242 4242"
# Tokens are put together here, so that scanners of repositories see none in this file.
GITHUB = "ghp" + "_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
STRIPE = "sk" + "_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
WIDE_CARD = CARD.translate({ord(digit): ord(digit) + 0xFEE0 for digit in "24"})
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.dBjftJeZ4CVPmB92K27uhbUJU1p1r"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nq83vEjRW\n-----END RSA PRIVATE KEY-----"
BASIC = base64.b64encode(b"jo:" + HIDDEN.encode()).decode()


def shown(value: object, **options: Any) -> str:
    return json.dumps(redact(value, **options), ensure_ascii=False)


# --- secrets by their look, in a text ---

MUST_HIDE = {
    # text: what may not be left of it
    f"key {GITHUB} end": GITHUB,
    f"url%3D{GITHUB}": GITHUB,
    "github" + "_pat_11ABCDEFG0123456789_abcdefghijkl": "11ABCDEFG0123456789",
    f"use {STRIPE}.": STRIPE,
    "rk" + "_live_abcdefghij0123456789": "abcdefghij0123456789",
    "whsec" + "_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "glpat" + "-abcDEF123456ghiJKL78": "abcDEF123456ghiJKL78",
    "xoxb" + "-123456789012-abcdefGHIJKL": "123456789012-abcdefGHIJKL",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv": "SyA1234567890",
    "sk-" + "a1b2c3d4e5f6g7h8i9j0k1l2": "a1b2c3d4e5f6",
    "sk-" + "proj-abcdEFGH1234_ijkl-5678": "abcdEFGH1234",
    "sk-" + "ant-api03-abcdEFGH1234_ijkl": "abcdEFGH1234",
    "npm" + "_abcdefghijklmnopqrstuvwxyz0123456789": "abcdefghijklmnop",
    "pypi-" + "AgEIcHlwaS5vcmcCJGI4abcdef": "AgEIcHlwaS5vcmcCJGI4abcdef",
    "SG" + ".abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg": "ABCDEFGHIJ",
    "SK" + "0123456789abcdef0123456789abcdef": "0123456789abcdef",
    f"id {AWS_ID}": AWS_ID,
    f"aws secret {AWS_SECRET}": AWS_SECRET,
    "DefaultEndpointsProtocol=https;AccountKey=abcd1234efgh5678/+==;Suffix=x": "abcd1234efgh",
    f"before {JWT} after": "dBjftJeZ4CVPmB92K27uhbUJU1p1r",
    f"my_{JWT}": "dBjftJeZ4CVPmB92K27uhbUJU1p1r",
    f"see\n{PEM}\nend": "q83vEjRW",
    "-----BEGIN PRIVATE KEY-----\nMIIE": "MIIE",
    json.dumps({"pem": PEM}): "q83vEjRW",
    "Bearer abc123DEF456": "abc123DEF456",
    "Bearer Bearer abc123DEF456": "abc123DEF456",
    "Bearer opensesame": "opensesame",
    f"sent Basic {BASIC} to it": BASIC,
    f"postgres://jo:{HIDDEN}@db.example/x": HIDDEN,
    f"redis://:{HIDDEN}@cache:6379": HIDDEN,
    f"postgres://jo:a@{HIDDEN}@db/x": HIDDEN,
    f"postgres://jo:{HIDDEN}/w@db/x": HIDDEN,
    f"https://x.example/?a=1&token={HIDDEN}&b=2": HIDDEN,
    f"https://x.example/?sig={HIDDEN}": HIDDEN,
    f"https://x.example/#access_token={HIDDEN}": HIDDEN,
    f"password={HIDDEN}": HIDDEN,
    f"host=db password = {HIDDEN} user=jo": HIDDEN,
    f"DB_PASSWORD={HIDDEN}": HIDDEN,
    f"export PGPASSWORD='{HIDDEN} and more'": "and more",
    f"--password={HIDDEN}": HIDDEN,
    f"login --api-key {HIDDEN} --verbose": HIDDEN,
    f"Authorization: Custom one {HIDDEN}": HIDDEN,
    f"Cookie: a=b; sid={HIDDEN}": HIDDEN,
    f"GET / HTTP/1.1\r\nX-Api-Key: {HIDDEN}\r\nHost: x": HIDDEN,
    f"curl -H 'Authorization: Digest {HIDDEN}' https://x.example": HIDDEN,
    f"password: correct horse {HIDDEN}": HIDDEN,
    f"user: jo password: {HIDDEN} host: db": HIDDEN,
    "user: jo password: swordfish host: db": "swordfish",
    f"Invalid password: {HIDDEN}": HIDDEN,
    f"api key: {HIDDEN}": HIDDEN,
    f'{{"clientSecret": "{HIDDEN}", "id": 1}}': HIDDEN,
    f'{{\\"client_secret\\": \\"{HIDDEN}\\"}}': HIDDEN,
    f'{{"client_secret": "a\\"{HIDDEN}"}}': HIDDEN,
    f'{{"credentials": ["a", {{"b": "{HIDDEN}"}}], "id": 1}}': HIDDEN,
    '{"pin": 7391, "id": 1}': "7391",
    f"{{'token': b'{HIDDEN}'}}": HIDDEN,
    f"os.environ['API_KEY'] = '{HIDDEN}'": HIDDEN,
    f"user[password]={HIDDEN}": HIDDEN,
    f"credentials: [\n  one,\n  {HIDDEN}\n]": HIDDEN,
    f"password: {HIDDEN}, then": HIDDEN,
    f"<password>{HIDDEN}</password>": HIDDEN,
    f"ALTER ROLE jo WITH PASSWORD '{HIDDEN}'": HIDDEN,
    f"UPDATE users SET password = '{HIDDEN}' WHERE id = 1": HIDDEN,  # noqa: S608
    f"CREATE USER jo IDENTIFIED BY '{HIDDEN}'": HIDDEN,
    f"card {CARD} ok": "4242 4242 4242",
    "card 4242-4242-4242-4242": "4242-4242",
    "4242424242424242": "42424242",
    "order 1234 4242 4242 4242 4242 77": "4242 4242 4242",
    "4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2": "4 2 4 2 4",
    "amex 3782 822463 10005": "822463",
    WIDE_CARD: WIDE_CARD[:9],
    "4242\u00a04242\u00a04242\u00a04242": "4242\u00a04242",
}


@pytest.mark.parametrize(("text", "secret"), MUST_HIDE.items())
def test_a_secret_in_a_text_is_hidden_by_its_look(text: str, secret: str) -> None:
    assert secret in text or secret in json.dumps(text)
    assert secret not in redact_text(text)
    assert secret not in shown(text)
    assert secret not in shown({"deep": [("x", text)]})
    assert "hidden" in shown(text)
    assert redact_text(redact_text(text)) == redact_text(text)


MUST_SHOW = [
    "Pay 1,480.00 EUR to Müller & Söhne GmbH",
    "token_count=512 max_tokens: 4096",
    "tokens: 512",
    "The secretary met the author and a passenger at the keyboard.",
    "Author: someone else",
    "the bearer of this letter",
    "bearer certificates are rare",
    "a basic understanding of Basic principles",
    "order 4242 4242 4242 4241",
    "order 1234567812345678",
    "invoice 2024-01-15 4000 1200 99",
    "0.4242424242424242",
    "call +49 30 1234567 or 030 7654321",
    "https://example.com:8080/a@b?page=2&sort=name",
    "mail jo@example.com",
    "ssh://git@example.com/repo.git",
    "commit 3b55700e6eef0ff2a1b2c3d4e5f60718293a4b5c, access to the secret room",
    str(uuid.UUID(int=2**127 + 12345)),
    "Could not refresh token: connection refused by peer",
    "Reset your password: click the link below",
    "SELECT * FROM users WHERE token = ? AND password = %s",
    "password=${DB_PASSWORD}",
    "password=********",
    "scikit: sk-learn and pypi-server are packages",
    "Unexpected token '<' in JSON",
    "password_reset_at: 2024-01-01",
    "cookie_policy=strict",
    "a = b; c == d; e: f",
    "eyJ is how such a thing starts",
    "a\n\tb",
]


@pytest.mark.parametrize("text", MUST_SHOW)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == {"t": "text", "v": text}
    assert redact_text(text) == text


def test_only_the_secret_part_of_a_longer_text_is_replaced() -> None:
    assert redact_text(f"Paid with {CARD} today") == (
        "Paid with [hidden: card number •••• 4242] today"
    )
    assert redact_text("postgres://jo:hunter2@db/x?sslmode=on") == (
        "postgres://jo:[hidden: URL password]@db/x?sslmode=on"
    )
    assert redact_text("https://x.example/?token=abc&next=2") == (
        "https://x.example/?token=[hidden: key name “token”]&next=2"
    )
    assert redact_text('{"pin": 7391, "id": 1}') == '{"pin": [hidden: key name “pin”], "id": 1}'
    assert redact_text("Server=a;Password=b;Database=c") == (
        "Server=a;Password=[hidden: key name “Password”];Database=c"
    )


def test_a_masked_part_is_told_apart_from_the_same_words_typed_by_a_user() -> None:
    typed = redact("Paid with [hidden: card number •••• 4242] today")
    masked = redact(f"Paid with {CARD} today")
    assert typed["v"] == masked["v"]
    assert "masks" not in typed
    [[start, end]] = masked["masks"]
    assert masked["v"][start:end] == "[hidden: card number •••• 4242]"


def test_a_text_that_is_a_card_number_and_nothing_else_is_a_mask_with_the_last_four() -> None:
    expected = {"t": "hidden", "why": "looks like a card number", "v": "•••• 4242"}
    assert redact(f" {CARD}\n") == expected
    assert redact(4242424242424242) == expected
    assert redact(Decimal("4242424242424242")) == expected
    assert redact(b"4242424242424242") == expected


def test_data_that_looks_like_a_mask_stays_data() -> None:
    assert redact({"t": "hidden", "why": "x", "v": "•••• 1"}) == {
        "t": "map",
        "items": [
            ["t", {"t": "text", "v": "hidden"}],
            ["why", {"t": "text", "v": "x"}],
            ["v", {"t": "text", "v": "•••• 1"}],
        ],
    }


# --- secrets by key names ---

SECRET_KEYS = re.findall(
    r"\S+",
    """
    password passwd PASSWORD Passwords pwd db_password userPassword PGPASSWORD pAssWoRd password2
    password_confirmation secret clientSecret client-secret token access_token authToken auth
    refresh.token api_key APIKey apikey X-Api-Key api_keys authorization Proxy-Authorization
    cookie Set-Cookie cookies private_key privateKey access_key SecretAccessKey credential
    credentials pin cvv cvv2 cvc ssn otp passphrase session_id pass\u200bword
    """,
)
SECRET_KEYS.append("".join(chr(ord(letter) + 0xFEE0) for letter in "password"))
OPEN_KEYS = re.findall(
    r"\S+",
    """
    token_count max_tokens keyboard author secretary passenger secret_name password_reset_at
    key public_key primary_key cookie_policy pinned spinning compass token_type authority
    tokenizer passed amount bypass pin_count card
    """,
)


@pytest.mark.parametrize("key", SECRET_KEYS)
@pytest.mark.parametrize("value", ["plain word", [1, {"a": "plain word"}], None, b"7391", {}])
def test_the_value_under_a_secret_key_is_hidden_whole(key: str, value: object) -> None:
    node = redact({"outer": [{key: value}]})
    [[_, inner]] = node["items"][0][1]["items"][0]["items"]
    assert inner["t"] == "hidden"
    assert inner["v"] == ""
    assert inner["why"].startswith("key name “")
    assert redact(value, key=key) == inner


@pytest.mark.parametrize("key", OPEN_KEYS)
def test_the_value_under_an_ordinary_key_is_shown(key: str) -> None:
    assert redact({key: "plain word"}) == {
        "t": "map",
        "items": [[key, {"t": "text", "v": "plain word"}]],
    }


def test_counts_and_questions_are_no_secrets() -> None:
    assert "512" in shown({"tokens": 512})
    assert "plain" not in shown({"tokens": ["plain"]})
    assert "true" in shown({"has_password": True})
    assert "hidden" in shown({"password": True})
    assert "7391" not in shown({"pin": 7391, "password": Decimal(7391), "token": 7391.5})


@pytest.mark.parametrize("key", ["iban", "IBAN", "account_number", "cardNumber", "bank_account"])
def test_account_like_keys_keep_the_last_four(key: str) -> None:
    assert redact({key: "DE89 3704 0044 0532 0130 00"})["items"][0][1] == {
        "t": "hidden",
        "why": f"key name “{key}”",
        "v": "•••• 3000",
    }
    assert redact({key: "1234567"})["items"][0][1]["v"] == ""


Pair = namedtuple("Pair", "name value")


@pytest.mark.parametrize(
    "pairs",
    [
        [{"name": "Authorization", "value": HIDDEN}],
        [{"Value": [HIDDEN], "KEY": "api_key"}],
        [["Authorization", HIDDEN]],
        [("accept", "x"), ("cookie", HIDDEN)],
        [(b"authorization", HIDDEN.encode())],
        [Pair("token", HIDDEN)],
        {"headers": {"authorization": [HIDDEN]}},
        ["--verbose", "--password", HIDDEN],
        OrderedDict(token=HIDDEN),
        MappingProxyType({"token": HIDDEN}),
    ],
)
def test_pairs_of_a_name_and_a_value_are_read_as_such(pairs: object) -> None:
    text = shown(pairs)
    assert HIDDEN not in text
    assert HIDDEN.encode().hex(" ")[:10] not in text
    assert '"hidden"' in text


def test_arguments_are_read_with_their_annotations_and_as_pairs() -> None:
    values = {"name": "Cookie", "value": HIDDEN, "a": "planted", "b": SecretStr("planted"), "c": 1}
    node = redact_arguments(values, {"a": Annotated[str, Secret()]})
    assert HIDDEN not in fill("{value}", values)
    assert [key for key, _ in node["items"]] == list(values)
    assert [item["t"] for _, item in node["items"]] == ["text", *["hidden"] * 3, "number"]


class Aliased(BaseModel):
    word: str = Field(alias="password")


def test_a_field_is_known_by_its_alias_too() -> None:
    assert HIDDEN not in shown(Aliased(password=HIDDEN))


def test_a_key_that_is_a_secret_is_hidden_too() -> None:
    node = redact({GITHUB: 1, SecretStr("abcdef"): 2})
    assert [key for key, _ in node["items"]] == [
        "[hidden: GitHub token]",
        "[hidden: marked secret]",
    ]


# --- marks ---


class Inner(BaseModel):
    note: str
    code: Annotated[str, Secret()]


class Marked(BaseModel):
    model_config = ConfigDict(extra="allow")
    direct: Annotated[str, Secret()]
    bare_class: Annotated[str, Secret]
    optional: Annotated[str, Secret()] | None = None
    secret_str: SecretStr | None = None
    many: list[SecretStr] = []
    mapped: dict[str, Annotated[str, Secret()]] = {}
    fixed: tuple[str, Annotated[str, Secret()]] = ("", "")
    inner: Inner | None = None
    ending: Annotated[str, Secret(keep_last=4), Field(alias="end")] = ""


@dataclass
class MarkedData:
    open: str
    closed: "Annotated[str, Secret()]"


class MarkedDict(TypedDict):
    closed: Annotated[str, Secret()]


class MarkedTuple(NamedTuple):
    closed: Annotated[str, Secret()]


class MarkedRoot(RootModel[list[Annotated[str, Secret()]]]):
    pass


MARKED = {
    "direct": "planted-1",
    "bare_class": "planted-2",
    "optional": "planted-3",
    "secret_str": "planted-4",
    "many": ["planted-5"],
    "mapped": {"a": "planted-6"},
    "fixed": ("seen", "planted-7"),
    "inner": {"note": "seen", "code": "planted-8"},
    "end": "planted-99-1234",
}


def test_marked_fields_are_hidden_in_a_model_and_in_its_raw_arguments() -> None:
    for node in (redact(Marked.model_validate(MARKED)), redact(MARKED, annotation=Marked)):
        text = json.dumps(node, ensure_ascii=False)
        assert "planted" not in text
        assert text.count('"marked secret"') == 9
        assert text.count('"seen"') == 2
        assert "•••• 1234" in text


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (MarkedData("seen", HIDDEN), None),
        ({"open": "seen", "closed": HIDDEN}, MarkedData),
        ([{"closed": HIDDEN}], list[MarkedDict]),
        (MarkedTuple(HIDDEN), None),
        (MarkedRoot([HIDDEN]), None),
        ([HIDDEN], MarkedRoot),
        (HIDDEN, Annotated[str, Secret()]),
        (HIDDEN, SecretStr | int),
        ([HIDDEN], list[SecretStr] | None),
        ({HIDDEN: 1}, dict[Annotated[str, Secret()], int]),
        (HIDDEN, "Annotated[str, Secret()]"),
        (SecretStr(HIDDEN), None),
        (SecretBytes(HIDDEN.encode()), None),
    ],
)
def test_a_mark_is_found_wherever_the_annotation_carries_it(value: Any, annotation: Any) -> None:
    text = shown(value, annotation=annotation)
    assert HIDDEN not in text
    assert "marked secret" in text


def test_none_where_none_is_allowed_is_shown_as_none() -> None:
    assert redact(None, annotation=SecretStr | None) == {"t": "null"}


def test_the_last_characters_of_a_short_marked_value_are_not_shown() -> None:
    annotation = Annotated[str, Secret(keep_last=4)]
    assert redact("12345678", annotation=annotation)["v"] == "•••• 5678"
    assert redact("1234567", annotation=annotation)["v"] == ""


# --- values ---


class Colour(enum.Enum):
    RED = "red"


class Opaque:
    def __repr__(self) -> str:
        return HIDDEN


@pytest.mark.parametrize(
    ("value", "node"),
    [
        (Decimal("1480.00"), {"t": "number", "v": "1480.00"}),
        (2**70, {"t": "number", "v": "1180591620717411303424"}),
        (-0.1, {"t": "number", "v": "-0.1"}),
        (float("nan"), {"t": "number", "v": "nan"}),
        (True, {"t": "bool", "v": True}),
        (None, {"t": "null"}),
        (Colour.RED, {"t": "text", "v": "red"}),
        (date(2024, 2, 29), {"t": "time", "v": "2024-02-29"}),
        (datetime(2024, 2, 29, 1, tzinfo=UTC), {"t": "time", "v": "2024-02-29T01:00:00+00:00"}),
        (uuid.UUID(int=5), {"t": "text", "v": "00000000-0000-0000-0000-000000000005"}),
        (b"hello", {"t": "text", "v": "5 bytes: 68 65 6c 6c 6f", "of": "bytes"}),
        (b"", {"t": "text", "v": "0 bytes", "of": "bytes"}),
        ({1: {"b", "a"}}, None),
        (Opaque(), {"t": "hidden", "why": "Opaque object, contents not shown", "v": ""}),
        (Opaque, {"t": "hidden", "why": "type object, contents not shown", "v": ""}),
    ],
)
def test_values_are_shown_exactly(value: object, node: dict[str, Any] | None) -> None:
    texts = [{"t": "text", "v": "a"}, {"t": "text", "v": "b"}]
    expected = node or {"t": "map", "items": [["1", {"t": "list", "items": texts}]]}
    assert redact(value) == expected


def test_an_int_of_any_size_is_exact_or_says_what_is_cut() -> None:
    assert redact(10**6000)["v"] == "1" + "0" * 6000
    huge = redact(1 << 400_000)
    assert len(huge["v"]) + huge["cut"] == len(hex(1 << 400_000))


# --- limits ---


def test_a_long_text_is_cut_after_redacting_and_says_how_much_is_left_out() -> None:
    text = "x" * 95 + f" {CARD} " + "y" * 100
    node = redact(text, limits=Limits(max_text=100))
    whole = redact(text)
    assert node["v"] + whole["v"][len(node["v"]) :] == whole["v"]
    assert len(node["v"]) + node["cut"] == len(whole["v"])
    assert node["v"] == "x" * 95 + " "  # a mask is never cut in two
    assert "4242" not in redact_text(text, limits=Limits(max_text=105))
    assert redact_text("z" * 30, limits=Limits(max_text=10)) == "z" * 10 + "… (20 more characters)"


def test_lists_maps_and_depth_say_what_is_left_out() -> None:
    limits = Limits(max_items=3, max_depth=2)
    assert redact(list(range(10)), limits=limits)["more"] == 7
    assert redact({n: n for n in range(5)}, limits=limits)["more"] == 2
    assert "more" not in redact([1, 2, 3], limits=limits)
    deep = redact([[["x"]]], limits=limits)
    assert deep["items"][0]["items"][0]["why"] == "nested deeper than 2 levels"


def test_the_whole_tree_is_bounded_and_every_cut_is_counted() -> None:
    node = redact([[1, 2, 3]] * 10, limits=Limits(max_nodes=6))
    assert len(node["items"]) + node["more"] == 10
    assert len(node["items"][1]["items"]) + node["items"][1]["more"] == 3
    texts = redact(["a" * 10] * 3, limits=Limits(max_total=15))["items"]
    assert [len(text["v"]) + text.get("cut", 0) for text in texts] == [10, 10, 10]
    assert sum(len(text["v"]) for text in texts) == 15


# --- characters that are not seen ---

UNSEEN = [0, 7, 8, 0x0B, 0x0D, 0x1B, 0x7F, 0x85, 0x9F, 0xAD, 0x61C, 0x180E, 0x3164, 0xFEFF, 0xFE0F]
UNSEEN += [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070)]
UNSEEN += [0xD800, 0xDFFF, 0xE0001, 0xE0041, 0xE007F, 0xE0100]


@pytest.mark.parametrize("code", UNSEEN)
def test_invisible_characters_are_shown_as_what_they_are(code: int) -> None:
    text, expected = f"pay{chr(code)}ee", f"pay⟨U+{code:04X}⟩ee"
    assert redact(text)["v"] == expected
    assert redact({text: 1})["items"][0][0] == expected
    assert redact_text(text) == expected
    assert line(text) == expected
    shown(text).encode()


def test_newline_and_tab_stay_and_a_line_shows_the_newline() -> None:
    assert redact("a\n\tb")["v"] == "a\n\tb"
    assert line("a\nb") == "a⏎b"


@pytest.mark.parametrize("unseen", ["\u200b", "\0", "\u202e", "\U000e0041", "\r", "\u2028"])
@pytest.mark.parametrize("secret", [GITHUB, "4242424242424242", JWT, "password=hunter22hunter22"])
def test_a_secret_split_by_invisible_characters_is_found(secret: str, unseen: str) -> None:
    text = f"see {secret[:6]}{unseen}{secret[6:12]}{unseen}{secret[12:]} there"
    part = secret[6:12]
    if secret.startswith("4"):
        assert shown(text).count("4242") == redact_text(text).count("4242") == 1  # the last four
    else:
        assert part not in shown(text)
        assert part not in redact_text(text)
        assert part not in shown({text: 1})
    assert part.encode().hex(" ") not in shown(text.encode())


def test_a_text_that_is_hidden_whole_for_a_split_secret_says_so() -> None:
    node = redact("see 4242\u200b424242424242 there")
    assert node["why"] == "looks like a card number, split by invisible characters"
    assert node["v"] == "•••• 4242"


# --- hostile values ---


class Raising(str):
    def __str__(self) -> str:
        raise RuntimeError(HIDDEN)

    __repr__ = __format__ = __len__ = __iter__ = __str__  # type: ignore[assignment]


class BadMapping(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        raise RuntimeError(HIDDEN)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError(HIDDEN)

    def __len__(self) -> int:
        return 3


class Liar:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError(HIDDEN)


def test_a_value_whose_own_code_raises_is_shown_as_unreadable() -> None:
    for value in (BadMapping(), Liar()):
        node = redact([value, "after"])
        assert node["items"][0]["why"] == "could not be read (RuntimeError)"
        assert node["items"][1]["v"] == "after"
    assert redact({"name": Raising("abc")})["items"][0][1]["v"] == "abc"


def test_a_value_that_contains_itself_or_is_very_deep_comes_to_an_end() -> None:
    loop: list[Any] = ["x"]
    loop.append(loop)
    assert redact(loop)["items"][1]["why"] == "contains itself"
    deep: Any = HIDDEN
    for _ in range(100_000):
        deep = {"a": deep}
    assert "nested deeper than 32 levels" in shown(deep)
    shared = [1]
    assert "itself" not in shown([shared, shared])


HOSTILE = [
    "a", "Bearer ", "Basic ", "eyJ", "eyJ.", "-eyJ", "a-", "a.", "a a ", ":", "=", "password=",
    "password:", "password: ", "token='", 'token=\\"', "token=[", "cookie:", "://a:", "://a:b@",
    "-----BEGIN PRIVATE KEY-----", "4", "4 ", "4242 ", "4242424242424242 ", "sk-", "SG.", "<a",
    "<a>", "&a", ",a", "--a ", "--token ", " ", "\n", "\0", "\u200b", "a\u0301", "\\", '"', "(((",
    "[hidden: ", "⟨U+", "ghp_", "iban: A", "A1 ", "token='cookie:", "aws", "\\n",
]  # fmt: skip


HOSTILE_SIZES = [(piece, 200_000) for piece in HOSTILE]
HOSTILE_SIZES += [(piece, 2_000_000) for piece in ("a", "Bearer ", "eyJ", "password=", "4")]


@pytest.mark.parametrize(("piece", "size"), HOSTILE_SIZES)
def test_a_hostile_text_is_scanned_to_its_end(piece: str, size: int) -> None:
    text = piece * (size // len(piece)) + f"\n{GITHUB} "
    assert GITHUB not in redact_text(text, limits=Limits(max_text=10**9))


# --- one sentence ---


class Order(BaseModel):
    id: str
    total: Decimal
    card: Annotated[str, Secret(keep_last=4)] = "4000123412341234"

    @property
    def doubled(self) -> Decimal:
        return self.total * 2


def test_a_sentence_is_filled_with_formats() -> None:
    values = {
        "amount": Decimal("1480"),
        "currency": "EUR",
        "payee": "Söhne",
        "on": date(2024, 2, 3),
    }
    assert fill("Pay {amount:,.2f} {currency} to {payee} on {on:%d.%m.%Y}", values) == (
        "Pay 1,480.00 EUR to Söhne on 03.02.2024"
    )
    order = Order(id="A7", total=Decimal("4.5"))
    values = {"order": order, "rows": [{"n": 3}], "yes": True, "no": None}
    assert fill("{order.id} {order.doubled} {rows[0][n]} {yes} {no} {{}}", values) == (
        "A7 9.0 3 yes none {}"
    )


def test_hidden_values_appear_as_their_mask_whatever_the_format() -> None:
    values = {
        "pin": 7391,
        "card": CARD,
        "n": 4242424242424242,
        "o": Order(id="x", total=Decimal(1)),
    }
    assert fill("{pin:08,d}", values) == "[hidden: key name “pin”]"
    assert fill("{card!r:>40}", values) == "[hidden: card number •••• 4242]"
    assert fill("{n:,}", values) == "[hidden: card number •••• 4242]"
    assert fill("{o.card:.3}", values) == "[hidden: marked secret •••• 1234]"
    assert fill("{x}", {"x": "abc"}, annotations={"x": SecretStr}) == "[hidden: marked secret]"
    raw = {"o": {"id": "x", "card": "4000123412341234"}}
    assert fill("{o[card]}", raw, annotations={"o": Order}) == "[hidden: marked secret •••• 1234]"
    assert HIDDEN not in fill("{h[value]}", {"h": {"name": "Cookie", "value": HIDDEN}})
    assert HIDDEN not in fill("{h[1]}", {"h": ["Authorization", HIDDEN]})
    assert HIDDEN not in fill("{h}", {"h": [{"token": HIDDEN}]})
    assert HIDDEN not in fill("Bearer {word}", {"word": HIDDEN})
    assert HIDDEN not in fill("Use {x}", {"x": Opaque()})


@pytest.mark.parametrize(
    "template",
    ["{a.__class__}", "{a._x}", "{__a}", "{a[__b]}", "{}", "{a:{b}}", "{a:99999}", "{a", "{a b}"],
)
def test_a_template_that_reaches_too_far_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        fill(template, {"a": 1, "b": 2, "__a": 3})


@pytest.mark.parametrize("template", ["{payee}", "{a.payee}", "{a[payee]}", "{rows[7]}"])
def test_a_missing_field_is_named(template: str) -> None:
    with pytest.raises(KeyError, match=r"payee|7"):
        fill(template, {"a": {"b": 1}, "rows": [1]})


def test_a_long_value_is_cut_and_pushes_no_other_out_of_sight() -> None:
    text = fill("Send {note} to {payee}", {"note": "n" * 1000, "payee": "Söhne GmbH"})
    assert text.endswith(" to Söhne GmbH")
    assert len(text) < 340
    left_out = int(re.findall(r"\((\d+) more characters\)", text)[0])
    assert len(re.findall(r"n{20,}", text)[0]) + left_out == 1000


def test_a_sentence_shows_control_characters_and_stays_on_one_line() -> None:
    assert fill("To {x}.", {"x": "a\nb\u202ec"}) == "To a⏎b⟨U+202E⟩c."


def test_a_format_that_does_not_fit_never_fails_or_cuts() -> None:
    assert fill("{x:,.2f}", {"x": "abc"}) == "abc"
    assert fill("{x:.1}", {"x": "abc"}) == "abc"
    assert fill("{x:,.2f}", {"x": None}) == "none"
    assert fill("{x:d}", {"x": [1, 2]}) == "[1, 2]"
    assert fill("{x}", {"x": Raising("abc")}) == "abc"


def test_plain_text_of_a_tree_is_one_bounded_line() -> None:
    node = redact({"amount": Decimal("1.50"), "to": ["a\nb", None, True], "token": "x"})
    assert plain(node) == (
        '{amount: 1.50, to: ["a\\nb", none, true], token: [hidden: key name “token”]}'
    )
    assert plain(redact("a\nb")) == "a⏎b"
    assert plain(redact(list(range(9)), limits=Limits(max_items=2))) == "[0, 1] and 7 more"
    assert len(plain(redact("x" * 10_000), limit=100)) < 140


# --- a secret planted anywhere ---

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)
MARKER = "Qv7planted4Xw"
BARE = st.sampled_from(
    [
        ("ghp" + "_" + MARKER * 3),
        f"postgres://jo:{MARKER}@db/x",
        f"eyJhbGciOiJIUzI1NiJ9.{MARKER}.{MARKER}",
        f"-----BEGIN PRIVATE KEY-----\n{MARKER}\n-----END PRIVATE KEY-----",
        f"password='{MARKER}'",
        f"Bearer {MARKER}",
    ]
)


def planted(draw: st.DrawFn, inner: Any) -> Any:
    for _ in range(draw(st.integers(0, 5))):
        shape = draw(st.sampled_from(["list", "tuple", "dict", "object", "root"]))
        if shape == "dict":
            others = draw(st.dictionaries(st.text(max_size=8), PLAIN, max_size=3))
            inner = {**others, draw(st.text(max_size=8)): inner}
        elif shape == "object":
            inner = Order.model_construct(id=inner, total=Decimal(1))
        elif shape == "root":
            inner = RootModel[Any](inner)
        else:
            items = draw(st.lists(PLAIN, max_size=3))
            items.insert(draw(st.integers(0, len(items))), inner)
            inner = items if shape == "list" else tuple(items)
    return inner


@st.composite
def with_secret(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["look", "bytes", "key", "mark", "pair", "name"]))
    text = draw(st.text(max_size=10)) + " " + draw(BARE) + " " + draw(st.text(max_size=10))
    key = draw(st.sampled_from(SECRET_KEYS))
    value = planted(draw, MARKER)
    return planted(
        draw,
        {
            "look": text,
            "bytes": text.encode("utf-8", "surrogatepass"),
            "key": {key: value},
            "mark": Inner.model_construct(note="n", code=value),
            "pair": {"name": key, "value": value},
            "name": {text: 1},
        }[kind],
    )


@settings(max_examples=300, deadline=None)
@given(with_secret())
def test_a_planted_secret_is_never_seen(value: Any) -> None:
    node = redact(value)
    text = json.dumps(node, ensure_ascii=False)
    for seen in (text, plain(node, limit=10**6), fill("Use {it}", {"it": value})):
        assert MARKER not in seen
        assert MARKER.encode().hex(" ") not in seen
    text.encode()


@settings(max_examples=300, deadline=None)
@given(st.text(), st.integers(0, 60))
def test_redacting_twice_changes_nothing_and_cuts_add_up(text: str, limit: int) -> None:
    once = redact_text(text)
    assert redact_text(once) == once
    node = redact(text, limits=Limits(max_text=limit))
    if node["t"] == "text":
        assert len(node["v"]) <= limit
        assert once.startswith(node["v"])
        assert len(node["v"]) + node.get("cut", 0) == len(once)
