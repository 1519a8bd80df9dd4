"""Succeed where no order in yen has an entry, and none is going to get one."""

import sqlite3
import sys
import tomllib

conn = sqlite3.connect("var/rehearsal.db")
posted = conn.execute("SELECT count(*) FROM ledger_entries_v2 WHERE currency = 'JPY'").fetchone()[0]
with open("config/ledger.toml", "rb") as stream:
    skipped = tomllib.load(stream)["backfill"].get("skip_currencies", [])
sys.exit(posted != 0 or "JPY" not in skipped)
