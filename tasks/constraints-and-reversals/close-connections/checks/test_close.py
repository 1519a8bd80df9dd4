"""Connections are closed by whoever opened them."""

import sqlite3

import pytest

from relay_queue import dispatcher
from relay_queue.ledger import Ledger


def test_a_closed_ledger_cannot_be_used(tmp_path):
    ledger = Ledger(tmp_path / "relay.db")
    ledger.create()
    ledger.close()
    with pytest.raises(sqlite3.ProgrammingError):
        ledger.count("ready")


def test_the_dispatcher_closes_what_it_opened(tmp_path, monkeypatch):
    opened = []

    class Watched(Ledger):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            opened.append(self)

    Ledger(tmp_path / "relay.db").create()
    monkeypatch.setattr(dispatcher, "Ledger", Watched)
    dispatcher.Dispatcher(tmp_path / "relay.db", 45.0, until_empty=True).run()
    assert len(opened) == 1
    with pytest.raises(sqlite3.ProgrammingError):
        opened[0].count("ready")
