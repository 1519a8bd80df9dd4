"""Command line of the ledger."""

import argparse

from ledger import backfill, config, importer, migrate, reconcile
from ledger.db import connect


def main() -> None:
    parser = argparse.ArgumentParser(prog="ledger")
    parser.add_argument("--db", default="var/ledger.db")
    sub = parser.add_subparsers(dest="command", required=True)
    sub.add_parser("migrate")
    sub.add_parser("backfill")
    sub.add_parser("status")
    sub.add_parser("reconcile")
    load = sub.add_parser("import")
    load.add_argument("file")
    args = parser.parse_args()
    conn = connect(args.db)
    settings = config.load()

    if args.command == "migrate":
        print("applied:", ", ".join(migrate.apply(conn)) or "nothing")
    elif args.command == "backfill":
        copied = backfill.backfill(conn, **settings["backfill"])
        print(f"backfill done, {copied} entries written")
    elif args.command == "import":
        print(f"imported {importer.import_file(conn, args.file)} rows")
    elif args.command == "reconcile":
        found = reconcile.drifts(conn)
        print(f"drift: {len(found)} orders, {sum(d.posted - d.expected for d in found)} minor units")
        for drift in found[:12]:
            print(" ", drift)
        raise SystemExit(1 if found else 0)
    elif args.command == "status":
        orders = conn.execute("SELECT count(*) FROM orders").fetchone()[0]
        posted = conn.execute("SELECT count(DISTINCT order_id) FROM ledger_entries_v2").fetchone()[0]
        print(f"orders {orders}  with entries {posted}  without {orders - posted}")


if __name__ == "__main__":
    main()
