"""Comparing a finished measurement with its base: a stored baseline, or the base that was measured in the same run.

Nothing here runs a compressor or calls a model, so that the step which publishes a result needs neither.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eval_core.base.config import Config
from eval_core.base.numbers import counted
from eval_core.base.sealing import SealingKey
from eval_core.comparing.compare import ReportData, compare_measurements, judged_alone
from eval_core.comparing.drift import graded_cells
from eval_core.comparing.findings import Verdict
from eval_core.domain.case import Case, load_suite, with_private
from eval_core.domain.measurement import Measurement
from eval_core.domain.private_probes import private_banks
from eval_core.measuring.base_branch import base_note, stale_note
from eval_core.storage.baselines import find_reference, load_side
from eval_core.storage.history import read_history
from eval_core.storage.results import BASE_FOLDER

__all__ = ["compare_with_base", "load_cases", "own_base", "with_remedy"]


def own_base(measurement: Measurement, folder: Path | None) -> Path | None:
    """Return the base that a run has measured or graded itself, if it did."""
    return None if folder is None or measurement.extra.base is None else folder / BASE_FOLDER


def load_cases(
    settings: Config, root: Path, names: tuple[str, ...] | None = None, *, every_private: bool = False
) -> list[Case]:
    """Read the suite, with the private probes where they are configured and as far as their key is at hand."""
    cases = load_suite(root / settings.fixtures, root / settings.probes, names)
    private = settings.private_probes
    if private is None:
        return cases
    key = SealingKey.of_environment(private.key_env, os.environ)
    today = datetime.datetime.now(datetime.UTC).date()
    return with_private(cases, private_banks(private, root, key, day=today, every=every_private), private.file)


def compare_with_base(
    measurement: Measurement,
    cases: Sequence[Case],
    *,
    settings: Config,
    root: Path,
    compare_to: str = "auto",
    own: tuple[Path, Measurement] | None = None,
) -> ReportData:
    """Compare with the base of the measurement's own run, by its path and content, or with the chosen baseline."""
    suite = {case.fixture.name: replace(case, private=None) for case in cases}
    baselines = root / settings.baselines
    found = find_reference(compare_to, baselines, measurement.fingerprint)
    kept = found.path if found else None
    path = own[0] if own is not None else kept
    if path is None:
        why = f"no baseline in {baselines}; `compression-eval baseline update` makes one"
        note = "none was asked for" if compare_to == "none" else why
        alone = judged_alone(measurement)
        return ReportData(measurement, verdict=alone, cases=suite, note=note, task=settings.task)
    base = own[1] if own is not None else load_side(path)
    verdict, part = compare_measurements(base, measurement, accept=settings.accept)
    verdict = with_remedy(verdict, part, str(path), measurement)
    left_behind = kept if own is not None and measurement.extra.stale else None
    verdict = verdict.noted(base_note(base, measurement, path=path, in_run=own is not None, root=root))
    if left_behind is not None:
        verdict = verdict.noted(stale_note(base, measurement, left_behind=left_behind, root=root), remark=True)
    history = read_history(baselines, path.stem)
    return ReportData(
        measurement,
        base=part,
        verdict=verdict,
        base_path=str(path),
        cases=suite,
        history=history,
        task=settings.task,
        accept=settings.accept,
    )


def with_remedy(verdict: Verdict, base: Measurement, path: str, candidate: Measurement) -> Verdict:
    """Where only the judge's drift forbids a comparison, let the next step name the command that mends it."""
    if not verdict.reasons or any(reason.code != "drift" for reason in verdict.reasons):
        return verdict
    return verdict.model_copy(update={"next_step": _remedy(base, path, candidate)})


def _remedy(base: Measurement, path: str, candidate: Measurement) -> str:
    """Say what to do about a drifted judge, and what that costs, from what the sample cost."""
    calls = sum(1 for _ in graded_cells(base))
    found = candidate.extra.drift
    price = ""
    if found and found.cells and found.cost_usd is not None:
        price = f", about ${found.cost_usd / (len(found.cells) + len(found.confirming)) * calls:.2f}"
    return (
        f"Grade the baseline's stored answers again with the current judge ({counted(calls, 'call')}{price}): "
        f"`compression-eval judge regrade {path}`, or run with --regrade-baseline."
    )
