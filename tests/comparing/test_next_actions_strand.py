"""The strand next actions: calls are compared by tool and words, sides with what the full transcript is to itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from eval_core.comparing.compare import compare_measurements
from eval_core.domain.measurement import Measurement
from eval_core.domain.rollout import ActionRecord, NextActions, PlayedTasks, RolloutArm
from eval_core.strands.findings import Finding, Kind, StrandState
from eval_core.strands.next_actions import agreement


def call(command: str, tool: str = "terminal") -> ActionRecord:
    return ActionRecord(tool=tool, given=f'{{"command": "{command}"}}', result="")


def test_calls_are_alike_by_their_tool_and_their_words_in_any_order() -> None:
    ls, test = call("ls"), call("pytest tests")
    assert agreement([ls, test], [test, ls]) == 1
    assert agreement([call("ls", "read_file")], [ls]) == 0
    assert agreement([call("pytest tests -x")], [test]) == pytest.approx(3 / 4)
    assert agreement([], [ls]) == agreement([ls], []) == 0


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(small.cases(), Path(tmp_path_factory.mktemp("next")), "anchored")


def finding(measured: Measurement, **commands: list[str]) -> Finding | None:
    arms: dict[str, RolloutArm] = {"full": "full", "base": "base", "candidate": "candidate"}
    asked = [
        NextActions(session="s", arm=arms[arm], calls=[call(text)]) for arm, said in commands.items() for text in said
    ]
    verdict = compare_measurements(measured, measured.noting(tasks=PlayedTasks(model="m", next_actions=asked)))[0]
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE, "it decides nothing"
    return next((one for one in verdict.strands if one.name == "next_actions"), None)


def test_both_sides_are_held_to_the_full_transcript_and_its_own_spread(measured: Measurement) -> None:
    found = finding(measured, full=["ls", "ls", "ls"], base=["ls"], candidate=["rm x"])
    assert found is not None
    assert (found.state, found.loss) == (StrandState.CHANGED, 0)
    assert found.base == "100 % as with the full transcript"
    assert found.candidate == "25 %; the full transcript asked again: 100 %"
    assert found.details == ("s: 100 % → 25 %; the full transcript asked again 100 %",)
    same = finding(measured, full=["ls a b c", "make d e f", "cat g h i"], base=["ls a b c"], candidate=["cat g h i"])
    assert same is not None
    assert same.state is StrandState.SAME


def test_without_both_sides_there_is_no_row(measured: Measurement) -> None:
    assert finding(measured, full=["ls", "ls"], candidate=["ls"]) is None
    assert finding(measured, full=["ls"], base=["ls"], candidate=["ls"]) is None
