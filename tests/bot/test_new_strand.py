"""A new strand is one module and its line in the registry: record, verdict and every view take it from there."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import pytest
import small
from bot_tickets import allowed, request

from bot.pull_request.result_body import CommentContext, result_body
from bot.pull_request.ticket import Ticket
from bot.steps.comment import LIMIT
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.reporting.html.page import render_html
from eval_core.reporting.json_report import json_report
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.terminal import console, print_report
from eval_core.reporting.view import make_view
from eval_core.storage.results import read_runs
from eval_core.strands import registry
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, Kind, StrandState
from eval_core.strands.strand import Force, SeenRun, Strand

# The whole of a new strand: what would be a module of its own.


def _record(seen: SeenRun) -> Mapping[str, int]:
    return {"questions": sum(text.count("- ") for text in seen.kept.own_texts)}


def _compare(evidence: Evidence) -> Finding | None:
    sides = evidence.records("toy")
    if not all(sides):
        return None
    before, now = (fmean(record["questions"] for record in side) for side in sides)
    return Finding(
        name="toy",
        state=StrandState.WORSE if now < before else StrandState.SAME,
        base=f"{before:.0f} bullets",
        candidate=f"{now:.0f} bullets",
        says=f"{before - now:.0f} bullets are gone" if now < before else "",
        details=("the bullets of every list",),
        loss=max(0.0, 1 - now / before),
    )


TOY = Strand("toy", "Bullets of the toy", Force.CERTAIN, _compare, record=_record)


def test_a_new_strand_is_in_record_verdict_comment_page_terminal_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "STRANDS", (*registry.STRANDS, TOY))
    base, candidate = (small.measure(small.cases(), tmp_path / name, name) for name in ("anchored", "opaque"))

    stored = read_runs(tmp_path / "anchored")
    assert all(run.strands["toy"]["questions"] > 0 for runs in stored.fixtures.values() for run in runs)

    verdict, part = compare_measurements(base, candidate)
    finding = verdict.strand("toy")
    assert finding is not None
    assert (verdict.kind, finding.state) == (Kind.REGRESSED, StrandState.WORSE)

    data = ReportData(candidate, base=part, verdict=verdict, cases={case.fixture.name: case for case in small.cases()})
    view = make_view(data)
    around = CommentContext(label="eval-compression", warnings=())
    screen = io.StringIO()
    print_report(view, console(screen), details=True)
    views = {
        "comment": result_body(view, Ticket.of(request(), allowed()), around, budget=LIMIT),
        "report": render_markdown(view),
        "page": render_html(data),
        "terminal": screen.getvalue(),
    }
    for name, text in views.items():
        assert TOY.title in text, name
        assert finding.candidate in text, name
    assert json_report(data)["strands"]["toy"] == "worse"


def test_a_side_that_did_not_record_a_strand_is_not_compared_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = small.measure(small.cases(), tmp_path / "base", "anchored")
    monkeypatch.setattr(registry, "STRANDS", (*registry.STRANDS, TOY))
    candidate = small.measure(small.cases(), tmp_path / "candidate", "anchored")
    verdict, _ = compare_measurements(base, candidate)
    assert verdict.strand("toy") is None
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE


def test_a_result_with_a_strand_of_another_version_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setattr(registry, "STRANDS", (*registry.STRANDS, TOY))
        base, candidate = (small.measure(small.cases(), tmp_path / name, name) for name in ("anchored", "opaque"))
        told, _ = compare_measurements(base, candidate)
    again, part = compare_measurements(base, candidate)
    assert again.strand("toy") is None
    # A verdict that names it is shown under its plain name.
    view = make_view(ReportData(candidate, base=part, verdict=told))
    assert "toy" in [row.name for row in view.strands]
