"""An approval store in a SQLite file, which several processes share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from runs.engine import ApprovalAlreadyDecided, ApprovalDecision, ApprovalRequest

Answer = tuple[ApprovalRequest, ApprovalDecision]


class FileStore:
    """Keeps of each record its ids and its decision; each method is one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._transaction() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS record (id TEXT PRIMARY KEY, run TEXT, call TEXT,"
                " verb TEXT, by TEXT, consumed INTEGER DEFAULT 0)"
            )

    async def add(self, request: ApprovalRequest) -> None:
        with self._transaction() as database:
            database.execute(
                "INSERT INTO record (id, run, call) VALUES (?, ?, ?)",
                (request.id, request.run_id, request.call_id),
            )

    async def find_pending(self, request: ApprovalRequest) -> ApprovalRequest | None:
        with self._transaction() as database:
            found = database.execute(
                "SELECT id FROM record WHERE run = ? AND call = ? AND verb IS NULL",
                (request.run_id, request.call_id),
            ).fetchone()
        return None if found is None else replace(request, id=found[0])

    async def settle(
        self,
        answers: Sequence[Answer],
        earlier: Sequence[Answer],
        others: Sequence[ApprovalRequest],
    ) -> set[str]:
        with self._transaction() as database:
            for request in others:
                found = database.execute(
                    "SELECT 1 FROM record WHERE id = ? AND consumed", (request.id,)
                ).fetchone()
                if found is not None:
                    raise ApprovalAlreadyDecided(f"{request.id} was settled before")
            held = set()
            for request, decision in [*earlier, *answers]:
                found = database.execute(
                    "SELECT verb, by, consumed FROM record WHERE id = ?", (request.id,)
                ).fetchone()
                if found is None:
                    continue
                is_new = (request, decision) in answers
                if found[2] if is_new else not found[2]:
                    raise ApprovalAlreadyDecided(f"{request.id} was settled before")
                if found[0] is not None and found[:2] != (decision.verb, decision.by):
                    raise ApprovalAlreadyDecided(f"{request.id} was {found[0]}")
                if is_new:
                    held.add(request.id)
                    database.execute(
                        "UPDATE record SET verb = ?, by = ?, consumed = 1 WHERE id = ?",
                        (decision.verb, decision.by, request.id),
                    )
            return held

    async def withdraw(self, request: ApprovalRequest, reason: str) -> ApprovalDecision | None:
        with self._transaction() as database:
            database.execute(
                "UPDATE record SET verb = 'rejected', by = ?, consumed = 1"
                " WHERE id = ? AND verb IS NULL",
                (reason, request.id),
            )
        return None  # nobody decides here without resuming at once

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()  # without COMMIT nothing is kept
