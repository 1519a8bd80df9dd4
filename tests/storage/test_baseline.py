"""Stored baselines: what they hold, that they are small, and that nobody can change them unnoticed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.base.files import digest
from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.noise import noise_of
from eval_core.domain.case import Case
from eval_core.domain.extra import Extra
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.storage.baselines import (
    dump_baseline,
    list_baselines,
    load_baseline,
    stale_fields,
    store_baseline,
    stored_reference,
)
from eval_core.storage.history import read_history, source_release
from eval_core.strands.findings import Kind


def _without_messages(measurement: Measurement) -> Measurement:
    fixtures = {
        name: [run.model_copy(update={"messages": []}) for run in runs] for name, runs in measurement.fixtures.items()
    }
    return measurement.model_copy(update={"fixtures": fixtures})


@pytest.fixture
def stored(tmp_path: Path, small_measurement: Measurement) -> Path:
    found = store_baseline(small_measurement, tmp_path / "baselines", None, noise=noise_of(small_measurement))
    assert found is not None
    return found


def test_a_baseline_reads_back_as_it_was_measured(stored: Path, small_measurement: Measurement) -> None:
    measurement, noise = load_baseline(stored)
    assert measurement == _without_messages(small_measurement)
    assert noise["overall"] == 0
    assert stored.name == "offline.json"


def test_a_baseline_with_failures_and_unscored_probes_reads_back_too(
    tmp_path: Path, small_measurement: Measurement
) -> None:
    body = _without_messages(small_measurement).model_dump(mode="json")
    first, second, *_ = body["fixtures"]["small-debug"]
    first["probes"]["recall-error"]["answer"] = None
    first["probes"]["recall-error"]["result"] = {"kind": "unscored", "reason": "no answer"}
    second.update(outcome="infra", detail="503", probes={}, summary="")
    odd = Measurement.model_validate(body)
    path = small.write(tmp_path / "odd.json", dump_baseline(odd, {"overall": 0.25}))
    assert load_baseline(path) == (odd, {"overall": 0.25})


def test_equal_runs_are_stored_once(stored: Path, small_measurement: Measurement) -> None:
    body = json.loads(stored.read_text(encoding="utf-8"))
    assert [run.get("same_as") for run in body["fixtures"]["small-plan"]] == [None, 0, 0, None, 3]
    once = {name: runs[:1] for name, runs in small_measurement.fixtures.items()}
    single = dump_baseline(small_measurement.model_copy(update={"fixtures": once}), {})
    assert len(stored.read_text(encoding="utf-8")) < 2 * len(single)
    assert "messages" not in body["fixtures"]["small-plan"][0]


def test_storing_the_same_again_writes_nothing(stored: Path, small_measurement: Measurement) -> None:
    before = {path.name: path.read_bytes() for path in stored.parent.iterdir()}
    later = small_measurement.provenance.model_copy(update={"date": "2031-01-01T00:00:00Z"})
    slower = {
        name: [run.model_copy(update={"seconds": 9.0}) for run in runs]
        for name, runs in small_measurement.fixtures.items()
    }
    again = small_measurement.model_copy(update={"provenance": later, "fixtures": slower})
    assert store_baseline(again, stored.parent, None, noise={}) is None
    assert {path.name: path.read_bytes() for path in stored.parent.iterdir()} == before


def test_rounds_that_took_longer_are_nothing_new(tmp_path: Path, small_measurement: Measurement) -> None:
    def timed(**took: object) -> Measurement:
        rounds = {"rounds": [{"fates": "v", **took}]}
        return small_measurement.model_copy(
            update={
                "fixtures": {
                    name: [run.model_copy(update={"strands": {**run.strands, "rounds": rounds}}) for run in runs]
                    for name, runs in small_measurement.fixtures.items()
                }
            }
        )

    assert store_baseline(timed(seconds=0.002), tmp_path, None, noise={})
    assert store_baseline(timed(seconds=0.003, use={"calls": 0}), tmp_path, None, noise={}) is None
    assert store_baseline(timed(seconds=0.002, fates="0"), tmp_path, None, noise={})


def test_a_forced_update_renews_the_date_and_adds_to_the_history(stored: Path, small_measurement: Measurement) -> None:
    later = small_measurement.provenance.model_copy(update={"date": "2031-01-01T00:00:00Z"})
    again = small_measurement.model_copy(update={"provenance": later})
    assert store_baseline(again, stored.parent, None, noise={}, force=True) is not None
    lines = read_history(stored.parent, "offline")
    assert [line.date for line in lines][1:] == ["2031-01-01T00:00:00Z"]
    assert lines[0].values["overall"] == lines[1].values["overall"] > 4
    assert read_history(stored.parent, "other") == []


def test_the_history_keeps_the_verdict_and_the_release(stored: Path, small_measurement: Measurement) -> None:
    assert store_baseline(
        small_measurement, stored.parent, None, noise={}, force=True, verdict="improved", release="v2.0"
    )
    first, second = read_history(stored.parent, "offline")
    assert first.verdict == ""
    assert (second.verdict, second.release) == ("improved", "v2.0")


def test_the_release_of_a_commit_is_its_highest_tag(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    sha = git("rev-parse", "HEAD")
    assert source_release(tmp_path, sha) is None
    for tag in ("v1.9.0", "v1.10.0"):
        git("tag", tag)
    assert source_release(tmp_path, sha) == "v1.10.0"
    assert source_release(tmp_path, None) is None
    assert source_release(tmp_path, "0" * 40) is None


def test_an_incomplete_measurement_makes_no_baseline(tmp_path: Path, small_measurement: Measurement) -> None:
    stopped = small_measurement.model_copy(update={"stopped": "the budget of $1.00 is used up"})
    with pytest.raises(UserError, match=r"needs a complete measurement.*the budget of \$1\.00 is used up"):
        store_baseline(stopped, tmp_path, None, noise={})
    ungraded = {**small_measurement.fixtures, "small-plan": small_measurement.fixtures["small-plan"][3:]}
    with pytest.raises(UserError, match="small-plan: no graded run"):
        store_baseline(small_measurement.model_copy(update={"fixtures": ungraded}), tmp_path, None, noise={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b["fixtures"]["small-plan"][0]["probes"]["artifact-job"].update(kept="0"), "it was edited by hand"),
        (lambda b: b.pop("digest"), "it was edited by hand"),
        (
            lambda b: b.update(schema_version=0),
            "schema_version: 0, this program reads 1; .*`compression-eval baseline up",
        ),
        (lambda b: b.pop("schema_version"), "schema_version: None"),
        (lambda b: b.pop("texts"), "not a baseline file; `compression-eval baseline update` writes one"),
    ],
)
def test_a_baseline_that_cannot_be_believed_is_named(stored: Path, change: Any, message: str) -> None:
    small.edit_json(stored, change)
    with pytest.raises(UserError, match=rf"offline\.json: .*{message}"):
        load_baseline(stored)


@pytest.mark.parametrize("runs", [1, 2], ids=["one problem", "several"])
def test_a_baseline_of_another_version_is_called_that_and_not_misspelt(stored: Path, runs: int) -> None:
    def change(body: dict[str, Any]) -> None:
        for fixture in list(body["fixtures"])[:runs]:
            body["fixtures"][fixture][0]["of_a_later_version"] = 3
        body["digest"] = digest({key: body[key] for key in body if key not in ("digest", "schema_version")})

    small.edit_json(stored, change)
    with pytest.raises(UserError) as caught:
        load_baseline(stored)
    assert str(caught.value).startswith(f"{stored}: written by another version of this program, which this one cannot")
    assert str(caught.value).endswith("; measure it again with `compression-eval baseline update`")
    assert "\n" not in str(caught.value)


def test_notes_that_older_versions_made_are_dropped_and_others_are_not(stored: Path) -> None:
    def change(body: dict[str, Any]) -> None:
        body["extra"] |= {
            "grouping": {"key": "k", "probes": 12},
            "drift": {"cells": [], "confirming": [], "unscored": 3},
            "regraded": "2026-11-01T00:00:00Z",
            "base": "regraded",
            "compared": True,
        }
        body["digest"] = digest({key: body[key] for key in body if key not in ("digest", "schema_version")})

    small.edit_json(stored, change)
    assert load_baseline(stored)[0].extra == Extra(compared=True)


def test_an_unreadable_baseline_is_replaced_by_an_update(stored: Path, small_measurement: Measurement) -> None:
    small.edit_json(stored, lambda body: body.update(schema_version=0))
    assert store_baseline(small_measurement, stored.parent, None, noise={}) is not None
    assert load_baseline(stored)[0] == _without_messages(small_measurement)


def test_a_baseline_is_out_of_date_when_a_file_of_the_suite_changes(stored: Path) -> None:
    cases = small.cases()
    assert stale_fields(stored, cases, None) == []
    assert stale_fields(stored, [*cases[:1], _edited(cases[1]), cases[2]], None) == ["probes/small-debug.probes.json"]
    assert stale_fields(stored, cases[1:], None) == ["fixtures/small-chained.json", "probes/small-chained.probes.json"]


def test_a_baseline_is_out_of_date_when_the_watched_files_are_known_to_be_others(
    tmp_path: Path, small_measurement: Measurement
) -> None:
    of_files = small_measurement.provenance.model_copy(update={"watched": "a" * 64})
    path = store_baseline(
        small_measurement.model_copy(update={"provenance": of_files}), tmp_path, None, noise=noise_of(small_measurement)
    )
    assert path is not None
    assert stale_fields(path, small.cases(), "b" * 64) == ["watched files"]
    assert stale_fields(path, small.cases(), "a" * 64) == []
    assert stale_fields(path, small.cases(), None) == []


def _edited(case: Case) -> Case:
    first, *rest = case.bank.probes
    probe: Probe = first.model_copy(update={"question": first.question + " Exactly?"})
    return Case(case.fixture, case.bank.model_copy(update={"probes": [probe, *rest]}))


def test_a_measurement_of_some_fixtures_is_compared_with_that_part(
    stored: Path, small_measurement: Measurement, tmp_path: Path
) -> None:
    part = small.measure(small.cases()[1:2], tmp_path / "part", "anchored", runs=3, compress_runs=5)
    found = stored_reference(stored.parent, part.fingerprint)
    assert found is not None
    assert (found.path, found.comparable) == (stored, True)
    verdict, base = compare_measurements(load_baseline(stored)[0], part)
    assert verdict.kind not in (Kind.NOT_COMPARABLE, Kind.INCOMPLETE)
    assert {row.delta for row in verdict.rows} == {0.0}
    assert list(base.fixtures) == ["small-debug"]


def test_a_measurement_of_more_fixtures_than_the_baseline_is_not_comparable(
    small_measurement: Measurement, tmp_path: Path
) -> None:
    part = small.measure(small.cases()[:2], tmp_path / "part", "anchored")
    verdict, _ = compare_measurements(part, small_measurement)
    assert verdict.kind is Kind.NOT_COMPARABLE
    assert "fixtures/small-plan.json" in verdict.headline


def test_without_a_folder_there_are_no_baselines(tmp_path: Path, small_measurement: Measurement) -> None:
    assert list_baselines(tmp_path / "none") == []
    assert stored_reference(tmp_path / "none", small_measurement.fingerprint) is None
    assert read_history(tmp_path / "none") == []


def test_a_history_with_the_marks_of_a_merge_loses_only_those_lines(
    stored: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = stored.parent / "history.jsonl"
    good = path.read_text(encoding="utf-8")
    path.write_text(f'<<<<<<< HEAD\n{good}=======\n[1]\n{{"overall": {"9" * 400}}}\n>>>>>>> branch\n', encoding="utf-8")
    lines = read_history(stored.parent, "offline")
    assert len(lines) == len(good.splitlines())
    told = [int(record.getMessage().split("line ")[1].split(":")[0]) for record in caplog.records]
    assert told == [1, *range(len(lines) + 2, len(lines) + 6)]


@pytest.mark.parametrize(
    "change",
    [
        {"noise": None}, {"noise": {"overall": "much"}}, {"facts": None}, {"texts": []}, {"fixtures": []},
        {"fixtures": {"small-debug": None}}, {"fixtures": {"small-debug": [None]}},
    ],
    ids=str,
)  # fmt: skip
def test_a_baseline_with_parts_that_are_missing_or_of_another_kind_is_refused(
    tmp_path: Path, small_measurement: Measurement, change: dict[str, object]
) -> None:
    body = json.loads(dump_baseline(small_measurement, {}))
    version, _ = body.pop("schema_version"), body.pop("digest")
    for changed in ({**body, **change}, {name: part for name, part in body.items() if name not in change}):
        path = tmp_path / f"{len(changed)}.json"
        path.write_text(json.dumps({"schema_version": version, "digest": digest(changed), **changed}))
        with pytest.raises(UserError, match=r"broken baseline|not a baseline"):
            load_baseline(path)
