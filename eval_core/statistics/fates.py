"""Fates: what became of each fact of a session in the runs of one side. One fact is one fact, whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eval_core.domain.measurement import Measurement
from eval_core.domain.record import PRIVATE_PLACE, CensusEntry, FactRecord, RunRecord
from eval_core.facts.haystack import fact_key

_key = lru_cache(maxsize=8192)(fact_key)


@dataclass
class Fate:
    """One fact of a session that at least one run recorded."""

    name: str
    kind: str
    """The kind of a census fact; empty for one that probes ask for."""
    messages: tuple[int, ...]
    asked_by: list[str] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    """For each run that recorded it."""
    shown: list[str] = field(default_factory=list)
    """For each run that put it at risk and recorded what the compressor's model was shown: the sign."""
    at_risk: bool = False
    """Whether a run left it to the summary."""
    reworded: bool = False
    """Whether a run that lost it may say it in other words."""

    @property
    def kept_share(self) -> float:
        """The share of runs that keep it."""
        return sum(self.kept) / len(self.kept)

    @property
    def never_shown(self) -> bool | None:
        """Whether most runs kept it from the compressor's own model; None where nobody looked."""
        return self.shown.count("0") * 2 > len(self.shown) if self.shown else None

    @property
    def shown_share(self) -> float:
        """The share of runs in which it reached the compressor's own model each time."""
        return self.shown.count("1") / max(len(self.shown), 1)

    @property
    def hidden(self) -> bool | None:
        """Whether most runs kept it from the model, or did not pass it on from an earlier summary."""
        return self.shown.count("1") * 2 < len(self.shown) if self.shown else None


def _asked(run: RunRecord) -> Iterator[tuple[str, str, FactRecord]]:
    """Yield the facts that probes ask for and the session holds, by their key and probe."""
    for probe, record in run.probes.items():
        for fact in record.facts:
            if PRIVATE_PLACE in fact.evidence:
                # Nobody is told which fact it is, so that it can be the same as no other.
                yield f"{probe} / {fact.label}", probe, fact
            elif fact.evidence:
                yield _key(fact.label), probe, fact


def _found(run: RunRecord, entries: Sequence[CensusEntry]) -> Iterator[tuple[CensusEntry, str, str]]:
    """Yield the census facts with their fate and the sign of what was shown."""
    size = len(entries)
    if len(run.census.fates) != size:
        return
    shown = run.shown.facts if run.shown is not None and len(run.shown.facts) == size else ""
    for at, entry in enumerate(entries):
        yield entry, run.census.fates[at], shown[at : at + 1]


def fates(measurement: Measurement, fixture: str) -> dict[str, Fate]:
    """Follow each fact through the runs of a fixture, by its key; what is in no message is nobody's to keep."""
    known: dict[str, Fate] = {}
    entries = measurement.census.get(fixture, [])
    for run in measurement.fixtures.get(fixture, []):
        if not run.ok:
            continue
        seen: set[str] = set()
        for key, probe, fact in _asked(run):
            fate = known.setdefault(key, Fate(fact.label, "", tuple(fact.evidence)))
            if probe not in fate.asked_by:
                fate.asked_by.append(probe)
            if key in seen:
                continue
            seen.add(key)
            fate.kept.append(fact.kept)
            fate.shown += fact.shown if fact.at_risk else ""
            fate.at_risk |= fact.at_risk
            fate.reworded |= fact.paraphrased
        for entry, sign, shown in _found(run, entries):
            fate = known.setdefault(_key(entry.value), Fate(entry.value, entry.kind, tuple(entry.messages)))
            fate.kept.append(sign != "0")
            fate.shown += shown if sign != "-" else ""
            fate.at_risk |= sign != "-"
    return known
