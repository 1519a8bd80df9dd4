"""The history of a baseline: one line for each update, with the means of its runs, oldest first."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from eval_core.base.files import read_text, write_atomic
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.history_line import ALL_FACTS, FACTS_KEPT, HistoryLine
from eval_core.domain.measurement import Measurement

HISTORY = "history.jsonl"
_CONFLICT = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
_LOG = logging.getLogger(__name__)


def append_history(
    folder: Path, name: str, measurement: Measurement, *, verdict: str | None = None, release: str | None = None
) -> None:
    """Add one line about an updated baseline, for the trend.

    `verdict` is what it was found to be against the one it replaces, `release` the name of the release that it is.
    """
    line = {
        **history_line(name, measurement),
        **({"verdict": verdict} if verdict else {}),
        **({"release": release} if release else {}),
    }
    path = folder / HISTORY
    before = read_text(path) if path.exists() else ""
    before += "" if not before or before.endswith("\n") else "\n"
    write_atomic(path, before + json.dumps(line, ensure_ascii=False) + "\n")


def history_line(name: str, measurement: Measurement) -> dict[str, Any]:
    """Return what the history keeps of a measurement."""
    return {
        "date": measurement.provenance.date,
        "baseline": name,
        "target": measurement.provenance.target,
        "source_sha": measurement.provenance.source_sha,
        "fingerprint": measurement.fingerprint.digest[:12],
        "judged": measurement.judged,
        "overall": mean_of(grade.overall for grade in grades_of(measurement)),
        **{dim: mean_of(grade.scores[dim] for grade in grades_of(measurement)) for dim in DIMENSIONS},
        "counted": ALL_FACTS,
        "facts_kept": None if (kept := measurement.facts_kept) is None else round(kept, 4),
        "tokens": mean_of(float(run.tokens_after) for runs in measurement.fixtures.values() for run in runs if run.ok),
        "cost_usd": _cost(measurement),
        "runs": run_means(measurement),
    }


def _cost(measurement: Measurement) -> float | None:
    """Return what the measurement cost; None where a price is unknown."""
    usd = measurement.spent.cost_usd
    return None if usd is None else round(usd, 4)


def run_means(measurement: Measurement) -> dict[str, dict[str, list[float]]]:
    """Return for each fixture what a history line keeps of its runs: overall grades and shares of facts kept."""
    found: dict[str, dict[str, list[float]]] = {}
    for fixture, runs in measurement.fixtures.items():
        rows = [run for run in runs if run.ok and run.probes]
        grades = [
            [record.result.overall for record in run.probes.values() if isinstance(record.result, Grade)]
            for run in rows
        ]
        found[fixture] = {
            "overall": [round(sum(scores) / len(scores), 4) for scores in grades if scores],
            FACTS_KEPT: [
                round(share, 4) for run in rows if run.size is not None and (share := run.size.share) is not None
            ],
        }
    return found


def read_history(folder: Path, name: str | None = None) -> list[HistoryLine]:
    """Return the lines of one baseline or of all; what cannot be read is left out, and the log says so."""
    lines = []
    for number, line, problem in _lines(folder):
        if line is None:
            # A merge that left its marks must not cost the whole trend, nor pass unseen.
            _LOG.warning("%s, line %d: %s; it is skipped, remove it", folder / HISTORY, number, problem)
        elif name in (None, line.baseline):
            lines.append(line)
    return lines


def _lines(folder: Path) -> Iterator[tuple[int, HistoryLine | None, str]]:
    path = folder / HISTORY
    for number, text in enumerate(read_text(path).splitlines() if path.exists() else (), 1):
        if not text.strip():
            continue
        try:
            line = parse_json(text)
        except BadJson as exc:
            marker = text.startswith(_CONFLICT)
            yield number, None, "a merge conflict marker" if marker else f"not a JSON object ({exc})"
            continue
        if not isinstance(line, dict):
            yield number, None, "not a JSON object"
        elif (found := HistoryLine.parse(line)) is None:
            yield number, None, "an object without date and baseline"
        else:
            yield number, found, ""


def grades_of(measurement: Measurement) -> Iterator[Grade]:
    """Yield the grades of all probes that are not quarantined."""
    for fixture, runs in measurement.fixtures.items():
        controls = measurement.controls.get(fixture)
        banned = {name for name, control in controls.probes.items() if control.quarantined} if controls else set()
        for run in runs:
            for probe, record in run.probes.items():
                if isinstance(record.result, Grade) and probe not in banned:
                    yield record.result


def mean_of(values: Iterable[float]) -> float | None:
    """Return the mean as the history keeps it; None of nothing."""
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 4) if numbers else None


def source_release(tree: Path, sha: str | None) -> str | None:
    """Return the tag of a commit, the highest version of several; None where it has none or this is not in git."""
    if sha is None:
        return None
    command = ["git", "-C", str(tree), "tag", "--points-at", sha, "--sort=-version:refname"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return next(iter(done.stdout.splitlines()), None) if done.returncode == 0 else None
