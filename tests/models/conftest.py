from __future__ import annotations

import pytest

from eval_core.models.transport import load_litellm


@pytest.fixture(scope="session", autouse=True)
def _litellm() -> None:
    """Import litellm before the first test, so that no test's time limit is spent on it."""
    load_litellm()
