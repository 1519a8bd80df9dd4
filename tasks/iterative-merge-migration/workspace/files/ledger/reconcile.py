"""Compare what orders say with what the ledger says, order by order."""

import sqlite3
from dataclasses import dataclass

from ledger.backfill import to_minor


@dataclass(frozen=True)
class Drift:
    order_id: int
    expected: int
    posted: int
    entries: int


def drifts(conn: sqlite3.Connection) -> list[Drift]:
    rows = conn.execute(
        "SELECT o.id, o.total, coalesce(sum(e.gross_minor), 0) AS posted, count(e.id) AS entries"
        " FROM orders o LEFT JOIN ledger_entries_v2 e ON e.order_id = o.id GROUP BY o.id"
    )
    found = (Drift(r["id"], to_minor(r["total"]), r["posted"], r["entries"]) for r in rows)
    return [drift for drift in found if drift.expected != drift.posted]
