"""The seal: text under HMAC-SHA256, verified before anything in it is read.

A sealed text is one line of JSON, ``{"seal":1,"key":"<id>","body":<canonical>,"mac":"<hex>"}``.
The code covers every character before it, the format version and the key's id included, and the
form is exact: no character can be changed, added or taken away without being noticed. There is no
second format.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

MIN_KEY_BYTES = 16
_HEAD = re.compile(r'\{"seal":1,"key":"([A-Za-z0-9_-]{0,32})","body":')
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{0,32}")
_TAIL = re.compile(r',"mac":"([0-9a-f]{64})"\}')
_TAIL_LENGTH = len(',"mac":""}') + 64


class BrokenSeal(ValueError):
    """The text is not as it was sealed, or was sealed with a key that isn't here."""


@dataclass(frozen=True)
class Sealed:
    """A body (canonical JSON text) with its authentication code and the id of the key."""

    body: str
    key: str
    mac: str

    @property
    def text(self) -> str:
        return f'{_signed(self.key, self.body)},"mac":"{self.mac}"}}'


class Sealer:
    """Seals with the first of its keys and verifies with any.

    ``keys`` maps key ids to keys of 16 bytes or more, newest first.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise ValueError("A seal needs a key.")
        for key_id, key in keys.items():
            if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
                raise ValueError(
                    f"{key_id!r} can't name a key; an id has up to 32 letters, digits, - and _."
                )
            if not isinstance(key, bytes) or len(key) < MIN_KEY_BYTES:
                raise ValueError(f"A checkpoint key is bytes, {MIN_KEY_BYTES} or more of them.")
        self._keys = dict(keys)
        self._newest = next(iter(self._keys))

    def seal(self, body: str) -> Sealed:
        """Seal with the newest key."""
        return Sealed(body, self._newest, self._mac(self._newest, body))

    def verify(self, sealed: Sealed) -> None:
        """BrokenSeal says why the body can't be trusted."""
        if not isinstance(sealed.key, str) or sealed.key not in self._keys:
            raise BrokenSeal(f"it names the key {sealed.key!r}, which is not among the keys here")
        if not isinstance(sealed.mac, str) or not hmac.compare_digest(
            sealed.mac.encode("utf-8", "surrogatepass"),
            self._mac(sealed.key, sealed.body).encode(),
        ):
            raise BrokenSeal("its authentication code does not match")

    def open(self, text: object) -> Sealed:
        """The verified content of a sealed text; BrokenSeal says why it can't be trusted."""
        if not isinstance(text, str):
            raise BrokenSeal("it is not text")
        head, tail = _HEAD.match(text), _TAIL.fullmatch(text[-_TAIL_LENGTH:])
        if head is None or tail is None:
            raise BrokenSeal("it does not have the form of a sealed text")
        sealed = Sealed(text[head.end() : -_TAIL_LENGTH], head[1], tail[1])
        self.verify(sealed)
        return sealed

    def _mac(self, key_id: str, body: str) -> str:
        # Canonical text is ASCII; other text can't have been sealed, and must not raise here.
        data = _signed(key_id, body).encode("utf-8", "surrogatepass")
        return hmac.new(self._keys[key_id], data, "sha256").hexdigest()


def _signed(key_id: str, body: str) -> str:
    return f'{{"seal":1,"key":"{key_id}","body":{body}'
