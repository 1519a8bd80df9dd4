"""Whether a judge may decide: its calibration, paid for once and kept by judge and data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from eval_core.errors import UserError
from eval_core.files import digest, pretty, read_json, write_atomic
from eval_core.judge.calibration import LEAST_AGREEMENT, Calibration, calibrate, calibration_set
from eval_core.judge.grade import Judge
from eval_core.measurement import Measurement

__all__ = ["CALIBRATION", "calibration_key", "find_calibration", "keep_calibration", "misranks", "trusted"]

CALIBRATION = "calibration"
"""The folder below the results, and the name in a measurement's extra."""
_FORM = TypeAdapter(Calibration)


def calibration_key(judge: Judge) -> str:
    """Return what identifies a calibration: the judge, its rubric and sampling, and the data."""
    return digest({"judge": judge.identity, "data": calibration_set().digest})


def _read(value: Any) -> Calibration | None:
    try:
        return _FORM.validate_python(value)
    except ValidationError:
        return None  # of another version: calibrate again


def find_calibration(key: str, results: Path, measurements: Iterable[Measurement]) -> Calibration | None:
    """Return a calibration that was paid for before: of a stored baseline or an earlier run."""
    for measurement in measurements:
        kept = measurement.extra.get(CALIBRATION)
        if isinstance(kept, Mapping) and kept.get("key") == key and (found := _read(kept.get("result"))):
            return found
    path = results / CALIBRATION / f"{key}.json"
    try:
        return _read(read_json(path)) if path.exists() else None
    except UserError:
        return None


def keep_calibration(key: str, results: Path, calibration: Calibration) -> dict[str, Any]:
    """Keep a calibration beside the results and return what a measurement keeps of it.

    One with missing grades is not kept on disk: an outage says nothing about the judge.
    """
    body = _FORM.dump_python(calibration, mode="json")
    if not calibration.unscored:
        write_atomic(results / CALIBRATION / f"{key}.json", pretty(body))
    return {"key": key, "result": body}


def misranks(calibration: Calibration) -> list[str]:
    """Return why the judge's order of plain cases is wrong; outages are no reason."""
    return replace(calibration, unscored=()).reasons if calibration.pairs else []


async def trusted(
    judge: Judge, results: Path, measurements: Iterable[Measurement], *, anyway: bool = False
) -> dict[str, Any] | None:
    """Calibrate a judge, unless that was done before, and refuse one that misranks plain cases."""
    key = calibration_key(judge)
    found = find_calibration(key, results, measurements)
    if found is None and anyway:
        return None
    calibration = found or await calibrate(judge)
    kept = keep_calibration(key, results, calibration)
    reasons = misranks(calibration)
    if reasons and not anyway:
        raise UserError(
            f"the judge {judge.identity['model']} is not fit to decide: {'; '.join(reasons)}. At least "
            f"{LEAST_AGREEMENT:.0%} of the plain cases and no gross error are needed: name another --judge-model, "
            "or go on all the same with --trust-judge (`compression-eval judge calibrate` shows the cases)"
        )
    return kept
