"""`report.json`: the fields that another project's runner reads, and a status that never pretends."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
import report_world
from golden_file import assert_golden

from eval_core.base.files import pretty
from eval_core.comparing.compare import ReportData
from eval_core.domain.grade import Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import ProbeRecord
from eval_core.reporting.json_report import UNSCORED, json_report
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.strands.findings import Kind


@pytest.mark.parametrize("name", ["alone", "regressed"])
def test_the_report_reads_as_reviewed(name: str) -> None:
    body = json_report(report_world.REPORTS[name](), environ={})
    assert_golden(f"{name}.json", pretty(body))


def _graded(data: ReportData, score: int) -> ReportData:
    """Return the report with every dimension of every grade at this score."""

    def graded(record: ProbeRecord) -> ProbeRecord:
        if not isinstance(record.result, Grade):
            return record
        scores = dict.fromkeys(record.result.scores, score)
        return record.model_copy(update={"result": record.result.model_copy(update={"scores": scores})})

    fixtures = {
        name: [run.model_copy(update={"probes": {key: graded(one) for key, one in run.probes.items()}}) for run in runs]
        for name, runs in data.candidate.fixtures.items()
    }
    return replace(data, candidate=data.candidate.model_copy(update={"fixtures": fixtures}))


def _refusals(body: dict[str, Any]) -> list[str]:
    """Return what an agent's runner holds against a report, by the rules it states."""
    wrong = []
    if body["baseline_tokens"] <= 0 or body["compressed_tokens"] < 0:
        wrong.append("tokens")
    if set(body["probe_scores"]) != set(body["probe_manifest"]) or len(set(body["probe_manifest"])) == 0:
        wrong.append("battery")
    if not all(isinstance(score, float) and math.isfinite(score) for score in body["probe_scores"].values()):
        wrong.append("scores")
    if body["status"] == "pass" and not (body["artifact_trail_preserved"] and body["continuity_preserved"]):
        wrong.append("pass without what a pass needs")
    if re.search(r"(?i)/(?:users|home|root)/|[a-z]:[\\\\/]+users", json.dumps(body)):
        wrong.append("home path")
    return wrong


@pytest.mark.parametrize("kind", [*Kind, None])
@pytest.mark.parametrize("score", [1, 4])
@pytest.mark.parametrize("target", ["builtin:anchored", "/home/user1/agent/compress.sh"])
def test_no_report_is_refused_whatever_it_came_to(kind: Kind | None, score: int, target: str) -> None:
    data = _graded(report_world.regressed(), score)
    assert data.verdict is not None
    assert data.base is not None
    provenance = data.base.provenance.model_copy(update={"target": target})
    told = {"kind": kind, "headline": "/home/user1/relay.toml was lost"}
    verdict = data.verdict.model_copy(update=told) if kind else None
    base = data.base.model_copy(update={"provenance": provenance}) if kind else None
    assert _refusals(json_report(replace(data, verdict=verdict, base=base), environ={})) == []


@pytest.mark.parametrize(
    ("kind", "score", "status"),
    [
        (Kind.REGRESSED, 4, "fail"),
        (Kind.MIXED, 4, "fail"),
        (Kind.IMPROVED, 1, "pass"),
        (Kind.NO_DETECTABLE_CHANGE, 1, "pass"),
        (Kind.INCONCLUSIVE, 4, "pass"),
        (Kind.INCONCLUSIVE, 1, "unavailable"),
        (Kind.INCOMPLETE, 4, "unavailable"),
        (Kind.NOT_COMPARABLE, 4, "unavailable"),
        (None, 4, "pass"),
        (None, 1, "fail"),
    ],
)
def test_only_harm_fails_and_only_what_is_shown_passes(kind: Kind | None, score: int, status: str) -> None:
    data = _graded(report_world.regressed(), score)
    assert data.verdict is not None
    verdict = data.verdict.model_copy(update={"kind": kind}) if kind else None
    body = json_report(replace(data, verdict=verdict, base=data.base if kind else None), environ={})
    assert body["status"] == status


def test_a_baseline_of_another_compressor_decides_nothing_and_is_told() -> None:
    data = _graded(report_world.regressed(), 4)
    assert data.base is not None
    provenance = data.base.provenance.model_copy(update={"target": "agent.compressor:Other"})
    other = replace(data, base=data.base.model_copy(update={"provenance": provenance}))
    body = json_report(other, environ={})
    assert (body["status"], body["verdict"]) == ("pass", "regressed")
    assert (body["target"], body["baseline_target"]) == ("builtin:anchored", "agent.compressor:Other")
    (warning,) = other.warnings
    assert "The baseline is of another compressor (agent.compressor:Other)" in warning
    assert warning in render_markdown(make_view(other)).replace("\\", "")
    assert data.warnings == ()


def test_drafts_are_told_in_every_report() -> None:
    data = report_world.alone()
    data = replace(data, candidate=data.candidate.model_copy(update={"drafts": {"deploy": 2}}))
    assert json_report(data, environ={})["draft_probes"] == 2
    assert "deploy: 2 of 2 probes are drafts that have not been reviewed" in render_markdown(make_view(data))


def _unscored(measurement: Measurement) -> Measurement:
    fixtures = {name: [run for run in runs if not run.graded] for name, runs in measurement.fixtures.items()}
    return measurement.model_copy(update={"fixtures": fixtures})


def test_without_any_score_the_result_is_unavailable_and_nothing_is_preserved() -> None:
    data = report_world.alone()
    body = json_report(replace(data, candidate=_unscored(data.candidate)), environ={})
    assert body["status"] == "unavailable"
    assert set(body["probe_scores"].values()) == {UNSCORED}
    assert body["unscored_probes"] == body["probe_manifest"]
    assert _refusals(body) == []
    assert not body["artifact_trail_preserved"]
    assert not body["continuity_preserved"]
    json.dumps(body, allow_nan=False)


def test_every_probe_is_in_the_manifest_and_failed_runs_count_no_tokens() -> None:
    body = json_report(report_world.incomplete(), environ={})
    assert 0 < len(body["unscored_probes"]) < len(body["probe_manifest"])
    assert body["status"] == "unavailable"
    assert _refusals(body) == []
    assert (body["baseline_tokens"], body["compressed_tokens"]) == (6000, 1800)


def test_digests_of_the_caller_are_echoed() -> None:
    body = json_report(
        report_world.alone(), environ={"HERMES_EVALUATOR_DIGEST": "e1", "HERMES_BATTERY_DIGEST": "b2", "OTHER": "x"}
    )
    assert (body["evaluator_digest"], body["battery_digest"]) == ("e1", "b2")
    assert "x" not in body.values()


def test_the_fixture_digest_follows_the_fixtures() -> None:
    data = report_world.alone()
    moved = data.candidate.fingerprint.model_copy(update={"fixtures": {"deploy": "0" * 64}})
    other = replace(data, candidate=data.candidate.model_copy(update={"fingerprint": moved}))
    assert json_report(data, environ={})["fixture_digest"] != json_report(other, environ={})["fixture_digest"]
