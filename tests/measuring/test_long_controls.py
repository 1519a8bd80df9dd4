"""Controls of a session that the answering model cannot take whole ask about the evidence and what is around it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import small

from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages
from eval_core.domain.call import Draw
from eval_core.domain.grade import Answer, Unscored
from eval_core.domain.probe import Probe
from eval_core.facts.retention import FixtureFacts
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.controls import ceiling_state, measure_controls
from eval_core.suite.generate import SessionPlan, generate

CASE = generate(SessionPlan("short-1", 1, tokens=12_000, window=4_000))


@dataclass
class Small:
    """An answerer with a small window, which keeps what it was asked about."""

    room: int
    asked: list[int] = field(default_factory=list)

    async def answer(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        self.asked.append(count_messages(state))
        return await ExtractiveAnswerer().answer(state, probe, fixture=fixture, draw=draw)


def test_a_session_that_fits_is_asked_about_whole() -> None:
    facts = FixtureFacts(CASE.fixture)
    for room in (None, 100_000):
        assert ceiling_state(CASE, CASE.probes[0], facts, room) is CASE.fixture.messages


def test_a_long_one_is_asked_about_where_the_evidence_is() -> None:
    facts = FixtureFacts(CASE.fixture)
    for probe in CASE.probes:
        state = ceiling_state(CASE, probe, facts, 4_000)
        assert count_messages(state) <= 4_000
        assert all(any(value in str(message) for message in state) for fact in probe.required for value in fact.values)
        places = [CASE.fixture.messages.index(message) for message in state]
        assert places == sorted(places)


def test_no_control_is_asked_about_more_than_fits() -> None:
    answerer = Small(4_000)
    controls = asyncio.run(measure_controls(CASE, answerer, FactJudge()))  # type: ignore[arg-type]
    assert max(answerer.asked) <= 4_000
    assert set(controls.probes) == {probe.id for probe in CASE.probes}
    whole = Small(100_000)
    asyncio.run(measure_controls(small.cases()[0], whole, FactJudge()))  # type: ignore[arg-type]
    assert max(whole.asked) == count_messages(small.cases()[0].fixture.messages)
