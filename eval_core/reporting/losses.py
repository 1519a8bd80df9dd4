"""Facts lost and gained: which, in which messages they were, and whether the baseline still had them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from eval_core.comparing.tested import Options
from eval_core.domain.grade import PASS_SCORE, Grade, Unscored
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import PRIVATE_PLACE, RunRecord
from eval_core.statistics.arms import quarantined
from eval_core.statistics.fates import fates
from eval_core.strands.findings import Verdict

# Where in a session something was, in words.


def places(evidence: Sequence[int]) -> str:
    """Name the first few messages that establish a fact."""
    if not evidence:
        return "message unknown"
    if PRIVATE_PLACE in evidence:
        return "message private"
    shown = ", ".join(str(index) for index in evidence[:3])
    return f"message{'s' if len(evidence) > 1 else ''} {shown}{' …' if len(evidence) > 3 else ''}"


# Which facts were lost, where they were, and whether the baseline still had them.


@dataclass(frozen=True)
class LostFact:
    """One expected fact and how often each side kept it."""

    fixture: str
    probe: str
    fact: str
    evidence: tuple[int, ...]
    kept: float
    base_kept: float | None
    runs: int = 0
    """Runs of this side that could have kept it."""
    why: str = ""
    """Whether it may be said in other words, or whether the compressor's own model was shown it, where known."""

    @property
    def change(self) -> float:
        """How much more often it is kept than in the baseline; without one, than always."""
        return self.kept - (1.0 if self.base_kept is None else self.base_kept)


PARAPHRASED = "possibly paraphrased"
_MOST_PROBES = 2


def _who(asked_by: Sequence[str], kind: str) -> str:
    """Name the probes that ask for a fact, or the kind of one that nobody asks for."""
    if not asked_by:
        return kind.replace("_", " ")
    more = len(asked_by) - _MOST_PROBES
    return ", ".join(asked_by[:_MOST_PROBES]) + (f" and {more} more" if more > 0 else "")


def lost_facts(candidate: Measurement) -> list[LostFact]:
    """Return the facts asked for that are not kept in every run, worst first; there is no baseline."""
    rows = [
        LostFact(
            fixture=fixture,
            probe=_who(fate.asked_by, fate.kind),
            fact=fate.name,
            evidence=fate.messages,
            kept=fate.kept_share,
            base_kept=None,
            runs=len(fate.kept),
            why=PARAPHRASED if fate.reworded else "",
        )
        for fixture in candidate.fixtures
        for fate in fates(candidate, fixture).values()
        if fate.asked_by and fate.kept_share < 1
    ]
    return sorted(rows, key=lambda row: (row.change, row.fixture, row.probe, row.fact))


def named_facts(verdict: Verdict) -> list[LostFact]:
    """Return the facts that moved for certain, worst first; what may be chance is only counted."""
    return [
        LostFact(
            fixture=item.fixture,
            probe=_who(item.asked_by, item.kind),
            fact=item.name,
            evidence=item.messages,
            kept=item.candidate_kept / item.candidate_runs,
            base_kept=item.base_kept / item.base_runs,
            runs=item.candidate_runs,
            why=PARAPHRASED if item.reworded and item.change < 0 else item.shown or "",
        )
        for item in verdict.facts
        if item.clear
    ]


@dataclass(frozen=True)
class Miss:
    """A probe that scores below the pass mark, and why."""

    fixture: str
    probe: str
    overall: float
    reason: str


def _why(runs: list[RunRecord], probe: str) -> str:
    records = [run.probes[probe] for run in runs if probe in run.probes]
    lost: dict[str, list[int]] = {}
    reworded: set[str] = set()
    ignored: list[str] = []
    for record in records:
        for fact in record.facts:
            if not fact.evidence:
                continue
            if not fact.kept:
                lost.setdefault(fact.label, fact.evidence)
                reworded |= {fact.label} if fact.paraphrased else set()
            elif fact.used is False:
                ignored.append(fact.label)
    parts = []
    if lost:
        named = [
            f"{label} ({places(evidence)}{f', {PARAPHRASED}' if label in reworded else ''})"
            for label, evidence in lost.items()
        ]
        parts.append("lost in compression: " + ", ".join(named))
    if kept := [label for label in dict.fromkeys(ignored) if label not in lost]:
        parts.append("kept but not used by the answer: " + ", ".join(kept))
    if not parts and records:
        results = [record.result for record in records]
        parts.append(next((result.reason for result in results if isinstance(result, Grade) and result.reason), ""))
    return "; ".join(parts) or "the judge gave no reason"


def misses(measurement: Measurement) -> list[Miss]:
    """Return the probes whose median overall score is below the pass mark, worst first, without quarantined ones."""
    banned = quarantined(measurement)
    rows = []
    for fixture, runs in measurement.fixtures.items():
        graded = [run for run in runs if run.graded and run.ok]
        for probe in measurement.probe_types.get(fixture, {}):
            results = [run.probes[probe].result for run in graded if probe in run.probes]
            scores = [result.overall for result in results if isinstance(result, Grade)]
            if (fixture, probe) not in banned and scores and (value := median(scores)) < PASS_SCORE:
                rows.append(Miss(fixture, probe, value, _why(graded, probe)))
    return sorted(rows, key=lambda row: (row.overall, row.fixture, row.probe))


def unscored(measurement: Measurement) -> dict[str, int]:
    """Count the reasons for which cells have no score: outages and outcomes, never zeros."""
    reasons: dict[str, int] = {}
    for runs in measurement.fixtures.values():
        for run in runs:
            if not run.ok:
                reason = ": ".join(filter(None, [f"the compressor {run.outcome.words}", run.detail]))
                reasons[reason] = reasons.get(reason, 0) + 1
            for record in run.probes.values():
                if isinstance(record.result, Unscored):
                    reasons[record.result.reason] = reasons.get(record.result.reason, 0) + 1
    return dict(sorted(reasons.items(), key=lambda item: -item[1]))


def outage(measurement: Measurement) -> str | None:
    """Say what providers left unanswered, if it is more than a comparison would forgive."""
    planned = missing = 0
    reasons: dict[str, int] = {}
    for runs in measurement.fixtures.values():
        for run in runs:
            records = run.probes.values() if run.graded else ()
            cells = len(records) or 1
            planned += cells
            lost = [record.result.reason for record in records if isinstance(record.result, Unscored)]
            if run.outcome.retryable:
                lost = [run.detail] * cells
            missing += len(lost)
            for reason in lost:
                reasons[reason] = reasons.get(reason, 0) + 1
    if not planned or missing <= (1 - Options().coverage_floor) * planned:
        return None
    worst = max(reasons, key=lambda reason: reasons[reason])
    return f"{missing} of {planned} cells are missing because of the provider ({worst})"


def doubts(measurement: Measurement) -> dict[str, int]:
    """Count where the judge and the facts tell different stories, by probe."""
    found: dict[str, int] = {}
    for fixture, runs in measurement.fixtures.items():
        for run in runs:
            for probe, record in run.probes.items():
                for flag in record.result.flags if isinstance(record.result, Grade) else ():
                    line = f"{fixture} / {probe}: {flag}"
                    found[line] = found.get(line, 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
