import pytest

from relay_queue import worker_pool_v2, worker_pool_v3
from relay_queue.ledger import Ledger


@pytest.mark.parametrize("make", [
    lambda path, seen: worker_pool_v2.WorkerPool(path, seen.append),
    lambda path, seen: worker_pool_v3.WorkerPool(path, seen.append, workers=1),
], ids=["v2", "v3"])
def test_every_job_reaches_the_handler(tmp_path, make):
    path, seen = tmp_path / "relay.db", []
    ledger = Ledger(path)
    ledger.create()
    for number in range(20):
        ledger.put(str(number))
    make(path, seen).run_until_empty()
    assert len(seen) == 20
    assert ledger.count("done") == 20
