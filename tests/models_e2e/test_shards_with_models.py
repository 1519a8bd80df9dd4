"""Shards with models: every call is made once, by one shard, and the money is that of the whole run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.domain.case import plan_cells
from eval_core.domain.shard import Shard

from .world import ANSWER, CHECKS, COMPRESSOR, JUDGE, Provider, faulty

PLAN = ("--runs", "2", "--set", "compress_runs=2", "--quiet", "--set", "stop=full")


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
    assert parts["extra"]["calibration"]["calibration"] == whole["extra"]["calibration"]["calibration"]
    spent = sum(use["calls"] for use in parts["use"].values())
    assert spent == len(provider.server.asked) - alone
    assert parts["extra"]["served"][ANSWER][ANSWER] >= whole["extra"]["served"][ANSWER][ANSWER]


def test_a_shard_spends_its_part_of_the_budget_and_the_rest_comes_back(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    share = Shard(2, 3).share(plan_cells(small.cases(), 2, 2))
    assert 0 < share < 0.5
    options = ("--label", "a", *PLAN, *provider.options, "--set", "models.trust_judge=true")
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
    options = ("--label", "a", *PLAN, *provider.options, "--set", "models.trust_judge=true")
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


def test_a_shard_without_work_is_done_at_once_and_calls_nobody(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    options = (
        "--label",
        "a",
        "--runs",
        "1",
        "--set",
        "compress_runs=1",
        "--quiet",
        *provider.options,
        "--set",
        "models.trust_judge=true",
    )
    cells = len(plan_cells(small.cases(), 1, 1))
    count = 2 * cells
    idle = [n for n in range(1, count + 1) if not Shard(n, count).cells(plan_cells(small.cases(), 1, 1))]
    assert len(idle) == count - cells
    asked = 0
    for index in range(1, count + 1):
        if index in idle:
            asked = len(provider.server.asked)
            assert re.search(r"^total +0 ", cli("run", *options, "--shard", f"{index}/{count}", "--dry-run").out, re.M)
        ran = cli("run", *options, "--shard", f"{index}/{count}")
        assert ran.code == 0, ran.err
        assert index not in idle or len(provider.server.asked) == asked
    ran = cli("merge", "a")
    assert ran.code == 0, ran.err
    assert summary(three_probes, "a")["stopped"] is None


def test_the_next_look_in_shards_pays_for_its_own_runs_alone(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    options = ("--label", "a", "--quiet", *provider.options, "--set", "models.trust_judge=true", "--compare-to", "none")

    def look(*more: str) -> int:
        before = len(provider.server.asked)
        for index in (1, 2):
            ran = cli("run", *options, "--shard", f"{index}/2", *more)
            assert ran.code == 0, ran.err
        assert cli("merge", "a", "--compare-to", "none").code == 0
        return len(provider.server.asked) - before

    early = cli("run", *options, "--shard", "1/2", "--next-look")
    assert early.code == 2
    assert "`compression-eval merge a` joins the shards of one" in early.err
    look()
    first = told(summary(three_probes, "a"))
    fixtures = len(small.cases())
    compressions = sum(max(1, len(case.fixture.cuts)) for case in small.cases())
    assert look("--next-look") == 3 * (compressions + 2 * fixtures)
    second = told(summary(three_probes, "a"))
    assert len(second) == 6 * fixtures
    assert {cell: second[cell] for cell in first} == first


def test_the_price_of_a_shard_is_held_against_its_part_of_the_budget(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    options = (
        "--label",
        "a",
        *PLAN,
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--budget-usd",
        "2",
        "--dry-run",
    )
    said = [cli("run", *options, "--shard", f"{index}/3").out for index in (1, 2, 3)]
    parts = [float(found[1]) for out in said if (found := re.search(r"The budget of \$([\d.]+) covers it\.", out))]
    assert len(parts) == 3
    assert sum(parts) == pytest.approx(2, abs=0.001)
