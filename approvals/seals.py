"""The seal of a decision: that a person made it through Flowsite, as it stands in its row.

HMAC-SHA256 under a key of the site's ring, over everything that the decision says. A row that was
written or changed by other hands has no seal that fits.
"""

from __future__ import annotations

import hmac
import json
from datetime import UTC

from django.conf import settings

from runs.keys import KeyRing

from .models import Decision


def seal_decision(decision: Decision) -> None:
    """Put the seal of the newest key into the row (unsaved)."""
    ring: KeyRing = settings.FLOWSITE_KEYS
    decision.seal = f"{ring.newest}:{_mac(ring, ring.newest, decision)}"


def is_genuine(decision: Decision) -> bool:
    """Whether the row is as it was sealed, by a key that is here."""
    ring: KeyRing = settings.FLOWSITE_KEYS
    key_id, _, mac = decision.seal.partition(":")
    return key_id in ring and hmac.compare_digest(
        mac.encode(), _mac(ring, key_id, decision).encode()
    )


def _mac(ring: KeyRing, key_id: str, decision: Decision) -> str:
    said = [
        str(decision.pk),
        str(decision.request_id),
        decision.verdict,
        decision.by_id,
        decision.by_name,
        decision.reason,
        decision.content,
        decision.digest,
        decision.decided_at.astimezone(UTC).isoformat(),
    ]
    key = ring.derive("decision-seal", key_id)
    return hmac.new(key, json.dumps(said).encode(), "sha256").hexdigest()
