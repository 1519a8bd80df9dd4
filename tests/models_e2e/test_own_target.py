"""A compressor of one's own, in the sandbox, with its model behind the gateway: one journal, one budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small

from eval_core.sandbox.isolation import detect

from .own_target import SOURCE, SPEC
from .world import COMPRESSOR, ONE_RUN, Provider, results_of


@pytest.fixture
def target(one_probe: Path) -> Path:
    if not detect("auto").confined:
        pytest.skip("no sandbox on this machine")
    small.write(one_probe / "mini.py", SOURCE)
    return small.write(one_probe / "target.yml", SPEC)


def test_the_gateways_calls_are_in_the_runs_journal_and_are_not_repeated(
    target: Path, cli: small.Cli, provider: Provider
) -> None:
    command = (
        "run",
        *ONE_RUN,
        *provider.options,
        "--target",
        target.name,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli(*command)
    assert ran.code == 0, ran.out + ran.err
    folder = target.parent / "results/a"
    summary = json.loads((folder / "summary.json").read_text())
    (result,) = results_of(summary)
    assert result["kind"] == "grade"
    assert (
        summary["use"]["compressor"]["calls"] == len(provider.asked_of(COMPRESSOR)) + 1 == 2
    )  # and the check before the run
    roles = [json.loads(line).get("role") for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert "compressor" in roles
    asked = len(provider.server.asked)
    (folder / "small-debug-run-0.json").unlink()
    assert cli(*command, "--resume").code == 0
    assert len(provider.server.asked) == asked


def test_the_budget_covers_the_compressors_calls(target: Path, cli: small.Cli, provider: Provider) -> None:
    command = (
        "run",
        *ONE_RUN,
        *provider.options,
        "--target",
        target.name,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli(*command, "--budget-usd", "0.001")
    assert ran.code == 3
    assert not provider.server.asked
    assert "the budget" in (target.parent / "results/a/report.md").read_text()
    assert cli(*command, "--resume", "--budget-usd", "1").code == 0


def test_the_base_is_measured_in_the_same_run(target: Path, cli: small.Cli, provider: Provider) -> None:
    base = target.parent / "base"
    small.write(base / "mini.py", SOURCE)
    small.write(target.parent / "mini.py", SOURCE.replace("Summary so far:", "Earlier:"))
    command = (
        "run",
        "--runs",
        "2",
        "--set",
        "compress_runs=2",
        *provider.options,
        "--target",
        target.name,
        "--label",
        "a",
    )
    ran = cli(*command, "--set", "models.trust_judge=true", "--compare-to", "rerun", "--base-tree", "base", "--quiet")
    assert ran.code == 0, ran.out + ran.err
    assert "No comparison" not in ran.out
    assert len(provider.asked_of(COMPRESSOR)) == 4  # two draws of each, though all four prompts may be equal
    results = target.parent / "results/a"
    assert len(list((results / "base").glob("*-run-*.json"))) == 2
    assert cli("report", "results/a").out.splitlines()[0] == ran.out.splitlines()[0]


def test_a_rerun_needs_the_tree_of_the_base(target: Path, cli: small.Cli) -> None:
    ran = cli("run", *ONE_RUN, "--target", target.name, "--compare-to", "rerun", "--quiet")
    assert ran.code == 2
    assert "give the tree of the base with --base-tree" in ran.err
    ran = cli("run", *ONE_RUN, "--target", target.name, "--compare-to", "rerun", "--base-tree", "nowhere", "--quiet")
    assert ran.code == 2
    assert "--base-tree nowhere: no such folder" in ran.err
