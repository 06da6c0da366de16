"""What the property-based tests have tried, for the summary, and how many examples they try."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings

unhurried = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""A busy machine is no fault, and neither is a large flow."""


@dataclass
class Tally:
    """Counts of what the tests of this process have tried."""

    runs: int = 0
    pauses: int = 0
    requests: int = 0
    effects: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        return (
            f"{self.runs} random runs with {self.pauses} pauses, {self.requests} open requests "
            f"and {self.effects} effects ({kinds}); {self.refused} changed checkpoints"
        )


tally = Tally()


def examples(default: int) -> int:
    """How many examples a property is tried on: FLOWSITE_PROPERTY_EXAMPLES, or the default."""
    return int(os.environ.get("FLOWSITE_PROPERTY_EXAMPLES", default))
