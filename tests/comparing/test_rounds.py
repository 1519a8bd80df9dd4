"""Rounds: what is recorded of each, what counts as a loss where runs repeat, and what is tested where they vary."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from eval_core.compressors.summary import AnchoredSummary
from eval_core.domain.case import Case
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.record import LineRecord, RoundsRecord, RoundState
from eval_core.facts.verbatim import Kept
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.statistics.arms import Arm
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.rounds import Played, compare_rounds, read_rounds
from eval_core.strands.strand import SeenRun
from eval_core.suite.generate import SessionPlan, generate

Change = Callable[[int, list[int]], set[int]]
"""From the round, from 0, and the decisions in the summary, oldest first: those that a merge drops."""


def _simulated(session: str, rng: random.Random | None, change: Change = lambda at, kept: set()) -> RoundsRecord:
    """Return a run of 8 rounds in which a model drops some of the new and of the old lines."""
    kinds = ["decision"] * 40 + ["value"] * 30 + ["error"] * 10
    said = [at % 8 for at in range(len(kinds))]
    chance = (lambda: 1.0) if rng is None else rng.random
    written: set[int] = set()
    rounds = []
    for at in range(8):
        written = {fact for fact in written if chance() >= 0.02}
        written -= change(at, sorted(fact for fact in written if kinds[fact] == "decision"))
        written |= {fact for fact in range(70) if said[fact] == at and chance() >= 0.1}
        signs = ("_" if said[fact] > at else "s" if fact in written else "0" for fact in range(len(kinds)))
        rounds.append(RoundState(before=15_000, after=6_000, written=4_000, fates="".join(signs)))
    facts = [
        LineRecord(name=f"{kind}-{at}", kind=kind, value=f"value_{at}", message=at, said=[said[at]])
        for at, kind in enumerate(kinds)
    ]
    return RoundsRecord(session=session, facts=facts, rounds=rounds, oracle=[1.0] * 8)


def _oldest(at: int, kept: list[int]) -> set[int]:
    return set(kept[:1]) if at else set()


def _late(at: int, kept: list[int]) -> set[int]:
    return set(kept[: len(kept) // 4]) if at >= 4 else set()


def _sides(
    seed: int | None, change: Change, *, base: int = 4, candidate: int = 2, sessions: int = 4
) -> tuple[list[RoundsRecord], list[RoundsRecord]]:
    rng = None if seed is None else random.Random(seed)
    names = [f"session-{n}" for n in range(sessions)]
    return (
        [_simulated(name, rng) for name in names for _ in range(base)],
        [_simulated(name, rng, change) for name in names for _ in range(candidate)],
    )


def _compare(base: Sequence[RoundsRecord], candidate: Sequence[RoundsRecord], **more: list[str]) -> Finding | None:
    played = PlayedRounds(base=list(base), candidate=list(candidate), **more)
    recorded = cast(Recorded, SimpleNamespace(played_rounds=played, sides=()))
    return compare_rounds(Evidence(Arm("a", {}), Arm("b", {}), recorded))


def test_one_fact_is_told_as_one() -> None:
    def played(fates: list[str]) -> RoundsRecord:
        rounds = [RoundState(before=900, after=300, written=200, fates=signs) for signs in fates]
        facts = [LineRecord(name=f"d{n}", kind="decision", value=f"d{n}", message=n, said=[0]) for n in range(2)]
        return RoundsRecord(session="long", facts=facts, rounds=rounds, oracle=[1.0] * 3)

    finding = _compare([played(["ss", "s0", "s0"])], [played(["ss", "0s", "00"])])
    assert finding is not None
    assert finding.says == (
        "1 of 2 facts is lost sooner when sessions are compressed again and again, in round 2 (1 is kept longer)"
    )


def test_runs_that_repeat_are_counted_by_name() -> None:
    finding = _compare(*_sides(None, _late))
    assert finding is not None
    assert finding.state is StrandState.WORSE
    assert "all of them decisions, the first in round 5" in finding.says
    assert "round 5: value_0 (decision, session-0, message 0)" in finding.details
    assert finding.details[0] == "4 sessions of up to 8 rounds; a perfect copy would score 100 %"
    assert finding.parts == (
        ("decisions", "100 %, at the end 100 %", "82 %, at the end 50 %"),
        ("values", "100 %, at the end 100 %", "100 %, at the end 100 %"),
        ("a perfect copy", "100 %", "100 %"),
    )
    assert finding.gain == 0 < finding.loss


def test_equal_runs_and_the_same_model_are_calm() -> None:
    assert (found := _compare(*_sides(None, lambda at, kept: set()))) is not None
    assert (found.state, found.says, found.loss) == (StrandState.SAME, "", 0.0)
    tested = [_compare(*_sides(seed, lambda at, kept: set())) for seed in range(8)]
    assert [item.state for item in tested if item is not None] == [StrandState.SAME] * 8


@pytest.mark.parametrize(("change", "named"), [(_oldest, "decisions"), (_late, "from round 5 on")])
def test_runs_that_vary_are_tested_and_kind_and_round_are_named(change: Change, named: str) -> None:
    finding = _compare(*_sides(11, change))
    assert finding is not None
    assert finding.state is StrandState.WORSE
    assert "decisions" in finding.says
    assert named in finding.says


def test_sessions_of_different_numbers_of_rounds_are_tested_together() -> None:
    base, candidate = _sides(11, _late)
    short = [
        record.model_copy(update={"session": "short", "rounds": record.rounds[:5]})
        for record in (*base[:4], *candidate[:2])
    ]
    finding = _compare([*base, *short[:4]], [*candidate, *short[4:]])
    assert finding is not None
    assert "from round 5 on" in finding.says


def test_a_change_the_other_way_is_better() -> None:
    base, candidate = _sides(3, _late, base=2, candidate=4)
    finding = _compare(candidate, base)
    assert finding is not None
    assert finding.state is StrandState.BETTER
    assert finding.says.startswith("more ")


def test_a_kind_that_is_never_written_is_missing_and_not_lost() -> None:
    base, candidate = _sides(5, _late)
    assert Played(base[0]).kept("error") == [0.0] * 8
    finding = _compare(base, candidate)
    assert finding is not None
    assert "errors" not in finding.says


def test_one_session_is_described_and_not_tested() -> None:
    finding = _compare(*_sides(7, _late, sessions=1))
    assert finding is not None
    assert (finding.state, finding.says) == (StrandState.CANNOT_TELL, "")


def test_long_runs_that_the_candidate_alone_does_not_finish_are_a_loss() -> None:
    base, candidate = _sides(None, lambda at, kept: set())
    finding = _compare(base, candidate[:6], failed=["session-3: the compressor ended in an error"] * 2)
    assert finding is not None
    assert (finding.state, finding.says) == (StrandState.WORSE, "2 of 8 long runs do not come to an end")
    both = _compare(base[:-1], candidate[:6], failed=["session-3: x"], base_failed=["session-3: x"])
    assert both is not None
    assert both.state is StrandState.SAME


# What is recorded of real compressions.


@pytest.fixture(scope="module")
def case() -> Case:
    return generate(SessionPlan("short-1", 1, tokens=24_000, window=4_000))


def _played(case: Case, strategy: str = "anchored") -> RoundsRecord:
    made = asyncio.run(BuiltinSubject(strategy).compress(case.fixture, run=0, seed=0))
    found = read_rounds(SeenRun(case.fixture, made, Kept(case.fixture.messages, made.state), case.ledger))
    assert found is not None
    return found


def test_every_round_of_a_session_is_recorded(case: Case) -> None:
    record = _played(case)
    assert len(record.rounds) == len(case.fixture.cuts)
    assert record.oracle == [1.0] * len(record.rounds)
    for state, end in zip(record.rounds, case.fixture.cuts, strict=True):
        for line, sign in zip(case.ledger.lines if case.ledger else (), state.fates, strict=True):
            assert (sign == "_") == (line.said[0] >= end)
            assert (sign == "~") == (line.superseded_at is not None and line.superseded_at < end)
        assert state.after < state.before
        assert state.written < state.after
    assert RoundsRecord.model_validate(record.model_dump(mode="json")) == record


def test_a_copier_keeps_what_a_window_forgets(case: Case) -> None:
    anchored, window = (Played(_played(case, name)).kept()[-1] for name in ("anchored", "sliding-window"))
    assert window < anchored


def test_a_session_without_a_ledger_or_without_rounds_is_not_recorded(case: Case) -> None:
    made = asyncio.run(BuiltinSubject("opaque").compress(case.fixture, run=0, seed=0))
    kept = Kept(case.fixture.messages, made.state)
    assert read_rounds(SeenRun(case.fixture, made, kept)) is None
    assert read_rounds(SeenRun(case.fixture, replace(made, steps=made.steps[-1:]), kept, case.ledger)) is None


def test_signs_that_do_not_fit_the_facts_are_refused() -> None:
    record = _simulated("a", None).model_dump(mode="json")
    record["rounds"][3]["fates"] = "x" * 80
    with pytest.raises(ValueError, match="one of the signs"):
        RoundsRecord.model_validate(record)


def test_an_edit_of_the_merge_is_found_by_name(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    base = _played(case)
    merge = AnchoredSummary.merge

    def oldest(self: AnchoredSummary, newer: AnchoredSummary) -> AnchoredSummary:
        merged = merge(self, newer)
        return replace(merged, decisions_made=merged.decisions_made[1:])

    monkeypatch.setattr(AnchoredSummary, "merge", oldest)
    finding = _compare([base], [_played(case)])
    assert finding is not None
    assert finding.state is StrandState.WORSE
    assert "decisions" in finding.says
