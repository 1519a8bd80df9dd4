"""Keep jobs, leases and deliveries in one SQLite file."""
import functools
import random
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

SCHEMA = Path(__file__).parent.parent / "schema" / "ledger.sql"


def patient(write):
    """Repeat a write with growing pauses while another writer holds the file."""

    @functools.wraps(write)
    def repeat(self, *args):
        for round_number in range(8):
            try:
                return write(self, *args)
            except sqlite3.OperationalError as error:
                self.db.rollback()
                if "locked" not in str(error) or round_number == 7:
                    raise
                time.sleep(random.uniform(0.02, 0.05) * 2**round_number)

    return repeat


@dataclass(frozen=True)
class Job:
    id: int
    payload: str
    owner: str
    attempt: int


class Ledger:
    def __init__(self, path, timeout=1.0):
        self.db = sqlite3.connect(path, timeout=timeout)
        self.db.execute("PRAGMA synchronous=OFF")

    def create(self):
        self.db.executescript(SCHEMA.read_text())

    @patient
    def put(self, payload):
        cursor = self.db.execute("INSERT INTO job (payload) VALUES (?)", (payload,))
        self.db.commit()
        return cursor.lastrowid

    @patient
    def claim(self, owner, now, lease_seconds):
        self.db.execute("BEGIN IMMEDIATE")
        row = self.db.execute(
            "SELECT id, payload, attempt FROM job WHERE state = 'ready' ORDER BY id LIMIT 1"
        ).fetchone()
        if row is None:
            self.db.rollback()
            return None
        self.db.execute(
            "UPDATE job SET state = 'leased', owner = ?, attempt = attempt + 1, lease_until = ?"
            " WHERE id = ?",
            (owner, now + lease_seconds, row[0]),
        )
        self.db.commit()
        return Job(row[0], row[1], owner, row[2] + 1)

    @patient
    def complete(self, job, now):
        cursor = self.db.execute(
            "UPDATE job SET state = 'done' WHERE id = ? AND attempt = ? AND state = 'leased'",
            (job.id, job.attempt),
        )
        if cursor.rowcount:
            self.db.execute(
                "INSERT INTO delivery VALUES (?, ?, ?, ?)", (job.id, job.owner, job.attempt, now)
            )
        self.db.commit()
        return cursor.rowcount == 1

    def renew(self, jobs, lease_until):
        self.db.executemany(
            "UPDATE job SET lease_until = ? WHERE id = ? AND attempt = ? AND state = 'leased'",
            [(lease_until, job.id, job.attempt) for job in jobs],
        )
        self.db.commit()

    @patient
    def release(self, jobs):
        self.db.executemany(
            "UPDATE job SET state = 'ready', owner = NULL, lease_until = NULL"
            " WHERE id = ? AND attempt = ? AND state = 'leased'",
            [(job.id, job.attempt) for job in jobs],
        )
        self.db.commit()

    def reap_expired(self, now):
        cursor = self.db.execute(
            "UPDATE job SET state = 'ready', owner = NULL"
            " WHERE state = 'leased' AND lease_until < ?",
            (now,),
        )
        self.db.commit()
        return cursor.rowcount

    def count(self, state):
        return self.db.execute("SELECT count(*) FROM job WHERE state = ?", (state,)).fetchone()[0]

    def delivered_twice(self):
        return self.db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM delivery GROUP BY job_id HAVING count(*) > 1)"
        ).fetchone()[0]
