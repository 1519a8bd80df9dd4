"""Two targets in one run: their fixture-runs alternate, each has its folder, and equal prompts are two draws."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import small

from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import AT_BUDGETS
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import AfterFacts, MeasuringSession, measure_together
from eval_core.measuring.wiring import Roles
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.storage.results import ResultsFolder


@dataclass
class Noted:
    """A compressor that writes its turns down in a list that it shares with the other arm."""

    name: str
    order: list[tuple[str, int]]
    strategy: str = "anchored"
    seeds: list[int] = field(default_factory=list)

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: object = None
    ) -> Compression:
        self.order.append((self.name, run))
        self.seeds.append(seed)
        return await BuiltinSubject(self.strategy).compress(fixture, run=run, seed=seed, focus_topic=focus_topic)


def session(folder: Path, subject: Noted, **options: object) -> MeasuringSession:
    roles = Roles(subject, ExtractiveAnswerer(), FactJudge(), offline=True)
    return MeasuringSession(
        small.cases()[:1],
        roles,
        make_fingerprint(small.cases()[:1], None),
        ResultsFolder(folder),
        folder.name,
        2,
        3,
        tree=folder.parent,
        concurrency=1,
        **options,  # type: ignore[arg-type]
    )


def then(*steps: AfterFacts) -> Callable[[Sequence[Measurement]], Awaitable[AfterFacts]]:
    """Follow these steps, one each time that all compressions are there."""
    left = list(steps)

    async def follow(measured: Sequence[Measurement]) -> AfterFacts:
        assert not any(run.graded for found in measured for runs in found.fixtures.values() for run in runs)
        return left.pop(0)

    return follow


def test_the_fixture_runs_of_both_arms_alternate(tmp_path: Path) -> None:
    order: list[tuple[str, int]] = []
    base, candidate = Noted("base", order), Noted("candidate", order)
    sessions = [session(tmp_path / "a/base", base, arm="base"), session(tmp_path / "a", candidate)]
    first, second = asyncio.run(measure_together(sessions))
    assert order == [(name, run) for run in range(3) for name in ("base", "candidate")]
    assert base.seeds == candidate.seeds
    assert first.controls == second.controls
    assert first.controls
    assert len(list((tmp_path / "a/base").glob("*-run-*.json"))) == 3


@dataclass
class Budgeted(Noted):
    """A subject that takes a budget."""

    at_other_budgets: tuple[Noted, ...] = ()


@pytest.mark.parametrize("early", [False, True])
def test_the_candidate_alone_is_run_at_its_other_budgets(early: bool, tmp_path: Path) -> None:
    order: list[tuple[str, int]] = []
    arms = [
        Budgeted(name, order, at_other_budgets=(Noted(f"{name}, larger", order),)) for name in ("base", "candidate")
    ]
    sessions = [session(tmp_path / "a/base", arms[0], arm="base"), session(tmp_path / "a", arms[1])]
    first, second = asyncio.run(measure_together(sessions, then("stop") if early else None))
    assert [name for name, _ in order if "larger" in name] == ["candidate, larger"]
    (base_points,), (points,) = first.frontier.values(), second.frontier.values()
    assert [point.name for point in base_points] == [point.name for point in points if point.name != AT_BUDGETS]
    assert [point.name for point in points].count(AT_BUDGETS) == 1


def test_facts_come_first_and_decide_for_both(tmp_path: Path) -> None:
    order: list[tuple[str, int]] = []
    sessions = [
        session(tmp_path / "a/base", Noted("base", order)),
        session(tmp_path / "a", Noted("candidate", order, strategy="opaque")),
    ]
    told: list[tuple[str, int]] = []
    sessions[1].on_record = lambda record: told.append((record.fixture, record.run))
    first, second = asyncio.run(measure_together(sessions, then("stop")))
    assert (first.planned_runs, second.planned_runs) == (0, 0)
    assert not any(run.graded for run in second.fixtures["small-chained"])
    assert len(told) == 3


def test_what_was_compressed_to_look_at_facts_is_only_asked_about_afterwards(tmp_path: Path) -> None:
    order: list[tuple[str, int]] = []
    one = session(tmp_path / "a", Noted("candidate", order))
    told: list[tuple[str, int]] = []
    one.on_record = lambda record: told.append((record.fixture, record.run))
    (measurement,) = asyncio.run(measure_together([one], then("grade")))
    assert order == [("candidate", run) for run in range(3)]
    assert [run.graded for run in measurement.fixtures["small-chained"]] == [True, True, False]
    assert sorted(told) == [("small-chained", run) for run in range(3)]


def test_further_compressions_are_made_once_and_only_the_planned_runs_are_graded(tmp_path: Path) -> None:
    order: list[tuple[str, int]] = []
    one = session(tmp_path / "a", Noted("candidate", order))
    seen: list[int] = []

    async def grow(measured: Sequence[Measurement]) -> AfterFacts:
        seen.append(measured[0].planned_compress_runs)
        one.grow(seen[-1] + 1)
        return "more" if seen[-1] < 5 else "grade"

    (measurement,) = asyncio.run(measure_together([one], grow))
    assert (seen, one.missing(6), one.missing(8)) == ([3, 4, 5], 0, 2)
    assert order == [("candidate", run) for run in range(6)]
    assert [run.graded for run in measurement.fixtures["small-chained"]] == [True, True, False, False, False, False]
    again = session(tmp_path / "a", Noted("candidate", order), resume=True)
    seen.clear()
    one = again
    asyncio.run(measure_together([again], grow))
    assert len(order) == 6
