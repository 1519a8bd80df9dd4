"""`report.json`: the fields that another project's runner reads, and a status that never pretends."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import report_world
from golden_file import assert_golden

from eval_core.base.files import pretty
from eval_core.comparing.findings import Kind
from eval_core.domain.measurement import Measurement
from eval_core.reporting.contract import contract


@pytest.mark.parametrize("name", ["alone", "regressed"])
def test_the_report_reads_as_reviewed(name: str) -> None:
    body = contract(report_world.REPORTS[name](), environ={})
    body["verdict"] = body["verdict"] and body["verdict"]["kind"]
    assert_golden(f"{name}.json", pretty(body))


@pytest.mark.parametrize(
    ("name", "status"),
    [("regressed", "fail"), ("not-comparable", "unavailable"), ("incomplete", "unavailable"), ("alone", "pass")],
)
def test_the_status_follows_the_verdict(name: str, status: str) -> None:
    assert contract(report_world.REPORTS[name](), environ={})["status"] == status


@pytest.mark.parametrize("kind", Kind)
def test_only_harm_fails_and_only_what_was_decided_passes(kind: Kind) -> None:
    data = report_world.regressed()
    assert data.verdict is not None
    expected = {
        Kind.BROKEN: "fail",
        Kind.REGRESSED: "fail",
        Kind.MIXED: "fail",
        Kind.INCOMPLETE: "unavailable",
        Kind.NOT_COMPARABLE: "unavailable",
    }
    found = contract(replace(data, verdict=data.verdict.model_copy(update={"kind": kind})), environ={})
    assert found["status"] == expected.get(kind, "pass")


def _unscored(measurement: Measurement) -> Measurement:
    fixtures = {name: [run for run in runs if not run.graded] for name, runs in measurement.fixtures.items()}
    return measurement.model_copy(update={"fixtures": fixtures})


def test_without_any_score_the_result_is_unavailable_and_nothing_is_preserved() -> None:
    data = report_world.alone()
    body = contract(replace(data, candidate=_unscored(data.candidate)), environ={})
    assert body["status"] == "unavailable"
    assert body["probe_scores"] == {}
    assert not body["artifact_trail_preserved"]
    assert not body["continuity_preserved"]
    json.dumps(body, allow_nan=False)


def test_every_probe_is_in_the_manifest_and_failed_runs_count_no_tokens() -> None:
    body = contract(report_world.incomplete(), environ={})
    assert set(body["probe_scores"]) < set(body["probe_manifest"])
    assert (body["baseline_tokens"], body["compressed_tokens"]) == (6000, 1800)


def test_digests_of_the_caller_are_echoed() -> None:
    body = contract(
        report_world.alone(), environ={"HERMES_EVALUATOR_DIGEST": "e1", "HERMES_BATTERY_DIGEST": "b2", "OTHER": "x"}
    )
    assert (body["evaluator_digest"], body["battery_digest"]) == ("e1", "b2")
    assert "x" not in body.values()


def test_the_fixture_digest_follows_the_fixtures() -> None:
    data = report_world.alone()
    moved = data.candidate.fingerprint.model_copy(update={"fixtures": {"deploy": "0" * 64}})
    other = replace(data, candidate=data.candidate.model_copy(update={"fingerprint": moved}))
    assert contract(data, environ={})["fixture_digest"] != contract(other, environ={})["fixture_digest"]
