"""What tests share: a project of small sessions, the command line in this process, and the shipped suite."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import small
from filelock import FileLock
from hypothesis import settings

from bot.cli import main
from eval_core.domain.case import Case, load_suite
from eval_core.domain.measurement import Measurement

settings.register_profile("daily", deadline=None, max_examples=25)  # machines are shared: time is no property
settings.register_profile("thorough", deadline=None, max_examples=500)  # --hypothesis-profile thorough
settings.load_profile("daily")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A script's background job ignores Ctrl+C, and so would the programs that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the files that drive the whole system: they wait for processes, and others run meanwhile.

    Then come the long ones: one that is begun last keeps one worker busy while the others have nothing to do.
    """
    early = {mark: {item.path for item in items if item.get_closest_marker(mark)} for mark in ("e2e", "long")}
    items.sort(key=lambda item: [item.path not in paths for paths in early.values()])


@pytest.fixture(autouse=True)
def offline_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep models that the developer configured, and an agent's own runner, out of the tests."""
    for name in [*os.environ]:
        if name.startswith(("COMPRESSION_EVAL_", "HERMES_")):
            monkeypatch.delenv(name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that holds the three small cases."""
    monkeypatch.chdir(small.write_suite(tmp_path))
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> small.Cli:
    """Run the command in this process; an exception that gets out of it fails the test."""

    def run(*arguments: str) -> small.Ran:
        monkeypatch.setattr(sys, "argv", ["compression-eval", *arguments])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        out, err = capsys.readouterr()
        return small.Ran(code, out, err)

    return run


@pytest.fixture(scope="session")
def shipped() -> list[Case]:
    """The fixtures and probe banks of this repository."""
    return load_suite(small.REPOSITORY / "fixtures", small.REPOSITORY / "probes")


@pytest.fixture(scope="session")
def shipped_runs(shipped: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measurement]:
    """Measure each strategy on the shipped fixtures, once for all tests and workers."""
    done: dict[str, Measurement] = {}
    # Each worker has a folder of its own in one that they share.
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "measured"
    shared.mkdir(exist_ok=True)

    def of(strategy: str) -> Measurement:
        if strategy not in done:
            file = shared / f"{strategy}.json"
            with FileLock(f"{file}.lock"):
                if not file.exists():
                    known = next(iter(done.values())).controls if done else None
                    made = small.measure(shipped, tmp_path_factory.mktemp(strategy), strategy, controls=known)
                    file.write_text(made.model_dump_json(), encoding="utf-8")
            done[strategy] = Measurement.model_validate_json(file.read_bytes())
        return done[strategy]

    return of


@pytest.fixture(scope="session")
def small_measurement(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    """Three graded and five compress-only runs of the small cases with the reference compressor."""
    return small.measure(small.cases(), tmp_path_factory.mktemp("small"), "anchored", runs=3, compress_runs=5)
