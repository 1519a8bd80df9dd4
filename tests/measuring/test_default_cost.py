"""What the defaults cost, from real prompts and the price list, and that the documentation says the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import small

from bench.cost import price_defaults
from eval_core.base.config import Config, ModelConfig
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import FREE_COMPRESSIONS, run_counts

DOCS = Path(__file__).parents[2] / "docs"


def test_the_defaults_stay_within_their_price() -> None:
    within = {row.what: row for row in price_defaults() if row.bar_usd is not None}
    assert len(within) == 8
    for what, row in within.items():
        assert row.cached_usd is not None
        assert row.bar_usd is not None
        assert row.cached_usd <= row.bar_usd, what


def test_the_documentation_shows_these_prices() -> None:
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| [\d,]+ \| \$[\d.]+ \| \$([\d.]+) \|", page, re.MULTILINE)
    said = {what: float(usd) for what, usd in rows}
    # A little off is no lie: sessions and prompts change; `python -m bench.cost` prints the table anew.
    assert said == pytest.approx({row.what: row.cached_usd for row in price_defaults()}, rel=0.1)


@pytest.mark.parametrize(
    ("models", "target", "planned"),
    [
        (None, "builtin:anchored", (3, FREE_COMPRESSIONS)),
        ("m/x", "builtin:anchored", (3, 3)),
        ("m/x", {"compressor": "agent:Memory", "llm": "none"}, (3, FREE_COMPRESSIONS)),
    ],
)
def test_compressions_that_cost_money_are_bought_with_the_graded_runs(
    project: Path, models: str | None, target: dict[str, str] | str, planned: tuple[int, int]
) -> None:
    options = RunOptions(Config(models=ModelConfig(compressor=models), target=target), project)
    assert run_counts(options) == planned
    assert run_counts(replace(options, compress_runs=7)) == (3, 7)
    assert run_counts(replace(options, runs=12)) == (12, 12)


def test_the_dry_run_says_whether_the_budget_is_enough_with_caching_alone(project: Path, cli: small.Cli) -> None:
    price = ("--model", "m/x", "--set", "models.prices={m/x: {input: 3, output: 15, cached_input: 0.3}}")
    ran = cli("run", "--dry-run", *price, "--budget-usd", "0.001")
    assert "is less than that" in ran.out
    assert "covers it." in cli("run", "--dry-run", *price, "--budget-usd", "50").out
