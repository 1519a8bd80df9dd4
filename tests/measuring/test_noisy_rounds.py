"""Two one-line edits of the merge, with a model that forgets a tenth of what is new: found by kind and round."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eval_core.compressors.summary import AnchoredSummary
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.case import Case
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.record import RoundsRecord
from eval_core.facts.verbatim import Kept
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.statistics.arms import Arm
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.rounds import compare_rounds, read_rounds
from eval_core.strands.strand import SeenRun
from eval_core.suite.generate import SessionPlan, generate

_TELLING = re.compile(
    r"I decided to use `\w+`[^.]*\.|The setting of [^.]*\.|Please also add [^.]*\.|Never edit [^.]*\."
)
_MERGE = AnchoredSummary.merge


async def _forgetful(call: ModelCall) -> Completion:
    """Write down nine in ten of what the transcript says, others in each run."""
    transcript = next(str(message["content"]) for message in call.messages if message["role"] == "user")
    rng = random.Random(f"{call.draw.run} {len(transcript)} {transcript[-200:]}")
    kept = [line for line in dict.fromkeys(_TELLING.findall(transcript)) if rng.random() < 0.9]
    decisions, others = ([line for line in kept if ("decided" in line) is wanted] for wanted in (True, False))
    text = "## Decisions Made\n" + "\n".join(f"- {line}" for line in decisions)
    text += "\n## Session Intent\n" + "\n".join(f"- {line}" for line in others)
    return Completion(text, Usage(output_tokens=10), model="test", seconds=0.0)


def _oldest(self: AnchoredSummary, newer: AnchoredSummary, **joins: Any) -> AnchoredSummary:
    merged = _MERGE(self, newer, **joins)
    return replace(merged, decisions_made=merged.decisions_made[1:])


def _late(self: AnchoredSummary, newer: AnchoredSummary, **joins: Any) -> AnchoredSummary:
    merged = _MERGE(self, newer, **joins)
    gone = len(self.decisions_made) // 4 if merged.compression_count >= 5 else 0
    return replace(merged, decisions_made=merged.decisions_made[gone:])


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    plans = (SessionPlan(f"noisy-{n}", n, tokens=64_000, window=11_500, density=2.0) for n in range(1, 5))
    return [generate(plan) for plan in plans]


def _play(cases: list[Case], runs: range) -> list[RoundsRecord]:
    found = []
    for case in cases:
        for run in runs:
            subject = BuiltinSubject("anchored", _forgetful, "openai/test")
            made = asyncio.run(subject.compress(case.fixture, run=run, seed=0))
            record = read_rounds(SeenRun(case.fixture, made, Kept(case.fixture.messages, made.state), case.ledger))
            assert record is not None
            found.append(record)
    return found


@pytest.fixture(scope="module")
def base(cases: list[Case]) -> list[RoundsRecord]:
    return _play(cases, range(4))


def _compare(base: list[RoundsRecord], candidate: list[RoundsRecord]) -> Finding:
    beside = PlayedRounds(base=base, candidate=candidate)
    recorded = cast(Recorded, SimpleNamespace(played_rounds=beside, sides=()))
    finding = compare_rounds(Evidence(Arm("a", {}), Arm("b", {}), recorded))
    assert finding is not None
    return finding


@pytest.mark.parametrize(("edit", "named"), [(_oldest, "decisions"), (_late, "from round 5 on")])
def test_an_edit_of_the_merge_is_found_although_the_model_forgets_too(
    cases: list[Case],
    base: list[RoundsRecord],
    monkeypatch: pytest.MonkeyPatch,
    edit: Callable[..., AnchoredSummary],
    named: str,
) -> None:
    monkeypatch.setattr(AnchoredSummary, "merge", edit)
    finding = _compare(base, _play(cases, range(4, 6)))
    assert finding.state is StrandState.WORSE
    assert "decisions" in finding.says
    assert named in finding.says


def test_the_same_merge_is_calm(cases: list[Case], base: list[RoundsRecord]) -> None:
    finding = _compare(base, _play(cases, range(4, 6)))
    assert (finding.state, finding.says) == (StrandState.SAME, "")
