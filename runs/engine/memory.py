"""What this process remembers of resumed approvals, for ports that have no store."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence

from .approval import ApprovalRequest
from .errors import ApprovalAlreadyDecided

REMEMBERED_SECONDS = 24 * 60 * 60
REMEMBERED_ENTRIES = 100_000


class ResumedApprovals:
    """The requests answered in this process: bounded in number, each for 24 hours."""

    def __init__(self) -> None:
        self._spent: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def spend(self, answered: Sequence[ApprovalRequest], unheld: Sequence[ApprovalRequest]) -> None:
        """Remember that requests were answered, all or none.

        ``unheld`` are the open requests of the checkpoint that no store speaks for:
        ApprovalAlreadyDecided where one of these was answered before, now or with another.
        """
        now = time.monotonic()
        with self._lock:
            while self._spent:
                oldest, at = next(iter(self._spent.items()))
                if now - at < REMEMBERED_SECONDS and len(self._spent) < REMEMBERED_ENTRIES:
                    break
                del self._spent[oldest]
            for request in unheld:
                if (request.run_id, request.id) in self._spent:
                    raise ApprovalAlreadyDecided(
                        f"The request {request.id} for {request.tool} has been answered in this "
                        "process, and the run went on. Nothing ran now.",
                        node=request.node,
                    )
            self._spent.update(((request.run_id, request.id), now) for request in answered)


resumed = ResumedApprovals()
