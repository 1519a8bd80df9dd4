"""Drain the ledger in id order with a single loop (used by scripts/replay)."""
import time

from relay_queue.ledger import Ledger


class WorkerPool:
    def __init__(self, path, handler, lease_seconds=45.0):
        self.path = path
        self.handler = handler
        self.lease_seconds = lease_seconds

    def run_until_empty(self):
        ledger = Ledger(self.path)
        handled = 0
        while True:
            job = ledger.claim("replay", time.time(), self.lease_seconds)
            if job is None:
                return handled
            self.handler(job)
            ledger.complete(job, time.time())
            handled += 1
