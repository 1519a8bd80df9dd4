"""Comparing a finished measurement with its base: a stored baseline, or the base that was measured in the same run.

Nothing here runs a compressor or calls a model, so that the step which publishes a result needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eval_core.base.config import Config
from eval_core.base.numbers import counted
from eval_core.comparing.compare import ReportData, compare_measurements, judged_alone
from eval_core.comparing.drift import graded_cells, sample_of
from eval_core.comparing.findings import Verdict
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement
from eval_core.measuring.base_branch import base_notes
from eval_core.storage.baselines import find_reference, load_side
from eval_core.storage.history import read_history

__all__ = ["BASE", "compare_with_base", "own_base", "with_remedy"]

BASE = "base"
"""The folder below a result that holds its own base, and the name in its extra that says so."""


def own_base(measurement: Measurement, folder: Path | None) -> Path | None:
    """Return the base that a run has measured or graded itself, if it did."""
    if folder is None or measurement.extra.get(BASE) not in ("rerun", "regraded"):
        return None
    return folder / BASE


def compare_with_base(
    measurement: Measurement,
    cases: Sequence[Case],
    *,
    settings: Config,
    root: Path,
    compare_to: str = "auto",
    folder: Path | None = None,
) -> ReportData:
    """Compare with what `compare_to` names, or with the base that the run brought along in `folder`, or say why not."""
    suite = {case.fixture.name: replace(case, private=None) for case in cases}
    baselines = root / settings.baselines
    own = own_base(measurement, folder)
    path = own
    if path is None:
        found = find_reference(compare_to, baselines, measurement.fingerprint)
        path = found.path if found else None
    if path is None:
        why = f"no baseline in {baselines}; `compression-eval baseline update` makes one"
        note = "none was asked for" if compare_to == "none" else why
        return ReportData(measurement, verdict=judged_alone(measurement), cases=suite, note=note)
    stored = load_side(path)
    verdict, base = compare_measurements(stored, measurement, accept=settings.accept)
    verdict = with_remedy(verdict, base, str(path), measurement)
    notes = base_notes(stored, measurement, path=str(path), in_run=own is not None, root=root)
    verdict = verdict.model_copy(update={"notes": (*verdict.notes, *notes)})
    history = read_history(baselines, path.stem)
    return ReportData(measurement, base=base, verdict=verdict, base_path=str(path), cases=suite, history=history)


def with_remedy(verdict: Verdict, base: Measurement, path: str, candidate: Measurement) -> Verdict:
    """Where only the judge's drift forbids a comparison, let the next step name the command that mends it."""
    if not verdict.reasons or any(reason.code != "drift" for reason in verdict.reasons):
        return verdict
    return verdict.model_copy(update={"next_step": _remedy(base, path, candidate)})


def _remedy(base: Measurement, path: str, candidate: Measurement) -> str:
    """Say how a drifted judge is mended, and what that costs, from what the sample cost."""
    calls = sum(1 for _ in graded_cells(base))
    found = sample_of(candidate)
    price = ""
    if found and found.cells and found.cost_usd is not None:
        price = f", about ${found.cost_usd / (len(found.cells) + len(found.confirming)) * calls:.2f}"
    return (
        f"Grade the baseline's stored answers again with the judge of today ({counted(calls, 'call')}{price}): "
        f"`compression-eval judge regrade {path}`, or run with --regrade-baseline."
    )
