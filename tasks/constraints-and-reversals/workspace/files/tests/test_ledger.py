import pytest

from relay_queue.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "relay.db")
    ledger.create()
    return ledger


def test_a_claimed_job_is_not_ready(ledger):
    ledger.put("a")
    ledger.claim("w0", 100.0, 45.0)
    assert ledger.count("ready") == 0


def test_jobs_come_out_in_id_order(ledger):
    first, second = ledger.put("a"), ledger.put("b")
    assert [ledger.claim("w0", 100.0, 45.0).id for _ in range(2)] == [first, second]


def test_an_expired_lease_is_ready_again(ledger):
    ledger.put("a")
    ledger.claim("w0", 100.0, 45.0)
    assert ledger.reap_expired(145.5) == 1
    assert ledger.count("ready") == 1


def test_a_completed_job_is_done(ledger):
    ledger.put("a")
    ledger.complete(ledger.claim("w0", 100.0, 45.0), 101.0)
    assert ledger.count("done") == 1
