"""`report.json`: the machine-readable result that an agent project's own eval runner reads."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from eval_core.comparing.compare import ReportData
from eval_core.comparing.findings import Kind
from eval_core.domain.grade import Grade
from eval_core.domain.measurement import Measurement

__all__ = ["contract"]

_PRESERVED = 3.0  # a dimension whose mean reaches the pass mark counts as preserved


def _scores(measurement: Measurement) -> dict[str, float]:
    scores: dict[str, list[float]] = {}
    for fixture, runs in measurement.fixtures.items():
        for run in runs:
            for probe, record in run.probes.items():
                if isinstance(record.result, Grade):
                    scores.setdefault(f"{fixture}/{probe}", []).append(record.result.overall)
    return {name: round(fmean(values), 4) for name, values in sorted(scores.items())}


def _dimension(measurement: Measurement, name: str) -> float:
    values = [
        record.result.scores[name]
        for runs in measurement.fixtures.values()
        for run in runs
        for record in run.probes.values()
        if isinstance(record.result, Grade)
    ]
    return fmean(values) if values else math.nan


def _status(data: ReportData, scores: dict[str, float]) -> str:
    kind = data.verdict.kind if data.verdict else None
    if kind is Kind.BROKEN:
        return "fail"
    if not scores or kind in (Kind.INCOMPLETE, Kind.NOT_COMPARABLE):
        return "unavailable"
    return "fail" if kind in (Kind.REGRESSED, Kind.MIXED) else "pass"


def contract(data: ReportData, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Build the report; digests that the caller passed in its environment are echoed."""
    measurement = data.candidate
    manifest = sorted(f"{name}/{probe}" for name, probes in measurement.probe_types.items() for probe in probes)
    runs = [run for records in measurement.fixtures.values() for run in records if run.ok]
    fixtures = json.dumps(measurement.fingerprint.fixtures, sort_keys=True)
    scores = _scores(measurement)
    return {
        "schema_version": 1,
        "status": _status(data, scores),
        "source_sha": measurement.provenance.source_sha or "",
        "fixture_digest": hashlib.sha256(fixtures.encode()).hexdigest(),
        "baseline_tokens": sum(run.tokens_before for run in runs),
        "compressed_tokens": sum(run.tokens_after for run in runs),
        "probe_scores": scores,
        "probe_manifest": manifest,
        "artifact_trail_preserved": _dimension(measurement, "artifact_trail") >= _PRESERVED,
        "continuity_preserved": _dimension(measurement, "continuity") >= _PRESERVED,
        "model_provenance": {
            "compression_model": measurement.models["compressor"],
            "evaluator_model": measurement.models["judge"],
            "provider": "offline" if measurement.offline else measurement.models["judge"].partition("/")[0],
            "model_config": f"fingerprint {measurement.fingerprint.digest}",
        },
        "evaluator_digest": environ.get("HERMES_EVALUATOR_DIGEST", ""),
        "battery_digest": environ.get("HERMES_BATTERY_DIGEST", ""),
        "verdict": data.verdict.model_dump(mode="json") if data.verdict else None,
    }
