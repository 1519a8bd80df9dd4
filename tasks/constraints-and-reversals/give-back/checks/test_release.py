"""What a stop gives back: no lease, no attempt used up, and nothing of somebody else."""

import pytest

from relay_queue.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "relay.db")
    ledger.create()
    for number in range(4):
        ledger.put(f"order-{number}")
    return ledger


def attempts(ledger, state):
    return [row[0] for row in ledger.db.execute("SELECT attempt FROM job WHERE state = ? ORDER BY id", (state,))]


def test_a_job_that_no_worker_saw_is_as_it_was(ledger):
    held = [ledger.claim("dispatcher", 100.0, 45.0) for _ in range(3)]
    ledger.release(held[1:])
    assert attempts(ledger, "leased") == [1]
    assert attempts(ledger, "ready") == [0, 0, 0]


def test_a_job_that_was_claimed_anew_stays_with_its_owner(ledger):
    job = ledger.claim("dispatcher", 100.0, 45.0)
    ledger.reap_expired(200.0)
    again = ledger.claim("other", 200.0, 45.0)
    ledger.release([job])
    assert again.id == job.id
    assert attempts(ledger, "leased") == [2]


def test_a_finished_job_stays_finished(ledger):
    job = ledger.claim("dispatcher", 100.0, 45.0)
    ledger.complete(job, 101.0)
    ledger.release([job])
    assert ledger.count("done") == 1
