"""The strand tasks: what decides, what is told, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import small

from eval_core.base.config import TaskConfig
from eval_core.comparing.compare import compare_measurements
from eval_core.domain.measurement import Measurement
from eval_core.domain.rollout import (
    ActionRecord,
    CheckRecord,
    PlayedTasks,
    RolloutArm,
    RolloutRecord,
    TaskState,
    tokens_per_clean_task,
)
from eval_core.strands.findings import Finding, Kind, StrandState


def rollout(arm: RolloutArm, number: int, stage: int, *, done: bool = True, rule: bool = True) -> RolloutRecord:
    checks = [
        CheckRecord(name="done", kind="done", passed=done),
        CheckRecord(name="rule", kind="rule", passed=rule),
        CheckRecord(name="again", kind="repeat", passed=done),
    ]
    body = {"task": "s/a", "arm": arm, "number": number, "stage": stage, "checks": checks, "input_tokens": 1000}
    return RolloutRecord.model_validate(body)


def side(arm: RolloutArm, first: str, fresh: str) -> list[RolloutRecord]:
    """Return rollouts by signs: + clean, - unfinished, x a rule broken."""
    signs = [(sign, 1) for sign in first] + [(sign, 2) for sign in fresh]
    return [
        rollout(arm, number, stage, done=sign != "-", rule=sign != "x") for number, (sign, stage) in enumerate(signs)
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(small.cases(), Path(tmp_path_factory.mktemp("tasks")), "anchored", runs=3, compress_runs=3)


def finding(
    measured: Measurement,
    base: tuple[str, str],
    candidate: tuple[str, str],
    admitted: bool = True,
    actions: Sequence[ActionRecord] = (),
) -> Finding:
    states = [
        TaskState(name="s/a", admitted=admitted, why="" if admitted else "the full transcript finishes it in 1 of 3")
    ]
    theirs = [one.model_copy(update={"actions": list(actions)}) for one in side("candidate", *candidate)]
    played = PlayedTasks(model="m", tasks=states, rollouts=[*side("base", *base), *theirs])
    verdict = compare_measurements(measured, measured.noting(tasks=played))[0]
    found = next(one for one in verdict.strands if one.name == "tasks")
    worse = found.state is StrandState.WORSE
    assert verdict.kind is (Kind.REGRESSED if worse else Kind.IMPROVED if found.gain else Kind.NO_DETECTABLE_CHANGE)
    return found


def test_a_task_that_fresh_rollouts_confirm_is_a_loss(measured: Measurement) -> None:
    found = finding(measured, ("+++", "+++++"), ("---", "-----"))
    assert (found.state, found.loss) == (StrandState.WORSE, 1.0)
    assert "s/a: not finished in 0 of 5 → 5 of 5 fresh rollouts" in found.details
    assert "dead ends tried again: 0 → 3" in found.details
    assert found.base == "3 of 3 clean, 1,000 tokens a clean task"
    assert found.candidate == "0 of 3 clean, none finished"


def test_tokens_are_those_of_each_rollout_with_its_compression_at_the_configured_prices() -> None:
    spent = {"cached_tokens": 600, "output_tokens": 10}
    compression = {"compressor_input_tokens": 2000, "compressor_output_tokens": 50}
    made = rollout("base", 0, 1).model_copy(update=spent | compression)
    played = [made, rollout("base", 1, 1, done=False)]
    assert tokens_per_clean_task(played, TaskConfig(cached_price=0.5, output_price=2)) == 400 + 300 + 20 + 2100 + 1000
    assert tokens_per_clean_task(played[1:], TaskConfig()) is None


def test_what_has_to_be_looked_up_is_a_row(measured: Measurement) -> None:
    looks = [ActionRecord(tool=tool, given="{}", result="{}") for tool in ("read_file", "search_files", "terminal")]
    found = finding(measured, ("+++", ""), ("+++", ""), actions=looks)
    assert "files read and searched in a rollout: 0.0 → 2.0" in found.details


def test_a_broken_rule_is_a_loss_too_and_a_mended_one_a_gain(measured: Measurement) -> None:
    assert finding(measured, ("+++", "+++++"), ("xx+", "xxxx+")).state is StrandState.WORSE
    assert finding(measured, ("xx+", "xxxx+"), ("+++", "+++++")).state is StrandState.BETTER


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        (("+++", "+++++"), ("---", "---++")),  # the fresh ones do not confirm it
        (("+++", ""), ("--+", "")),  # fresh ones are missing
        (("+++", "+++++"), ("-++", "-----")),  # the first stage did not ask
    ],
)
def test_anything_less_decides_nothing(
    measured: Measurement, base: tuple[str, str], candidate: tuple[str, str]
) -> None:
    found = finding(measured, base, candidate)
    assert (found.state, found.loss, found.gain) == (StrandState.SAME, 0, 0)
    assert any("is confirmed in 97" in line for line in found.details)


def test_a_task_that_does_not_count_is_named_and_a_run_without_tasks_says_nothing(measured: Measurement) -> None:
    found = finding(measured, ("+++", ""), ("---", ""), admitted=False)
    assert found.state is StrandState.NOT_COMPARABLE
    assert found.details == ("does not count for m: s/a, the full transcript finishes it in 1 of 3",)
    verdict = compare_measurements(measured, measured)[0]
    assert all(one.name != "tasks" for one in verdict.strands)
