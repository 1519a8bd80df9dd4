"""Ending early, `--compare-to rerun` and progress, offline."""

from __future__ import annotations

import json
from pathlib import Path

import adopted
import pytest
import small

from eval_core.cli.progress import Progress
from eval_core.cli.run import _not_interrupted
from eval_core.domain.compression import Outcome
from eval_core.domain.record import RunRecord
from eval_core.measuring.wiring import Traffic


def test_grading_is_skipped_where_facts_decide(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--quiet")
    ran = cli("run", "--target", "builtin:opaque", "--set", "stop=early", "--label", "a", "--quiet")
    assert ran.out.startswith("▼ Regressed: ")
    summary = json.loads((project / "results/a/summary.json").read_text())
    assert summary["planned_runs"] == 0
    assert not any(run["graded"] for runs in summary["fixtures"].values() for run in runs)
    assert "Look: 1 of 3 planned" in (project / "results/a/report.md").read_text()


def test_grading_follows_where_facts_do_not_decide(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--quiet")
    ran = cli("run", "--set", "stop=early", "--label", "a")
    assert ran.out.startswith("= No detectable change: ")
    assert "30 of 30 fixture-runs" in ran.err
    summary = json.loads((project / "results/a/summary.json").read_text())
    assert summary["planned_runs"] == 3


def test_without_a_baseline_there_is_nothing_to_stop_for(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--set", "stop=early", "--runs", "1", "--set", "compress_runs=1", "--label", "a", "--quiet")
    assert ran.code == 0
    assert json.loads((project / "results/a/summary.json").read_text())["planned_runs"] == 1


@pytest.mark.parametrize("compare_to", ["auto", "none"])
def test_a_gate_without_a_baseline_is_not_passed(project: Path, cli: small.Cli, compare_to: str) -> None:
    once = ("run", "--runs", "1", "--set", "compress_runs=1", "--compare-to", compare_to, "--quiet")
    ran = cli(*once, "--fail-on", "regressed")
    assert ran.code == 3
    assert "--fail-on regressed cannot be decided: nothing to compare with" in ran.err
    assert ("baseline update" in ran.err) == (compare_to == "auto")
    assert cli(*once).code == 0


def test_a_compressor_against_itself_in_one_run_shows_no_change(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--runs", "3", "--compare-to", "rerun", "--label", "a")
    assert ran.code == 0
    assert ran.out.startswith("= No detectable change: ")
    assert "60 of 60 fixture-runs" in ran.err
    assert cli("report", "results/a").out.splitlines()[0] == ran.out.splitlines()[0]


def test_a_base_tree_that_is_not_there_is_a_mistake(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--base-tree", "elsewhere", "--quiet")
    assert ran.code == 2
    assert "--base-tree elsewhere: no such folder" in ran.err


def _record(outcome: Outcome = Outcome.OK) -> RunRecord:
    return RunRecord(fixture="f", run=0, graded=True, outcome=outcome)


def test_a_watch_ends_where_a_signal_ended_what_it_measured() -> None:
    found = adopted.measured("anchored")
    assert _not_interrupted(found) is found
    out_of_money = found.model_copy(update={"stopped": "the budget is used up"})
    assert _not_interrupted(out_of_money) is out_of_money
    with pytest.raises(KeyboardInterrupt):
        _not_interrupted(found.model_copy(update={"stopped": "interrupted by SIGTERM"}))


def test_progress_tells_calls_tokens_money_and_the_rest() -> None:
    moments = iter([0.0, 30.0, 30.0])
    progress = Progress(4, clock=lambda: next(moments))
    progress.record(_record())
    progress.watch(lambda: Traffic(sent=12, in_flight=5, tokens=34_567, usd=0.123))
    assert progress.line == ("1 of 4 fixture-runs, 5 calls in flight, 12 sent, 34,567 tokens, $0.12, about 2 min left")
    progress.watch(lambda: None)
    progress.record(_record(Outcome.INFRA))
    assert progress.line == "2 of 4 fixture-runs, about 30 s left (f: infra)"


def test_an_unknown_price_is_not_shown_as_zero() -> None:
    progress = Progress(1)
    progress.watch(lambda: Traffic(1, 1, 10, None))
    assert progress.line == "0 of 1 fixture-runs, 1 calls in flight, 1 sent, 10 tokens, price unknown"
