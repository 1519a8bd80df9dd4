"""Commands about what is stored: baseline, compare, report, noise."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import small

FAST = ("--runs", "2", "--quiet")


@pytest.fixture
def based(project: Path, cli: small.Cli) -> Path:
    """A project with a baseline and one equal result."""
    ran = cli("baseline", "update", *FAST, "--label", "first")
    assert ran.code == 0
    return project


def test_an_update_says_what_was_stored_and_the_check_matches(project: Path, cli: small.Cli) -> None:
    ran = cli("baseline", "update", *FAST)
    assert ran.out.startswith("baselines/offline.json: 2 graded runs of 3 fixtures stored.\n")
    assert "there is no run-to-run noise" in ran.out
    assert "10 graded runs are recommended" not in ran.out
    ran = cli("baseline", "check")
    assert (ran.code, ran.out) == (0, "baselines/offline.json: matches\n")


def test_a_second_update_changes_no_byte(based: Path, cli: small.Cli) -> None:
    before = {path.name: path.read_bytes() for path in (based / "baselines").iterdir()}
    ran = cli("baseline", "update", *FAST, "--label", "second")
    assert ran.code == 0
    assert "has the same content; nothing written" in ran.out
    assert {path.name: path.read_bytes() for path in (based / "baselines").iterdir()} == before


def test_a_baseline_of_an_older_schema_is_replaced_by_an_update(based: Path, cli: small.Cli) -> None:
    path = based / "baselines" / "offline.json"
    small.edit_json(path, lambda body: body.update(schema_version=0))
    assert cli("baseline", "check").code == 2
    ran = cli("baseline", "update", *FAST, "--label", "second")
    assert ran.code == 0, ran.err
    assert cli("baseline", "check").out == "baselines/offline.json: matches\n"


def test_a_stored_result_becomes_a_baseline_without_a_run(based: Path, cli: small.Cli) -> None:
    ran = cli("baseline", "update", "other", "--from", "results/first")
    assert ran.out.startswith("baselines/other.json: 2 graded runs of 3 fixtures stored.")
    assert "Note: 10 graded runs are recommended" in ran.out
    assert len(list((based / "results").iterdir())) == 2


def test_the_check_names_the_file_that_changed(based: Path, cli: small.Cli) -> None:
    def reword(body: Any) -> None:
        body["probes"][0]["question"] = "Which error?"

    small.edit_json(based / "probes/small-plan.probes.json", reword)
    ran = cli("baseline", "check")
    assert ran.code == 2
    assert ran.out == (
        "baselines/offline.json: out of date: probes/small-plan.probes.json changed; "
        "`compression-eval baseline update offline`\n"
    )


def test_formatting_a_probe_file_changes_nothing(based: Path, cli: small.Cli) -> None:
    small.edit_json(based / "probes/small-plan.probes.json", lambda body: None)
    assert cli("baseline", "check").code == 0


def test_checking_without_a_baseline_says_how_to_make_one(project: Path, cli: small.Cli) -> None:
    ran = cli("baseline", "check")
    assert ran.code == 2
    assert "no baseline; `compression-eval baseline update` creates one" in ran.err


def test_a_baseline_is_shown_with_noise_and_history(based: Path, cli: small.Cli) -> None:
    ran = cli("baseline", "show", "baselines/offline.json")
    assert ran.code == 0
    for words in ("this is a single baseline", "Medians by fixture", "run-to-run noise", "History", "facts kept"):
        assert words in ran.out


def test_a_baseline_edited_by_hand_is_named_wherever_it_is_read(based: Path, cli: small.Cli) -> None:
    path = based / "baselines" / "offline.json"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"planned_runs": 2', '"planned_runs": 3'), encoding="utf-8"
    )
    for arguments in (
        ("baseline", "show", "baselines/offline.json"),
        ("baseline", "check"),
        ("compare", "baselines/offline.json", "results/first"),
        ("noise", "baselines/offline.json"),
    ):
        ran = cli(*arguments)
        assert ran.code == 2
        assert "baselines/offline.json: its content does not match its digest: it was edited by hand" in ran.err


def test_equal_sides_show_no_change_in_every_format(based: Path, cli: small.Cli) -> None:
    for form in ("text", "md", "json", "html"):
        ran = cli("compare", "baselines/offline.json", "results/first", "--format", form)
        assert ran.code == 0
        assert "o detectable change" in ran.out or '"kind": "no_detectable_change"' in ran.out


def test_a_known_bad_compressor_has_regressed_and_the_other_way_round_improved(based: Path, cli: small.Cli) -> None:
    cli("run", "--target", "builtin:opaque", "--label", "bad", "--runs", "3", "--quiet", "--compare-to", "none")
    worse = cli("compare", "results/first", "results/bad", "--format", "json", "--fail-on", "regressed")
    assert (worse.code, json.loads(worse.out)["status"]) == (1, "fail")
    assert json.loads(worse.out)["verdict"]["kind"] == "regressed"
    better = cli("compare", "results/bad", "results/first", "--format", "json", "--fail-on", "inconclusive")
    assert (better.code, json.loads(better.out)["verdict"]["kind"]) == (0, "improved")


@pytest.mark.parametrize("side", ["nowhere", "fixtures/small-plan.json", "fixtures"])
def test_a_side_that_is_no_result_is_refused(side: str, based: Path, cli: small.Cli) -> None:
    ran = cli("compare", side, "results/first")
    assert ran.code == 2
    assert ran.err.startswith(f"Error: {side}: ")


def test_a_report_is_rendered_again_without_measuring(based: Path, cli: small.Cli) -> None:
    before = sorted(based.rglob("*"))
    texts = {form: cli("report", "--format", form).out for form in ("text", "md", "html", "json")}
    assert texts["text"].startswith("= No detectable change")
    assert texts["md"].startswith("## Compression eval: label first")
    assert texts["html"].lstrip().lower().startswith("<!doctype html>")
    assert json.loads(texts["json"])["probe_scores"]
    assert sorted(based.rglob("*")) == before


def test_a_result_is_shown_where_its_fixtures_are_not(
    based: Path, cli: small.Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("downloads")
    shutil.copytree(based / "results" / "first", elsewhere / "artifact")
    monkeypatch.chdir(elsewhere)
    ran = cli("report", "artifact")
    assert ran.code == 0, ran.err
    assert "Facts kept: 100 %" in ran.out


def test_the_newest_result_is_found_from_a_folder_below_the_configuration(
    based: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write(based / ".compression-eval.yml", "runs: 2\n")
    subprocess.run(["git", "init", "-q", str(based)], check=True)
    (based / "agent").mkdir()
    monkeypatch.chdir(based / "agent")
    ran = cli("report")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("= No detectable change")


def test_a_report_of_nothing_is_refused(project: Path, cli: small.Cli) -> None:
    ran = cli("report")
    assert ran.code == 2
    assert "results/latest: no summary.json here" in ran.err


def test_the_noise_of_equal_runs_is_zero(based: Path, cli: small.Cli) -> None:
    ran = cli("noise", "baselines/offline.json")
    assert ran.code == 0
    assert "False alarms: 0 of 200 random splits" in ran.out
    assert "All runs are identical" in ran.out


FORGETS = """\
def compress(messages):
    return [{"role": "user", "content": "We talked."}]
"""


@pytest.fixture
def forgetful(project: Path) -> Path:
    small.write(project / "forgets.py", FORGETS)
    small.write(project / ".compression-eval.yml", "target: {compressor: 'forgets:compress', llm: none}\n")
    return project


def test_a_compressor_that_passes_nothing_is_no_baseline_unless_that_is_said(forgetful: Path, cli: small.Cli) -> None:
    ran = cli("baseline", "update", *FAST, "--label", "bad")
    assert ran.code == 2
    assert "this compressor fails: no answer reaches 3 of 5 (pass rate 0 %, facts kept 0 %)" in ran.err
    assert not (forgetful / "baselines").exists()
    assert (forgetful / "results" / "bad" / "summary.json").exists()
    ran = cli("baseline", "update", "--from", "results/bad", "--accept-failing")
    assert ran.code == 0
    assert "Note: small-plan: no answer passes (3 of 5)." in ran.out


def test_an_update_says_where_the_compressor_is_weak(project: Path, cli: small.Cli) -> None:
    ran = cli("baseline", "update", *FAST, "--target", "builtin:opaque")
    assert ran.code == 0
    assert "Note: small-chained: no answer passes (3 of 5)." in ran.out
    assert "small-debug: no answer" not in ran.out


def test_a_compressor_that_shrinks_nothing_is_stored_and_that_is_said(project: Path, cli: small.Cli) -> None:
    small.write(project / "keeps.py", "def compress(messages):\n    return messages\n")
    small.write(project / ".compression-eval.yml", "target: {compressor: 'keeps:compress', llm: none}\n")
    ran = cli("baseline", "update", *FAST)
    assert ran.code == 0
    assert "Note: small-plan: 10 of 10 runs did not make the session smaller." in ran.out


def test_the_trend_is_told_with_the_cumulative_change(based: Path, cli: small.Cli) -> None:
    assert cli("baseline", "update", *FAST, "--force", "--label", "again").code == 0
    ran = cli("trend")
    assert ran.code == 0
    assert "The baseline has not changed since 20" in ran.out
    assert "1 baseline ago: overall" in ran.out
