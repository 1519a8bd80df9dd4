"""Succeed where every order in euros and dollars has its entry."""

import sqlite3
import sys

conn = sqlite3.connect("var/rehearsal.db")
open_ = conn.execute(
    "SELECT count(*) FROM orders o LEFT JOIN ledger_entries_v2 e ON e.order_id = o.id"
    " WHERE e.id IS NULL AND o.currency != 'JPY'"
).fetchone()[0]
sys.exit(open_ != 0)
