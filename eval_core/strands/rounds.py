"""Rounds: which facts live, and for how long, when a session is compressed again and again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Any

import numpy as np

from eval_core.base.numbers import counted, listed, p_value, percent, pp
from eval_core.base.tokens import count_messages
from eval_core.domain.record import LineRecord, RoundsRecord, RoundState
from eval_core.domain.session_ledger import LedgerLine, SessionLedger
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.facts.verbatim import Kept
from eval_core.statistics.arms import Array
from eval_core.statistics.survival import SurvivalTest, compare_survival
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState, weigh
from eval_core.strands.recovery import read_recovery
from eval_core.strands.strand import SeenRun
from eval_core.strands.structure import structure_checks

ROUNDS_ALPHA = 0.01
"""What this test may spend, in its one look."""
MATTERS = 0.01
"""Deterministic runs differ from this share of the facts on, as with the facts of the census."""
IDLE = 0.1
"""A round that frees less than this share of the tokens was for nothing."""
_OLD_FROM = 2
"""The round, from 0, from which on there are old facts."""
_FEWEST_SESSIONS = 2
_NAMED, _KINDS = 12, 4

UNSAID, SUPERSEDED, LOST, WRITTEN, VERBATIM = "_~0sv"
"""One sign for each fact and round: not said yet; no longer holding; lost; in the compressor's own text; verbatim."""
KEPT = (WRITTEN, VERBATIM)
_LIVE = (LOST, *KEPT)


# What is recorded of a run.


def _sign(line: LedgerLine, end: int, own: Haystack, verbatim: Haystack) -> str:
    if line.said[0] >= end:
        return UNSAID
    if not line.live(end):
        return SUPERSEDED
    return VERBATIM if holds(line.fact, verbatim) else WRITTEN if holds(line.fact, own) else LOST


def _oracle(ledger: SessionLedger, cuts: Sequence[int]) -> list[float]:
    """Return what the reading itself finds of a perfect copy of everything that holds, round by round."""
    shares = []
    for end in cuts:
        live = [line for line in ledger.lines if line.live(end)]
        copy = Haystack.of("\n".join(line.text for line in live))
        shares.append(round(sum(holds(line.fact, copy) for line in live) / max(len(live), 1), 4))
    return shares


def read_rounds(seen: SeenRun) -> RoundsRecord | None:
    """Read every round of a session with a ledger; None where there are no rounds, or nobody can read the state."""
    steps, cuts, ledger = seen.compression.steps, seen.fixture.cuts, seen.ledger
    if ledger is None or len(steps) < 2 or any(step.opaque is not None for step in steps):
        return None
    rounds = []
    for step, end in zip(steps, cuts, strict=False):
        messages = seen.fixture.messages[:end]
        kept = Kept(messages, step.messages)
        checks = structure_checks(messages, step.messages, kept)
        rounds.append(
            RoundState(
                before=step.tokens_before,
                after=step.tokens_after,
                written=count_messages([{"role": "user", "content": text} for text in kept.own_texts]),
                seconds=round(step.seconds, 3),
                use=step.use,
                idle=step.tokens_after > (1 - IDLE) * step.tokens_before,
                broken=sorted(name for name, passed in checks.items() if not passed),
                fates="".join(_sign(line, end, kept.own, kept.haystack) for line in ledger.lines),
            )
        )
    facts = [
        LineRecord(
            name=line.id,
            kind=line.kind,
            value=line.anchors[0],
            message=line.said[0],
            said=sorted({sum(index >= cut for cut in cuts) for index in line.said}),
        )
        for line in ledger.lines
    ]
    return RoundsRecord(
        session=seen.fixture.name,
        facts=facts,
        rounds=rounds,
        oracle=_oracle(ledger, cuts),
        recovery=read_recovery(seen),
    )


def record_rounds(seen: SeenRun) -> Mapping[str, Any] | None:
    """Return the same as JSON."""
    found = read_rounds(seen)
    return None if found is None else found.model_dump(mode="json")


# A record read back, as the shares that are compared.


@dataclass(frozen=True)
class Played:
    """One run of one session, round by round."""

    record: RoundsRecord

    @property
    def facts(self) -> list[LineRecord]:
        """What the session establishes."""
        return self.record.facts

    @cached_property
    def fates(self) -> tuple[str, ...]:
        """The signs of each round."""
        return tuple(item.fates for item in self.record.rounds)

    @property
    def idle(self) -> int:
        """How many rounds were for nothing."""
        return sum(item.idle for item in self.record.rounds)

    def kept(self, kind: str | None = None) -> list[float]:
        """Return the share of the facts that hold which is still there, round by round; NaN where none holds."""
        return [_share(signs[at] for at in self.of_kind(kind)) for signs in self.fates]

    def age(self, fact: int, at: int) -> int:
        """Count the compressions since a fact was last said, at the end of a round."""
        return at - max((said for said in self.facts[fact].said if said <= at), default=at)

    def of_kind(self, kind: str | None) -> list[int]:
        """Return the places of the facts of a kind, or of all."""
        return [at for at, fact in enumerate(self.facts) if kind in (None, fact.kind)]

    def merged(self, kind: str | None, at: int) -> tuple[int, int]:
        """Count the facts of the summary before a round that hold on, and those of them that are there after it."""
        before, after = self.fates[at - 1], self.fates[at]
        went_in = [fact for fact in self.of_kind(kind) if before[fact] == WRITTEN and after[fact] in _LIVE]
        return len(went_in), sum(after[fact] in KEPT for fact in went_in)

    def merge(self, kind: str, first: int) -> float:
        """Return the share that merges leave, from a round on."""
        found = [self.merged(kind, at) for at in range(first, len(self.fates))]
        went_in = sum(before for before, _ in found)
        return sum(after for _, after in found) / went_in if went_in else float("nan")

    def oldest(self, kind: str) -> float:
        """Return the mean share kept of the quarter of facts that were said longest ago."""
        shares = []
        for at in range(_OLD_FROM, len(self.fates)):
            live = [fact for fact in self.of_kind(kind) if self.fates[at][fact] in _LIVE]
            live.sort(key=lambda fact: (-self.age(fact, at), fact))
            shares.append(_share(self.fates[at][fact] for fact in live[: -(-len(live) // 4)]))
        return _mean(shares)

    def lives(self) -> list[list[bool]]:
        """Return for each fact whether it is kept, for each round in which it holds."""
        return [[round_[at] in KEPT for round_ in self.fates if round_[at] in _LIVE] for at in range(len(self.facts))]


def _share(signs: Any) -> float:
    live = [sign in KEPT for sign in signs if sign in _LIVE]
    return sum(live) / len(live) if live else float("nan")


def _mean(values: Sequence[float]) -> float:
    there = [value for value in values if value == value]
    return fmean(there) if there else float("nan")


def played(records: Iterable[RoundsRecord]) -> dict[str, list[Played]]:
    """Sort records by session."""
    found: dict[str, list[Played]] = {}
    for record in records:
        found.setdefault(record.session, []).append(Played(record))
    return found


# What is compared: by kind, what is kept, what merges leave from each round on, and what becomes of the oldest.


@dataclass(frozen=True)
class _Feature:
    kind: str
    what: str
    first: int = 0
    """Of merges: the first round that counts, from 0."""

    def of(self, run: Played) -> float:
        if self.what == "merge":
            return run.merge(self.kind, self.first)
        return run.oldest(self.kind) if self.what == "oldest" else _mean(run.kept(self.kind))


def _features(sides: Sequence[Mapping[str, Sequence[Played]]]) -> list[_Feature]:
    runs = [run for side in sides for found in side.values() for run in found]
    kinds = sorted({fact.kind for run in runs for fact in run.facts})
    rounds = max(len(run.fates) for run in runs)
    return [
        feature
        for kind in kinds
        # What no side ever writes is missing, not lost.
        if any(WRITTEN in (round_[at] for round_ in run.fates) for run in runs for at in run.of_kind(kind))
        for feature in (
            _Feature(kind, "kept"),
            _Feature(kind, "oldest"),
            *(_Feature(kind, "merge", first) for first in range(1, rounds)),
        )
    ]


def _array(runs: Sequence[Played], features: Sequence[_Feature]) -> Array:
    return np.array([[feature.of(run) for feature in features] for run in runs], dtype=np.float64)


def _same(runs: Sequence[Played]) -> bool:
    return all(run.fates == runs[0].fates for run in runs)


_PLURALS = {"identifier": "identifiers", "pull_request": "pull requests", "hash": "hashes"}


def plural(kind: str) -> str:
    """Return how people call facts of a kind."""
    return _PLURALS.get(kind, f"{kind}s")


@dataclass
class _Told:
    """What is said of the rounds."""

    says: str = ""
    loss: float = 0.0
    gain: float = 0.0
    details: tuple[str, ...] = ()
    state: StrandState | None = None


def _kept_words(side: Mapping[str, Sequence[Played]], kind: str | None = None) -> str:
    """Say which share of the facts is kept, in the mean over rounds and after the last one."""
    kept = [run.kept(kind) for runs in side.values() for run in runs]
    return f"{percent(_mean([_mean(run) for run in kept]))}, at the end {percent(_mean([run[-1] for run in kept]))}"


def _kinds(
    base: Mapping[str, Sequence[Played]], candidate: Mapping[str, Sequence[Played]]
) -> list[tuple[str, str, str]]:
    """Return both sides by kind, those that moved most first."""
    found = []
    for kind in {feature.kind for feature in _features((base, candidate))}:
        before, now = (
            _mean([_mean(run.kept(kind)) for runs in side.values() for run in runs]) for side in (base, candidate)
        )
        found.append((-abs(now - before), plural(kind), _kept_words(base, kind), _kept_words(candidate, kind)))
    return [(name, before, now) for _, name, before, now in sorted(found)[:_KINDS]]


@dataclass(frozen=True)
class _Moved:
    """One fact that a deterministic candidate keeps for more or fewer rounds than the base."""

    session: str
    fact: LineRecord
    rounds: int
    first: int
    """The first round, from 1, in which the two differ."""


def _moved(session: str, base: Played, candidate: Played) -> list[_Moved]:
    found = []
    for at, (fact, before, now) in enumerate(zip(candidate.facts, base.lives(), candidate.lives(), strict=True)):
        differs = [n for n, signs in enumerate(zip(base.fates, candidate.fates, strict=True), 1)
                   if (signs[0][at] in KEPT) != (signs[1][at] in KEPT)]  # fmt: skip
        if sum(now) != sum(before):
            found.append(_Moved(session, fact, sum(now) - sum(before), differs[0]))
    return found


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _count(base: Mapping[str, Sequence[Played]], candidate: Mapping[str, Sequence[Played]]) -> _Told:
    """Compare deterministic runs by name; what weighs is for how many rounds a fact is kept."""
    moved = [item for name, runs in candidate.items() for item in _moved(name, base[name][0], runs[0])]
    total = sum(len(runs[0].facts) for runs in candidate.values())
    smallest = (
        f"smallest change that counts: {math.ceil(MATTERS * total)} of {total} facts, kept for more or fewer rounds"
    )
    if len(moved) < MATTERS * total:
        return _Told(state=StrandState.SAME, details=(smallest,))
    live = sum(len(life) for runs in candidate.values() for life in runs[0].lives())
    gained = [item for item in moved if item.rounds > 0]
    lost = sorted((item for item in moved if item.rounds < 0), key=lambda item: (item.first, item.session))
    says = f"{len(gained)} of {total} facts {_are(len(gained))} kept for more rounds"
    if lost:
        kinds = Counter(plural(item.fact.kind) for item in lost)
        which = f"{'all' if len(kinds) == 1 else 'most'} of them {kinds.most_common(1)[0][0]}, the first "
        where = f"{which if len(lost) > 1 else ''}in round {lost[0].first}"
        sooner = f"{_are(len(lost))} lost sooner when sessions are compressed again and again"
        says = f"{len(lost)} of {total} facts {sooner}, {where}"
        says += f" ({len(gained)} {_are(len(gained))} kept longer)" if gained else ""
    return _Told(
        says,
        -sum(item.rounds for item in lost) / live,
        sum(item.rounds for item in gained) / live,
        (
            smallest,
            *(
                f"round {item.first}: {item.fact.value} ({item.fact.kind.replace('_', ' ')}, {item.session}, "
                f"message {item.fact.message})"
                for item in lost[:_NAMED]
            ),
        ),
    )


def _first_round(kind: str, sides: Sequence[Mapping[str, Sequence[Played]]]) -> int | None:
    """Return the round, from 0, from which on the merges of the two sides differ: where a step fits best.

    Of medians over all runs, so that a round in which a model forgets everything does not decide it.
    """
    runs = [[run for found in side.values() for run in found] for side in sides]
    last = max(len(run.fates) for run in runs[1])
    gaps = {}
    for at in range(1, last):
        # Sessions differ in how often they are compressed.
        shares = [
            [now / was for run in side if at < len(run.fates) for was, now in [run.merged(kind, at)] if was]
            for side in runs
        ]
        if all(shares):
            gaps[at] = median(shares[0]) - median(shares[1])
    fits = {first: sum(gap for at, gap in gaps.items() if at >= first) ** 2 / (last - first) for first in gaps}
    return max(fits, key=lambda first: fits[first]) if any(fits.values()) else None


def _words(feature: _Feature, first: int | None, before: float, now: float) -> str:
    kind, change = plural(feature.kind), f"{percent(before)} → {percent(now)}"
    since = "" if first is None else f" from round {first + 1} on"
    if feature.what == "merge":
        return f"{'fewer' if now < before else 'more'} {kind} survive merging{since} ({change})"
    what = f"the oldest {kind}" if feature.what == "oldest" else kind
    return f"{'fewer' if now < before else 'more'} of {what} are kept over the rounds{since} ({change})"


def _tested(
    found: SurvivalTest,
    features: Sequence[_Feature],
    arrays: Sequence[tuple[Array, Array]],
    sides: Sequence[Mapping[str, Sequence[Played]]],
) -> _Told:
    """Put the test into words."""
    kept = [at for at, item in enumerate(features) if item.what == "kept" and np.isfinite(found.t[at])]
    smallest = pp(found.crit * float(np.mean(found.error[kept]))) if kept else "unknown"
    details = (
        f"test of all rounds at once: p {p_value(found.p)} in {counted(len(arrays), 'session')}",
        f"smallest change of the share kept of one kind that would have been seen: {smallest}",
    )
    if found.p > ROUNDS_ALPHA:
        told = StrandState.SAME if found.attainable_p <= ROUNDS_ALPHA else StrandState.CANNOT_TELL
        return _Told(details=details, state=told)
    certain = [at for at in range(len(features)) if abs(np.nan_to_num(found.t[at])) >= found.crit - 1e-9]
    named = max(certain, key=lambda at: abs(found.t[at]))
    means = [[_mean(side[:, named].tolist()) for side in pair] for pair in arrays]
    before, now = (_mean([pair[side] for pair in means]) for side in (0, 1))
    first = _first_round(features[named].kind, sides)
    others = [features[at] for at in certain if features[at].kind != features[named].kind]
    also = sorted({plural(item.kind) for item in others})
    return _Told(
        _words(features[named], first, before, now) + (f"; also {listed(also)}" if also else ""),
        max((-float(found.delta[at]) for at in certain), default=0.0),
        max((float(found.delta[at]) for at in certain), default=0.0),
        details,
    )


def _records(evidence: Evidence) -> tuple[list[RoundsRecord], list[RoundsRecord]]:
    """Return the runs of both sides: of fixtures of the suite with a ledger, and of sessions played beside it."""
    of_suite = evidence.records("rounds")
    base, candidate = ([RoundsRecord.model_validate(record) for record in side] for side in of_suite)
    beside = evidence.recorded.played_rounds if evidence.recorded is not None else None
    if beside is not None:
        base, candidate = base + beside.base, candidate + beside.candidate
    return base, candidate


def _compared(base: Mapping[str, Sequence[Played]], candidate: Mapping[str, Sequence[Played]]) -> _Told:
    if all(_same(runs) for side in (base, candidate) for runs in side.values()):
        return _count(base, candidate)
    features = _features((base, candidate))
    arrays = [(_array(base[name], features), _array(candidate[name], features)) for name in candidate]
    found = compare_survival(arrays, ROUNDS_ALPHA) if features and len(arrays) >= _FEWEST_SESSIONS else None
    if found is None:
        return _Told(state=StrandState.CANNOT_TELL)
    return _tested(found, features, arrays, (base, candidate))


def _failing(evidence: Evidence) -> _Told | None:
    """Tell of runs that the candidate does not bring to an end, where the base does."""
    beside = evidence.recorded.played_rounds if evidence.recorded is not None else None
    if beside is None or not beside.failed or beside.base_failed or not beside.base:
        return None
    runs = len(beside.failed) + len(beside.candidate)
    says = f"{len(beside.failed)} of {counted(runs, 'long run')} do not come to an end"
    return _Told(says, len(beside.failed) / runs, 0.0, tuple(beside.failed[:_NAMED]), StrandState.WORSE)


def compare_rounds(evidence: Evidence) -> Finding | None:
    """Say what became of the facts over the rounds: counted where runs are deterministic, tested where they vary."""
    base, candidate = map(played, _records(evidence))
    shared = [name for name in candidate if name in base and base[name][0].facts == candidate[name][0].facts]
    base, candidate = ({name: side[name] for name in shared} for side in (base, candidate))
    failing = _failing(evidence)
    if not shared:
        return None if failing is None else _finding(failing)
    told = failing or _compared(base, candidate)
    rounds = max(len(run.fates) for runs in candidate.values() for run in runs)
    oracle = fmean(_mean(runs[0].record.oracle) for runs in candidate.values())
    idle = [sum(run.idle for runs in side.values() for run in runs) for side in (base, candidate)]
    played_in = f"{counted(len(shared), 'session')} of up to {counted(rounds, 'round')}"
    about = [f"{played_in}; a perfect copy would score {percent(oracle)}"]
    if any(idle):
        about.append(f"rounds that freed less than {percent(IDLE)} of the tokens: {idle[0]} → {idle[1]}")
    told.details = (*about, *told.details)
    parts = [*_kinds(base, candidate), ("a perfect copy", percent(oracle), percent(oracle))]
    return _finding(told, _kept_words(base), _kept_words(candidate)).model_copy(update={"parts": tuple(parts)})


def _finding(told: _Told, base: str = "", candidate: str = "") -> Finding:
    return Finding(
        name="rounds",
        state=told.state or weigh(told.loss, told.gain),
        base=base,
        candidate=candidate,
        says=told.says,
        details=told.details,
        loss=told.loss,
        gain=told.gain,
    )
