"""The site's keys: one ring, and a key derived from it for each purpose.

The ring comes from ``FLOWSITE_KEYS`` (``id:base64`` entries, newest first, separated by commas).
The newest key seals and encrypts; every key of the ring verifies and decrypts. Nothing uses a ring
key as it is: each purpose (checkpoints, column encryption, Django's secret key) has its own key,
derived by HKDF-SHA256 (RFC 5869), so that what leaks from one use says nothing about another.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MIN_KEY_BYTES = 32
KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
HOW_TO_MAKE_ONE = (
    'python -c "import base64, secrets; '
    "print('k1:' + base64.b64encode(secrets.token_bytes(32)).decode())\""
)


class KeyRingError(ValueError):
    """The text of a key ring can't be used; the message says why and how to make one."""


@dataclass(frozen=True, repr=False)
class KeyRing:
    """The site's keys by id, newest first. Its repr names the ids and never the keys."""

    keys: Mapping[str, bytes]

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """Read ``id:base64[,id:base64...]``; raises KeyRingError, which never quotes a key."""
        keys: dict[str, bytes] = {}
        for number, entry in enumerate(filter(None, re.split(r"[,\s]+", text)), start=1):
            key_id, colon, encoded = entry.partition(":")
            if not colon or not KEY_ID.fullmatch(key_id):
                raise KeyRingError(
                    f"Entry {number} of FLOWSITE_KEYS is not of the form id:base64, with an id of "
                    f"letters, digits, - and _. Make one with: {HOW_TO_MAKE_ONE}"
                )
            try:
                key = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError) as error:
                raise KeyRingError(
                    f"The key {key_id!r} in FLOWSITE_KEYS is not base64. "
                    f"Make one with: {HOW_TO_MAKE_ONE}"
                ) from error
            if len(key) < MIN_KEY_BYTES:
                raise KeyRingError(
                    f"The key {key_id!r} in FLOWSITE_KEYS has {len(key)} bytes; it needs "
                    f"{MIN_KEY_BYTES}. Make one with: {HOW_TO_MAKE_ONE}"
                )
            if key_id in keys:
                raise KeyRingError(f"FLOWSITE_KEYS has two keys with the id {key_id!r}.")
            keys[key_id] = key
        if not keys:
            raise KeyRingError(
                f"FLOWSITE_KEYS is empty. It holds the site's keys as id:base64, newest first. "
                f"Make one with: {HOW_TO_MAKE_ONE}"
            )
        return cls(keys)

    @property
    def newest(self) -> str:
        """The id of the key that seals."""
        return next(iter(self.keys))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def __contains__(self, key_id: object) -> bool:
        return key_id in self.keys

    def derive(self, purpose: str, key_id: str | None = None) -> bytes:
        """The 32-byte key for one purpose, of the newest key or of the one named (KeyError)."""
        return HKDF(
            algorithm=SHA256(), length=32, salt=None, info=f"flowsite/{purpose}/1".encode()
        ).derive(self.keys[key_id or self.newest])

    def derived(self, purpose: str) -> dict[str, bytes]:
        """The keys for one purpose by key id, newest first."""
        return {key_id: self.derive(purpose, key_id) for key_id in self.keys}

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self.keys)})"


def read_or_make_key_file(path: Path) -> KeyRing:
    """The ring in a development key file, which is made, readable by its owner only, if missing.

    Two processes that start together end with the same ring: the file is created exclusively and
    whole, and whoever comes second reads what the first wrote.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "dev:" + base64.b64encode(secrets.token_bytes(MIN_KEY_BYTES)).decode() + "\n"
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        try:
            os.link(draft, path)  # fails, rather than replaces, where the file has appeared
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return KeyRing.parse(path.read_text())
