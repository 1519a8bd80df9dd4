"""Hand out leased jobs from the one thread that owns the ledger."""
import queue
import sqlite3
import threading
import time

from relay_queue.ledger import Ledger

PREFETCH_LIMIT = 12


class Dispatcher(threading.Thread):
    def __init__(self, path, lease_seconds, until_empty=False):
        super().__init__(name="dispatcher")
        self.path = path
        self.lease_seconds = lease_seconds
        self.until_empty = until_empty
        self.ready = queue.Queue()
        self.stopping = threading.Event()
        self._finished = queue.SimpleQueue()
        self._unsettled = []
        self._held = {}

    def finish(self, job):
        self._finished.put((job, time.time()))

    def run(self):
        ledger = Ledger(self.path)
        while not self.stopping.is_set():
            try:
                self._round(ledger)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                ledger.db.rollback()
            self.stopping.wait(0.005)
        self._settle(ledger)
        ledger.release(self._held.values())

    def _round(self, ledger):
        # Reap last: before settling and renewing it would take back jobs that workers hold or have finished.
        self._settle(ledger)
        ledger.renew(self._held.values(), time.time() + self.lease_seconds)
        ledger.reap_expired(time.time())
        while len(self._held) < PREFETCH_LIMIT:
            job = ledger.claim("dispatcher", time.time(), self.lease_seconds)
            if job is None:
                break
            self._held[job.id] = job
            self.ready.put(job)
        if self.until_empty and not self._held:
            self.stopping.set()

    def _settle(self, ledger):
        while not self._finished.empty():
            self._unsettled.append(self._finished.get())
        while self._unsettled:
            job, at = self._unsettled[0]
            ledger.complete(job, at)
            self._unsettled.pop(0)
            self._held.pop(job.id, None)
