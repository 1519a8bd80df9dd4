"""Load the nightly order file into the ledger in one transaction."""
import sqlite3
import sys


def load(path, payloads):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    for payload in payloads:
        db.execute("INSERT INTO job (payload) VALUES (?)", (payload,))
    db.execute("COMMIT")


if __name__ == "__main__":
    load(sys.argv[1], (line.rstrip("\n") for line in sys.stdin))
