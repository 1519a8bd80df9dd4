"""A plan split into shards: every cell in one of them, money shared out, and one result when they are merged."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.case import plan_cells
from eval_core.domain.fixture import Fixture
from eval_core.domain.shard import Shard, parse_shard

TWO = ("--runs", "2", "--set", "compress_runs=3", "--quiet")


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 40])
def test_every_cell_is_in_exactly_one_shard_and_the_money_adds_up(count: int) -> None:
    plan = plan_cells(small.cases(), 2, 3)
    shards = [Shard(index, count) for index in range(1, count + 1)]
    parts = [shard.cells(plan) for shard in shards]
    cells = [(cell.case.fixture.name, cell.run) for part in parts for cell in part]
    assert sorted(cells) == sorted((cell.case.fixture.name, cell.run) for cell in plan)
    assert sum(shard.share(plan) for shard in shards) == pytest.approx(1.0)


def test_runs_of_a_fixture_stay_together_where_they_can() -> None:
    plan = plan_cells(small.cases(), 3, 3)
    where: dict[str, set[int]] = {}
    for index in (1, 2):
        for cell in Shard(index, 2).cells(plan):
            where.setdefault(cell.case.fixture.name, set()).add(index)
    assert sum(len(indexes) > 1 for indexes in where.values()) <= 1


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_a_later_look_leaves_every_run_in_its_shard(count: int) -> None:
    cases = [
        *small.cases(),
        *(replace(case, fixture=renamed(case.fixture, n)) for case in small.cases() for n in "abc"),
    ]
    where: dict[tuple[str, int], int] = {}
    for runs, compress_runs in ((3, 3), (3, 10), (6, 6), (10, 10)):
        plan = plan_cells(cases, runs, compress_runs)
        for index in range(1, count + 1):
            for cell in Shard(index, count).cells(plan):
                assert where.setdefault((cell.case.fixture.name, cell.run), index) == index


def renamed(fixture: Fixture, suffix: str) -> Fixture:
    return fixture.model_copy(update={"name": f"{fixture.name}-{suffix}"})


@pytest.mark.parametrize(("runs", "count"), [(3, 2), (3, 4), (10, 5), (10, 20)])
def test_no_shard_does_much_more_than_another(runs: int, count: int) -> None:
    (case, *_) = small.cases()
    plan = plan_cells([replace(case, fixture=renamed(case.fixture, n)) for n in "abcde"], runs, runs)
    sizes = [len(Shard(index, count).cells(plan)) for index in range(1, count + 1)]
    assert max(sizes) <= len(plan) / count + 2


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "1/0", "a/b", "1/999", "-1/3", "1/3/5"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"e\.g\. 2/5"):
        parse_shard(text)


def shards(cli: small.Cli, label: str, count: int, *options: str) -> None:
    for index in range(1, count + 1):
        ran = cli("run", "--label", label, "--shard", f"{index}/{count}", *TWO, *options)
        assert ran.code == 0, ran.err


def cells(summary: Path) -> dict[str, object]:
    """Return every cell of a result, without what the clock says."""
    body = json.loads(summary.read_text())
    return {
        f"{name}/{run['run']}": {**run, "seconds": 0}
        for name, runs in body["fixtures"].items()
        for run in runs
    }  # fmt: skip


def test_merged_shards_are_the_unsharded_run_cell_by_cell(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "2", "--quiet")
    whole = cli("run", "--label", "whole", *TWO, "--target", "builtin:opaque", "--format", "json")
    shards(cli, "parts", 4, "--target", "builtin:opaque")
    merged = cli("merge", "parts", "--format", "json")
    assert (merged.code, whole.code) == (0, 0), merged.err
    results = project / "results"
    assert cells(results / "parts" / "summary.json") == cells(results / "whole" / "summary.json")
    for name in ("controls", "census", "frontier", "probe_types", "planned_runs", "planned_compress_runs"):
        ours, theirs = (
            json.loads((results / label / "summary.json").read_text())[name] for label in ("parts", "whole")
        )
        assert ours == theirs, name
    ours, theirs = (json.loads((results / label / "verdict.json").read_text()) for label in ("parts", "whole"))
    assert (ours.pop("candidate_label"), theirs.pop("candidate_label")) == ("parts", "whole")
    assert ours == theirs
    assert (results / "parts" / "report.html").exists()
    assert not (results / "parts-shard-1-of-4" / "report.html").exists()


def test_a_lost_shard_is_incomplete_and_is_run_again_alone(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "2", "--quiet")
    for index in (1, 3):
        assert cli("run", "--label", "a", "--shard", f"{index}/3", *TWO).code == 0
    ran = cli("merge", "a")
    assert ran.code == 3
    assert "shard 2/3 left no result" in ran.err
    assert "run --shard 2/3 again with --resume, then merge again" in ran.err
    results = project / "results"
    measured = {path.name for index in (1, 3) for path in (results / f"a-shard-{index}-of-3").glob("*-run-*.json")}
    merged = {path.name for path in (results / "a").glob("*-run-*.json")}
    assert merged == measured, "what was not measured leaves no file"
    assert cli("run", "--label", "a", "--shard", "2/3", *TWO).code == 0
    assert cli("merge", "a").code == 0
    body = json.loads((project / "results" / "a" / "summary.json").read_text())
    assert body["stopped"] is None
    assert all(run["outcome"] == "ok" for runs in body["fixtures"].values() for run in runs)


def test_a_merged_run_that_lacks_a_shard_can_be_completed_as_a_whole(project: Path, cli: small.Cli) -> None:
    assert cli("run", "--label", "a", "--shard", "1/2", *TWO).code == 0
    assert cli("merge", "a").code == 3
    assert cli("run", "--label", "a", "--resume", *TWO).code == 0
    ran = cli("merge", "a")
    assert ran.code == 2
    assert "holds results of its own; nothing is overwritten" in ran.err


def test_shards_in_another_folder_are_measured_in_any_order_and_the_command_that_merges_them_is_said(
    project: Path, cli: small.Cli
) -> None:
    there = ("--results", "elsewhere/../else where")
    for index in (3, 1, 2):
        ran = cli("run", "--label", "a", "--shard", f"{index}/3", *TWO, *there)
        assert ran.code == 0, ran.err
    assert "`compression-eval merge a --results 'elsewhere/../else where'` joins the shards" in ran.out
    again = cli("run", "--label", "a", "--shard", "2/3", *TWO, *there)
    assert again.code == 2
    assert "this label has results already" in again.err
    assert cli("run", "--label", "a", "--shard", "2/3", *TWO, *there, "--resume").code == 0
    assert cli("merge", "a", *there).code == 0
    assert cli("run", "--label", "whole", *TWO).code == 0
    merged, whole = project / "else where" / "a" / "summary.json", project / "results" / "whole" / "summary.json"
    assert cells(merged) == cells(whole)


def test_one_shard_is_the_whole(project: Path, cli: small.Cli) -> None:
    assert cli("run", "--label", "a", "--shard", "1/1", *TWO).code == 0
    assert cli("merge", "a").code == 0
    assert cli("run", "--label", "whole", *TWO).code == 0
    results = project / "results"
    assert cells(results / "a" / "summary.json") == cells(results / "whole" / "summary.json")


def test_a_shard_of_another_commit_is_refused(project: Path, cli: small.Cli) -> None:
    for index in (1, 2):
        assert cli("run", "--label", "a", "--shard", f"{index}/2", *TWO).code == 0
        small.edit_json(next((project / "fixtures").glob("*.json")), lambda body: body.update(description="changed"))
    ran = cli("merge", "a")
    assert ran.code == 2
    assert "shard 2/2 measured something else than shard 1/2: fixtures" in ran.err


def test_a_copy_of_a_shard_does_not_pass_for_another(project: Path, cli: small.Cli) -> None:
    assert cli("run", "--label", "a", "--shard", "1/2", *TWO).code == 0
    shutil.copytree(project / "results" / "a-shard-1-of-2", project / "results" / "a-shard-2-of-2")
    assert "claims to be shard '1/2' and not 2/2; refused" in cli("merge", "a").err


def test_a_shard_needs_a_label_and_measures_no_second_arm(project: Path, cli: small.Cli) -> None:
    assert "name the run with --label" in cli("run", "--shard", "1/2", *TWO).err
    ran = cli("run", "--label", "a", "--shard", "1/2", "--compare-to", "rerun", *TWO)
    assert ran.code == 2
    assert "not measured in shards" in ran.err
    assert "no shards of nobody here" in cli("merge", "nobody").err


def test_shards_of_different_code_or_plans_are_not_mixed(project: Path, cli: small.Cli) -> None:
    assert cli("run", "--label", "a", "--shard", "1/2", *TWO).code == 0
    assert cli("run", "--label", "a", "--shard", "2/2", *TWO, "--target", "builtin:opaque").code == 0
    ran = cli("merge", "a")
    assert ran.code == 2
    assert "shard 2/2 measured something else than shard 1/2: target" in ran.err
    assert cli("run", "--label", "b", "--shard", "1/2", *TWO).code == 0
    assert cli("run", "--label", "b", "--shard", "2/2", "--runs", "1", "--set", "compress_runs=1", "--quiet").code == 0
    assert "shard 1/2: runs" in cli("merge", "b").err
    assert cli("run", "--label", "b", "--shard", "2/3", *TWO).code == 0
    assert "shards of different splits" in cli("merge", "b").err


def test_what_a_hostile_job_leaves_is_refused(project: Path, cli: small.Cli) -> None:
    shards(cli, "a", 2)
    folder = project / "results" / "a-shard-2-of-2"
    record = min(folder.glob("*-run-*.json"))
    kept = record.read_text()

    def refused(said: str) -> None:
        ran = cli("merge", "a")
        assert (ran.code, said in ran.err) == (2, True), ran.err
        assert not (project / "results" / "a" / "summary.json").exists()

    record.unlink()
    record.symlink_to("/etc/passwd")
    refused("not a regular file; refused")
    record.unlink()
    os.mkfifo(record)
    refused("not a regular file; refused")
    record.unlink()
    record.write_text(kept.replace('"run": 2', '"run": 0'))
    if record.read_text() == kept:
        small.edit_json(record, lambda body: body.update(run=body["run"] + 1))
    refused("refused")
    record.write_text('{"fixture": 1}')
    refused("fixture")
    record.write_text(kept)
    small.edit_json(record, lambda body: body["probes"].update(other=next(iter(body["probes"].values()))))
    refused("and its probes; refused")
    record.write_text(kept)
    small.edit_json(folder / "summary.json", lambda body: body["extra"].update(shard="1/2"))
    refused("claims to be shard '1/2' and not 2/2; refused")
    small.edit_json(folder / "summary.json", lambda body: body["extra"].update(shard="2/2", served=[1]))
    refused("served")
    small.edit_json(folder / "summary.json", lambda body: body["extra"].update(served={}))
    (folder / "journal.jsonl").symlink_to("/dev/zero")
    refused("not a regular file; refused")
    (folder / "journal.jsonl").unlink()
    assert cli("merge", "a").code == 0
