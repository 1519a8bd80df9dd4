"""Looks that follow each other in one command, and the beginnings of prompts that they share."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import small

from eval_core.cli.run import _is_open
from eval_core.comparing.compare import ReportData
from eval_core.strands.findings import Kind

from .world import COMPRESSOR, Provider


def test_an_open_verdict_goes_on_to_the_next_look_in_the_same_command(
    one_probe: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (*provider.options, "--set", "models.trust_judge=true")
    assert cli("baseline", "update", "--runs", "3", *options, "--accept-failing", "--quiet").code == 0
    seen: list[int] = []

    def open_once(data: ReportData) -> bool:
        seen.append(data.candidate.planned_runs)
        return len(seen) == 1

    monkeypatch.setattr("eval_core.cli.run._is_open", open_once)
    ran = cli("run", *options, "--set", "stop=full", "--label", "a", "--all-looks")
    assert ran.code == 0, ran.err
    assert seen == [3, 6]
    assert "Inconclusive after 3 graded runs; going on to 6." in ran.err
    summary = json.loads((one_probe / "results/a/summary.json").read_text())
    # The look before is remembered, so that both share one alpha, and its runs were not bought again.
    assert [look[0] for look in summary["extra"]["looks"]] == [3]
    compressed = [asked for asked in provider.asked_of(COMPRESSOR) if len(asked.messages) == 2]
    assert len(compressed) == 3 + 6


@pytest.mark.parametrize(
    ("kind", "runs", "stopped", "goes_on"),
    [
        (Kind.INCONCLUSIVE, 3, None, True),
        (Kind.INCONCLUSIVE, 6, None, True),
        (Kind.INCONCLUSIVE, 10, None, False),
        (Kind.INCONCLUSIVE, 3, "the budget is used up", False),
        (Kind.REGRESSED, 3, None, False),
        (Kind.NO_DETECTABLE_CHANGE, 3, None, False),
        (None, 3, None, False),
    ],
)
def test_only_an_inconclusive_verdict_asks_for_another_look(
    kind: Kind | None, runs: int, stopped: str | None, goes_on: bool
) -> None:
    verdict = None if kind is None else SimpleNamespace(kind=kind)
    data = SimpleNamespace(verdict=verdict, candidate=SimpleNamespace(planned_runs=runs, stopped=stopped))
    assert _is_open(cast("ReportData", data)) is goes_on


def test_the_dry_run_of_all_looks_is_that_of_the_last(project: Path, cli: small.Cli, provider: Provider) -> None:
    looked = cli("run", *provider.options, "--all-looks", "--dry-run")
    assert looked.code == 0
    assert looked.out == cli("run", *provider.options, "--runs", "10", "--dry-run").out


def test_a_shard_has_no_verdict_that_could_be_open(project: Path, cli: small.Cli) -> None:
    ran = cli("run", "--label", "a", "--shard", "1/2", "--all-looks")
    assert ran.code == 2
    assert "--all-looks: --shard 1/2 gives no verdict" in ran.err


def test_later_compressions_share_their_transcript_with_the_other_runs(
    tmp_path: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run has written itself comes last; before it every run asks the same."""
    chained = [case for case in small.cases() if len(case.fixture.cuts) > 1]
    monkeypatch.chdir(small.write_suite(tmp_path, chained[:1]))
    compressor = ("--compressor-model", COMPRESSOR, "--judge", "offline", *provider.options[6:])
    assert cli("run", "--runs", "3", *compressor, "--quiet").code == 0
    later = [asked for asked in provider.asked_of(COMPRESSOR) if len(asked.messages) > 2]
    assert len(later) >= 3
    assert all("Summary of what came before" in asked.last for asked in later)
    assert [message["role"] for message in later[0].messages] == ["system", "user", "assistant", "user"]
    beginnings = {json.dumps(asked.messages[:-1]) for asked in later}
    assert len(beginnings) <= len(later) // 3
