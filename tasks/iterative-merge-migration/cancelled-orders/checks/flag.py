"""Succeed where nothing is posted unless the flag is set."""

import os
import sys

sys.path.append(".")
os.environ.pop("LEDGER_DUAL_WRITE", None)
from ledger import importer, migrate  # noqa: E402
from ledger.db import connect  # noqa: E402

conn = connect(":memory:")
migrate.apply(conn)
importer.import_rows(conn, [(7, 19.99, "EUR")])
sys.exit(conn.execute("SELECT count(*) FROM ledger_entries_v2").fetchone()[0] != 0)
