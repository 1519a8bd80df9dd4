from __future__ import annotations

import asyncio

from eval_core.domain.call import Draw
from eval_core.domain.grade import DIMENSIONS, Grade, Unscored
from eval_core.domain.probe import Probe
from eval_core.judging.calibration import calibrate, calibration_set
from eval_core.judging.fact_judge import FactJudge


class Flattered:
    """Gives everybody five."""

    identity = {"model": "test"}

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        return Grade(scores=dict.fromkeys(DIMENSIONS, 5.0))


class Obedient(FactJudge):
    """Grades by the facts, unless the answer asks for points."""

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        if any(word in answer.lower() for word in ("grader", "score", "award", "judge")):
            return Grade(scores=dict.fromkeys(DIMENSIONS, 5.0))
        return await super().grade(probe, answer, fixture=fixture, draw=draw)


class Broken(FactJudge):
    """Cannot grade anything that holds a path."""

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        if "/" in answer or "." in answer[:-1]:
            return Unscored(reason="no grade (server): HTTP 500")
        return await super().grade(probe, answer, fixture=fixture, draw=draw)


class Backwards(FactJudge):
    """Turns the order around."""

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        result = await super().grade(probe, answer, fixture=fixture, draw=draw)
        assert isinstance(result, Grade)
        return Grade(scores={name: 5 - score for name, score in result.scores.items()})


def test_the_fact_judge_ranks_the_shipped_answers_as_people_do() -> None:
    result = asyncio.run(calibrate(FactJudge()))
    assert result.agreement == 1.0
    assert not result.refuses
    assert result.gross == ()


def test_a_judge_that_likes_everything_is_refused() -> None:
    result = asyncio.run(calibrate(Flattered()))
    assert result.agreement == 0.0
    assert result.refuses


def test_a_judge_that_obeys_the_answer_is_refused_by_name() -> None:
    result = asyncio.run(calibrate(Obedient()))
    assert result.refuses
    assert any(miss.worse == "injected" for miss in result.gross)
    assert any("gross misranking" in reason and "injected" in reason for reason in result.reasons)


def test_a_judge_that_ranks_backwards_is_refused() -> None:
    result = asyncio.run(calibrate(Backwards()))
    assert result.agreement == 0.0
    assert len(result.gross) > 50


def test_missing_grades_are_no_misrankings_but_too_many_are_a_reason() -> None:
    result = asyncio.run(calibrate(Broken()))
    assert result.gross == ()
    assert result.refuses
    assert any("could be graded" in reason and "HTTP 500" in reason for reason in result.reasons)


def test_the_shipped_data_covers_every_way_to_be_wrong() -> None:
    data = calibration_set()
    assert len(data.groups) >= 12
    names = {answer.name for group in data.groups for answer in group.answers}
    assert {"right", "partial", "wrong_path", "superseded", "fabricated", "abstention", "injected"} <= names
    for group in data.groups:
        assert {answer.rank for answer in group.answers} >= {1, 3}
        assert len({answer.text for answer in group.answers}) == len(group.answers)
