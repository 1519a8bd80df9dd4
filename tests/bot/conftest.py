"""A loopback GitHub for every test, and a client whose waiting takes no time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from bot.github import GitHub
from bot.loopback import LoopbackGitHub
from bot.patience import Patience

REPO = "acme/agent"
FILES = {"README.md": b"An agent.\n", "src/compressor.py": b"def compress(messages):\n    return messages\n"}


@dataclass
class Waits:
    """Remembers how long the client would have waited."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    with LoopbackGitHub(REPO, files=FILES) as server:
        server.user("maintainer", "write")
        server.open_pull({**FILES, "src/compressor.py": b"def compress(messages):\n    return messages[-1:]\n"})
        server.workflow("compression-eval.yml")
        yield server


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def client(gh: LoopbackGitHub, waits: Waits) -> GitHub:
    return GitHub(REPO, gh.job_token(), api_url=gh.url, patience=Patience(timeout=5, sleep=waits))
