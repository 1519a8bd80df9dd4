"""`--judge offline`: the compressor's model is the only one that is called, and the only one that is paid for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small

from eval_core.base.config import Config, ModelConfig, Price
from eval_core.measuring.cost import estimate_cost
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.models.settings import ModelFlags, resolve

from .world import COMPRESSOR, Provider, served_at

PRICES = {COMPRESSOR: Price(input=1, output=4, cached_input=0.1)}
RUNS = ("--runs", "2", "--set", "compress_runs=3")


def options(provider: Provider) -> tuple[str, ...]:
    return ("--compressor-model", COMPRESSOR, *served_at(provider.server.base_url, COMPRESSOR))


def test_only_compressions_are_sent_and_paid(project: Path, cli: small.Cli, provider: Provider) -> None:
    found = estimate_cost(
        make_plan(
            RunOptions(
                Config(models=ModelConfig(compressor=COMPRESSOR, judge="offline", prices=PRICES)),
                runs=2,
                compress_runs=3,
            )
        )
    )
    assert found is not None
    assert [row.role for row in found.rows] == ["compressor"]
    ran = cli("run", *RUNS, *options(provider), "--judge", "offline", "--label", "a", "--quiet")
    assert ran.code == 0, ran.err
    assert {asked.model for asked in provider.server.asked} == {COMPRESSOR}
    assert found.total.calls == len(provider.server.asked)
    summary = json.loads((project / "results/a/summary.json").read_text())
    assert set(summary["use"]) == {"compressor"}
    assert summary["use"]["compressor"]["cost_usd"] == pytest.approx(provider.bill())
    assert (summary["models"]["compressor"], summary["models"]["judge"]) == (COMPRESSOR, "offline:facts")
    assert not summary["offline"]
    assert "judged offline: answers and grades are rule-based" in ran.out
    command = ("run", *RUNS, *options(provider), "--judge", "offline", "--label", "b", "--compare-to", "results/a")
    assert cli(*command, "--quiet").code == 0
    report = (project / "results/b/report.md").read_text()
    assert "| Scores | " in report
    assert " | advisory |" in report


def test_its_baseline_has_a_name_of_its_own(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    ran = cli("baseline", "update", "--runs", "1", "--judge", "offline", *options(provider), "--quiet")
    assert ran.code == 0, ran.err
    assert (one_probe / "baselines" / "offline-judge.json").exists()


def test_the_file_can_say_it() -> None:
    models = resolve(ModelFlags(), {}, ModelConfig(compressor=COMPRESSOR, answer="openai/other", judge="offline"))
    assert models is not None
    assert models.offline_judge
    assert models.distinct == (COMPRESSOR,)
    assert resolve(ModelFlags(judge="offline"), {}, ModelConfig()) is None
