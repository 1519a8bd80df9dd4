"""Writing the reports of a run beside its results."""

from __future__ import annotations

from eval_core.base.files import pretty
from eval_core.comparing.compare import ReportData
from eval_core.reporting.html import render_html
from eval_core.reporting.json_report import json_report
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.storage.results import ResultsFolder
from eval_core.strands.findings import Kind

_BADGE = {
    Kind.IMPROVED: "brightgreen",
    Kind.NO_DETECTABLE_CHANGE: "brightgreen",
    Kind.REGRESSED: "red",
    Kind.BROKEN: "red",
    Kind.MIXED: "orange",
    Kind.TRADE: "orange",
}


def write_reports(data: ReportData, folder: ResultsFolder) -> None:
    """Write `report.md`, `report.html`, `report.json`, `run.json` and a badge, and let `latest` point here."""
    measurement = data.candidate
    folder.write("report.md", render_markdown(make_view(data)))
    folder.write("report.json", pretty(json_report(data)))
    run = measurement.model_dump(mode="json", exclude={"fixtures", "controls"})
    folder.write("run.json", pretty(run))
    if data.verdict is not None:
        folder.write("verdict.json", data.verdict.to_json())
        words, colour = data.verdict.kind.value.replace("_", " "), _BADGE.get(data.verdict.kind, "yellow")
        badge = {"schemaVersion": 1, "label": "compression", "message": words, "color": colour}
        folder.write("badge.json", pretty(badge))
    folder.write("report.html", render_html(data))
    folder.point_latest()
