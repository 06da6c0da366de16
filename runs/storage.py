"""Encryption of columns: AES-256-GCM under the site's keys, each value bound to its row.

A stored value is ``v1.<key id>.<base64 of nonce and ciphertext>``. The row and column it belongs
to are authenticated with it, so a value that is changed, or moved to another row or column, can't
be read. Redaction is something else: it is for eyes (``runs.engine.redact``).
"""

from __future__ import annotations

import base64
import binascii
import os
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from .keys import KeyRing

_NONCE_BYTES = 12


class Unreadable(ValueError):
    """A stored value is not as it was written, or was written with a key that isn't here."""


def _ring() -> KeyRing:
    ring: KeyRing = settings.FLOWSITE_KEYS
    return ring


def _associated(key_id: str, column: str, row: UUID) -> bytes:
    return f"v1/{key_id}/{column}/{row}".encode()


def encrypt(text: str, *, column: str, row: UUID) -> str:
    """Encrypt a text for one column (``runs.Run.checkpoint``) of one row, with the newest key."""
    key_id = _ring().newest
    nonce = os.urandom(_NONCE_BYTES)
    box = AESGCM(_ring().derive("column-encryption", key_id))
    sealed = nonce + box.encrypt(nonce, text.encode(), _associated(key_id, column, row))
    return f"v1.{key_id}.{base64.b64encode(sealed).decode()}"


def decrypt(stored: str, *, column: str, row: UUID) -> str:
    """The text that was encrypted for this column and row; Unreadable says why it can't be had."""
    version, _, rest = stored.partition(".")
    key_id, _, encoded = rest.partition(".")
    if version != "v1" or not encoded:
        raise Unreadable("it does not have the form of an encrypted value")
    if key_id not in _ring():
        raise Unreadable(
            f"it names the key {key_id[:40]!r}, which FLOWSITE_KEYS does not hold; if that key "
            "was taken out, add it again after the newer ones"
        )
    try:
        sealed = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable("it is not base64") from None
    # Base64 has more than one spelling of some bytes; only the one we wrote counts.
    if base64.b64encode(sealed).decode() != encoded:
        raise Unreadable("it is not spelled as it was written")
    nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        box = AESGCM(_ring().derive("column-encryption", key_id))
        return box.decrypt(nonce, ciphertext, _associated(key_id, column, row)).decode()
    except (InvalidTag, ValueError):
        raise Unreadable("its authentication code does not match") from None


def key_id_of(stored: str) -> str:
    """The id of the key that a stored value names; empty where it names none."""
    return stored.split(".")[1] if stored.count(".") == 2 else ""
