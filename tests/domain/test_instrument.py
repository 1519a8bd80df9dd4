"""Measured values and the instrument version change together, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from eval_core.base.files import digest
from eval_core.domain.fingerprint import INSTRUMENT_VERSION
from eval_core.domain.grade import Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord

GOLDEN = Path(__file__).parent / "instrument.json"


def values_of(run: RunRecord) -> dict[str, object]:
    """Return what was measured of one run, without texts that people may reword."""
    return {
        "outcome": run.outcome.value,
        "tokens": [run.tokens_before, run.tokens_after],
        "verbatim": run.verbatim,
        "census": [run.census.total, run.census.at_risk, run.census.lost],
        "structure": run.structure,
        "facts": {
            name: [(fact.kept, fact.at_risk, fact.used) for fact in probe.facts] for name, probe in run.probes.items()
        },
        "scores": {name: probe.result.scores for name, probe in run.probes.items() if isinstance(probe.result, Grade)},
    }


def test_values_change_only_with_the_instrument_version(shipped_runs: Callable[[str], Measurement]) -> None:
    measured = {
        strategy: {name: digest(values_of(runs[0]))[:16] for name, runs in shipped_runs(strategy).fixtures.items()}
        for strategy in ("anchored", "opaque")
    }
    found = {"version": INSTRUMENT_VERSION, "values": measured}
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert found == golden, (
        "measured values have changed. If intended, raise INSTRUMENT_VERSION, run this test with UPDATE_GOLDEN=1,"
        " and renew the shipped baseline with `compression-eval baseline update`"
    )
