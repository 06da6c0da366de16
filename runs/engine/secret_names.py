"""Which key names stand for a secret: ``clientSecret`` does, ``token_count`` does not.

A name is read as words, whatever its case and separators; the *last* words decide, since
``password_reset_at`` is a time and ``reset_password`` is a password.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The value under this key is hidden whole.

    ``keep_last``: how many last characters may be shown. ``words``: how many words of the name
    decided. ``whole_line``: in a text, the value is the rest of the line.
    """

    keep_last: int = 0
    words: int = 1
    whole_line: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in text.split(";"))


_SECRET = _words(
    "password passwd passwort kennwort pwd passphrase passcode secret token credential cookie pin "
    "cvv cvc csc ssn otp totp apikey privatekey secretkey accesskey jwt bearer psk mnemonic puk "
    "authorization sessionid sessid phpsessid jsessionid"
)
# These stand for secrets in data, but are plain words in a text.
_SECRET_IN_DATA = _words("auth pass")
_SECRET_IN_QUERY = _words("sig signature")
_SECRET_PHRASES = _phrases(
    "api key;private key;secret key;access key;account key;encryption key;signing key;master key;"
    "session key;ssh key;auth key;authentication key;license key;subscription key;storage key;"
    "shared key;signature key;session id;security code;card code;pin code;pin number;"
    "verification code;recovery code;backup code;mfa code;recovery phrase;seed phrase;"
    "social security number;db pass;user pass;smtp pass;mail pass;pass phrase;pass word;pass code"
)
_ACCOUNT = _words("iban bban cardnumber accountnumber creditcard")
_ACCOUNT_PHRASES = _phrases(
    "account number;account no;account num;acct number;acct no;bank account;card number;card no;"
    "card num;credit card;debit card"
)
# Long enough to be meant where they end a word written in one: PGPASSWORD, authtoken.
_ENDINGS = tuple(
    _words(
        "password passwd passphrase passcode secret token apikey secretkey accesskey privatekey "
        "accountkey credential credentials sessionid sessid passwort kennwort authorization"
    )
)
# Words after the deciding one that leave it what it is: password_confirmation, token_value.
_MODIFIERS = _words(
    "value text plain plaintext cleartext raw string str old new current confirm confirmation "
    "again repeat hash header base64 b64 hex pem"
)
_COUNTING = _words("max min num number total count prompt completion input output used remaining n")
# First words of a question that a bool answers: has_password.
_ASKING = _words(
    "has have is are was use uses with without need needs require requires allow allows show hide "
    "no reset change forgot remember"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def key_rule(
    name: str, value: object = "", *, in_text: bool = False, in_query: bool = False
) -> KeyRule | None:
    """The rule for a key of this name, or None where the name is an ordinary one.

    ``value`` only tells counts and questions from secrets: ``tokens=512``, ``has_password=True``.
    """
    rule, words, plural = _named(name[-120:])
    last = words[-1] if words else ""
    if rule is None and not in_text and last in _SECRET_IN_DATA:
        return None if isinstance(value, bool) or _is_count(value) else KeyRule()
    if rule is None and in_query and last in _SECRET_IN_QUERY:
        return KeyRule()
    if rule is None:
        return None
    if plural and (_is_count(value) or not _COUNTING.isdisjoint(words[:-1])):
        return None
    if isinstance(value, bool) and words[0] in _ASKING:
        return None
    return rule


def _is_count(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= 9 and value.isdecimal()
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


@lru_cache(maxsize=4096)
def _named(name: str) -> tuple[KeyRule | None, tuple[str, ...], bool]:
    """The rule, the words of the name, and whether the last word is a plural."""
    words = [part.lower() for part in _PARTS.findall(name)]
    dropped = 0
    while len(words) > 1 and words[-1] in _MODIFIERS:
        words.pop()
        dropped += 1
    if not words:
        return None, (), False
    last = words[-1]
    plural = len(last) > 3 and last.endswith("s") and not last.endswith("ss")
    words[-1] = last[:-1] if plural else last
    rule = _rule(words, "".join([*words[:-1], last]))
    if rule:
        rule = KeyRule(rule.keep_last, rule.words + dropped, rule.whole_line)
    return rule, tuple(words), plural


def _rule(words: list[str], glued: str) -> KeyRule | None:
    for length in (2, 3):
        tail = tuple(words[-length:])
        if tail in _ACCOUNT_PHRASES:
            return KeyRule(keep_last=4, words=length)
        if tail in _SECRET_PHRASES:
            return KeyRule(words=length)
    if words[-1] in _ACCOUNT:
        return KeyRule(keep_last=4)
    if words[-1] in _SECRET:
        return KeyRule(whole_line=words[-1] in ("authorization", "cookie"))
    # Also what odd capitals have torn apart (pAssWord): the name as one word.
    if glued.endswith(_ENDINGS):
        return KeyRule(words=len(words))
    return None
