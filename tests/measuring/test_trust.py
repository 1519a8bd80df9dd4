"""A judge is calibrated once, whoever asks first, and one that grades nothing is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Draw
from eval_core.domain.grade import Grade, Unscored
from eval_core.domain.probe import Probe
from eval_core.judging.calibration import calibration_set, trusted
from eval_core.judging.grading import ModelJudge
from tests.model_provider import LoopbackProvider
from tests.models.provider import bench

ANSWERS = sum(len(group.answers) for group in calibration_set().groups)


def test_two_runs_that_start_together_pay_for_one_calibration(tmp_path: Path) -> None:
    async def scene() -> None:
        async def run(number: int) -> tuple[object, int]:
            # As two processes: each with a client and a journal of its own, and one results folder.
            async with bench(tmp_path / str(number), provider=LoopbackProvider(latency=0.01)) as at:
                kept = await trusted(ModelJudge(at.client), tmp_path / "results", ())
                return kept, len(at.provider.asked)

        found = await asyncio.gather(run(0), run(1))
        kept, asked = zip(*found, strict=True)
        assert kept[0] == kept[1]
        assert sorted(asked) == [0, ANSWERS]

    asyncio.run(scene())


class Mute:
    """A judge whose grades cannot be read."""

    identity = {"model": "mute"}

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        return Unscored(reason="no grade (malformed): it holds no JSON object")


def test_a_judge_without_a_usable_grade_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"only 0 of {ANSWERS} answers could be graded"):
        asyncio.run(trusted(Mute(), tmp_path, ()))
    assert asyncio.run(trusted(Mute(), tmp_path, (), anyway=True)) is None


def test_an_outage_says_nothing_about_the_judge(tmp_path: Path) -> None:
    calls = iter([None, "the provider is down", "the provider is down"])
    kept = asyncio.run(trusted(Mute(), tmp_path, (), stopped=lambda: next(calls, "the provider is down")))
    assert kept is not None
    assert not list(tmp_path.rglob("*.json"))
