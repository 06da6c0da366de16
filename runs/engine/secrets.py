"""What a secret looks like: by the name of its key, or by its own look inside a text.

Everything here is a pure function of text. All patterns take time linear in the text's length:
they start only where a word starts, use possessive repeats, and never search the same stretch
again, so that a hostile megabyte costs what a friendly one costs. The whole text is scanned.
"""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from .secret_names import KeyRule, key_rule

# Characters that cannot be seen, or that change the order in which others are seen: C0 and C1
# controls (but newline and tab), soft hyphen, joiners and zero-width spaces, bidirectional
# controls, fillers, variation selectors, lone surrogates and tag characters.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# One-to-one, so that positions stay: full-width forms, odd spaces and dashes, Arabic digits.
_LOOKALIKES: dict[int, int | str] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_LOOKALIKES |= dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_LOOKALIKES |= dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63], "-")
_LOOKALIKES |= {zero + n: str(n) for zero in (0x660, 0x6F0) for n in range(10)}


@dataclass(frozen=True, slots=True)
class Found:
    """A secret at ``text[start:end]``; ``shown`` is the part of it that may be shown."""

    start: int
    end: int
    what: str
    shown: str = ""

    @property
    def why(self) -> str:
        """The reason for hiding it, in words: ``looks like a card number``."""
        if self.what.startswith("key name"):
            return self.what
        return f"looks like {'an' if self.what[0] in 'AEIOaeio' else 'a'} {self.what}"


def visible(text: str) -> str:
    """``text`` with every invisible character written out, as in ``⟨U+202E⟩``."""
    return INVISIBLE.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", text)


def clean(text: str) -> str:
    """``text`` as a hurried reader sees it: no invisible characters, plain forms of letters."""
    return INVISIBLE.sub("", text).translate(_LOOKALIKES)


def last_characters(text: str, count: int) -> str:
    """The last letters and digits, as ``•••• 4402``; "" where they are more than half of all."""
    kept = [char for char in text[-4 * count - 8 :] if char.isalnum()]
    if count <= 0 or len(kept) < 2 * count:
        return ""
    return "•••• " + "".join(kept[-count:])


def find(text: str) -> list[Found]:
    """All secrets in the text as it stands: sorted, and none overlaps another."""
    scan = text.translate(_LOOKALIKES)
    merged: list[Found] = []
    hits = (hit for finder in _FINDERS for hit in finder(scan))
    for hit in sorted(hits, key=lambda item: (item.start, -item.end)):
        last = merged[-1] if merged else None
        if last is None or hit.start >= last.end:
            merged.append(hit)
        elif hit.end > last.end:
            longer = max(last, hit, key=lambda item: item.end - item.start)
            merged[-1] = Found(last.start, hit.end, longer.what, longer.shown)
    return merged


def find_split(text: str, found: list[Found]) -> Found | None:
    """A secret that appears only when the invisible characters are taken out, or None.

    ``found`` is ``find(text)``. The positions of the result are those of the cleaned text.
    """
    if not INVISIBLE.search(text):
        return None
    kept = [at for at, char in enumerate(text) if not INVISIBLE.match(char)]
    starts = [item.start for item in found]
    for hit in find("".join(map(text.__getitem__, kept))):
        start, end = kept[hit.start], kept[hit.end - 1] + 1
        at = bisect_right(starts, start) - 1
        if at < 0 or found[at].end < end:
            return hit
    return None


# --- keys and tokens that are known by their form ---

# A token starts where a word starts, or after an escape such as %3D or \n.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[nrt]))"

_TOKENS = {
    "AWS access key": r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{12}[A-Z0-9]{4}(?![A-Za-z0-9])",
    "GitHub token": r"gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+",
    "GitLab token": r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w-]{16,}+",
    "Slack token": r"xox[abceoprs](?:\.xox[bp])?-[\w-]{10,}+|xapp-[\w-]{16,}+"
    r"|hooks\.slack\.com/services/[\w/]{16,}+",
    "Stripe key": r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+",
    "webhook secret": r"whsec_[A-Za-z0-9+/=_-]{16,}+",
    "Google key": r"AIza[\w-]{35}|ya29\.[\w-]{20,}+|GOCSPX-[\w-]{20,}+",
    "Anthropic key": r"sk-ant-[\w-]{12,}+",
    "OpenAI key": r"sk-(?:proj|svcacct|admin|or|None)-[\w-]{12,}+|sk-[A-Za-z0-9]{20,}+",
    "npm token": r"npm_[A-Za-z0-9]{30,}+",
    "PyPI token": r"pypi-(?:Ag[\w-]{14,}+|[\w-]{50,}+)",
    "SendGrid key": r"SG\.[\w-]{16,}+\.[\w-]{16,}+",
    "Twilio key": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "Hugging Face token": r"hf_[A-Za-z0-9]{30,}+",
    "DigitalOcean token": r"do[por]_v1_[0-9a-f]{40,}+",
    "Databricks token": r"dapi[0-9a-f]{32}",
    "Shopify token": r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "Vault token": r"hv[bsr]\.[\w-]{20,}+",
    "bot token": r"[0-9]{8,10}:AA[\w-]{33}",
    "age key": r"AGE-SECRET-KEY-1[A-Z0-9]{20,}+",
}
_TOKEN_NAMES = tuple(_TOKENS)
_TOKEN = re.compile(
    f"{_EDGE}(?:"
    + "|".join(f"(?P<t{at}>{form})" for at, form in enumerate(_TOKENS.values()))
    + ")",
    re.ASCII,
)
_JWT = re.compile(
    r"(?:(?<![\w-])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[nrt]))(?=[\w-]{0,40}eyJ)[\w-]{11,}+"
    r"(?:\.[\w-]{4,}+(?:\.[\w-]*+){0,3}+|\.\.[\w-]{4,}+\.[\w-]++\.[\w-]++)",
    re.ASCII,
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_SCHEME = re.compile(
    r"(?<![A-Za-z])(Bearer|Basic|Token|ApiKey)[ \t]{1,8}([\w.~+/=%-]{6,}+)", re.ASCII | re.I
)
_OPAQUE = re.compile(r"\d|[a-z][A-Z]|[^\w\s.,:;!?'\"()/-]", re.ASCII)
_USERINFO = re.compile(
    r"://[^\s/?#@:\"'<>]{0,256}:(?:([^\s/?#\"'<>]{1,1024})|(?!\d{1,5}[/?#])([^\s@\"'<>]{1,1024}+))@"
)
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")


def _tokens(text: str) -> Iterator[Found]:
    for match in _TOKEN.finditer(text):
        yield Found(*match.span(), _TOKEN_NAMES[int((match.lastgroup or "t0")[1:])])
    for match in _JWT.finditer(text):
        yield Found(*match.span(), "JSON web token")
    for match in _AWS_SECRET.finditer(text):
        word, before = match.group(), text[max(0, match.start() - 60) : match.start()].lower()
        mixed = word != word.lower() and word != word.upper() and any(map(str.isdigit, word))
        if mixed and any(near in before for near in ("aws", "secret", "access", "akia", "asia")):
            yield Found(*match.span(), "AWS secret key")


def _private_keys(text: str) -> Iterator[Found]:
    at = 0
    while begin := _PEM.search(text, at):
        end = _PEM_END.search(text, begin.end())
        at = end.end() if end else len(text)  # a key without its end line: nothing after is safe
        yield Found(begin.start(), at, "private key")


def _schemes(text: str) -> Iterator[Found]:
    at, whole = 0, len(text.strip())
    while match := _SCHEME.search(text, at):
        scheme, word = match.group(1).lower(), match.group(2)
        if scheme == "basic":
            secret = _is_user_and_password(word)
        elif scheme == "bearer":
            alone = len(match.group()) == whole
            secret = alone or len(word) >= 24 or bool(_OPAQUE.search(word))
        else:  # anything can follow the word "token"; only what is no plain word is hidden
            secret = len(word) >= 16 and any(map(str.isdigit, word))
        if secret:
            yield Found(*match.span(2), f"{scheme} credential")
        at = match.end() if secret else match.start(2)


def _is_user_and_password(word: str) -> bool:
    word = word[:1024].rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        decoded = base64.b64decode(word + "=" * (-len(word) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in decoded and decoded.isprintable()


def _url_passwords(text: str) -> Iterator[Found]:
    for match in _USERINFO.finditer(text):
        span = match.span(1) if match.group(1) else match.span(2)
        if not _PLACEHOLDER.fullmatch(text, *span) and not OWN_MASK.match(text, span[0]):
            yield Found(*span, "URL password")


# --- card numbers ---

_DIGIT_RUN = re.compile(r"(?<![0-9])(?<![0-9]\.)[0-9]++(?:[ -][0-9]++)*+")
_DIGITS = re.compile(r"[0-9]+")
_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|3[47]\d{13}|(?:30[0-59]|3[689]\d)\d{11}"
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"
    r"|(?:6011|64[4-9]\d|65\d\d|62\d\d|35(?:2[89]|[3-8]\d)|220[0-4])\d{12,15}"
    r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{9,15}"
)
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def _is_card(digits: str) -> bool:
    if not _CARD.fullmatch(digits):
        return False
    numbers = [int(digit) for digit in reversed(digits)]
    return (sum(numbers[::2]) + sum(_DOUBLED[number] for number in numbers[1::2])) % 10 == 0


def _cards(text: str) -> Iterator[Found]:
    for run in _DIGIT_RUN.finditer(text):
        if run.end() - run.start() < 13:
            continue
        groups = [group.span() for group in _DIGITS.finditer(text, *run.span())]
        whole = "".join(text[start:end] for start, end in groups[:20])
        if len(groups) <= 19 and _is_card(whole):
            yield Found(*run.span(), "card number", f"•••• {whole[-4:]}")
            continue
        # Other numbers may stand beside a card's; single digits are a table, not a card.
        first = 0
        while first < len(groups):
            digits, last = "", first
            while last < len(groups) and len(digits) < 19 and groups[last][1] - groups[last][0] > 2:
                digits += text[groups[last][0] : groups[last][1]][:20]
                if _is_card(digits):
                    yield Found(
                        groups[first][0], groups[last][1], "card number", f"•••• {digits[-4:]}"
                    )
                    first = last
                    break
                last += 1
            first += 1


# --- names with values, in a text ---

#: A mask that ``redact_text`` has written, so that redacting twice changes nothing.
OWN_MASK = re.compile(
    r"\[hidden: (?:key name “[^“”\n]{0,80}”|marked secret"
    r"|(?:"
    + "|".join(map(re.escape, _TOKEN_NAMES))
    + r"|JSON web token|AWS secret key|private key|(?:bearer|basic|token|apikey) credential"
    r"|URL password|card number))(?: •••• \w{1,12})?\]"
)
_PLACEHOLDER = re.compile(
    r"\?|\$\d{1,3}|%s|%\(\w{1,40}\)s|:[a-z_]{1,40}|\$?\{\w{0,40}\}|<[\w -]{1,40}>|\*{1,40}|•{1,40}"
    r"|null|none|nil|true|false|str|string|undefined",
    re.I,
)
_ASSIGNMENT = re.compile(
    r"(?<![\w.\-])(?P<name>(?:[\w.\-]++ ){0,3}?[\w.\-]++)(?P<quote>\\{0,3}[\"'])?\]?"
    r"[ \t]{0,4}(?P<by>=>|:=|={1,3}|:(?!//))[ \t]{0,4}"
)
_SPOKEN = re.compile(
    r"(?<![\w-])(?:--(?P<flag>[A-Za-z][\w-]*+)[ \t=]{1,4}(?!-)"
    r"|(?P<sql>password|passwd|passphrase|identified by)[ \t]{1,8}(?='))",
    re.I,
)
_ELEMENT = re.compile(r"<(?P<name>[\w:.\-]++)[^<>]{0,200}>(?P<value>[^<]++)")
_OPENING = re.compile(r"[bBrRuUfF]{0,2}(\\{0,3})([\"'`])")
_CLOSING = {
    (slashes, mark): re.compile(rf"(?<!\\)\\{{{slashes}}}{mark}")
    for slashes in range(4)
    for mark in "\"'`"
}
_WORD = re.compile(
    r"(?:[^\s&;,\"'`<]++|[&;,](?!\s|\Z|[\"'{\[]|[\w.\-]{1,40}[\"']?[=:])"
    r"|[\"'`](?![\s,;)\]}]|\Z)|<(?!/))++"
)
_JSON_WORD = re.compile(r"[^\s,}\]]++")
_ACCOUNT = re.compile(r"[A-Za-z0-9]++(?:[ -][A-Z]{0,4}[0-9][A-Z0-9]*+)*+")
_BRACKET = re.compile(r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"?|[\[{(]|[\]})]", re.S)
_AFTER_WORD = re.compile(r"[ \t]*+(?:\n|\Z|[\w.\-]{1,40}[=:])")
_LINE_START = re.compile(r"(?:\A|\n)[ \t>*\-\"'{]*\Z")


def _named_values(text: str) -> Iterator[Found]:
    """``name=value``, ``Header: value``, ``--flag value``, ``<name>value</name>``."""
    at = 0 if "=" in text or ":" in text else len(text)
    while match := _ASSIGNMENT.search(text, at):
        at = match.end()
        found = _assigned(text, match)
        if found:
            yield found
            at = max(at, found.end)
    at = 0
    while match := _SPOKEN.search(text, at):
        name = match.group("flag") or match.group("sql")
        span = _span(text, match.end(), _WORD)
        at = max(match.end(), span[1])
        if match.group("sql") or key_rule(name[-80:], text[slice(*span)]):
            yield from _named(text, span, name, KeyRule())
    for match in _ELEMENT.finditer(text):
        rule = key_rule(match.group("name")[-80:], match.group("value"))
        if rule:
            yield from _named(text, match.span("value"), match.group("name"), rule)


def _named(text: str, span: tuple[int, int], name: str, rule: KeyRule) -> Iterator[Found]:
    start, end = span
    if not text[start:end].strip() or OWN_MASK.match(text, start):
        return
    if end - start > 80 or not _PLACEHOLDER.fullmatch(text, start, end):
        shown = last_characters(text[start:end], rule.keep_last)
        yield Found(start, end, f"key name “{name.strip(' .-_')[-60:]}”", shown)


def _assigned(text: str, match: re.Match[str]) -> Found | None:
    name, start = match.group("name")[-80:], match.end()
    before = text[max(0, match.start() - 9) : match.start()]
    in_query = before[-1:] in ("?", "&")
    rule = key_rule(name, in_text=True, in_query=in_query)
    if rule is None:
        return None
    extra_words = len(name.strip(" .-").split(" ")) > rule.words
    in_quotes = bool(match.group("quote"))
    free = match.group("by") == ":" and not in_quotes and not in_query
    free = free and not rule.keep_last and not _OPENING.match(text, start)
    listed = text[start : start + 1] in ("[", "{", "(")
    at_line_start = (match.start() < 9 or "\n" in before) and bool(_LINE_START.search(before))
    if free and (rule.whole_line or (at_line_start and not extra_words and not listed)):
        # A header's value has spaces of its own; it ends with the line, or with the quote that
        # was opened before the name (curl -H "Name: value").
        end = _line_end(text, start)
        closing = text.find(before[-1], start, end) if before[-1:] in ("'", '"') else -1
        span = (start, closing if closing >= 0 else end)
    else:
        span = _span(
            text, start, _ACCOUNT if rule.keep_last else _JSON_WORD if in_quotes else _WORD
        )
        prose = free and extra_words and not _OPAQUE.search(text, *span)
        if prose and not _AFTER_WORD.match(text, span[1]):
            return None  # "Could not refresh token: connection refused"
    if key_rule(name, text[span[0] : min(span[1], span[0] + 80)], in_text=True, in_query=in_query):
        name = " ".join(name.split(" ")[-rule.words :])
        return next(_named(text, span, name, rule), None)
    return None


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _span(text: str, start: int, word: re.Pattern[str]) -> tuple[int, int]:
    """Where the value that starts at ``start`` stands: in quotes, in brackets, or one word."""
    opening = _OPENING.match(text, start)
    if opening:
        slashes, mark = opening.groups()
        closing = _CLOSING[len(slashes), mark].search(text, opening.end())
        if closing:
            return opening.end(), closing.start()
        return opening.end(), _line_end(text, start)
    if text[start : start + 1] in ("[", "{", "(") and not OWN_MASK.match(text, start):
        if _PLACEHOLDER.match(text, start):
            return start, start
        depth = 0
        for bracket in _BRACKET.finditer(text, start):
            depth += {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}.get(bracket.group(), 0)
            if depth == 0:
                return start, bracket.end()
        return start, len(text)
    match = word.match(text, start)
    return match.span() if match else (start, start)


_FINDERS = (_private_keys, _tokens, _schemes, _url_passwords, _named_values, _cards)
