"""Control runs: a few runs of the base, measured today, show how far models have moved since the baseline.

Providers change models behind a name, and judges grade a little differently from one day to the next. Runs of the base
made today show by how much. They are few, so that their mean is mostly luck: the shift is believed as far as it is
larger than its own error, and the doubt that is left widens every interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eval_core.base.numbers import counted, signed
from eval_core.domain.extra import ControlRuns
from eval_core.domain.measurement import Measurement
from eval_core.statistics.arms import Arm
from eval_core.statistics.hypotheses import OVERALL, SCORE_HYPOTHESES, score_blocks
from eval_core.statistics.permutation import Shift, permute

DAY_SD = 0.1
"""By how many points all grades usually differ between two days."""
LARGE = 0.3
"""From this shift on, and surely, it is other models and not another day."""
SURE = 3.0


@dataclass(frozen=True)
class ControlShift:
    """What the control says about today."""

    shift: Shift
    """To be taken off the candidate's scores."""
    seen: float
    """The overall shift of the control runs, as it was measured."""
    se: float
    runs: int

    @property
    def changed(self) -> bool:
        """Whether these are not the models that the baseline was measured with."""
        return abs(self.seen) >= LARGE and abs(self.seen) >= SURE * self.se

    @property
    def _found(self) -> str:
        return f"{counted(self.runs, 'run')} of the base made today, {signed(self.seen)} overall"

    @property
    def says(self) -> str:
        """Say why scores are not compared."""
        return f"the models have changed since the baseline ({self._found})"

    @property
    def note(self) -> str:
        """Say what was done about it."""
        if self.changed:
            return f"{self.says[0].upper()}{self.says[1:]}: scores are not compared. Measure the baseline again."
        points = signed(self.shift.points[OVERALL])
        return f"Shift since the baseline was measured: {self._found}; {points} is subtracted."


def control_shift(base: Arm, control: Arm) -> ControlShift | None:
    """Compare the control runs with the baseline; None where nothing was graded on both sides."""
    blocks = score_blocks(base, control)
    result = permute(blocks, SCORE_HYPOTHESES, alpha=0.05, limit=1)
    if result is None:
        return None
    points, errors = {}, {}
    for item in result.hypotheses:
        # The mean of a normal effect given one noisy look at it, and what is still unknown of it.
        trust = DAY_SD**2 / (DAY_SD**2 + item.se**2)
        points[item.name] = trust * item.tested
        errors[item.name] = math.sqrt(trust) * item.se
    overall = next(item for item in result.hypotheses if item.name == OVERALL)
    runs = sum(block.candidate_runs for block in blocks)
    return ControlShift(Shift(points, errors), overall.tested, overall.se, runs)


def keep_control(measurement: Measurement) -> ControlRuns:
    """Return what a candidate's measurement keeps of its control."""
    fixtures = {
        name: [run.model_copy(update={"messages": []}) for run in runs] for name, runs in measurement.fixtures.items()
    }
    return ControlRuns(fixtures=fixtures, source_sha=measurement.provenance.source_sha)


def control_of(measurement: Measurement) -> Measurement | None:
    """Return the control that a measurement brought along."""
    found = measurement.extra.control
    if found is None:
        return None
    runs = max((len(records) for records in found.fixtures.values()), default=0)
    return measurement.model_copy(
        update={"fixtures": found.fixtures, "planned_runs": runs, "planned_compress_runs": max(1, runs)}
    )
