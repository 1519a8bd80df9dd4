"""When the compressor sets in by itself: another number is told, and never again is a regression."""

from __future__ import annotations

from typing import Any

import pytest
import small

from eval_core.comparing.compare import compare_measurements
from eval_core.domain.measurement import Measurement
from eval_core.strands.findings import Kind, StrandState


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(small.cases(), tmp_path_factory.mktemp("small"), "anchored")


def _with(measurement: Measurement, at: int | None) -> Measurement:
    record: dict[str, Any] = {"asked_up_to": 1_000_000, "at": at}
    name, runs = next(iter(measurement.fixtures.items()))
    first = runs[0].model_copy(update={"strands": {**runs[0].strands, "sets_in": record}})
    return measurement.model_copy(update={"fixtures": {**measurement.fixtures, name: [first, *runs[1:]]}})


@pytest.mark.parametrize(
    ("before", "now", "state", "kind"),
    [
        (143_000, 74_000, StrandState.CHANGED, Kind.NO_DETECTABLE_CHANGE),
        (143_000, 145_000, StrandState.SAME, Kind.NO_DETECTABLE_CHANGE),
        (143_000, None, StrandState.WORSE, Kind.REGRESSED),
        (None, None, StrandState.SAME, Kind.NO_DETECTABLE_CHANGE),
        (None, 143_000, StrandState.BETTER, Kind.IMPROVED),
    ],
)
def test_what_another_number_means(
    measured: Measurement, before: int | None, now: int | None, state: StrandState, kind: Kind
) -> None:
    verdict = compare_measurements(_with(measured, before), _with(measured, now))[0]
    finding = verdict.strand("sets_in")
    assert finding is not None
    assert (finding.state, verdict.kind) == (state, kind)
    if state is not StrandState.SAME:
        assert finding.says in verdict.headline


def test_it_is_in_the_headline_where_all_else_is_calm(measured: Measurement) -> None:
    verdict = compare_measurements(_with(measured, 143_000), _with(measured, 74_000))[0]
    assert verdict.headline.endswith("; but it compresses at about 74,000 tokens, before at about 143,000 tokens.")


def test_a_base_that_was_not_asked_is_not_compared(measured: Measurement) -> None:
    verdict = compare_measurements(measured, _with(measured, 74_000))[0]
    finding = verdict.strand("sets_in")
    assert finding is not None
    assert (finding.state, finding.candidate) == (StrandState.NOT_RECORDED, "at about 74,000 tokens")
