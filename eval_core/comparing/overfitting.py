"""Overfitting to the probes: does a compressor keep the facts that the bank asks for, and no others of their kind?

The public banks can be carried along by whoever writes a compressor. Such a compressor keeps the facts that the bank
asks for and no others, while an honest change that keeps more of a session keeps more of both. Facts are compared with
census facts of their own kinds, and then all facts, words and plain numbers included, with the whole census.
Nothing is decided by it: it is said, and people look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal, cast

from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import FactKind
from eval_core.domain.record import PRIVATE_PLACE, RunRecord
from eval_core.facts.fact_text import Haystack, infer_kind
from eval_core.facts.haystack import value_in

# On the shipped suite the gap between any two built-in compressors is at most 0.29, and that of a compressor that
# carries the banks, compared with the same compressor without them, 0.99. Of all kinds together it is at most 0.35; who
# carries a part of the banks has a smaller gap, but wins next to nothing of the census.
_GAP, _GAP_OF_ALL = 0.4, 0.5
_NOTHING_ELSE, _ALPHA_OF_NOTHING = 0.05, 0.0001
_PART = 0.2
"""Of the lost facts that probes ask for. The beginnings of everybody's prose win back 0.14."""
_UNLIKE = ("text", "number")
"""Kinds that the census has no like of."""
_ALPHA = 0.001
_FEWEST = 5  # facts of the bank got back; fewer could be anything
_ALONE_FACTS = 15
_ALONE_KEPT = 0.95


@dataclass(frozen=True)
class BankOverfitting:
    """Facts of the bank, and census facts that no probe asks for: how many, and how many are kept."""

    among: Literal["lost by the baseline", "at risk"]
    bank_kept: int
    bank: int
    census_kept: int
    census: int
    alike: bool = True
    """Whether the two are of the same kinds."""

    @property
    def words(self) -> str:
        """The finding, and what to do about it."""
        where = "that the baseline loses" if self.among == "lost by the baseline" else "at risk"
        others = "others of the same kinds" if self.alike else "others"
        return (
            f"Suspicious: of the facts {where}, {self.bank_kept} of {self.bank} that probes ask for are kept, but only "
            f"{self.census_kept} of {self.census} {others}. This is what a compressor that knows the public probes "
            "looks like: check whether the change does, or use private probes."
        )


def bank_overfitting(base: Measurement | None, candidate: Measurement) -> BankOverfitting | None:
    """Compare what became of asked and of unasked facts; None where the two fared alike, or there are too few."""
    return _overfitting(base, candidate, alike=True) or _overfitting(base, candidate, alike=False)


def _overfitting(base: Measurement | None, candidate: Measurement, *, alike: bool) -> BankOverfitting | None:
    """Compare facts of kinds that the census has with its like, or all facts with the whole census."""
    bank: list[bool] = []
    census: list[bool] = []
    for name, runs in candidate.fixtures.items():
        theirs = None if base is None else [run for run in base.fixtures.get(name, []) if run.ok]
        ours = [run for run in runs if run.ok]
        if not ours or theirs == []:
            continue
        asked, kinds = _bank_fates(theirs, ours, alike=alike)
        bank += asked
        census += _census_fates(candidate, name, theirs, ours, kinds if alike else None)
    if not bank or not census:
        return None
    among: Literal["lost by the baseline", "at risk"] = "at risk" if base is None else "lost by the baseline"
    found = BankOverfitting(among, sum(bank), len(bank), sum(census), len(census), alike)
    others, chance = found.census_kept / found.census, _chance(found)
    wide = found.bank_kept / found.bank - others >= (_GAP if alike else _GAP_OF_ALL) and chance < _ALPHA
    enough = found.bank_kept >= _PART * found.bank
    only = not alike and enough and others <= _NOTHING_ELSE and chance < _ALPHA_OF_NOTHING
    if found.bank_kept < _FEWEST or not (wide or only):
        return None
    if base is None and (found.bank < _ALONE_FACTS or found.bank_kept < _ALONE_KEPT * found.bank):
        return None  # authors ask for what matters, and what matters is kept better
    return found


def _bank_fates(
    theirs: Sequence[RunRecord] | None, ours: Sequence[RunRecord], *, alike: bool
) -> tuple[list[bool], set[FactKind]]:
    """Return whether each asked fact that could be won is kept, and the kinds of all asked facts."""
    before = None if theirs is None else _shares(theirs)
    fates: list[bool] = []
    kinds: set[FactKind] = set()
    for key, (kept, at_risk) in _shares(ours).items():
        kind = infer_kind(key)
        if alike and kind in _UNLIKE:
            continue
        kinds.add(kind)
        if at_risk if before is None else key in before and before[key][0] < 0.5:
            fates.append(kept >= 0.5)
    return fates, kinds


def _shares(runs: Sequence[RunRecord]) -> dict[str, tuple[float, bool]]:
    """Return for each public fact of the session in how many runs it is kept, and whether it was at risk in one."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    for run in runs:
        for record in run.probes.values():
            for fact in record.facts:
                if fact.evidence and PRIVATE_PLACE not in fact.evidence:
                    found.setdefault(fact.label, []).append((fact.kept, fact.at_risk))
    return {
        key: (sum(kept for kept, _ in seen) / len(seen), any(risk for _, risk in seen)) for key, seen in found.items()
    }


def _census_fates(
    candidate: Measurement,
    name: str,
    theirs: Sequence[RunRecord] | None,
    ours: Sequence[RunRecord],
    kinds: set[FactKind] | None,
) -> list[bool]:
    """Return whether each census fact of these kinds, or of any, that nobody asks for and that could be won is kept."""
    entries = candidate.census.get(name, [])
    after = [run.census.fates for run in ours if len(run.census.fates) == len(entries)]
    before = [run.census.fates for run in theirs or () if len(run.census.fates) == len(entries)]
    if not after or (theirs is not None and not before):
        return []
    labels = {fact.label for run in ours for record in run.probes.values() for fact in record.facts}
    asked = Haystack.of("\n".join(sorted(labels)))
    fates = []
    for at, entry in enumerate(entries):
        if kinds is not None and entry.kind not in kinds:
            continue
        if value_in(entry.value, infer_kind(entry.value) if kinds is None else cast(FactKind, entry.kind), asked):
            continue
        if theirs is None:
            open_ = any(signs[at] != "-" for signs in after)
        else:
            open_ = sum(signs[at] == "0" for signs in before) * 2 > len(before)
        if open_:
            fates.append(sum(signs[at] != "0" for signs in after) * 2 >= len(after))
    return fates


def _chance(found: BankOverfitting) -> float:
    """Return the chance that so many of the kept facts are the bank's, were facts kept regardless of it."""
    total, kept = found.bank + found.census, found.bank_kept + found.census_kept
    most = min(found.bank, kept)
    ways = sum(comb(found.bank, k) * comb(found.census, kept - k) for k in range(found.bank_kept, most + 1))
    return ways / comb(total, kept)
