"""Post an order to the ledger in the transaction that stores it."""

import os
import sqlite3

from ledger.backfill import seal, to_minor

FLAG = "LEDGER_DUAL_WRITE"


def enabled() -> bool:
    return os.environ.get(FLAG, "off") == "on"


def post(conn: sqlite3.Connection, order_id: int, total: float, currency: str) -> None:
    """Replace whatever the ledger holds for this order, so a correction never counts twice."""
    minor = to_minor(total)
    conn.execute("DELETE FROM ledger_entries_v2 WHERE order_id = ?", (order_id,))
    conn.execute(
        "INSERT INTO ledger_entries_v2 (order_id, gross_minor, currency, source, seal)"
        " VALUES (?, ?, ?, 'live', ?)",
        (order_id, minor, currency, seal(order_id, minor, currency)),
    )
