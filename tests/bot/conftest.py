"""A loopback GitHub for every test, and a client whose waiting takes no time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bot_world import FILES, REPO, WORKFLOW, Waits
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.github.rest import ApiRetries


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    with LoopbackGitHub(REPO, files=FILES) as server:
        server.user("maintainer", "write")
        server.open_pull({**FILES, "src/compressor.py": b"def compress(messages):\n    return messages[-1:]\n"})
        server.workflow(WORKFLOW)
        server.state.actions_open_pulls = True
        yield server


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def client(gh: LoopbackGitHub, waits: Waits) -> GitHub:
    return GitHub(REPO, gh.job_token(), api_url=gh.url, retry=ApiRetries(timeout=5, sleep=waits))
