"""Survival over rounds: false alarms and power of its test, on simulated models. `python -m bench rounds`.

A model drops one in ten new facts and one in fifty of those it wrote before, in every round. In "rough" runs both vary
threefold from run to run, and one round in fifty forgets half of everything. No session is read: what is simulated is
the record of a run, which the shipped strand then compares.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

from eval_core.domain.record import LineRecord, RoundsRecord, RoundState
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import StrandState
from eval_core.strands.rounds import LOST, UNSAID, VERBATIM, WRITTEN, compare_rounds

_KINDS = {"decision": 45, "value": 33, "path": 22, "host": 15, "request": 14, "error": 14, "identifier": 13, "hash": 11}
_NEVER = {"host", "hash"}  # this model does not write them down
_SESSIONS, _ROUNDS, _BASE, _CANDIDATE = 4, 8, 4, 2

Merge = Callable[[list[int], int, random.Random], set[int]]
"""From the decisions in the summary, oldest first, and the round from 1: those that are dropped."""


def _nothing(decisions: list[int], at: int, rng: random.Random) -> set[int]:
    return set()


def _oldest(decisions: list[int], at: int, rng: random.Random) -> set[int]:
    return set(decisions[:1]) if at > 1 else set()


def _late(share: int) -> Merge:
    return lambda decisions, at, rng: set(decisions[: len(decisions) // share]) if at >= 5 else set()


_EDITS: dict[str, tuple[Merge, float]] = {
    "same against same": (_nothing, 1.0),
    "one oldest decision per merge": (_oldest, 1.0),
    "a quarter of decisions from round 5": (_late(4), 1.0),
    "an eighth of decisions from round 5": (_late(8), 1.0),
    "forgets twice as much": (_nothing, 2.0),
}


def _run(name: str, rng: random.Random, merge: Merge, forgets: float, *, rough: bool) -> RoundsRecord:
    """Simulate the record of one run."""
    plan = random.Random(name)
    kinds = [kind for kind, many in _KINDS.items() for _ in range(many)]
    plan.shuffle(kinds)
    said = sorted(plan.randrange(_ROUNDS) for _ in kinds)
    late = [plan.random() < 0.15 for _ in kinds]  # in the messages that are kept verbatim
    new, old = (0.10, 0.02 * forgets)
    if rough:
        new, old = (share * 3 ** rng.uniform(-1, 1) for share in (new, old))
    written: set[int] = set()
    rounds = []
    for at in range(_ROUNDS):
        lost = 0.5 if rough and rng.random() < 0.02 else 0.0
        written = {fact for fact in written if rng.random() >= old and rng.random() >= lost}
        decisions = sorted(fact for fact in written if kinds[fact] == "decision")
        written -= merge(decisions, at + 1, rng)
        before = {fact for fact in range(len(kinds)) if late[fact] and said[fact] == at - 1}
        fresh = {fact for fact in range(len(kinds)) if said[fact] == at and not late[fact]} | before
        written |= {fact for fact in fresh if kinds[fact] not in _NEVER and rng.random() >= new}
        signs = [
            UNSAID if said[fact] > at
            else VERBATIM if late[fact] and said[fact] == at
            else WRITTEN if fact in written
            else LOST
            for fact in range(len(kinds))
        ]  # fmt: skip
        rounds.append(RoundState(before=15_000, after=6_000, written=4_000, fates="".join(signs)))
    facts = [
        LineRecord(name=str(fact), kind=kind, value=str(fact), message=fact, said=[said[fact]])
        for fact, kind in enumerate(kinds)
    ]
    return RoundsRecord(session=name, facts=facts, rounds=rounds, oracle=[1.0] * _ROUNDS)


def _compare(seed: int, merge: Merge, forgets: float, *, rough: bool) -> tuple[bool, str]:
    rng = random.Random(seed)
    names = [f"{seed}-{n}" for n in range(_SESSIONS)]
    base = [_run(name, rng, _nothing, 1.0, rough=rough) for name in names for _ in range(_BASE)]
    candidate = [_run(name, rng, merge, forgets, rough=rough) for name in names for _ in range(_CANDIDATE)]
    found = compare_rounds(cast(Evidence, SimpleNamespace(records=lambda _: (base, candidate), recorded=None)))
    assert found is not None
    return found.state not in (StrandState.SAME, StrandState.CANNOT_TELL), found.says


def main(arguments: list[str] | None = None) -> None:
    """Print how often each edit is found, and round 5 named."""
    parser = argparse.ArgumentParser(prog="python -m bench rounds")
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    print("| edit | found | round 5 named | rough: found | round 5 named |\n|---|---|---|---|---|")
    for name, (merge, forgets) in _EDITS.items():
        cells = []
        for rough in (False, True):
            found = [_compare(given.seed + n, merge, forgets, rough=rough) for n in range(given.comparisons)]
            said = [says for seen, says in found if seen]
            cells += [f"{len(said) / len(found):.3f}"]
            cells += [f"{sum('round 5' in says for says in said) / max(len(said), 1):.2f}" if "round 5" in name else ""]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
