"""Whether the keys in the settings are those that this database was written with."""

from __future__ import annotations

import hmac

from django.conf import settings

from .keys import KeyRing
from .models import KeyCheck


def problems() -> list[str]:
    """What is wrong with FLOWSITE_KEYS for this database, in words; empty where all is well.

    Notes keys that are new here. Raises the database's own errors where it can't be reached.
    """
    ring: KeyRing = settings.FLOWSITE_KEYS
    known = dict(KeyCheck.objects.values_list("key_id", "proof"))
    found = [
        f"The key {key_id!r} in FLOWSITE_KEYS is not the key of that name that this database was "
        "written with. Put the right key back."
        for key_id in ring
        if key_id in known and not hmac.compare_digest(known[key_id], _proof(ring, key_id))
    ]
    found += [
        f"This database holds data sealed with the key {key_id!r}, which FLOWSITE_KEYS does not "
        "name. Add it again, after the newer keys."
        for key_id in known
        if key_id not in ring
    ]
    if not found:
        KeyCheck.objects.bulk_create(
            [KeyCheck(key_id=k, proof=_proof(ring, k)) for k in ring if k not in known],
            ignore_conflicts=True,
        )
    return found


def _proof(ring: KeyRing, key_id: str) -> str:
    return hmac.new(ring.derive("key-check", key_id), b"flowsite", "sha256").hexdigest()
