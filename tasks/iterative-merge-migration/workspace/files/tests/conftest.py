import pytest

from ledger import migrate
from ledger.db import connect


@pytest.fixture
def conn():
    conn = connect(":memory:")
    migrate.apply(conn)
    return conn
