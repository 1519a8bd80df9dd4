"""Copy historic orders into ledger_entries_v2, batch by batch."""

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

PENDING = """
    SELECT o.id, o.total, o.currency FROM orders o
    LEFT JOIN ledger_entries_v2 e ON e.order_id = o.id
    WHERE e.id IS NULL AND o.id > ?
    ORDER BY o.id LIMIT ?
"""


def to_minor(total: float) -> int:
    return int((Decimal(str(total)) * 100).quantize(Decimal(1), ROUND_HALF_UP))


def seal(order_id: int, minor: int, currency: str) -> str:
    payload = f"{order_id}:{minor}:{currency}".encode()
    return hashlib.pbkdf2_hmac("sha256", payload, b"orders-ledger", 120).hex()[:24]


def backfill(conn: sqlite3.Connection, batch_size: int, pause_ms: int = 0, skip: Sequence[str] = ()) -> int:
    copied = last_id = 0
    while True:
        # Page by key: the pending set shrinks with every batch, so an offset would skip rows.
        rows = conn.execute(PENDING, (last_id, batch_size)).fetchall()
        if not rows:
            return copied
        conn.execute("BEGIN IMMEDIATE")
        wanted = [row for row in rows if row["currency"] not in skip]
        for row in wanted:
            minor = to_minor(row["total"])
            conn.execute(
                "INSERT INTO ledger_entries_v2 (order_id, gross_minor, currency, source, seal)"
                " VALUES (?, ?, ?, 'backfill', ?)",
                (row["id"], minor, row["currency"], seal(row["id"], minor, row["currency"])),
            )
        conn.execute("COMMIT")
        copied += len(wanted)
        last_id = rows[-1]["id"]
        time.sleep(pause_ms / 1000)  # let the tills write
