"""`run --dry-run` says beforehand what the provider will bill afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from eval_core.base.config import Config, ModelConfig, Price
from eval_core.measuring.cost import Quote, describe, quote
from eval_core.measuring.options import Job
from eval_core.models.prices import parse_prices
from eval_core.models.settings import ModelFlags

from .world import ANSWER, COMPRESSOR, JUDGE, Provider, serving

WITHIN = 0.15


def quoted(**options: object) -> Quote:
    prices = parse_prices([f"{model}=1,4,0.1" for model in (COMPRESSOR, ANSWER, JUDGE)])
    flags = ModelFlags(compressor=COMPRESSOR, answer=ANSWER, judge=JUDGE, prices=prices)
    found = quote(Job(Config(), flags=flags, **options))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_nothing_is_sent_and_nothing_written(project: Path, cli: small.Cli, provider: Provider) -> None:
    ran = cli("run", *provider.options, "--dry-run")
    assert ran.code == 0
    assert "Estimate; nothing was sent" in ran.out
    assert "with prompt caching" in ran.out
    assert "163 calibration" in ran.out
    assert not provider.server.asked
    assert not (project / "results").exists()


def test_offline_costs_nothing(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--dry-run")
    assert ran.out.startswith("Offline: 30 fixture-runs of 3 fixtures, no model call, no cost.")


def test_an_unknown_price_is_unknown_and_not_zero(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--model", "openai/nobody-knows-it", "--dry-run")
    assert "unknown" in ran.out
    assert "$0" not in ran.out


def test_the_estimate_agrees_with_the_bill(project: Path, cli: small.Cli, provider: Provider) -> None:
    found = quoted(runs=2, compress_runs=3)
    assert cli("run", "--runs", "2", "--compress-runs", "3", *provider.options, "--quiet").code == 0
    assert found.total.calls == len(provider.server.asked)
    assert found.total.cost_usd == pytest.approx(provider.bill(), rel=WITHIN)


def test_with_prompt_caching_it_agrees_too(project: Path, cli: small.Cli) -> None:
    caching = Provider()
    caching.server._prompt_cache = True
    with serving(caching) as provider:
        found = quoted(runs=1, compress_runs=1)
        assert cli("run", "--runs", "1", "--compress-runs", "1", *provider.options, "--quiet").code == 0
        assert found.total.cached_cost_usd == pytest.approx(provider.cached_bill(), rel=WITHIN)
        assert found.total.cached_cost_usd < found.total.cost_usd


def test_what_a_baseline_holds_is_not_counted_again_and_drift_is(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    assert cli("baseline", "update", "--runs", "2", *provider.options, "--quiet").code == 0
    before = len(provider.server.asked), provider.bill()
    found = quoted(runs=2, compress_runs=2)
    purposes = dict(found.purposes)
    assert "calibration" not in purposes
    assert "controls" not in purposes
    assert purposes["drift sample"] == 6
    assert cli("run", "--runs", "2", "--compress-runs", "2", *provider.options, "--quiet").code == 0
    assert found.total.calls == len(provider.server.asked) - before[0]
    assert found.total.cost_usd == pytest.approx(provider.bill() - before[1], rel=WITHIN)


def test_the_bots_announcement_names_a_range_and_never_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = ModelConfig(compressor="m/x", prices={"m/x": Price(input=1, output=4, cached_input=0.1)})
    plan = describe(Config(models=models))
    assert plan.cost.startswith("$0.")
    assert plan.cost.endswith("at most $5.00 (the budget)")
    monkeypatch.chdir(project / "fixtures")
    assert describe(Config(models=models)).cost == "at most $5.00 (the budget)"
