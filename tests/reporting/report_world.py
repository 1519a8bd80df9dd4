"""The reports that the views are tested with, one for each thing a comparison can come to."""

from __future__ import annotations

from dataclasses import replace

import page_world

from eval_core.comparing.compare import ReportData
from eval_core.domain.case import Case
from eval_core.domain.compression import Outcome
from eval_core.domain.record import RunRecord


def regressed() -> ReportData:
    return page_world.report()


def not_comparable() -> ReportData:
    """Another rubric, and nothing that could be compared without the grades has moved."""
    return page_world.report(rubric="r2", candidate=lambda of, run, graded: _good(of, run, graded=graded))


def _good(of: Case, run: int, *, graded: bool) -> RunRecord:
    return page_world.run_record(of, run, good=True, graded=graded)


def alone() -> ReportData:
    """A result without a baseline, offline."""
    data = page_world.report(offline=True)
    return replace(data, base=None, verdict=None, base_path=None, note="no baseline in baselines")


def incomplete(text: str = "ValueError: boom") -> ReportData:
    """The provider failed one fixture throughout, and one probe of the other in one run."""

    def make(of: Case, run: int, graded: bool) -> RunRecord:
        if of.fixture.name == "migrate":
            return page_world.run_record(of, run, good=True, graded=graded, outcome=Outcome.INFRA, text=text)
        record = page_world.run_record(of, run, good=True, graded=graded)
        return page_world.unscored(record, "no answer: rate_limit") if run == 0 else record

    return page_world.report(candidate=make)


def broken(error: str) -> ReportData:
    """The compressor fails in every run, with this error."""

    def make(of: Case, run: int, graded: bool) -> RunRecord:
        return page_world.run_record(of, run, good=True, graded=graded, outcome=Outcome.SETUP_ERROR, text=error)

    return page_world.report(candidate=make)


REPORTS = {
    "regressed": regressed,
    "not-comparable": not_comparable,
    "alone": alone,
    "incomplete": incomplete,
}
