"""Open the ledger database the way every caller needs it."""

import sqlite3
from pathlib import Path

# The tills give up on a request after 300 ms, so waiting longer helps nobody.
BUSY_MS = 250


def connect(path: str | Path = "var/ledger.db") -> sqlite3.Connection:
    if str(path) != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    conn = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)
    conn.row_factory = sqlite3.Row
    return conn
