from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import small

from eval_core.domain.case import Case
from eval_core.models.retry import RetryPolicy
from eval_core.models.transport import load_litellm
from tests import model_provider as loopback

from .world import Provider, serving, tiny


@pytest.fixture(scope="session")
def litellm() -> None:
    """Import litellm before a test that calls through it, so that no time limit is spent on the seconds it takes."""
    load_litellm()


@pytest.fixture(autouse=True)
def impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait hundredths where a real run waits seconds, and give up sooner: what is tried again is the same.

    A reply is waited for as long as a busy machine may need, except in tests in which one never comes.
    """
    given = getattr(request.node, "callspec", None)
    hangs = {"hang", "drip"}.intersection(map(str, given.params.values() if given else ()))
    patience = 5.0 if hangs or request.node.get_closest_marker("hangs") else 60.0
    seldom = {kind: min(times, 2) for kind, times in RetryPolicy().again.items()} | {"timeout": 1}
    policy = RetryPolicy(
        base_seconds=0.01, longest_seconds=0.02, attempt_seconds=patience, outage_seconds=0.02, again=seldom
    )
    monkeypatch.setattr("eval_core.measuring.wiring.RETRY", policy)
    busy = lambda: loopback._error(429, "slow down", Retry_After="0.05")  # noqa: E731
    monkeypatch.setitem(loopback._ERRORS, "429-retry-after", busy)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider()) as server:
        yield server


@pytest.fixture
def three_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three sessions and one question about each."""
    cases = [
        Case(case.fixture, case.bank.model_copy(update={"probes": case.bank.probes[:1]})) for case in small.cases()
    ]
    monkeypatch.chdir(small.write_suite(tmp_path, cases))
    return tmp_path


@pytest.fixture
def one_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one session and one question."""
    monkeypatch.chdir(small.write_suite(tmp_path, [tiny("recall-error")]))
    return tmp_path
