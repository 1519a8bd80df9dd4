"""The markdown report, as written to `report.md`."""

from __future__ import annotations

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from eval_core.base.markdown_text import inline, plain, prose, unlinked
from eval_core.base.numbers import percent
from eval_core.domain.grade import PASS_SCORE
from eval_core.reporting.losses import LostFact, places
from eval_core.reporting.view import COLUMNS, STEP_NOTE, FixtureRow, ReportView


def _cells(row: FixtureRow) -> str:
    """Return the cells of a row of medians, each with its change."""
    deltas = [f" ({delta})" for delta in row.deltas] or [""] * len(row.cells)
    return " | ".join(cell + delta for cell, delta in zip(row.cells, deltas, strict=True))


def _before(fact: LostFact) -> str:
    return "" if fact.base_kept is None else f" (baseline {percent(fact.base_kept)})"


class _Exact(str):
    """The text of a block of code, where nothing acts and every character counts."""


def _finalized(value: object) -> object:
    """Take mentions and addresses out of whatever a template shows, names that are shown without a filter included."""
    return unlinked(value) if isinstance(value, str) and not isinstance(value, _Exact) else value


@cache
def markdown_environment(package: str) -> Environment:
    """Return the environment of a package's markdown templates, with the filters that they share."""
    environment = Environment(
        loader=PackageLoader(package, "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - markdown; what is not ours goes through a filter
        finalize=_finalized,
    )
    environment.filters.update(
        md=plain,
        inline=inline,
        prose=prose,
        exact=_Exact,
        places=places,
        share=percent,
        cells=_cells,
        before=_before,
        whole=lambda number: f"{number:,.0f}",
    )
    return environment


def render_markdown(view: ReportView) -> str:
    """Render the full report."""
    text = (
        markdown_environment("eval_core.reporting")
        .get_template("report.md.j2")
        .render(
            view=view,
            models=view.data.candidate.models,
            columns=list(COLUMNS.values()),
            pass_score=PASS_SCORE,
            step_note=STEP_NOTE,
        )
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
