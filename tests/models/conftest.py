from __future__ import annotations

import pytest

from eval_core.models.transport import load_litellm


@pytest.fixture(scope="session")
def litellm() -> None:
    """Import litellm before a test that calls through it, so that no time limit is spent on the seconds it takes."""
    load_litellm()
