"""Comparing a finished measurement with its base: a stored baseline, or the base that was measured in the same run.

Nothing here runs a compressor or calls a model, so that the step which publishes a result needs neither.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval_core.base.config import Config
from eval_core.base.sealing import SealingKey
from eval_core.comparing.compare import ReportData, compare_measurements, judged_alone
from eval_core.comparing.trend import cumulative_changes
from eval_core.domain.case import Case, load_suite, with_private
from eval_core.domain.history_line import HistoryLine
from eval_core.domain.measurement import Measurement
from eval_core.domain.private_probes import private_banks
from eval_core.measuring.base_branch import base_note, name_of, stale_note
from eval_core.storage.baselines import Reference, find_reference, load_side
from eval_core.storage.history import history_line, read_history
from eval_core.storage.results import BASE_FOLDER
from eval_core.strands.findings import Kind, Verdict
from eval_core.suite.adversarial import adversarial_cases


def own_base(measurement: Measurement, folder: Path | None) -> tuple[Path, Measurement] | None:
    """Return the base that a run has measured itself, if it did."""
    if folder is None or measurement.extra.base is None:
        return None
    return folder / BASE_FOLDER, load_side(folder / BASE_FOLDER)


def load_cases(
    settings: Config, root: Path, names: tuple[str, ...] | None = None, *, every_private: bool = False
) -> list[Case]:
    """Read the suite, with the private probes where they are configured and as far as their key is at hand."""
    if settings.suite == "adversarial":
        return adversarial_cases()
    cases = load_suite(root / settings.fixtures, root / settings.probes, names)
    private = settings.private_probes
    if private is None:
        return cases
    key = SealingKey.of_environment(private.key_env, os.environ)
    today = datetime.datetime.now(datetime.UTC).date()
    return with_private(cases, private_banks(private, root, key, day=today, every=every_private), private.file)


@dataclass(frozen=True)
class Base:
    """What a measurement is compared with, and the configuration that says how."""

    settings: Config
    root: Path
    compare_to: str = "auto"
    stored: Reference | None = None
    """The stored measurement that `compare_to` names."""
    own: tuple[Path, Measurement] | None = None
    """The base that was measured in the same run; it goes before a stored one."""


def find_base(
    measurement: Measurement, settings: Config, root: Path, *, compare_to: str = "auto", folder: Path | None = None
) -> Base:
    """Return what a finished measurement is compared with; `folder` holds its results, where that is known."""
    stored = find_reference(compare_to, root / settings.baselines, measurement.fingerprint)
    return Base(settings, root, compare_to, stored, own_base(measurement, folder))


def compare(base: Base, measurement: Measurement, cases: Sequence[Case]) -> ReportData:
    """Compare a measurement with its base, or say why not; a part of a run is not compared."""
    settings, suite = base.settings, {case.fixture.name: replace(case, private=None) for case in cases}
    alone = ReportData(measurement, cases=suite, task=settings.task)
    if measurement.extra.shard is not None:
        return replace(alone, note=_IN_PARTS)
    if base.own is not None:
        path, other = base.own
    elif base.stored is not None:
        path, other = base.stored.path, base.stored.measurement
    else:
        why = f"no baseline in {base.root / settings.baselines}; `compression-eval baseline update` makes one"
        why = "none was asked for" if base.compare_to == "none" else why
        return replace(alone, verdict=judged_alone(measurement), note=why)
    if base.own is not None and _never_runs(other):
        # Where both fail, nobody knows whether this change is to blame; what is new has only itself to blame.
        new = bool(settings.watch) and other.provenance.watched is None
        found_here = measurement.provenance.watched is not None
        every = all(run.ok for runs in measurement.fixtures.values() for run in runs)
        return replace(
            alone,
            verdict=judged_alone(measurement) if new else None,
            note=_nothing_there(other, new=new),
            first=new and found_here and every,
        )
    verdict, part = compare_measurements(other, measurement, accept=settings.accept)
    verdict = verdict.noted(base_note(other, measurement, path=path, in_run=base.own is not None, root=base.root))
    if base.own is not None:
        verdict = _about_baseline(verdict, base.stored, other, measurement, base.root)
    history = read_history(base.root / settings.baselines, (base.stored.path if base.stored else path).stem)
    verdict = verdict.noted(*_since_release(history, other, measurement), remark=True)
    return replace(alone, base=part, verdict=verdict, base_path=str(path), history=history, accept=settings.accept)


def _since_release(history: Sequence[HistoryLine], base: Measurement, measurement: Measurement) -> list[str]:
    """Say what has changed since the last release, where that is another commit than the base."""
    released = [line for line in history if line.release][-1:]
    now = HistoryLine.parse(history_line("", measurement))
    if now is None or not released or released[0].source_sha == base.provenance.source_sha:
        return []
    return [f"Compared with the last {found.since}: {found.change}." for found in cumulative_changes([*released, now])]


_IN_PARTS = "this is one part of a run; `compression-eval merge` puts the parts together and compares"
_LOST_BY_OTHERS = "Nothing to do in this change; look into what the base branch lost since its baseline."
_UPDATE = "`compression-eval baseline update`"


def _about_baseline(
    verdict: Verdict, found: Reference | None, base: Measurement, measurement: Measurement, root: Path
) -> Verdict:
    """Say why the base was measured in the same run, and what that means for the stored baseline."""
    if found is None:
        return verdict.noted(f"No baseline is stored; {_UPDATE} stores one, which saves measuring the base each time.")
    if not found.comparable:
        path = os.path.relpath(found.path, root)
        return verdict.noted(
            f"The stored baseline {path} has other fixtures, probes, models or settings; {_UPDATE} renews it."
        )
    if not measurement.extra.stale:
        return verdict
    note, lost = stale_note(base, measurement, left_behind=found, root=root)
    verdict = verdict.noted(note, remark=True)
    if lost and verdict.kind is Kind.NO_DETECTABLE_CHANGE:
        return verdict.model_copy(update={"next_step": _LOST_BY_OTHERS})
    return verdict


def _never_runs(base: Measurement) -> bool:
    """Tell whether the compressor of a base that was measured fails in every run, by its own fault."""
    runs = [run for found in base.fixtures.values() for run in found]
    return not base.stopped and bool(runs) and not any(run.ok or run.outcome.retryable for run in runs)


def _nothing_there(base: Measurement, *, new: bool) -> str:
    """Say that the base has no compressor, or one that never runs."""
    where = name_of(base)
    if new:
        return (
            f"there is no compressor in {where} yet (no file that `watch` names), so there is nothing to compare with"
        )
    how = " or ".join(sorted({run.outcome.words for found in base.fixtures.values() for run in found}))
    return f"the compressor of {where} {how}, in every run, so there is nothing to compare with"
