"""The page: one file that opens from disk, fetches nothing and runs nothing but its own two scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval_core.compare import wording
from eval_core.compare.finding import Culprit, Kind
from eval_core.report.data import ReportData
from eval_core.report.html.census import census_rows
from eval_core.report.html.fixtures import fixture_view
from eval_core.report.html.heat import COLUMNS
from eval_core.report.html.plots import plot_tables, trends
from eval_core.report.html.probes import TAGS
from eval_core.report.html.provenance import provenance, use_rows
from eval_core.report.html.tally import OVERALL
from eval_core.report.html.text import slug, visible
from eval_core.report.html.transcript import TRACE, message_anchor
from eval_core.report.metrics import target_metrics
from eval_core.report.view import make_view

__all__ = ["render_html"]

_ASSETS = Path(__file__).parent.parent / "assets"
_SIGNS = {
    Kind.NOT_COMPARABLE: "≠",
    Kind.INCOMPLETE: "…",
    Kind.REGRESSED: "▼",
    Kind.IMPROVED: "▲",
    Kind.MIXED: "◆",
    Kind.NO_DETECTABLE_CHANGE: "=",
    Kind.INCONCLUSIVE: "?",
}


def _finalize(value: object) -> object:
    """Make every text visible before it is escaped: no template can forget to."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        {name: getattr(wording, name) for name in ("score", "signed", "percent", "pp", "p_value", "counted")},
        slug=slug,
        message_anchor=message_anchor,
        columns=COLUMNS,
        culprit_words=_culprit_words,
    )
    return env


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _policy(style: str, scripts: tuple[str, ...]) -> str:
    allowed = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {allowed}; "
        "img-src 'none'; base-uri 'none'; form-action 'none'"
    )


def _culprit_words(item: Culprit) -> tuple[str, str, str]:
    """Return what moved, from what to what, and by how much."""
    if item.kind in ("dimension", "probe"):
        ends = f" {wording.interval(item.ci_low, item.ci_high)}" if item.ci_low is not None else ""
        return item.kind, wording.change(item.base or 0.0, item.candidate or 0.0), wording.signed(item.delta) + ends
    names = {"retention": "facts", "fact": "facts of a probe", "census": "census facts", "structure": "runs that pass"}
    move = wording.percent_change(item.base or 0.0, item.candidate or 0.0)
    return names[item.kind], move, wording.pp(item.delta, sign=True)


def _ordered(culprits: Sequence[Culprit]) -> list[Culprit]:
    """Put what says most first: overall, the facts, structure, dimensions, then single units by their size."""
    ranks = {"retention": 1, "structure": 2, "dimension": 3, "probe": 4, "fact": 5, "census": 6}

    def rank(item: Culprit) -> tuple[int, float]:
        return 0 if item.name == OVERALL and item.fixture is None else ranks[item.kind], -abs(item.delta or 0.0)

    return sorted(culprits, key=rank)


def render_html(data: ReportData) -> str:
    """Return the report as one self-contained HTML file."""
    verdict, view = data.verdict, make_view(data)
    compared = data.base is not None and (verdict is None or verdict.kind is not Kind.NOT_COMPARABLE)
    base = data.base if compared else None
    fixtures = [
        fixture_view(data, name, index, compared=compared) for index, name in enumerate(data.candidate.fixtures)
    ]
    probes = [probe for fixture in fixtures for probe in fixture.probes]
    used = {tag for probe in probes for tag in probe.tags}
    style, theme, script = _asset("page.css"), _asset("theme.js"), _asset("page.js")
    headline = view.headline.removeprefix(f"{verdict.kind.words}: ") if verdict else view.headline
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            policy=_policy(style, (theme, script)),
            # Our own files, and the only text that is not escaped: the hashes in the policy are theirs.
            style=Markup(style),  # noqa: S704
            theme=Markup(theme),  # noqa: S704
            script=Markup(script),  # noqa: S704
            data=data,
            view=view,
            verdict=verdict,
            sign=_SIGNS[verdict.kind] if verdict else "•",
            headline=headline,
            compared=compared,
            tables=plot_tables(data.candidate, base, verdict),
            fixtures=fixtures,
            probe_count=len(probes),
            types=sorted({probe.type for probe in probes}),
            tags={tag: words for tag, words in TAGS.items() if tag in used},
            metrics=target_metrics(data.candidate),
            base_metrics=target_metrics(base) if base else [],
            census=census_rows(base.fixtures if base else {}, data.candidate.fixtures),
            culprits=_ordered(verdict.culprits) if verdict else [],
            uses=use_rows(data.candidate, base),
            trends=trends(data.history, data.candidate),
            fields=provenance(data.candidate, data.base, data.base_path),
            trace=wording.percent(TRACE),
        )
    )
