"""The HTML report: one self-contained file, with where both sides come from and what they cost."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval_core.base import numbers as wording
from eval_core.comparing.compare import ReportData
from eval_core.domain.compression import ModelUse
from eval_core.domain.measurement import Measurement
from eval_core.reporting.html.first_screen import Changes, changes, message_anchor, tiles
from eval_core.reporting.html.fixtures import FixtureView, RunRow, RunView, census_rows, fixture_view
from eval_core.reporting.html.frontier import frontier
from eval_core.reporting.html.mean_scores import COLUMNS, OVERALL
from eval_core.reporting.html.payload import pack
from eval_core.reporting.html.plots import plot_tables
from eval_core.reporting.html.probes import TAGS
from eval_core.reporting.html.rounds_pictures import rounds_pictures, rounds_sides
from eval_core.reporting.html.text import slug, visible, with_code
from eval_core.reporting.html.timelines import timelines
from eval_core.reporting.html.trends import trends
from eval_core.reporting.metrics import target_metrics
from eval_core.reporting.view import MARKS, make_view
from eval_core.statistics.hypotheses import FACT_NAMES
from eval_core.strands.findings import Culprit, Kind

# Where both sides come from and what they cost, field by field.


@dataclass(frozen=True)
class Field:
    """One field on both sides."""

    name: str
    base: str
    candidate: str
    differs: bool
    must_match: bool
    """Part of the fingerprint: where it differs, nothing can be compared."""


@dataclass(frozen=True)
class UseRow:
    """Calls, tokens and money of one role on one side."""

    role: str
    side: str
    calls: str
    input: str
    cached: str
    output: str
    cost: str


def _words(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(prefix: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        if not value:
            return {}
        return {key: text for name, inner in value.items() for key, text in _flat(f"{prefix} · {name}", inner).items()}
    return {prefix: _words(value)}


def _described(measurement: Measurement | None, path: str | None) -> dict[str, str]:
    if measurement is None:
        return {}
    source = measurement.provenance.model_dump(mode="json")
    fields = {"label": measurement.label, "file": _words(path)} if path else {"label": measurement.label}
    for name, value in source.items():
        fields[name.replace("_", " ")] = _words(value)
    fields["offline"] = _words(measurement.offline)
    fields["graded runs planned"] = str(measurement.planned_runs)
    fields["compressions planned"] = str(measurement.planned_compress_runs)
    fields["stopped early"] = _words(measurement.stopped)
    for role, model in measurement.models.items():
        fields[f"model · {role}"] = model
    for name, value in measurement.extra.model_dump(mode="json").items():
        fields.update(_flat(f"extra · {name}", value))
    return fields


def _fingerprint(measurement: Measurement | None) -> dict[str, str]:
    if measurement is None:
        return {}
    fields = {"fingerprint": measurement.fingerprint.digest}
    for name, value in measurement.fingerprint.model_dump(mode="json").items():
        fields.update(_flat(name.replace("_", " "), value))
    return fields


def provenance(candidate: Measurement, base: Measurement | None, base_path: str | None) -> list[Field]:
    """Return every field of both sides: first what is compared, then what must be equal for it."""
    fields = []
    for must_match, theirs, ours in (
        (False, _described(base, base_path), _described(candidate, None)),
        (True, _fingerprint(base), _fingerprint(candidate)),
    ):
        for name in dict.fromkeys([*ours, *theirs]):
            left, right = theirs.get(name, "–"), ours.get(name, "–")
            fields.append(Field(name, left, right, base is not None and left != right, must_match))
    return fields


def _use_row(role: str, side: str, use: ModelUse) -> UseRow:
    cost = "price unknown" if use.cost_usd is None else f"${use.cost_usd:.4f}"
    return UseRow(
        role, side, f"{use.calls:,}", f"{use.input_tokens:,}", f"{use.cached_tokens:,}", f"{use.output_tokens:,}", cost
    )


def use_rows(candidate: Measurement, base: Measurement | None) -> list[UseRow]:
    """Return what each role used, base first."""
    sides = [("base", base.use)] if base else []
    sides.append(("candidate", candidate.use))
    roles = dict.fromkeys(role for _, use in sides for role in use)
    return [_use_row(role, side, use[role]) for role in roles for side, use in sides if role in use]


# The page: one file that opens from disk, fetches nothing and runs nothing but its own two scripts.

_ASSETS = Path(__file__).parent.parent / "assets"
_UNIT = re.compile(r"(\d) (%|pp\b|tokens\b)")


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
    env.filters["capital"] = _capital
    env.filters["tight"] = _tight
    env.filters["code"] = with_code
    env.globals.update(
        {name: getattr(wording, name) for name in ("score", "signed", "percent", "pp", "p_value", "counted")},
        slug=slug,
        message_anchor=message_anchor,
        culprit_words=_culprit_words,
        fact_names=FACT_NAMES,
    )
    return env


def asset(name: str) -> str:
    """Return one of the page's own files."""
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
    names = {
        "outcome": "runs that compress",
        "retention": "facts",
        "fact": "facts of a probe",
        "census": "census facts",
        "structure": "runs that pass",
    }
    move = wording.percent_change(item.base or 0.0, item.candidate or 0.0)
    return names[item.kind], move, wording.pp(item.delta, sign=True)


def _ordered(culprits: Sequence[Culprit]) -> list[Culprit]:
    """Put what says most first: overall, the facts, structure, dimensions, then single units by their size."""
    ranks = {"outcome": 0, "retention": 1, "structure": 2, "dimension": 3, "probe": 4, "fact": 5, "census": 6}

    def rank(item: Culprit) -> tuple[int, float]:
        return 0 if item.name == OVERALL and item.fixture is None else ranks[item.kind], -abs(item.delta or 0.0)

    return sorted(culprits, key=rank)


# The fixtures as a table, and the page around everything.

MOST = 6
"""Lost facts that are shown without being asked for: what fits on a first screen."""
MOST_ROWS = 30
"""Fixtures that are shown without being asked for, those that lose most; a suite may have hundreds."""


@dataclass(frozen=True)
class SuiteRow:
    """One fixture in a line."""

    name: str
    anchor: str
    description: str
    session: str
    base_tokens: str
    tokens: str
    facts: str
    score: str
    failed: str
    failures: tuple[RunRow, ...]


def _mean_tokens(runs: Sequence[RunView]) -> str:
    return f"{fmean(run.tokens for run in runs):,.0f}" if runs else "–"


def _facts_kept(runs: Sequence[RunView], facts: int) -> float | None:
    shares = [sum(sign in "1-" for sign in run.kept[:facts]) / facts for run in runs if facts]
    return fmean(shares) if shares else None


def _suite_row(fixture: FixtureView) -> SuiteRow:
    asked = sum(bool(fact.probe) for fact in fixture.facts)
    before, now = (_facts_kept(runs, asked) for runs in (fixture.base_runs, fixture.candidate_runs))
    both = before is not None and now is not None
    scores = [probe.score for probe in fixture.probes if probe.score is not None]
    grade = wording.score(fmean(scores)) if scores else "–"
    failures = tuple(row for row in fixture.runs if not row.ok)
    return SuiteRow(
        name=fixture.name,
        anchor=fixture.anchor,
        description=fixture.description,
        session=f"{fixture.tokens:,}" if fixture.tokens else "–",
        base_tokens=_mean_tokens(fixture.base_runs),
        tokens=_mean_tokens(fixture.candidate_runs),
        facts=wording.percent_change(before, now) if before is not None and now is not None else wording.percent(now),
        score=f"{grade} ({wording.signed(fixture.delta)})" if fixture.delta is not None and both else grade,
        failed="; ".join(f"{row.side}, {row.runs}: {row.outcome}" for row in failures) or "none",
        failures=failures,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tight(text: str) -> str:
    """Keep a number and its unit in one line."""
    return _UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", text)


def render_page(template: str, script: str, **values: Any) -> str:
    """Return one self-contained file: the template in the common shell, with a policy that allows nothing else."""
    style, theme = asset("page.css"), asset("theme.js")
    return (
        _environment()
        .get_template(template)
        .render(
            policy=_policy(style, (theme, script)),
            # Our own files, and the only text that is not escaped: the hashes in the policy are theirs.
            style=Markup(style),  # noqa: S704
            theme=Markup(theme),  # noqa: S704
            script=Markup(script),  # noqa: S704
            **values,
        )
    )


def _named_first(fixtures: Sequence[FixtureView], found: Changes) -> list[FixtureView]:
    """Put the fixtures that lose most first: they are the ones to look at."""
    losses = Counter(line.fixture for line in found.lost)
    return sorted(fixtures, key=lambda fixture: -losses[fixture.name])


def render_html(data: ReportData) -> str:
    """Return the report as one self-contained HTML file."""
    verdict, view = data.verdict, make_view(data)
    compared = data.base is not None and (verdict is None or verdict.kind is not Kind.NOT_COMPARABLE)
    base = data.base if compared else None
    found = changes(data)
    fixtures = _named_first([fixture_view(data, name, compared=compared) for name in data.candidate.fixtures], found)
    probes = [probe for fixture in fixtures for probe in fixture.probes]
    used = {tag for probe in probes for tag in probe.tags}
    sides = [("base", "base", base)] if base else []
    tables = plot_tables(data.candidate, base, verdict)
    headline = view.headline.removeprefix(f"{verdict.kind.words}: ") if verdict else view.headline
    return render_page(
        "page.html.j2",
        "\n".join(map(asset, ("unpack.js", "diff.js", "page.js"))),
        packed=pack(
            {
                "compared": compared,
                "offline": data.candidate.offline,
                "fixtures": fixtures,
                "columns": list(COLUMNS.values()),
            }
        ),
        data=data,
        view=view,
        verdict=verdict,
        sign=MARKS[verdict.kind] if verdict else "•",
        headline=_capital(headline),
        compared=compared,
        found=found,
        most=MOST,
        most_rows=MOST_ROWS,
        picture=frontier([*sides, ("candidate", "candidate", data.candidate)]),
        rounds=rounds_pictures(rounds_sides([*sides, ("candidate", "candidate", data.candidate)])),
        timelines=timelines(data.candidate.extra.tasks),
        tables=tables,
        tiles=tiles(data.candidate, base, tables, view.cost),
        suite=[_suite_row(fixture) for fixture in fixtures],
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
    )
