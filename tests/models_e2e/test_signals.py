"""SIGTERM and SIGINT: nothing new is sent, what is paid is kept, everything is written, and the way on is said."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import small

from eval_core.measuring.interrupt import interruptible
from tests.model_provider import Asked

from .world import Provider, done, results_of


class Host:
    """The process that starts the command again and again."""

    def __init__(self, process: subprocess.Popen[str], said: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin: IO[str] = process.stdin
        self.stdout: IO[str] = process.stdout
        self.said = said

    def start(self, *arguments: str) -> int:
        self.stdin.write(json.dumps(arguments) + "\n")
        self.stdin.flush()
        return int(self.stdout.readline())

    def code(self) -> int:
        return int(self.stdout.readline())


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with hosting(tmp_path / "stderr.txt") as found:
        yield found


@contextmanager
def hosting(said: Path) -> Iterator[Host]:
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "models_e2e.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{small.REPOSITORY}{os.pathsep}{small.REPOSITORY / 'tests'}"},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield Host(process, said)
        finally:
            process.stdin.close()
            process.wait(120)
            process.stdout.close()


def command(provider: Provider) -> tuple[str, ...]:
    options = (
        "--runs",
        "1",
        "--set",
        "compress_runs=2",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--quiet",
    )
    return ("run", *options, "--label", "a", "--resume")


def after(provider: Provider, requests: int, fault: str | None = None) -> threading.Event:
    """Let an event happen with a request, and misbehave from then on."""
    reached = threading.Event()

    def behave(asked: Asked) -> str | None:
        if asked.number < requests:
            return None
        reached.set()
        return fault

    provider.behave = behave
    return reached


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_paid_calls_end_and_says_how_to_go_on(
    number: signal.Signals, project: Path, provider: Provider, host: Host
) -> None:
    provider.server._latency = 0.3
    reached = after(provider, 8)
    child = host.start(*command(provider))
    assert reached.wait(300)
    os.kill(child, number)
    assert host.code() == 3
    said = host.said.read_text()
    assert f"Incomplete: interrupted by {number.name}" in said
    assert "--label a --resume` completes it" in said
    journal = project / "results/a/journal.jsonl"
    asked = len(provider.server.asked)
    assert done(journal) == asked  # what was under way was waited for and is kept
    assert json.loads((project / "results/a/summary.json").read_text())["stopped"] == f"interrupted by {number.name}"
    assert (project / "results/a/report.md").exists()
    host.start(*command(provider))
    assert host.code() == 0
    assert all(result["kind"] == "grade" for result in results_of(_summary(project)))
    assert len(provider.server.asked) == done(journal)  # and nothing was paid twice


@pytest.mark.parametrize(
    ("words", "journal", "way_on"),
    [
        (("baseline", "update", "--runs", "1", "--label", "a", "--quiet"), "a", "--label a --quiet"),
        (("judge", "calibrate", "--quiet"), "calibration", "run it again"),
    ],
    ids=["baseline", "calibrate"],
)
def test_every_command_that_pays_keeps_what_is_under_way(
    words: tuple[str, ...], journal: str, way_on: str, project: Path, provider: Provider, host: Host
) -> None:
    provider.server._latency = 0.3
    reached = after(provider, 20)
    child = host.start(*words, *provider.options)
    assert reached.wait(300)
    os.kill(child, signal.SIGTERM)
    assert host.code() == 3
    said = host.said.read_text()
    assert "interrupted by SIGTERM" in said
    assert way_on in said
    assert done(project / f"results/{journal}/journal.jsonl") == len(provider.server.asked)


def test_a_second_signal_ends_even_what_hangs(project: Path, provider: Provider, host: Host) -> None:
    reached = after(provider, 8, "hang")
    child = host.start(*command(provider))
    assert reached.wait(300)
    os.kill(child, signal.SIGINT)  # as a cancelled job of GitHub Actions gets them
    os.kill(child, signal.SIGTERM)
    assert host.code() == 3
    assert "Incomplete: interrupted by " in host.said.read_text()
    records = [run for runs in _summary(project)["fixtures"].values() for run in runs]
    assert len(records) == 6
    assert any(run["outcome"] == "infra" for run in records)
    provider.behave = lambda asked: None
    host.start(*command(provider))
    assert host.code() == 0


@pytest.mark.parametrize("signals", [0, 1, 2])
def test_after_the_measuring_a_signal_means_what_it_meant_before(signals: int) -> None:
    """While reports are written, the system's own handling would end the process without a word."""
    heard: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append("mine"))

    async def scene() -> None:
        with interruptible(heard.append, lambda: heard.append("abandoned")):
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.01)

    try:
        asyncio.run(scene())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [*["interrupted by SIGTERM", "abandoned"][:signals], "mine"]


def _summary(project: Path) -> dict[str, dict[str, list[dict[str, str]]]]:
    found: dict[str, dict[str, list[dict[str, str]]]] = json.loads((project / "results/a/summary.json").read_text())
    return found
