"""Commands that show what was measured: report, several results side by side, trend; and shell completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import small

from eval_core.cli.progress import Progress

FAST = ("--runs", "1", "--set", "compress_runs=2", "--quiet", "--compare-to", "none")


@pytest.fixture
def measured(project: Path, cli: small.Cli) -> Path:
    """A project with two results."""
    for name in ("anchored", "opaque"):
        ran = cli("run", *FAST, "--label", name, "--target", f"builtin:{name}")
        assert ran.code == 0, ran.err
    return project


def test_a_report_is_a_screen_and_its_tables_come_when_asked_for(measured: Path, cli: small.Cli) -> None:
    ran = cli("report", "results/opaque", "--compare-to", "results/anchored")
    lines = ran.out.splitlines()
    assert lines[0].startswith(("▼ Regressed: ", "⇄ Trade: "))
    assert len(lines) <= 15
    assert lines[-1] == "Report: results/opaque/report.html (`report --details` prints the tables)"
    assert "Medians by fixture" not in ran.out
    ran = cli("report", "results/opaque", "--compare-to", "results/anchored", "--details")
    assert "Medians by fixture" in ran.out


def test_several_results_stand_side_by_side_as_text_and_as_a_page(measured: Path, cli: small.Cli) -> None:
    ran = cli("report", "results/anchored", "results/opaque")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("2 results side by side")
    assert "builtin:opaque" in ran.out
    assert "Facts on which they differ most" in ran.out
    ran = cli("report", "results/anchored", "results/opaque", "--format", "html")
    assert ran.out.startswith("<!doctype html>")
    assert "2 results side by side" in ran.out
    assert "✗" in ran.out
    ran = cli("report", "results/anchored", "results/opaque", "--format", "md")
    assert (ran.code, ran.err) == (2, "Error: --format md: several results are shown as text or html\n")


def test_results_without_a_common_fixture_are_refused_by_name(measured: Path, cli: small.Cli) -> None:
    for name in ("small-plan", "small-debug"):
        assert cli("run", *FAST, "--label", f"only-{name}", "--fixtures", name).code == 0
    ran = cli("report", "results/only-small-plan", "results/only-small-debug")
    assert ran.code == 2
    assert "no fixture in common: only-small-plan has small-plan; only-small-debug has small-debug" in ran.err


def test_the_trend_shows_every_baseline_with_its_size(project: Path, cli: small.Cli) -> None:
    assert cli("trend").code == 2
    assert cli("baseline", "update", "--runs", "1", "--quiet").code == 0
    lines = (project / "baselines" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["tokens"] > 0
    assert json.loads(lines[0])["cost_usd"] == 0
    ran = cli("trend")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Baseline offline")
    assert "tokens kept" in ran.out
    page = cli("trend", "offline", "--format", "html").out
    assert "Baseline offline over time" in page
    ran = cli("trend", "models")
    assert (ran.code, "known: offline" in ran.err) == (2, True)


def _completed(words: str, folder: Path) -> list[str]:
    """Ask for completions as bash does: through the environment."""
    asked = subprocess.run(
        [str(Path(sys.executable).parent / "compression-eval")],
        cwd=folder,
        env={
            **os.environ,
            "_COMPRESSION_EVAL_COMPLETE": "bash_complete",
            "COMP_WORDS": f"compression-eval {words}",
            "COMP_CWORD": str(len(words.split(" "))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return [line.partition(",")[2] for line in asked.stdout.splitlines() if line]


def test_the_shell_completes_fixtures_targets_labels_and_results(measured: Path) -> None:
    assert _completed("run --fixtures small-p", measured) == ["small-plan"]
    assert "small-plan,small-debug" in _completed("run --fixtures small-plan,", measured)
    assert _completed("run --target builtin:op", measured) == ["builtin:opaque"]
    assert _completed("run --label an", measured) == ["anchored"]
    assert "results/opaque" in _completed("report results/o", measured)


def test_a_damaged_configuration_does_not_disturb_somebody_who_types(measured: Path) -> None:
    (measured / ".compression-eval.yml").write_text("nonsense: [", encoding="utf-8")
    assert _completed("run --label an", measured) == []


def test_progress_says_how_long_it_has_run_before_the_first_result() -> None:
    now = 0.0
    progress = Progress(4, clock=lambda: now)
    assert progress.line == "0 of 4 fixture-runs"
    now = 65.0
    assert progress.line == "0 of 4 fixture-runs, started 65 s ago"
