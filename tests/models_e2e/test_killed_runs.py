"""A run that is killed at any moment goes on where it was: what the journal holds is not asked for again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import small

from tests.model_provider import Asked

from .world import ONE_RUN, Provider, done, results_of

KILLS = 5


def test_five_kills_lose_at_most_what_was_in_flight(project: Path, provider: Provider) -> None:
    arguments = [
        "run",
        "--runs",
        "1",
        "--set",
        "compress_runs=2",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--quiet",
    ]
    line = json.dumps([*arguments, "--label", "a", "--resume"]) + "\n"
    journal = project / "results/a/journal.jsonl"
    moments = random.Random(20)
    host = subprocess.Popen(
        [sys.executable, "-m", "models_e2e.host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{small.REPOSITORY}{os.pathsep}{small.REPOSITORY / 'tests'}"},
    )
    assert host.stdin is not None
    assert host.stdout is not None
    lost = 0
    try:
        assert host.stdout.readline() == "ready\n"
        for _ in range(KILLS):
            reached = threading.Event()
            asked, kept = len(provider.server.asked), done(journal)
            last = asked + moments.randint(1, 12)

            def behave(request: Asked, last: int = last, reached: threading.Event = reached) -> str | None:
                if request.number >= last:
                    reached.set()
                return None

            provider.behave = behave
            host.stdin.write(line)
            host.stdin.flush()
            child = int(host.stdout.readline())
            assert reached.wait(300)  # a busy machine takes long to begin; nothing depends on how long
            os.kill(child, signal.SIGKILL)
            assert int(host.stdout.readline()) == -signal.SIGKILL
            lost += len(provider.server.asked) - asked - (done(journal) - kept)
        provider.behave = lambda request: None
        host.stdin.write(line)
        host.stdin.flush()
        host.stdout.readline()
        assert int(host.stdout.readline()) == 0
    finally:
        host.stdin.close()
        host.wait(120)
        host.stdout.close()
    summary = json.loads((project / "results/a/summary.json").read_text())
    assert all(result["kind"] == "grade" for result in results_of(summary))
    # Everything asked beyond the finished calls is what was under way at a kill: nothing finished was asked again.
    assert len(provider.server.asked) == done(journal) + lost
    assert lost <= KILLS * 16


def test_a_damaged_line_is_said_and_counted_where_its_call_is_made_again(
    project: Path, provider: Provider, cli: small.Cli, caplog: pytest.LogCaptureFixture
) -> None:
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert "could not be read" not in cli(*command).out
    journal, folder = project / "results/a/journal.jsonl", project / "results/a"
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = next(n for n, line in enumerate(lines) if line.startswith(b'{"at":"done"') and b'"judge"' in line)
    lines[damaged] = b"\0" * (len(lines[damaged]) - 1) + b"\n"
    journal.write_bytes(b"".join(lines))
    for path in folder.glob("*-run-*.json"):
        path.unlink()
    asked = len(provider.server.asked)
    again = cli(*command, "--resume")
    assert len(provider.server.asked) > asked
    assert [record.getMessage() for record in caplog.records if record.name == "eval_core.models.journal"] == [
        f"{journal.relative_to(project)}: 1 damaged line skipped; what was paid for there may be paid again"
    ]
    assert "1 line of the journal could not be read" in " ".join(again.out.split())
    assert "1 line of the journal could not be read" in (folder / "report.md").read_text()
    assert json.loads((folder / "summary.json").read_text())["extra"]["broken_lines"] == 1
