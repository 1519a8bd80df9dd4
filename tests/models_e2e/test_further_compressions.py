"""A paid compressor is run more often while the facts are open: no answers, no grades, and never over the budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.config import Config
from eval_core.base.messages import Message
from eval_core.domain.compression import ModelUse
from eval_core.domain.shard import Shard
from eval_core.measuring.cost import estimate_cost
from eval_core.measuring.facts_first import leaves_room
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.models.budget import Budget, Reservation
from eval_core.models.journal import Spent
from eval_core.models.settings import ModelFlags
from tests.model_provider import reply_to

from .world import COMPRESSOR, Provider, served_at


class Forgetful:
    """Replies with a summary; those whose numbers are given say nothing of the session."""

    def __init__(self, forgotten: Sequence[int]) -> None:
        self.forgotten, self.compressions = forgotten, 0

    def __call__(self, messages: Sequence[Message]) -> str:
        said = reply_to(messages)
        if "EXPORT_BUCKET" in str(messages):  # the call before the run
            return said
        self.compressions += 1
        headings = [line for line in said.splitlines() if line.startswith("#")]
        lost = "\n".join(f"{line}\nThis section was looked at, and it holds what was said before." for line in headings)
        return f"{lost if self.compressions in self.forgotten else said}\n\nNumber {self.compressions}."


@pytest.fixture
def run(one_probe: Path, cli: small.Cli, provider: Provider) -> Any:
    """Return what runs a candidate of which some compressions forget, after a baseline that keeps everything."""
    served = served_at(provider.server.base_url, COMPRESSOR)
    options = ("--compressor-model", COMPRESSOR, "--judge", "offline", *served)

    def run_(label: str, forgotten: Sequence[int], *more: str) -> dict[str, Any]:
        provider.reply = Forgetful(forgotten)
        ran = cli("run", *options, "--label", label, "--quiet", *more)
        assert ran.code == 0, ran.err
        found: dict[str, Any] = json.loads((one_probe / f"results/{label}/summary.json").read_text())
        return found

    provider.reply = Forgetful(())
    base = cli("baseline", "update", *options, "--quiet")
    assert base.code == 0, base.err
    return run_


def test_open_facts_are_compressed_more_often_and_every_look_at_them_is_written_down(run: Any) -> None:
    summary = run("a", (1, 2, 5))
    assert (summary["planned_runs"], summary["planned_compress_runs"]) == (3, 10)
    assert summary["extra"]["looks"] == [[3, 3], [3, 6]]
    (runs,) = summary["fixtures"].values()
    assert [record["graded"] for record in runs] == [True] * 3 + [False] * 7


def test_facts_that_seem_the_same_need_no_more_and_a_number_that_was_asked_for_is_kept(run: Any) -> None:
    assert run("a", ())["planned_compress_runs"] == 3
    assert run("b", (1, 2), "--set", "compress_runs=3")["planned_compress_runs"] == 3


def test_the_budget_is_not_spent_on_what_would_keep_the_run_from_its_end(run: Any, provider: Provider) -> None:
    use = run("a", (1, 2), "--set", "compress_runs=3")["use"]["compressor"]
    largest = 4 * max(asked.max_tokens for asked in provider.server.asked) / 1e6 + 1.5 * use["input_tokens"] / 3 / 1e6
    short = run("b", (1, 2, 5), "--budget-usd", f"{largest + 2.6 * use['cost_usd']:.6f}")
    assert (short["planned_compress_runs"], short["stopped"]) == (6, None)


def test_grading_is_paid_before_further_compressions() -> None:
    made = [ModelUse(calls=1, input_tokens=900, output_tokens=100, cost_usd=0.1)] * 3
    grading = ModelUse(calls=9, input_tokens=9_000, output_tokens=1_000, cost_usd=0.5)
    for usd, tokens, room in ((1.1, None, True), (1.09, None, False), (None, 16_000, True), (9.0, 15_999, False)):
        budget = Budget(usd, tokens, carried=Spent(0.3, 3_000, 0.0, 0))
        assert leaves_room(budget, made, 3, grading) is room
    budget = Budget(1.19, carried=Spent(0.3, 3_000, 0.0, 0))
    budget.largest = Reservation(0.1, 500)
    assert not leaves_room(budget, made, 3, grading)
    unknown = made[0].model_copy(update={"cost_usd": None})
    assert not leaves_room(Budget(9.0), [unknown], 3, grading)
    assert not leaves_room(Budget(9.0), [], 3, grading)


def test_the_dry_run_prices_them_apart_from_the_rest(one_probe: Path) -> None:
    settings = Config.model_validate({"models": {"prices": {"openai/m": {"input": 1, "output": 4}}}})
    options = RunOptions(settings, flags=ModelFlags(model="openai/m"), compare_to="none")
    plan = make_plan(options)
    assert (plan.runs, plan.compress_runs, plan.compresses_more) == (3, 3, True)
    found = estimate_cost(make_plan(replace(options, baseline="rerun", base_tree=one_probe)))
    assert found is not None
    assert found.more is not None
    compressor = next(row for row in found.rows if row.role == "compressor")
    # Seven more of each fixture, of both sides, beside three of each and the call before the run.
    assert found.more.calls == (compressor.calls - 1) // 6 * 14
    for changed in ({"compress_runs": 3}, {"shard": Shard(1, 2)}, {"flags": ModelFlags()}):
        assert not make_plan(replace(options, **changed)).compresses_more  # type: ignore[arg-type]
