"""`report.json`: the machine-readable result that an agent project's own eval runner reads."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from statistics import fmean
from typing import Any, Literal

from eval_core.base.tokens import count_messages
from eval_core.comparing.compare import ReportData
from eval_core.domain.grade import Grade
from eval_core.domain.measurement import Measurement
from eval_core.reporting.not_looked_at import not_looked_at
from eval_core.strands.findings import Kind

_PRESERVED = 3.0  # a dimension whose mean reaches the pass mark counts as preserved
UNSCORED = -1.0
"""The number for a probe without a score, below any grade: the runner rejects a report without one for each probe."""
_EVALUATOR, _BATTERY = "HERMES_EVALUATOR_DIGEST", "HERMES_BATTERY_DIGEST"
_HARMFUL = (Kind.BROKEN, Kind.REGRESSED, Kind.MIXED)
_UNDECIDED = (Kind.INCOMPLETE, Kind.NOT_COMPARABLE, Kind.NOT_JUDGED)

Status = Literal["pass", "fail", "unavailable"]


def started_by_runner(environ: Mapping[str, str]) -> bool:
    """Tell whether an agent's own runner started this process and waits for the report."""
    return _EVALUATOR in environ


def _scores(measurement: Measurement) -> dict[str, float]:
    scores: dict[str, list[float]] = {}
    for fixture, runs in measurement.fixtures.items():
        for run in runs:
            for probe, record in run.probes.items():
                if isinstance(record.result, Grade):
                    scores.setdefault(f"{fixture}/{probe}", []).append(record.result.overall)
    return {name: round(fmean(values), 4) for name, values in sorted(scores.items())}


def _absent(measurement: Measurement) -> set[str]:
    """Return the probes of which the session holds no fact: they ask for what nobody can keep."""
    return {
        f"{fixture}/{probe}"
        for fixture, runs in measurement.fixtures.items()
        for run in runs
        for probe, record in run.probes.items()
        if not record.in_session
    }


def _dimension(measurement: Measurement, name: str) -> float:
    values = [
        record.result.scores[name]
        for runs in measurement.fixtures.values()
        for run in runs
        for record in run.probes.values()
        if isinstance(record.result, Grade) and record.in_session
    ]
    return fmean(values) if values else math.nan


def _verdict(data: ReportData) -> Kind | None:
    """Return the verdict, if this compressor was compared with itself."""
    return data.verdict.kind if data.verdict is not None and data.same_target else None


def _preserved(data: ReportData, dimension: str) -> bool:
    """Tell whether a dimension reaches the mark, or is shown to be no worse than it was before the change."""
    if _dimension(data.candidate, dimension) >= _PRESERVED:
        return True
    return _verdict(data) in (Kind.IMPROVED, Kind.NO_DETECTABLE_CHANGE)


def _status(data: ReportData, missing: bool, preserved: bool) -> Status:
    kind = _verdict(data)
    # A compressor that does not work fails whatever it is compared with.
    if kind in _HARMFUL or (data.verdict is not None and data.verdict.kind is Kind.BROKEN):
        return "fail"
    if missing or (data.verdict is not None and data.verdict.kind in _UNDECIDED):
        return "unavailable"
    if preserved:
        return "pass"
    return "unavailable" if kind is Kind.INCONCLUSIVE else "fail"


def _tokens(data: ReportData) -> tuple[int, int]:
    """Return the tokens before and after; where nothing was compressed, all of them are still there."""
    runs = [run for records in data.candidate.fixtures.values() for run in records]
    done = [run for run in runs if run.ok]
    if done:
        return sum(run.tokens_before for run in done), sum(run.tokens_after for run in done)
    before = sum(run.tokens_before for run in runs)
    before = before or sum(count_messages(case.fixture.messages) for case in data.cases.values())
    return before, before


def _public(target: str) -> str:
    """Return a target's name without its folder, which may be somebody's home."""
    return target.replace("\\", "/").rpartition("/")[2]


def json_report(data: ReportData, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Build the report; digests that the caller passed in its environment are echoed."""
    measurement = data.candidate
    asked = {f"{name}/{probe}" for name, probes in measurement.probe_types.items() for probe in probes}
    manifest = sorted(asked - _absent(measurement))
    fixtures = json.dumps(measurement.fingerprint.fixtures, sort_keys=True)
    scores = {name: score for name, score in _scores(measurement).items() if name in manifest}
    unscored = [name for name in manifest if name not in scores]
    artifacts, continuity = _preserved(data, "artifact_trail"), _preserved(data, "continuity")
    before, after = _tokens(data)
    return {
        "schema_version": 1,
        "status": _status(data, bool(unscored), artifacts and continuity),
        "source_sha": measurement.provenance.source_sha or "",
        "fixture_digest": hashlib.sha256(fixtures.encode()).hexdigest(),
        "baseline_tokens": before,
        "compressed_tokens": after,
        "probe_scores": {name: scores.get(name, UNSCORED) for name in manifest},
        "unscored_probes": unscored,
        "probe_manifest": manifest,
        "artifact_trail_preserved": artifacts,
        "continuity_preserved": continuity,
        "model_provenance": {
            "compression_model": measurement.models["compressor"],
            "evaluator_model": measurement.models["judge"],
            "provider": "offline" if measurement.offline else measurement.models["judge"].partition("/")[0],
            "model_config": f"fingerprint {measurement.fingerprint.digest}",
        },
        "evaluator_digest": environ.get(_EVALUATOR, ""),
        "battery_digest": environ.get(_BATTERY, ""),
        # Reasons quote facts, and with them paths that the runner refuses; verdict.json holds them all.
        "verdict": data.verdict.kind if data.verdict else None,
        "not_looked_at": list(not_looked_at(data)),
        "strands": {finding.name: finding.state for finding in data.verdict.strands} if data.verdict else {},
        "baseline_target": _public(data.base.provenance.target) if data.base else None,
        "target": _public(measurement.provenance.target),
        "draft_probes": sum(measurement.drafts.values()),
    }
