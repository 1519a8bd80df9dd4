"""A run of the base beside the candidate tells what the day did, with a provider on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from eval_core.domain.measurement import Measurement
from eval_core.storage.results import read_measurement

from .judges import shifted
from .world import JUDGE, Provider

THREE = ("--runs", "3", "--set", "compress_runs=3")
BESIDE = ("--base-tree", ".", "--set", "models.trust_judge=true", "--quiet")


@pytest.fixture
def project(three_probes: Path, cli: small.Cli, provider: Provider) -> Path:
    """A project with a baseline of the models."""
    assert cli("baseline", "update", "--runs", "3", *provider.options, "--quiet").code == 0
    return three_probes


def control(label: str) -> list[int]:
    measured: Measurement = read_measurement(Path("results") / label)
    return [len(runs) for runs in measured.extra.control.fixtures.values()]


def test_one_run_of_the_base_is_made_beside_the_candidate_and_its_shift_is_told(
    project: Path, cli: small.Cli, provider: Provider
) -> None:
    before = len(provider.asked_of(JUDGE))
    ran = cli("run", *THREE, *provider.options, *BESIDE, "--label", "a", "--set", "stop=full")
    assert ran.code == 0, ran.err
    assert control("a") == [1, 1, 1]
    assert len(provider.asked_of(JUDGE)) - before == 3 + 3 * 3 + 3
    report = Path("results/a/report.md").read_text(encoding="utf-8")
    assert "Shift since the baseline was measured: 3 runs of the base made today, 0.00 overall" in report


def test_models_that_changed_mute_the_scores_and_nothing_else(
    project: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = shifted(-1)
    ran = cli("run", *THREE, *provider.options, *BESIDE, "--label", "a", "--set", "stop=full", "--fail-on", "regressed")
    assert ran.code == 3
    assert ran.out.startswith("≠ Not comparable: the models have changed since the baseline (3 runs of the base made")
    assert "Measure the baseline again" in ran.out
    without = cli("run", *THREE, *provider.options, *BESIDE[2:], "--label", "b", "--set", "stop=full")
    assert without.out.startswith("▼ Regressed: ")


def test_the_estimate_counts_the_control(project: Path, cli: small.Cli, provider: Provider) -> None:
    options = (*THREE, *provider.options, "--dry-run", *BESIDE[2:])
    alone, beside = (cli("run", *options, *more).out for more in ((), BESIDE[:2]))
    assert alone != beside


def test_no_control_is_made_where_none_is_wanted(project: Path, cli: small.Cli, provider: Provider) -> None:
    (project / ".compression-eval.yml").write_text("baseline: {control: never}\n", encoding="utf-8")
    assert cli("run", *THREE, *provider.options, *BESIDE, "--label", "a").code == 0
    assert read_measurement(Path("results/a")).extra.control is None
