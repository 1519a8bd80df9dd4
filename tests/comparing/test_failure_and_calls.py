"""What a compressor does when its model fails, and what a compression takes: two strands with records of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.comparing.compare import compare_measurements
from eval_core.domain.compression import ModelUse, Round, Step
from eval_core.domain.measurement import Measurement
from eval_core.storage.round_log import RoundFile
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(small.cases(), tmp_path_factory.mktemp("small"), "anchored")


def _with(measurement: Measurement, record: dict[str, Any]) -> Measurement:
    """Put a record into the first run of the first fixture, where the failures are tried."""
    name, runs = next(iter(measurement.fixtures.items()))
    first = runs[0].model_copy(update={"strands": {**runs[0].strands, "failure": record}})
    return measurement.model_copy(update={"fixtures": {**measurement.fixtures, name: [first, *runs[1:]]}})


def _compared(measured: Measurement, base: dict[str, Any], candidate: dict[str, Any]) -> Verdict:
    sides = (_with(measured, record) if record else measured for record in (base, candidate))
    return compare_measurements(*sides)[0]


def _finding(verdict: Verdict, strand: str) -> Finding:
    finding = verdict.strand(strand)
    assert finding is not None
    return finding


RAISED = {"down": "raised", "empty": "raised"}


def test_a_session_that_is_now_destroyed_is_a_regression(measured: Measurement) -> None:
    verdict = _compared(measured, RAISED, {"down": "destroyed", "empty": "raised"})
    assert (verdict.kind, _finding(verdict, "failure").state) == (Kind.REGRESSED, StrandState.WORSE)
    assert "its model is down: destroyed the session (base: raised an error)" in _finding(verdict, "failure").details
    assert "is down" in verdict.headline


def test_a_session_that_now_survives_is_better(measured: Measurement) -> None:
    verdict = _compared(measured, {"down": "destroyed", "empty": "raised"}, RAISED)
    assert (verdict.kind, _finding(verdict, "failure").state) == (Kind.IMPROVED, StrandState.BETTER)


@pytest.mark.parametrize("now", ["left_alone", "recovered", "fell_back"])
def test_another_way_of_surviving_is_told_and_decides_nothing(measured: Measurement, now: str) -> None:
    verdict = _compared(measured, RAISED, {"down": now, "empty": "raised"})
    assert _finding(verdict, "failure").state is StrandState.CHANGED
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE


@pytest.mark.parametrize("pair", [("hung", "destroyed"), ("destroyed", "hung")])
def test_a_trial_that_was_ended_for_its_time_proves_nothing(measured: Measurement, pair: tuple[str, str]) -> None:
    verdict = _compared(measured, {"down": pair[0]}, {"down": pair[1]})
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE


def test_a_base_that_did_not_try_and_words_of_another_version(measured: Measurement) -> None:
    verdict = _compared(measured, {}, {"down": "destroyed"})
    assert _finding(verdict, "failure").state is StrandState.NOT_RECORDED
    assert _finding(verdict, "failure").candidate == "1 × destroyed the session"
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    verdict = _compared(measured, {"melts": "raised"}, {"down": "evaporated", "empty": "raised"})
    assert _finding(verdict, "failure").details == ("its model answers with nothing: raised an error",)


def _calling(measurement: Measurement, calls: int, fruitless: int = 0, seconds: float = 3.0) -> Measurement:
    use = {"compressor": ModelUse(calls=calls, fruitless=fruitless, input_tokens=4000, cost_usd=0.01)}
    fixtures = {
        name: [run.model_copy(update={"use": use, "seconds": seconds}) for run in runs]
        for name, runs in measurement.fixtures.items()
    }
    return measurement.model_copy(update={"fixtures": fixtures})


def test_more_calls_for_each_compression_are_told(measured: Measurement) -> None:
    verdict = compare_measurements(_calling(measured, 2), _calling(measured, 4, fruitless=2))[0]
    finding = _finding(verdict, "calls")
    assert (finding.state, verdict.kind) == (StrandState.CHANGED, Kind.NO_DETECTABLE_CHANGE)
    assert finding.base == "2 calls, 4.0k tokens, $0.010, 3.0 s"
    assert finding.candidate == "4 calls, 50% without a usable reply, 4.0k tokens, $0.010, 3.0 s"
    again = compare_measurements(_calling(measured, 2), _calling(measured, 2))[0]
    assert _finding(again, "calls").state is StrandState.SAME
    assert compare_measurements(measured, measured)[0].strand("calls") is None
    first = compare_measurements(measured, _calling(measured, 2))[0]
    assert _finding(first, "calls").state is StrandState.NOT_RECORDED


def test_useless_replies_of_earlier_rounds_and_runs_are_added_up() -> None:
    once = ModelUse(calls=2, input_tokens=100, cost_usd=0.5, fruitless=1)
    assert once + once == ModelUse(calls=4, input_tokens=200, cost_usd=1.0, fruitless=2)
    assert (once + ModelUse(cost_usd=None)).cost_usd is None


def test_a_round_keeps_what_its_calls_came_to(tmp_path: Path) -> None:
    use = ModelUse(calls=2, input_tokens=100, cost_usd=0.5, fruitless=1)
    log = RoundFile(tmp_path / "rounds.jsonl")
    log.add(Round(Step([], 10, 5, 0.1, use=use), None))
    assert [one.step.use for one in RoundFile(tmp_path / "rounds.jsonl").read()] == [use]
