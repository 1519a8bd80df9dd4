"""Cancellations: the order goes, and under dual write its entry goes too."""

import pytest

from ledger import importer, migrate
from ledger.db import connect


@pytest.fixture
def conn(monkeypatch):
    monkeypatch.setenv("LEDGER_DUAL_WRITE", "on")
    conn = connect(":memory:")
    migrate.apply(conn)
    importer.import_rows(conn, [(7, 19.99, "EUR"), (8, 5.0, "EUR"), (9, 1.5, "USD")])
    return conn


def ids(conn, table, column):
    return [row[0] for row in conn.execute(f"SELECT {column} FROM {table} ORDER BY 1")]


def test_orders_and_entries_go_together(conn):
    assert importer.delete_rows(conn, [7, 9]) == 2
    assert ids(conn, "orders", "id") == [8]
    assert ids(conn, "ledger_entries_v2", "order_id") == [8]


def test_an_unknown_order_is_no_error(conn):
    assert importer.delete_rows(conn, [1000]) == 0
    assert ids(conn, "orders", "id") == [7, 8, 9]


def test_no_transaction_is_left_open(conn):
    importer.delete_rows(conn, [8])
    assert not conn.in_transaction
