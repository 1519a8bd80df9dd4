"""`run --dry-run` says beforehand what the provider will bill afterwards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import small

from bot.steps.estimate import describe
from eval_core.base.config import Config, ModelConfig, Price
from eval_core.measuring.cost import CostEstimate, estimate_cost, price_of_one_label
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan

from .world import ANSWER, CHECKS, COMPRESSOR, JUDGE, UPDATE, Provider, served_at, serving

WITHIN = 0.15


def quoted(**options: object) -> CostEstimate:
    prices = {model: Price(input=1, output=4, cached_input=0.1) for model in (COMPRESSOR, ANSWER, JUDGE)}
    models = ModelConfig(compressor=COMPRESSOR, answer=ANSWER, judge=JUDGE, prices=prices)
    found = estimate_cost(make_plan(RunOptions(Config(models=models), **options)))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_nothing_is_sent_and_nothing_written(project: Path, cli: small.Cli, provider: Provider) -> None:
    ran = cli("run", *provider.options, "--dry-run")
    assert ran.code == 0
    assert "Estimate; nothing was sent" in ran.out
    assert "with prompt caching" in ran.out
    assert "85 calibration" in ran.out
    assert not provider.server.asked
    assert not (project / "results").exists()


def test_offline_costs_nothing(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--dry-run")
    assert ran.out.startswith("Offline: 30 fixture-runs of 3 fixtures, no model call, no cost.")


def test_an_unknown_price_is_unknown_and_not_zero(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--model", "openai/nobody-knows-it", "--dry-run")
    assert "unknown" in ran.out
    assert "$0" not in ran.out
    assert ran.code == 2, "the run itself would be refused"
    assert "openai/nobody-knows-it: price unknown" in ran.err
    capped = ("--set", "max_tokens_total=100000")
    assert cli("run", "--model", "openai/nobody-knows-it", "--dry-run", *capped).code == 0


@pytest.mark.parametrize(
    ("prepare", "options", "said"),
    [
        (None, (), "there is no baseline in baselines"),
        (("baseline", "update", "--runs", "2", "--quiet"), (), "offline.json has other fixtures, probes, models or"),
        (None, ("--compare-to", "none"), None),
        (UPDATE, (), None),
    ],
)
def test_that_there_is_nothing_to_compare_with_is_said_before_the_first_call(
    prepare: tuple[str, ...] | None,
    options: tuple[str, ...],
    said: str | None,
    three_probes: Path,
    cli: small.Cli,
    provider: Provider,
) -> None:
    if prepare is not None:
        models = provider.options if prepare is UPDATE else ()
        assert cli(*prepare, *models).code == 0
    before = len(provider.server.asked)
    ran = cli("run", *provider.options, "--dry-run", *options)
    assert "No verdict" not in cli("run", *provider.options, "--dry-run", "--quiet", *options).err
    assert len(provider.server.asked) == before
    assert ran.code == 0
    assert (said in ran.err) if said else "No verdict to expect" not in ran.err


def test_the_estimate_agrees_with_the_bill(project: Path, cli: small.Cli, provider: Provider) -> None:
    found = quoted(runs=2, compress_runs=3)
    assert cli("run", "--runs", "2", "--set", "compress_runs=3", *provider.options, "--quiet").code == 0
    # Equal answers with and without the session are graded once: the stand-ins cannot know which these are.
    assert found.total.calls == pytest.approx(len(provider.server.asked), rel=0.03)
    assert found.total.cost_usd == pytest.approx(provider.bill(), rel=WITHIN)


def test_rounds_are_in_the_total_and_in_what_the_budget_is_held_against(project: Path, cli: small.Cli) -> None:
    price = "models.prices={openai/loopback: {input: 3, output: 15}}"
    words = ("run", "--dry-run", "--model", "openai/loopback", "--set", price, "--compare-to", "none")
    alone, rounds, long = (cli(*words, "--suite", suite) for suite in ("quick", "rounds", "long"))
    (line,) = [line for line in rounds.out.splitlines() if "in rounds:" in line]
    found = re.search(r"in rounds: (\d+) calls, about \$([\d.]+)", line)
    assert found is not None
    assert total_of(rounds.out)[0] - total_of(alone.out)[0] == int(found[1]) == 64
    assert total_of(rounds.out)[1] - total_of(alone.out)[1] == pytest.approx(float(found[2]), abs=0.02)
    assert "64 compressions in rounds" in " ".join(rounds.out.split())
    assert "The budget of $8 covers it." in alone.out
    assert "The budget of $8 is less than that" in " ".join(long.out.split())


def test_with_prompt_caching_it_agrees_too(project: Path, cli: small.Cli) -> None:
    caching = Provider()
    caching.server._prompt_cache = True
    with serving(caching) as provider:
        found = quoted(runs=1, compress_runs=1)
        assert cli("run", "--runs", "1", "--set", "compress_runs=1", *provider.options, "--quiet").code == 0
        assert found.total.cached_cost_usd == pytest.approx(provider.cached_bill(), rel=WITHIN)
        assert found.total.cached_cost_usd < found.total.cost_usd


def test_with_a_cache_that_charges_for_what_it_keeps_it_agrees_as_well(project: Path, cli: small.Cli) -> None:
    claude = "anthropic/claude-loopback"
    keeping = Provider()
    keeping.server._marked_cache = True
    keeping.server._sampling = True  # every run writes another summary, and each of them is kept anew
    with serving(keeping) as provider:
        prices = {claude: Price(input=1, output=4, cached_input=0.1, cache_write=1.25)}
        settings = Config(models=ModelConfig(compressor=claude, prices=prices))
        found = estimate_cost(make_plan(RunOptions(settings, runs=2, compress_runs=3)))
        assert found is not None
        price = "input: 1, output: 4, cached_input: 0.1, cache_write: 1.25"
        options = ("--model", claude, *served_at(provider.server.base_url, claude, price=price))
        assert cli("run", "--runs", "2", "--set", "compress_runs=3", *options, "--quiet").code == 0
        server = provider.server
        bill = provider.cached_bill() + 0.25 * server.written_tokens / 1e6
        assert server.written_tokens > 0
        assert server.cached_tokens > 0
        assert found.total.cached_cost_usd == pytest.approx(bill, rel=WITHIN)


def test_what_a_baseline_holds_is_not_counted_again(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    assert cli("baseline", "update", "--runs", "2", *provider.options, "--quiet").code == 0
    before = len(provider.server.asked), provider.bill()
    found = quoted(runs=2, compress_runs=2)
    purposes = dict(found.purposes)
    assert "calibration" not in purposes
    assert "controls" not in purposes
    assert cli("run", "--runs", "2", "--set", "compress_runs=2", *provider.options, "--quiet").code == 0
    assert found.total.calls == len(provider.server.asked) - before[0]
    assert found.total.cost_usd == pytest.approx(provider.bill() - before[1], rel=WITHIN)


def test_the_bots_announcement_names_a_range_and_never_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = ModelConfig(compressor="m/x", prices={"m/x": Price(input=1, output=4, cached_input=0.1)})
    plan = describe(Config(models=models))
    assert plan.cost.startswith("$0.")
    assert plan.cost.endswith("at most $8.00 (the budget)")
    monkeypatch.chdir(project / "fixtures")
    assert describe(Config(models=models)).cost == "at most $8.00 (the budget)"


def total_of(out: str) -> tuple[int, float]:
    """Read the calls and the cost without caching from the last row of the printed table."""
    (row,) = [line.split() for line in out.splitlines() if line.startswith("total")]
    return int(row[1].replace(",", "")), float(row[4].removeprefix("$"))


def test_the_limits_of_a_free_provider_are_said(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--model", "openai/gpt-4o-mini", "--set", "models.api_base=github-models", "--dry-run")
    assert ran.code == 0, ran.err
    assert "github-models allows 50 requests a day" in " ".join(ran.out.split())
    assert "$0.0000" in ran.out
    Path(".compression-eval.yml").write_text("models: {judge: openai/gpt-4o-mini, api_base: github-models}\n")
    assert "github-models allows 50 requests a day" in " ".join(cli("doctor").out.split())


@pytest.mark.parametrize("amount", ["nan", "inf", "-1", "0"])
@pytest.mark.parametrize("option", ["budget_usd", "deadline_minutes"])
def test_a_limit_that_no_run_can_keep_is_refused(option: str, amount: str, three_probes: Path, cli: small.Cli) -> None:
    ran = cli("run", "--dry-run", "--set", f"{option}={amount}")
    assert ran.code == 2
    assert option in ran.err


def test_a_baseline_says_beforehand_what_it_will_cost(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    command = ("baseline", "update", "--runs", "2", *provider.options)
    said = cli(*command, "--dry-run")
    assert said.code == 0, said.err
    assert not provider.server.asked
    assert cli(*command, "--quiet").code == 0
    calls, cost = total_of(said.out)
    assert calls == len(provider.server.asked)
    assert cost == pytest.approx(provider.bill(), rel=WITHIN)


def test_a_calibration_says_so_too(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    said = cli("judge", "calibrate", "--dry-run", *provider.options)
    assert not provider.server.asked
    assert cli("judge", "calibrate", *provider.options).code == 0
    calls, cost = total_of(said.out)
    assert calls == len(provider.server.asked) == 163
    assert cost == pytest.approx(provider.bill(), rel=WITHIN)
    assert "Nothing to pay for" in cli("judge", "calibrate", "--dry-run", *provider.options).out


def test_controls_are_paid_for_once_over_labels_and_compressors(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    options = (
        "--runs",
        "1",
        "--set",
        "compress_runs=1",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--quiet",
    )
    assert dict(quoted(runs=1, compress_runs=1).purposes)["controls"] == 12
    assert cli("run", *options, "--label", "a").code == 0
    assert "controls" not in dict(quoted(runs=1, compress_runs=1).purposes)
    before = len(provider.asked_of(ANSWER)), len(provider.asked_of(JUDGE))
    # Another compressor, the same sessions, probes, answerer and judge.
    assert cli("run", *options, "--label", "b", "--target", "builtin:opaque").code == 0
    assert len(provider.asked_of(ANSWER)) - before[0] == 3 + CHECKS[ANSWER]
    assert len(provider.asked_of(JUDGE)) - before[1] == 3 + CHECKS[JUDGE]


def test_the_price_of_one_label_is_said_in_one_line(project: Path) -> None:
    prices = {"m/x": Price(input=3, output=15, cached_input=0.3, cache_write=3.75)}
    found = price_of_one_label(RunOptions(Config(models=ModelConfig(compressor="m/x", prices=prices)), project))
    assert found is not None
    assert str(found).startswith("about $")
    assert "without prompt caching" in str(found)
    assert price_of_one_label(RunOptions(Config(), project)) is None
    unknown = price_of_one_label(RunOptions(Config(models=ModelConfig(compressor="m/x")), project))
    assert "unknown price" in str(unknown)


def test_a_session_that_does_not_fit_a_model_is_named_before_anything_is_spent(project: Path, cli: small.Cli) -> None:
    small.write(
        project / ".compression-eval.yml",
        "models: {endpoints: {m/x: {url: 'http://127.0.0.1:9/v1', window: 1000, price: {input: 1, output: 4}}}}",
    )
    said = " ".join(cli("run", "--dry-run", "--model", "m/x").out.split())
    assert "does not fit m/x (1,000)" in said
    assert "the compressor's prompt of" in said
    assert "which the controls ask about" in said


def test_each_shard_is_priced_by_its_own_part(project: Path, cli: small.Cli, provider: Provider) -> None:
    options = ("--runs", "2", "--set", "compress_runs=2", *provider.options, "--label", "a")
    said = []
    for shard in ("1/3", "2/3", "3/3"):
        before = len(provider.server.asked), provider.bill()
        calls, usd = total_of(cli("run", *options, "--shard", shard, "--dry-run").out)
        assert cli("run", *options, "--shard", shard, "--quiet").code == 0
        # Equal answers are graded once, which the stand-ins cannot know.
        assert calls == pytest.approx(len(provider.server.asked) - before[0], rel=0.1)
        assert usd == pytest.approx(provider.bill() - before[1], rel=WITHIN)
        said.append(calls)
    assert said[0] > said[1] + 60, "the first one calibrates the judge"


def test_a_further_look_is_priced_by_what_it_adds(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    assert cli("baseline", "update", "--runs", "2", *provider.options, "--quiet", "--accept-failing").code == 0
    options = (*provider.options, "--set", "stop=full", "--label", "a")
    assert cli("run", *options, "--quiet").code == 0
    before = len(provider.server.asked), provider.bill()
    calls, usd = total_of(cli("run", *options, "--next-look", "--dry-run").out)
    assert cli("run", *options, "--next-look", "--quiet").code == 0
    assert calls == len(provider.server.asked) - before[0]
    assert usd == pytest.approx(provider.bill() - before[1], rel=WITHIN)


def test_a_run_that_is_complete_costs_nothing_to_resume(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    options = ("--runs", "1", "--set", "compress_runs=1", *provider.options, "--label", "a")
    assert cli("run", *options, "--quiet").code == 0
    ran = cli("run", *options, "--resume", "--dry-run")
    assert ran.code == 0, ran.err
    assert total_of(ran.out) == (0, 0.0)
