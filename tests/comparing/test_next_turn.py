"""The turn after a compaction: the same difference on both sides is the adapter's, another one the agent's."""

from __future__ import annotations

from typing import Any

import pytest
import small

from eval_core.comparing.compare import compare_measurements
from eval_core.domain.measurement import Measurement
from eval_core.strands.findings import Finding, Kind, StrandState

LINE = "Quota is 40 GB."


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(small.cases(), tmp_path_factory.mktemp("small"), "anchored")


def _with(measurement: Measurement, not_sent: int, *, instructed: bool = True) -> Measurement:
    first = {"not_sent": [LINE] * not_sent, "not_reported": []}
    record: dict[str, Any] = {"not_sent": not_sent, "not_reported": 0, "first": first, "instructed": instructed}
    name, runs = next(iter(measurement.fixtures.items()))
    run = runs[0].model_copy(update={"strands": {**runs[0].strands, "next_turn": record}})
    return measurement.model_copy(update={"fixtures": {**measurement.fixtures, name: [run, *runs[1:]]}})


def _found(base: Measurement, candidate: Measurement) -> tuple[Finding, Kind]:
    verdict = compare_measurements(base, candidate)[0]
    finding = verdict.strand("next_turn")
    assert finding is not None
    return finding, verdict.kind


def test_what_both_sides_have_is_the_adapters(measured: Measurement) -> None:
    found, kind = _found(_with(measured, 1), _with(measured, 1))
    assert (found.state, kind, found.says) == (StrandState.SAME, Kind.NO_DETECTABLE_CHANGE, "")
    assert found.candidate == "1 line reported and not sent"
    assert found.details[0].startswith("the same on both sides, so it is the adapter's")
    assert found.details[1] == f"reported and not sent: {LINE}"


def test_what_only_one_side_has_is_the_agents_and_decides_nothing(measured: Measurement) -> None:
    found, kind = _found(_with(measured, 0), _with(measured, 2))
    assert (found.state, kind) == (StrandState.CHANGED, Kind.NO_DETECTABLE_CHANGE)
    assert found.says == (
        "after a compaction it now sends something else: 2 lines reported and not sent, before: sends what was reported"
    )


def test_a_request_without_an_instruction_at_its_end_is_told(measured: Measurement) -> None:
    found, _ = _found(_with(measured, 0), _with(measured, 0, instructed=False))
    assert found.state is StrandState.CHANGED
    assert found.candidate.endswith("the request for the summary ends with the session, not an instruction")


def test_a_base_that_took_no_turn_is_not_compared(measured: Measurement) -> None:
    assert _found(measured, _with(measured, 1))[0].state is StrandState.NOT_RECORDED
