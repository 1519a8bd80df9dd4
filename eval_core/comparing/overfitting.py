"""Overfitting to the probes: does a compressor keep the facts that the bank asks for, and no others of their kind?

The public banks can be carried along by whoever writes a compressor. Such a compressor keeps the facts that the bank
asks for and no others of the same kind, while an honest change that keeps more of a session keeps more of both.
Nothing is decided by it: it is said, and people look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Literal

from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import FactKind
from eval_core.domain.record import PRIVATE_PLACE, RunRecord
from eval_core.evidence.facts import Haystack, infer_kind, value_in

__all__ = ["BankOverfitting", "bank_overfitting"]

# On the shipped suite the gap between any two built-in compressors is at most 0.29, and that of a compressor that
# carries the banks, compared with the same compressor without them, 0.99.
_GAP = 0.4
_ALPHA = 0.001
_FEWEST = 5  # facts of the bank got back; fewer could be anything
_ALONE_FACTS = 15
_ALONE_KEPT = 0.95


@dataclass(frozen=True)
class BankOverfitting:
    """Facts of the bank, and census facts of the same kinds that no probe asks for: how many, and how many are kept."""

    among: Literal["lost by the baseline", "at risk"]
    bank_kept: int
    bank: int
    census_kept: int
    census: int

    @property
    def words(self) -> str:
        """The finding, and what to do about it."""
        where = "that the baseline loses" if self.among == "lost by the baseline" else "at risk"
        return (
            f"Suspicious: of the facts {where}, {self.bank_kept} of {self.bank} that probes ask for are kept, but only "
            f"{self.census_kept} of {self.census} others of the same kinds. This is what a compressor that "
            "knows the public probes looks like: check whether the change does, or use private probes."
        )


def bank_overfitting(base: Measurement | None, candidate: Measurement) -> BankOverfitting | None:
    """Compare what became of asked and of unasked facts; None where the two fared alike, or there are too few."""
    bank: list[bool] = []
    census: list[bool] = []
    for name, runs in candidate.fixtures.items():
        theirs = None if base is None else [run for run in base.fixtures.get(name, []) if run.ok]
        ours = [run for run in runs if run.ok]
        if not ours or theirs == []:
            continue
        asked, kinds = _bank_fates(theirs, ours)
        bank += asked
        census += _census_fates(candidate, name, theirs, ours, kinds)
    if not bank or not census:
        return None
    among: Literal["lost by the baseline", "at risk"] = "at risk" if base is None else "lost by the baseline"
    found = BankOverfitting(among, sum(bank), len(bank), sum(census), len(census))
    gap = found.bank_kept / found.bank - found.census_kept / found.census
    if gap < _GAP or found.bank_kept < _FEWEST or _chance(found) >= _ALPHA:
        return None
    if base is None and (found.bank < _ALONE_FACTS or found.bank_kept < _ALONE_KEPT * found.bank):
        return None  # authors ask for what matters, and what matters is kept better
    return found


def _bank_fates(theirs: Sequence[RunRecord] | None, ours: Sequence[RunRecord]) -> tuple[list[bool], set[FactKind]]:
    """Return whether each asked fact that could be won is kept, and the kinds of all asked facts."""
    before = None if theirs is None else _shares(theirs)
    fates: list[bool] = []
    kinds: set[FactKind] = set()
    for key, (kept, at_risk) in _shares(ours).items():
        kind = infer_kind(key[1])
        if kind in ("text", "number"):
            continue  # of these the census has no like
        kinds.add(kind)
        if at_risk if before is None else key in before and before[key][0] < 0.5:
            fates.append(kept >= 0.5)
    return fates, kinds


def _shares(runs: Sequence[RunRecord]) -> dict[tuple[str, str], tuple[float, bool]]:
    """Return for each public fact of the session in how many runs it is kept, and whether it was at risk in one."""
    found: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for run in runs:
        for probe, record in run.probes.items():
            for fact in record.facts:
                if fact.evidence and PRIVATE_PLACE not in fact.evidence:
                    found.setdefault((probe, fact.label), []).append((fact.kept, fact.at_risk))
    return {
        key: (sum(kept for kept, _ in seen) / len(seen), any(risk for _, risk in seen)) for key, seen in found.items()
    }


def _census_fates(
    candidate: Measurement,
    name: str,
    theirs: Sequence[RunRecord] | None,
    ours: Sequence[RunRecord],
    kinds: set[FactKind],
) -> list[bool]:
    """Return whether each census fact of these kinds that nobody asks for, and that could be won, is kept."""
    entries = candidate.census.get(name, [])
    after = [run.census.fates for run in ours if len(run.census.fates) == len(entries)]
    before = [run.census.fates for run in theirs or () if len(run.census.fates) == len(entries)]
    if not after or (theirs is not None and not before):
        return []
    labels = {fact.label for run in ours for record in run.probes.values() for fact in record.facts}
    asked = Haystack.of("\n".join(sorted(labels)))
    fates = []
    for at, entry in enumerate(entries):
        kind = next((kind for kind in kinds if kind == entry.kind), None)
        if kind is None or value_in(entry.value, kind, asked):
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
