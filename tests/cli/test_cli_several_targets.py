"""Several targets in one run: one plan, a results folder for each, verdicts against the first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small

from eval_core.cli.several_targets import target_labels

FAST = ("--runs", "1", "--set", "compress_runs=3", "--quiet")
TWO = ("--target", "builtin:anchored", "--target", "builtin:opaque")


def test_each_target_has_a_row_a_folder_and_a_verdict_against_the_first(project: Path, cli: small.Cli) -> None:
    third = ("--target", "builtin:regenerative")
    ran = cli("run", *TWO, *third, *FAST, "--label", "choice")
    assert ran.code == 0
    folders = [project / "results" / f"choice-{name}" for name in ("anchored", "opaque", "regenerative")]
    measured = [json.loads((folder / "summary.json").read_text(encoding="utf-8")) for folder in folders]
    assert [one["provenance"]["target"] for one in measured] == [
        "builtin:anchored", "builtin:opaque", "builtin:regenerative",
    ]  # fmt: skip
    assert len({json.dumps(one["fingerprint"], sort_keys=True) for one in measured}) == 1
    assert "3 results side by side" in ran.out
    assert "choice-opaque against choice-anchored: Regressed" in ran.out
    assert "choice-regenerative against choice-anchored: " in ran.out
    assert "choice-anchored against" not in ran.out
    assert all((folder / "report.html").exists() for folder in folders)


def test_a_regression_against_the_first_can_fail_the_command(project: Path, cli: small.Cli) -> None:
    assert cli("run", *TWO, *FAST, "--fail-on", "regressed").code == 1


def test_a_run_that_was_cut_short_goes_on_where_it_was(project: Path, cli: small.Cli) -> None:
    assert cli("run", *TWO[:2], *FAST, "--label", "choice-anchored", "--compare-to", "none").code == 0
    measured = sorted((project / "results/choice-anchored").glob("*-run-*.json"))
    before = [path.stat().st_mtime_ns for path in measured]
    ran = cli("run", *TWO, *FAST, "--label", "choice", "--resume")
    assert ran.code == 0, ran.err
    assert [path.stat().st_mtime_ns for path in measured] == before
    assert (project / "results/choice-opaque/summary.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--target", "builtin:anchored", "--target", "nowhere.yml"), "--target nowhere.yml: no such file"),
        (("run", *TWO, "--compare-to", "none"), "each is compared with the first one named"),
        (("run", *TWO, "--compare-to", "rerun"), "take one target"),
        (("run", *TWO, "--dry-run"), "--dry-run takes one target"),
        (("run", *TWO, "--format", "json"), "--format json takes one target"),
        (("baseline", "update", *TWO), "this takes one target, not 2"),
    ],
)
def test_a_mistake_is_told_before_anything_is_measured(
    arguments: tuple[str, ...], message: str, project: Path, cli: small.Cli
) -> None:
    ran = cli(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert not (project / "results").exists() or not list((project / "results").iterdir())


def test_folders_are_named_after_the_targets_and_never_twice() -> None:
    assert target_labels("a", ["builtin:opaque", "eval/my target.yml"]) == ["a-opaque", "a-my-target"]
    assert target_labels("a", ["x/target.yml", "y/target.yml"]) == ["a-target-1", "a-target-2"]
