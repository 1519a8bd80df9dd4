import threading
import time
from collections import Counter

import pytest

from relay_queue.ledger import Ledger
from relay_queue.worker_pool_v3 import WorkerPool


@pytest.fixture
def path(tmp_path):
    Ledger(tmp_path / "relay.db").create()
    return tmp_path / "relay.db"


def fill(path, jobs):
    ledger = Ledger(path)
    for number in range(jobs):
        ledger.put(f"order-{number}")


def twice(seen):
    return sum(1 for count in Counter(seen).values() if count > 1)


def test_concurrent_workers_never_share_a_job(path):
    fill(path, 400)
    seen = []
    WorkerPool(path, lambda job: seen.append(job.id), workers=8).run_until_empty()
    assert len(set(seen)) == 400
    assert twice(seen) == 0, f"{twice(seen)} of 400 jobs delivered twice"


def test_an_import_causes_no_second_delivery(path):
    fill(path, 60)
    seen, begun = [], threading.Event()

    def slow(job):
        seen.append(job.id)
        if len(seen) == 20:
            begun.set()
        time.sleep(0.05)

    def hold_write_lock():
        begun.wait()
        ledger = Ledger(path, timeout=5)
        ledger.db.execute("BEGIN EXCLUSIVE")
        time.sleep(2.5)
        ledger.db.rollback()

    importing = threading.Thread(target=hold_write_lock)
    importing.start()
    WorkerPool(path, slow, workers=8, lease_seconds=0.4).run_until_empty()
    importing.join()
    assert len(set(seen)) == 60
    assert twice(seen) == 0, f"{twice(seen)} of 60 jobs delivered twice"


def test_stop_gives_prefetched_jobs_back(path):
    fill(path, 40)
    started, release = threading.Semaphore(0), threading.Event()

    def block(job):
        started.release()
        release.wait()

    pool = WorkerPool(path, block, workers=2)
    pool.start()
    for _ in range(2):
        started.acquire()
    while Ledger(path).count("leased") < 12:
        time.sleep(0.01)
    threading.Timer(0.2, release.set).start()
    pool.stop()
    ledger = Ledger(path)
    assert ledger.count("leased") == 0, f"{ledger.count('leased')} jobs still leased after stop"
    assert ledger.count("done") == 2
    unstarted = ledger.db.execute("SELECT max(attempt) FROM job WHERE state = 'ready'").fetchone()[0]
    assert unstarted == 0, "a job no worker saw has used up an attempt"
