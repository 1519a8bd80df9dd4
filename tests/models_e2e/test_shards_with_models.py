"""Shards with models: every call is made once, by one shard, and the money is that of the whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.domain.case import make_plan
from eval_core.domain.shard import Shard

from .world import ANSWER, CHECKS, COMPRESSOR, JUDGE, Provider, faulty

PLAN = ("--runs", "2", "--compress-runs", "2", "--quiet", "--stop", "full")


def summary(project: Path, label: str) -> dict[str, Any]:
    return dict(json.loads((project / "results" / label / "summary.json").read_text()))


def told(body: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured, without times and what prompt caching made of the costs."""
    return {
        f"{name}/{run['run']}": (
            run["outcome"],
            run["summary"],
            {
                probe: (record["answer"]["text"], record["result"]["scores"], record["facts"])
                for probe, record in run["probes"].items()
            },
        )
        for name, runs in body["fixtures"].items()
        for run in runs
    }


def test_three_shards_make_the_calls_of_one_run_and_the_same_result(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    assert cli("run", "--label", "whole", *PLAN, *provider.options).code == 0
    alone = len(provider.server.asked)
    for path in ("calibration", "controls"):
        for kept in (three_probes / "results" / path).iterdir():
            kept.unlink()
    for index in (1, 2, 3):
        ran = cli("run", "--label", "parts", "--shard", f"{index}/3", *PLAN, *provider.options)
        assert ran.code == 0, ran.err
    # Every shard checks its models; what the first checks is part of its calibration and controls.
    checks = sum(CHECKS.values())
    assert alone <= len(provider.server.asked) - alone <= alone + 2 * checks
    before = len(provider.server.asked)
    ran = cli("merge", "parts")
    assert ran.code == 0, ran.err
    assert len(provider.server.asked) == before
    whole, parts = summary(three_probes, "whole"), summary(three_probes, "parts")
    assert told(parts) == told(whole)
    assert parts["controls"] == whole["controls"]
    assert parts["extra"]["calibration"] == whole["extra"]["calibration"]
    spent = sum(use["calls"] for use in parts["use"].values())
    assert spent == len(provider.server.asked) - alone
    assert parts["extra"]["served"][ANSWER][ANSWER] >= whole["extra"]["served"][ANSWER][ANSWER]


def test_a_shard_spends_its_part_of_the_budget_and_the_rest_comes_back(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    share = Shard(2, 3).share(make_plan(small.cases(), 2, 2))
    assert 0 < share < 0.5
    options = ("--label", "a", *PLAN, *provider.options, "--trust-judge")
    # Enough for the whole, too little for this part of it.
    ran = cli("run", *options, "--shard", "2/3", "--budget-usd", "0.05")
    assert ran.code == 3
    assert "--shard 2/3" in ran.err
    for index in (1, 3):
        cli("run", *options, "--shard", f"{index}/3", "--budget-usd", "5")
    assert cli("merge", "a").code == 3
    paid = len(provider.server.asked)
    # The merged journal says what is spent; all that is left of the budget goes to what is missing.
    ran = cli("run", *options, "--resume", "--budget-usd", "5")
    assert ran.code == 0, ran.err
    assert summary(three_probes, "a")["stopped"] is None
    cells = sum(len(runs) for runs in summary(three_probes, "a")["fixtures"].values())
    assert cells == 6
    assert len(provider.server.asked) > paid


@pytest.mark.parametrize("model", [COMPRESSOR, JUDGE])
def test_a_shard_whose_model_fails_is_resumed_alone(
    three_probes: Path, cli: small.Cli, provider: Provider, model: str
) -> None:
    options = ("--label", "a", *PLAN, *provider.options, "--trust-judge")
    assert cli("run", *options, "--shard", "1/2").code == 0
    provider.behave = faulty("402", model)
    assert cli("run", *options, "--shard", "2/2").code == 3
    provider.behave = lambda asked: None
    ran = cli("merge", "a")
    assert ran.code == 3
    assert "run --shard 2/2 again with --resume" in ran.err
    assert cli("run", *options, "--shard", "2/2", "--resume").code == 0
    assert cli("merge", "a").code == 0
    body = summary(three_probes, "a")
    assert body["stopped"] is None
