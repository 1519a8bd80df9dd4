"""The record of a judge: its calibration on obvious cases and its audit on labelled answers, with their date."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

LEAST_AGREEMENT = 0.85
MOST_DAYS = 30
"""Providers change models behind a name; an older record is measured again."""
_LEAST_SCORED = 0.8
LEAST_SLOPE = 0.5
"""A judge that turns a point of quality into less than half a point hides changes."""
LEAST_RESPONSE = 0.35
LEAST_PROFILE = 0.25
MOST_FOR_LENGTH = 0.75
LEAST_KAPPA = 0.4
LEAST_USABLE = 0.8


@dataclass(frozen=True)
class Misranking:
    """A worse answer that was graded clearly above a better one."""

    probe: str
    better: str
    better_score: float
    worse: str
    worse_score: float

    def __str__(self) -> str:
        """Name both answers and their scores."""
        return f"{self.probe}: {self.worse} {self.worse_score:.2f} above {self.better} {self.better_score:.2f}"


@dataclass(frozen=True)
class Calibration:
    """How a judge did."""

    agreement: float | None
    """Share of the ordered pairs that were ranked right, ties counted as wrong; None when nothing was graded."""
    pairs: int
    gross: tuple[Misranking, ...]
    unscored: tuple[str, ...]
    """Answers without a grade, with the reason."""
    scored: int

    @property
    def reasons(self) -> list[str]:
        """Why the judge is not to be trusted; empty when it is."""
        reasons = []
        answers = self.scored + len(self.unscored)
        if self.scored < _LEAST_SCORED * answers:
            reasons.append(f"only {self.scored} of {answers} answers could be graded ({self.unscored[0]})")
        if self.agreement is not None and self.agreement < LEAST_AGREEMENT:
            reasons.append(f"{self.agreement:.0%} of {self.pairs} pairs ranked right, {LEAST_AGREEMENT:.0%} are needed")
        if self.gross:
            more = f" and {len(self.gross) - 1} more" if len(self.gross) > 1 else ""
            reasons.append(f"gross misranking: {self.gross[0]}{more}")
        return reasons

    @property
    def refuses(self) -> bool:
        """Whether this judge should not be used."""
        return bool(self.reasons)


@dataclass(frozen=True)
class Audit:
    """How a judge's grades compare with the labels."""

    answers: int
    usable: int
    level: float | None = None
    """Mean of grade minus label, in points."""
    slope: float | None = None
    """Points of overall grade for each point of overall label: 1 is faithful, less shrinks every change."""
    response: dict[str, float] | None = None
    """The same for each dimension alone."""
    profile: float | None = None
    """How far the differences between the dimensions of one answer follow those of the labels; 0 is pure halo."""
    length: float | None = None
    """Points that padding earns: long against short answers that say the same, less what the labels give."""
    repeat_sd: float | None = None
    """Standard deviation of the overall grade of the same answer."""
    kappa: float | None = None
    """Agreement with the labels beyond chance, larger disagreements counting more; 1 is perfect, 0 is chance."""

    @property
    def reasons(self) -> list[str]:
        """Why this judge should not be used; empty when it may."""
        if self.usable < LEAST_USABLE * self.answers:
            return [f"only {self.usable} of {self.answers} labelled answers came back with a usable grade"]
        found = []
        if (self.slope or 0.0) < LEAST_SLOPE:
            found.append(
                f"it turns a point of quality into {self.slope or 0.0:.2f} points (at least {LEAST_SLOPE:g} are"
                " needed): changes would look smaller than they are"
            )
        else:
            flat = [name for name, value in (self.response or {}).items() if value < LEAST_RESPONSE]
            if flat:
                found.append(f"it hardly responds to {', '.join(name.replace('_', ' ') for name in flat)}")
            if (self.profile or 0.0) < LEAST_PROFILE:
                found.append("it gives all six dimensions nearly the same grade (halo)")
        if (self.length or 0.0) > MOST_FOR_LENGTH:
            found.append(f"it pays {self.length:.2f} points for padding that says nothing more")
        if (self.kappa or 0.0) < LEAST_KAPPA:
            found.append(f"it agrees with people hardly beyond chance (weighted kappa {self.kappa or 0.0:.2f})")
        return found

    @property
    def refuses(self) -> bool:
        """Whether this judge should not be used."""
        return bool(self.reasons)

    @property
    def sensitivity(self) -> str:
        """Say in one sentence what a difference of grades is worth."""
        if self.slope is None:
            return "The judge's sensitivity is unknown."
        return f"A change of one point on people's scale shows as about {self.slope:.2f} points with this judge."

    def lines(self) -> list[str]:
        """Return the audit as people read it."""

        def number(value: float | None, sign: str = "") -> str:
            return "unknown" if value is None else f"{value:{sign}.2f}"

        responses = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in (self.response or {}).items())
        return [
            f"Labelled answers graded: {self.usable} of {self.answers}",
            f"Level: {number(self.level, '+')} points against the labels",
            f"Slope: {number(self.slope)} (1 is ideal; below 1, changes look smaller than they are)",
            f"Response by dimension: {responses or 'unknown'}",
            f"Profile over dimensions: {number(self.profile)} (0: all dimensions get the same grade)",
            f"Points for padding: {number(self.length, '+')}",
            f"Repeats: standard deviation {number(self.repeat_sd)} points",
            f"Agreement beyond chance: weighted kappa {number(self.kappa)}",
        ]


_Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


def _days_since(moment: str) -> int:
    return (datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(moment)).days


class JudgeRecord(BaseModel):
    """What is known of a judge, and of which model behind its name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    served: str | None
    """The model as the provider names it."""
    date: _Moment
    calibration: Calibration
    audit: Audit | None = None
    """By `judge calibrate` alone."""

    @field_validator("date")
    @classmethod
    def _in_the_calendar(cls, date: str) -> str:
        datetime.datetime.fromisoformat(date)
        return date

    @property
    def age(self) -> int:
        """Days since it was measured."""
        return _days_since(self.date)

    def fits(self, key: str, served: str | None) -> bool:
        """Tell whether it speaks of this judge, this model and this time."""
        same = served is None or self.served is None or served == self.served
        return self.key == key and same and self.age <= MOST_DAYS

    @property
    def reasons(self) -> list[str]:
        """Why this judge must not decide."""
        return [*self.calibration.reasons, *(self.audit.reasons if self.audit else ())]
