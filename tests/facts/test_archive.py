"""What an agent finds again: in pieces with their neighbours, by names that a summary ties to a topic, or by text."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import small

from eval_core.domain.extra import PlayedRounds
from eval_core.domain.record import RecoveryRecord, RoundsRecord
from eval_core.facts.archive import PIECE, Archive
from eval_core.facts.verbatim import Kept
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.statistics.arms import Arm
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.recovery import compare_recovery, read_recovery
from eval_core.strands.rounds import read_rounds
from eval_core.strands.strand import SeenRun
from eval_core.suite.generate import SessionPlan, generate

FILLER = "nothing of note was seen in this part of the work. " * 60


def test_a_hit_brings_its_neighbours_along() -> None:
    text = FILLER[: PIECE - 20] + " the invoice export " + FILLER[: PIECE - 100] + " uses batch_size_417 "
    archive = Archive([small.say(FILLER), small.say(text), small.say(FILLER)])
    (hit, again) = archive.search("invoice export")
    assert hit == again
    assert "batch_size_417" in hit
    assert len(hit) <= 3 * PIECE + 2


def test_a_name_that_the_summary_ties_to_the_topic_is_looked_up_and_is_one_word() -> None:
    removed = [small.say("In lock_pool the limit is 93."), small.say("A lock is no pool: 17."), small.say(FILLER)]
    assert not any("93" in hit for hit in Archive(removed).search("the locking of uploads"))
    found = Archive(removed, "# Work\n- the locking of uploads is in `lock_pool`").search("the locking of uploads")
    assert any("93" in hit for hit in found)


def test_plain_text_reads_the_lines_that_hold_the_words() -> None:
    archive = Archive([small.say("one\nThe Retry policy is 5 tries\nthree"), small.say("a policy of another kind")])
    assert archive.grep("the retry policy")[0] == "the retry policy is 5 tries"
    assert archive.grep("payments") == []
    assert Archive([]).search("anything") == Archive([]).grep("anything") == []


def test_what_a_summary_forgets_is_found_again_beside_what_it_keeps() -> None:
    case = generate(SessionPlan("short-1", 1, tokens=24_000, window=4_000))
    made = asyncio.run(BuiltinSubject("regenerative").compress(case.fixture, run=0, seed=0))
    seen = SeenRun(case.fixture, made, Kept(case.fixture.messages, made.state), case.ledger)
    found = read_recovery(seen)
    assert found is not None
    assert 0 < found.plain <= found.searched <= found.lost < found.live
    assert found.tokens < 3 * 3 * PIECE / 4
    rounds = read_rounds(seen)
    assert rounds is not None
    # It is told apart: what a round keeps is what the state holds.
    assert rounds.recovery == found
    assert sum(sign in "sv" for sign in rounds.rounds[-1].fates) == found.live - found.lost


def _finding(base: RecoveryRecord | None, candidate: RecoveryRecord) -> Finding | None:
    def record(recovery: RecoveryRecord | None) -> RoundsRecord:
        return RoundsRecord.model_construct(session="a", facts=[], rounds=[], oracle=[], recovery=recovery)

    beside = PlayedRounds.model_construct(candidate=[record(candidate)], base=[record(base)])
    recorded = cast(Recorded, SimpleNamespace(played_rounds=beside, sides=()))
    return compare_recovery(Evidence(Arm("a", {}), Arm("b", {}), recorded))


def test_it_is_told_and_decides_nothing() -> None:
    few, many = (RecoveryRecord(live=100, lost=40, searched=n, plain=4, tokens=900) for n in (8, 36))
    finding = _finding(many, few)
    assert finding is not None
    assert finding.state is StrandState.SAME
    assert "20 % by an index, 10 % by plain text" in str(finding)
    unknown = _finding(None, few)
    assert unknown is not None
    assert unknown.state is StrandState.NOT_RECORDED
    assert _finding(many, few.model_copy(update={"lost": 2})) is None
