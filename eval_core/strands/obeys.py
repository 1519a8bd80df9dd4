"""Obeys: does a model that sees only the state choose and act as the session demands?

Each probe is graded by comparison, so nothing of a judge's noise is in it. The two sides are compared probe by probe:
a run's total counts, over the probes that every run of both sides answered, and runs are exchanged whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, prod
from statistics import fmean, pvariance
from typing import Any

from eval_core.base.numbers import counted, listed, p_value, percent
from eval_core.domain.measurement import Measurement, ObeyControl
from eval_core.domain.record import RunRecord
from eval_core.facts.fact_text import normalise
from eval_core.statistics.exact import fewer_total_p
from eval_core.strands.evidence import Evidence
from eval_core.strands.facts import facts_strand
from eval_core.strands.findings import Finding, StrandState

OBEYS = "obeys"
OBEYS_ALPHA = 0.01
"""What this test may spend, in both directions and with all models, over all looks; scores spend that much less."""
_NAMED = 8
_MOVED = 0.5
"""A probe is named from this change of its share of runs on."""
_LOST = (StrandState.WORSE, StrandState.BOTH)


@dataclass(frozen=True)
class _Asked:
    """One probe of one fixture, by one model: whether each run was right, on both sides."""

    fixture: str
    probe: str
    about: Mapping[str, Any]
    base: tuple[bool, ...]
    candidate: tuple[bool, ...]
    control: ObeyControl | None = None

    @property
    def change(self) -> float:
        return fmean(self.candidate) - fmean(self.base)

    @property
    def words(self) -> str:
        sides = [f"{sum(side)} of {len(side)}" for side in (self.base, self.candidate)]
        return f'"{self.about["text"]}" ({self.probe}, {self.fixture}): {" → ".join(sides)} runs'


@dataclass(frozen=True)
class _Block:
    """All probes of one fixture that every run of both sides answered."""

    asked: tuple[_Asked, ...]

    @property
    def totals(self) -> tuple[list[int], list[int]]:
        return _totals([item.base for item in self.asked]), _totals([item.candidate for item in self.asked])


@dataclass(frozen=True)
class _Model:
    """What one model makes of both sides."""

    name: str
    blocks: tuple[_Block, ...]
    left_out: tuple[str, ...]
    alpha: float
    """In one direction."""

    @cached_property
    def asked(self) -> list[_Asked]:
        return [item for block in self.blocks for item in block.asked]

    @property
    def totals(self) -> list[tuple[list[int], list[int]]]:
        return [block.totals for block in self.blocks]

    @cached_property
    def state(self) -> StrandState:
        if fewer_total_p(self.totals) <= self.alpha:
            return StrandState.WORSE
        if fewer_total_p([(_negative(base), _negative(now)) for base, now in self.totals]) <= self.alpha:
            return StrandState.BETTER
        reach = prod(1 / comb(len(base) + len(now), len(now)) for base, now in self.totals)
        return StrandState.SAME if reach <= self.alpha else StrandState.CANNOT_TELL

    @cached_property
    def shares(self) -> tuple[float, float]:
        """The share of choices and actions that are as demanded, on both sides."""
        return fmean(fmean(item.base) for item in self.asked), fmean(fmean(item.candidate) for item in self.asked)

    @cached_property
    def effect(self) -> tuple[float, float] | None:
        """The share of the effect of a restated rule that the state still has, on both sides."""
        told = [item for item in self.asked if item.control is not None and item.control.restated]
        if not told:
            return None
        return fmean(fmean(item.base) for item in told), fmean(fmean(item.candidate) for item in told)

    def moved(self, sign: int) -> list[_Asked]:
        """Return the probes that moved in one direction, the farthest first."""
        found = sorted(self.asked, key=lambda item: (sign * -item.change, item.fixture, item.probe))
        found = [item for item in found if sign * item.change > 0]
        return [item for item in found if sign * item.change >= _MOVED] or found[:1]

    @cached_property
    def smallest(self) -> int | None:
        """How many probes that no run does as demanded any more would have been seen; None where that is too many."""
        quiet = sorted(self.totals, key=lambda sides: pvariance([*sides[0], *sides[1]]))
        middles = [_middle(base, len(now)) for base, now in quiet]
        for lost in range(1, len(self.asked) + 1):
            each, over = divmod(lost, len(quiet))
            tried = [
                (base, [value - each - (at < over) for value in now])
                for at, ((base, _), now) in enumerate(zip(quiet, middles, strict=True))
            ]
            if fewer_total_p(tried) <= self.alpha:
                return lost
        return None

    @property
    def line(self) -> str:
        """What is told of the model in one line."""
        before, now = self.shares
        runs = [sum(len(side[at]) for side in self.totals) for at in (0, 1)]
        said = f"{self.name}: {percent(before)} → {percent(now)} of {len(self.asked)} choices and actions as demanded"
        said += f" ({counted(runs[0], 'run')} against {runs[1]}, p {p_value(fewer_total_p(self.totals))} for fewer)"
        if self.effect is not None:
            said += f"; effect of a restated rule that the state has: {_arrow(self.effect)}"
        if self.smallest is not None:
            said += f"; {self.smallest} of {len(self.asked)} gone in every run would have been seen"
        return said


def _totals(columns: Sequence[tuple[bool, ...]]) -> list[int]:
    return [sum(run) for run in zip(*columns, strict=True)]


def _negative(values: Sequence[int]) -> list[int]:
    return [-value for value in values]


def _middle(base: Sequence[int], count: int) -> list[int]:
    ordered = sorted(base)
    return [ordered[min(len(ordered) - 1, (2 * at + 1) * len(ordered) // (2 * count))] for at in range(count)]


def _answers(runs: Sequence[RunRecord], model: str) -> list[Mapping[str, Any]]:
    """Return what a model answered in each run in which it answered anything."""
    found = [run.strands[OBEYS]["models"].get(model, {}) for run in runs if run.ok and OBEYS in run.strands]
    return [answers for answers in found if any(entry["right"] is not None for entry in answers.values())]


def _column(answers: Sequence[Mapping[str, Any]], probe: str, asked: str) -> tuple[bool, ...] | None:
    """Return whether a probe was answered right in each run; None where a run has no answer to that wording."""
    found = [entry["right"] for item in answers if (entry := item.get(probe, {})).get("asked") == asked]
    return tuple(found) if len(found) == len(answers) and None not in found and found else None


def _control(sides: Sequence[Measurement], fixture: str, model: str, probe: str, asked: str) -> ObeyControl | None:
    for side in reversed(sides):
        controls = side.controls.get(fixture)
        found = controls.obeys.get(model, {}).get(probe) if controls is not None else None
        if found is not None and found.asked == asked:
            return found
    return None


def _read(sides: Sequence[Measurement], model: str) -> tuple[list[_Asked], list[str]]:
    """Pair the answers of both sides by probe; return them, and why others are left out."""
    base, candidate = sides
    asked, left_out = [], []
    for fixture, runs in candidate.fixtures.items():
        theirs, ours = _answers(base.fixtures.get(fixture, ()), model), _answers(runs, model)
        about: Mapping[str, Any] = next(
            (run.strands[OBEYS]["probes"] for run in runs if run.ok and OBEYS in run.strands), {}
        )
        for probe, entry in ours[0].items() if theirs and ours else ():
            control = _control(sides, fixture, model, probe, entry["asked"])
            before, now = (_column(side, probe, entry["asked"]) for side in (theirs, ours))
            if control is not None and control.left_out:
                left_out.append(f"{probe} ({fixture}): {control.left_out}")
            elif before is None or now is None:
                left_out.append(f"{probe} ({fixture}): not answered in every run of both sides")
            else:
                asked.append(_Asked(fixture, probe, about[probe], before, now, control))
    return asked, left_out


def _models(sides: Sequence[Measurement], alpha: float) -> Iterator[_Model]:
    recorded = [run.strands[OBEYS] for runs in sides[-1].fixtures.values() for run in runs if OBEYS in run.strands]
    names = list(dict.fromkeys(name for found in recorded for name in found["models"]))
    for name in names:
        asked, left_out = _read(sides, name)
        by_fixture = {item.fixture: [other for other in asked if other.fixture == item.fixture] for item in asked}
        blocks = tuple(_Block(tuple(found)) for found in by_fixture.values())
        yield _Model(name, blocks, tuple(left_out), alpha / 2 / len(names))


@dataclass(frozen=True)
class _Witnesses:
    """What other strands have found lost: the same loss is not counted twice."""

    facts: frozenset[tuple[str, str]]
    misstated: frozenset[str]

    @classmethod
    def of(cls, evidence: Evidence) -> _Witnesses:
        recorded = evidence.recorded
        assert recorded is not None
        facts = facts_strand(recorded, evidence.tested.get("facts"), evidence.culprits, evidence.rows, evidence.clear)
        lost = [item for item in recorded.facts if item.clear and item.change < 0] if facts.state in _LOST else []
        meaning = recorded.meaning
        told = meaning.misstated.named if meaning.misstated is not None and meaning.misstated.more else ()
        return cls(
            frozenset((item.fixture, normalise(item.name)) for item in lost),
            frozenset(item.value.rpartition(": ")[0] for item in told),
        )

    def of_probe(self, item: _Asked) -> str:
        """Say what else shows the same loss."""
        if item.about["line"] in self.misstated:
            return "also misstated in the summary"
        anchors = [(item.fixture, normalise(anchor)) for anchor in item.about["anchors"]]
        return "also gone from the state" if self.facts & set(anchors) else ""


def _who(models: Sequence[_Model], state: StrandState) -> str:
    """Say for which of several models it is so."""
    if len(models) == 1:
        return ""
    names = [model.name for model in models if model.state is state]
    if len(names) == len(models):
        return " for both models" if len(names) == 2 else f" for all {len(names)} models"
    return f" only for {listed(names)}"


def _says(models: Sequence[_Model], state: StrandState, witnesses: _Witnesses) -> str:
    """Say in one clause what moved in one direction."""
    moved = [model for model in models if model.state is state]
    if not moved:
        return ""
    sign = -1 if state is StrandState.WORSE else 1
    named = {(item.fixture, item.about["line"]): item for model in moved for item in model.moved(sign)}
    shown = sum(bool(witnesses.of_probe(item)) for item in named.values()) if sign < 0 else 0
    before, now = moved[0].shares
    rules = all(item.about["kind"] == "rule" for item in named.values())
    what = counted(len(named), "rule" if rules else "ledger line")
    how = "is" if len(named) == 1 else "are"
    less = "no longer acted on" if sign < 0 else "acted on more often"
    also = "" if not shown else f", {shown} of them" if shown < len(named) else ", itself" if shown == 1 else ", all"
    also += " lost or misstated as well" if shown else ""
    return f"{what} {how} {less}{_who(models, state)} (done as demanded: {percent(before)} → {percent(now)}{also})"


def _unused(sides: Sequence[Measurement]) -> Iterator[str]:
    """Say how much is in the text, and how much of it a model uses: a text search finds more than a model recalls."""
    for what, read in (("lines", _lines_held), ("expected facts", _facts_used)):
        found = [
            [pair for runs in side.fixtures.values() for run in runs if run.ok for pair in read(run)] for side in sides
        ]
        if all(found):
            held, used = ([fmean(pair[at] for pair in side) for side in found] for at in (0, 1))
            way = "stated by the answers" if read is _facts_used else "acted on"
            yield f"{what} in the text {_arrow(held)}, {way} {_arrow(used)}"


def _lines_held(run: RunRecord) -> Iterator[tuple[bool, bool]]:
    record = run.strands.get(OBEYS, {"models": {}})
    for answers in record["models"].values():
        for probe, entry in answers.items():
            if entry["right"] is not None and record["probes"][probe].get("held") is not None:
                yield record["probes"][probe]["held"], entry["right"]


def _facts_used(run: RunRecord) -> Iterator[tuple[bool, bool]]:
    for probe in run.probes.values():
        yield from ((fact.kept, bool(fact.used)) for fact in probe.facts if fact.evidence and fact.used is not None)


def _arrow(sides: Sequence[float]) -> str:
    return " → ".join(map(percent, sides))


def _details(models: Sequence[_Model], witnesses: _Witnesses) -> Iterator[str]:
    for model in models:
        yield model.line
    for model in models:
        sign = {StrandState.WORSE: -1, StrandState.BETTER: 1}.get(model.state, 0)
        for item in model.moved(sign)[:_NAMED] if sign else ():
            also = witnesses.of_probe(item) if sign < 0 else ""
            whose = f"{model.name}: " if len(models) > 1 else ""
            yield f"{whose}{item.words}{f', {also}' if also else ''}"
    left_out = sorted({reason for model in models for reason in model.left_out})
    yield from (f"left out: {reason}" for reason in left_out)


def compare_obeys(evidence: Evidence) -> Finding | None:
    """Compare what models do with the states of both sides; None where nobody was asked."""
    recorded = evidence.recorded
    if recorded is None or len(recorded.sides) < 2:
        return None
    if not any(OBEYS in run.strands for runs in recorded.sides[-1].fixtures.values() for run in runs):
        return None
    found = list(_models(recorded.sides, OBEYS_ALPHA * evidence.graded_share))
    models = [model for model in found if model.blocks]
    if not models:
        why = tuple(f"left out: {reason}" for reason in sorted({reason for item in found for reason in item.left_out}))
        return Finding(name=OBEYS, state=StrandState.NOT_RECORDED, details=why)
    witnesses = _Witnesses.of(evidence)
    states = {model.state for model in models}
    moved = states & {StrandState.WORSE, StrandState.BETTER}
    state = StrandState.BOTH if len(moved) == 2 else next(iter(moved), None)
    state = state or (StrandState.CANNOT_TELL if StrandState.CANNOT_TELL in states else StrandState.SAME)
    says = [_says(models, way, witnesses) for way in (StrandState.WORSE, StrandState.BETTER)]
    lead = next((model for model in models if model.state is StrandState.WORSE), models[0])
    return Finding(
        name=OBEYS,
        state=state,
        base=f"{percent(lead.shares[0])} as demanded",
        candidate=f"{percent(lead.shares[1])} as demanded",
        says="; ".join(filter(None, says)),
        details=(*_details(models, witnesses), *_unused(recorded.sides)),
        loss=max(_share(model, -1, witnesses) for model in models) if StrandState.WORSE in states else 0.0,
        gain=max(_share(model, 1, None) for model in models) if StrandState.BETTER in states else 0.0,
    )


def _share(model: _Model, sign: int, witnesses: _Witnesses | None) -> float:
    """Return how much moved in one direction; a loss that another strand counts is not counted here."""
    moved = [item for item in model.asked if sign * item.change > 0]
    own = [item for item in moved if witnesses is None or not witnesses.of_probe(item)]
    return sum(abs(item.change) for item in own) / len(model.asked)
