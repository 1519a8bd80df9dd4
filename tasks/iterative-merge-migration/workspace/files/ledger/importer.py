"""Load a till file (order_id,total,currency) into orders."""

import csv
import sqlite3
from pathlib import Path

from ledger import dualwrite


def import_file(conn: sqlite3.Connection, path: str | Path) -> int:
    """Insert every row; a corrected order replaces the one already there."""
    with open(path, newline="") as handle:
        rows = [(int(r["order_id"]), float(r["total"]), r["currency"]) for r in csv.DictReader(handle)]
    return import_rows(conn, rows)


def import_rows(conn: sqlite3.Connection, rows: list[tuple[int, float, str]]) -> int:
    conn.execute("BEGIN IMMEDIATE")
    for row in rows:
        conn.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", row)
        if dualwrite.enabled():
            dualwrite.post(conn, *row)
    conn.execute("COMMIT")
    return len(rows)
