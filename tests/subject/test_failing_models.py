"""What a compressor does with a session when its model fails: real children, real gateways, models that fail."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_core.domain.fixture import Fixture
from eval_core.domain.model_failure import FailureReaction, ModelFailure
from eval_core.domain.target import TargetSpec, target_from
from eval_core.sandbox import subject as subjects
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths

SHAPES = Path(__file__).parent / "shapes"
DOWN, BUSY, EMPTY, CUT, TOOL, REFUSES = ModelFailure
R = FailureReaction


def _try(choice: SandboxChoice, session: Fixture, name: str, **more: object) -> dict[ModelFailure, FailureReaction]:
    spec = target_from({"compressor": f"failing:{name}", "llm": "required", "timeout_s": 30, **more}, "spec")
    assert isinstance(spec, TargetSpec)
    spec = resolve_paths(spec, SHAPES, SHAPES, SHAPES, "spec")

    def count(messages: list[dict[str, object]]) -> int:
        return sum(len(str(message.get("content") or "").split()) for message in messages)

    subject = ProcessSubject(spec, SHAPES, choice, "provider/served", None, count)
    return asyncio.run(subject.try_failures(session))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "Careless",
            {DOWN: R.DESTROYED, BUSY: R.DESTROYED, EMPTY: R.DESTROYED, CUT: R.DESTROYED, REFUSES: R.DESTROYED},
        ),
        ("Raises", dict.fromkeys((DOWN, BUSY, EMPTY, CUT, REFUSES), R.RAISED)),
        ("Keeps", dict.fromkeys((DOWN, BUSY, EMPTY, CUT, REFUSES), R.LEFT_ALONE)),
        ("OffersTools", {DOWN: R.RAISED, BUSY: R.RAISED, **dict.fromkeys((EMPTY, CUT, TOOL, REFUSES), R.DESTROYED)}),
        ("NeverAsks", {}),
    ],
)
def test_each_way_of_failing_is_tried_and_named(
    choice: SandboxChoice, session: Fixture, name: str, expected: dict[ModelFailure, FailureReaction]
) -> None:
    assert _try(choice, session, name) == expected


def test_a_compressor_that_asks_again_recovers_and_one_that_says_so_fell_back(
    choice: SandboxChoice, session: Fixture
) -> None:
    found = _try(choice, session, "AsksAgain", adapter="failing_adapter.py")
    assert found[BUSY] is R.RECOVERED
    assert {found[failure] for failure in (DOWN, EMPTY, CUT, REFUSES)} == {R.FELL_BACK}


def test_a_compressor_that_never_comes_back_is_ended(
    choice: SandboxChoice, session: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "_TRIAL_SECONDS", 3.0)
    found = _try(choice, session, "Hangs")
    assert found[DOWN] is found[BUSY] is R.HUNG


def test_a_compressor_without_a_model_has_nothing_that_could_fail(choice: SandboxChoice, session: Fixture) -> None:
    assert _try(choice, session, "Careless", llm="none") == {}
