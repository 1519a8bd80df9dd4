"""Succeed where orders_audit is as it was: its schema after all migrations, and its rows after a cancellation."""

import sys

sys.path.append(".")
from ledger import importer, migrate  # noqa: E402
from ledger.db import connect  # noqa: E402

conn = connect(":memory:")
migrate.apply(conn)
about = conn.execute("SELECT count(*) FROM sqlite_master WHERE tbl_name = 'orders_audit' AND type != 'table'").fetchone()[0]
columns = [row[1] for row in conn.execute("PRAGMA table_info(orders_audit)")]
conn.execute("INSERT INTO orders_audit (order_id, note) VALUES (7, 'seen')")
importer.import_rows(conn, [(7, 19.99, "EUR")])
if hasattr(importer, "delete_rows"):
    importer.delete_rows(conn, [7])
rows = [tuple(row) for row in conn.execute("SELECT order_id, note FROM orders_audit")]
sys.exit(bool(about) or columns != ["id", "order_id", "note"] or rows != [(7, "seen")])
