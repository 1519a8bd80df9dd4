"""When a compressor sets in by itself: real children are asked at growing numbers of tokens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_core.base.tokens import count_messages
from eval_core.domain.compression import SMALLER
from eval_core.domain.first_trigger import Trigger
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import TargetSpec, target_from
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths

HERE = Path(__file__).parent


def _ask(choice: SandboxChoice, session: Fixture, folder: str, **target: object) -> Trigger | None:
    tree = HERE / folder
    spec = target_from({"llm": "none", "timeout_s": 30, **target}, "spec")
    assert isinstance(spec, TargetSpec)
    spec = resolve_paths(spec, tree, tree, tree, "spec")
    subject = ProcessSubject(spec, tree, choice, "provider/served", None, count_messages)
    long = session.model_copy(update={"context_length": 200_000})
    return asyncio.run(subject.first_trigger(long))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AtHalf", 100_000),
        ("ByMessages", 50_000),
        ("Never", None),
    ],
)
def test_the_number_is_found_to_a_hundredth(
    choice: SandboxChoice, session: Fixture, name: str, expected: int | None
) -> None:
    found = _ask(choice, session, "shapes", compressor=f"setting_in:{name}")
    assert found is not None
    assert found.asked_up_to == 1_000_000
    if expected is None:
        assert found.at is None
    else:
        assert found.at is not None
        assert expected <= found.at <= expected + 2_000


@pytest.mark.parametrize("name", ["WantsMore", "Raises", "Silent"])
def test_a_compressor_that_cannot_be_asked_has_no_answer(choice: SandboxChoice, session: Fixture, name: str) -> None:
    assert _ask(choice, session, "shapes", compressor=f"setting_in:{name}") is None


def test_an_adapter_answers_for_it(choice: SandboxChoice, session: Fixture) -> None:
    target = {"compressor": "setting_in:Silent", "adapter": "setting_in_adapter.py"}
    found = _ask(choice, session, "shapes", **target)
    assert found is not None
    assert found.at is not None
    assert 150_000 <= found.at <= 152_000


@pytest.mark.parametrize(("tells", "expected"), [("yes", True), ("no", False)])
def test_a_command_is_asked_where_it_says_that_it_tells(
    choice: SandboxChoice, session: Fixture, tells: str, expected: bool
) -> None:
    command = ["python3", "tells_when.py", tells]
    found = _ask(choice, session, "commands", command=command)
    assert (found is not None) is expected
    if found is not None:
        assert found.at is not None
        assert 120_000 <= found.at <= 122_000


@pytest.mark.parametrize(("keeps", "told"), [(100_000, True), (5, False), (None, False)])
def test_a_session_that_the_agent_keeps_whole_is_named(run, session: Fixture, keeps: int | None, told: bool) -> None:
    spec = {"compressor": "setting_in:Silent"} | ({} if keeps is None else {"keeps_tokens": keeps})
    notes = run(spec).notes
    assert any(note.startswith(SMALLER) and note.endswith(f" of {100_000:,} tokens") for note in notes) is told
