import pytest

from ledger import dualwrite
from ledger.importer import import_rows
from ledger.reconcile import drifts


@pytest.fixture
def switched_on(monkeypatch):
    monkeypatch.setenv(dualwrite.FLAG, "on")


def test_nothing_is_posted_unless_switched_on(conn):
    import_rows(conn, [(7, 19.99, "EUR")])
    assert [d.entries for d in drifts(conn)] == [0]


def test_a_corrected_order_counts_once(conn, switched_on):
    import_rows(conn, [(7, 19.99, "EUR")])
    import_rows(conn, [(7, 24.5, "EUR")])
    assert drifts(conn) == []
