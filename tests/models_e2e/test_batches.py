"""Half price for what nobody waits for: answers and grades in the provider's batches, with the real command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small

from bot.testing.batches import Batch
from bot.testing.provider import Asked
from eval_core.domain.measurement import Measurement
from eval_core.models.journal import parse_line
from eval_core.storage.baselines import load_baseline
from eval_core.storage.results import read_measurement

from .world import ANSWER, COMPRESSOR, JUDGE, Provider, files_below

UPDATE = ("baseline", "update", "--runs", "2", "--trust-judge", "--quiet")
AGAIN = ("--label", "a", "--resume")
KEY = "sk-loopback-0123456789"


def lines(journal: str = "results/a/journal.jsonl", at: str | None = None) -> list[dict[str, Any]]:
    found = [parse_line(raw) for raw in Path(journal).read_bytes().splitlines()]
    return [line for line in found if at is None or line["at"] == at]


def cells(measured: Measurement) -> list[Any]:
    """Return what was measured in every cell, without what it cost and when."""
    return [
        (name, run.run, run.messages, probe, record.answer and record.answer.text, getattr(record.result, "scores", 0))
        for name, runs in measured.fixtures.items()
        for run in runs
        for probe, record in run.probes.items()
    ] + [measured.controls]


def until_done(cli: small.Cli, *arguments: str, most: int = 6) -> tuple[small.Ran, int]:
    """Resume until the run is complete; return how it ended and how often it was incomplete before."""
    for times in range(most):
        ran = cli(*arguments)
        if ran.code != 3:
            return ran, times
    raise AssertionError(ran.err)


@pytest.fixture
def live(three_probes: Path, cli: small.Cli, provider: Provider) -> Measurement:
    """The same baseline, every call made at once; what it kept for later runs is thrown away."""
    assert cli(*UPDATE, *provider.options, "--results", "live", "--label", "a").code == 0
    for path in Path("baselines").iterdir():
        path.unlink()
    for asked in (provider.server.asked, provider.server.delivered):
        asked.clear()
    provider.server.input_tokens = provider.server.output_tokens = 0
    return read_measurement(Path("live/a"))


def test_a_baseline_in_batches_is_the_live_one_cell_by_cell(
    live: Measurement, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPRESSION_EVAL_API_KEY", KEY)
    batches = provider.server.batches
    command = (*UPDATE, *provider.options, "--batch")
    first = cli(*command, "--label", "a")
    assert first.code == 3
    assert re.search(r"submitted 12 calls .* at half price \(openai/answerer: 12 in batch_0\), about \$0\.\d+", first.err)
    assert "`--label a --resume` collects" in first.err
    live_calls = len(provider.server.asked)
    assert {asked.model for asked in provider.asked_of(ANSWER)} == {ANSWER}
    assert len(provider.asked_of(ANSWER)) == 1  # the check before the run
    assert len(lines(at="queued")) == 11

    batches.held = True
    waiting = cli(*command, *AGAIN)
    assert waiting.code == 3
    assert "batch_0 of openai/answerer is still running: 0 of 11 calls are done" in waiting.err
    assert len(provider.server.asked) == live_calls
    assert [request for request in batches.requests if request.startswith("POST")] == ["POST /v1/files", "POST /v1/batches"]

    batches.held = False
    graded = cli(*command, *AGAIN)
    assert graded.code == 3
    assert "openai/judge" in graded.err
    done = cli(*command, *AGAIN)
    assert done.code == 0, done.err
    assert len(provider.server.asked) == live_calls
    assert provider.paid_twice() == 0
    assert len(provider.server.batched) == len(lines(at="collected")) == len(lines(at="queued"))

    stored, _ = load_baseline(Path("baselines/models.json"))
    assert cells(read_measurement(Path("results/a"))) == cells(live)
    assert cells(stored)[:-1] == cells(live)[:-1]
    assert batches.keys == {f"Bearer {KEY}"}
    assert not [path for path, raw in files_below(Path()) if KEY.encode() in raw]
