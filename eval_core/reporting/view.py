"""The view: everything a report shows, computed once and already in words."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from eval_core.base.numbers import (
    interval,
    listed,
    percent,
    percent_change,
    percents_and_change,
    pp,
    score,
    scores_and_change,
    signed,
)
from eval_core.base.numbers import tokens as token_words
from eval_core.base.yaml_edit import block_yaml
from eval_core.comparing.compare import OFFLINE_JUDGE_NOTE, OFFLINE_NOTE, ReportData
from eval_core.domain.compression import SMALLER, Outcome
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.reporting.losses import LostFact, Miss, doubts, lost_facts, misses, named_facts, unscored
from eval_core.reporting.metrics import Metric, TokensPerTask, target_metrics, tokens_per_task
from eval_core.reporting.not_looked_at import WORDS, not_looked_at, touched_unseen
from eval_core.statistics.arms import Quarantine, quarantined
from eval_core.statistics.hypotheses import FACT_NAMES, OVERALL
from eval_core.statistics.medians import STEP
from eval_core.strands.findings import Kind, Row, RowVerdict, SpreadFinding, StrandState, Verdict
from eval_core.strands.registry import title_of
from eval_core.strands.shown import shown_finding

COLUMNS = {
    "accuracy": "Accuracy",
    "context_awareness": "Context",
    "artifact_trail": "Artifact",
    "completeness": "Complete",
    "continuity": "Continuity",
    "instruction_following": "Instruction",
    "overall": "Overall",
}
_ROW_WORDS = {
    RowVerdict.WORSE: "worse",
    RowVerdict.BETTER: "better",
    RowVerdict.NO_DETECTABLE_CHANGE: "no detectable change",
    RowVerdict.INCONCLUSIVE: "inconclusive",
    RowVerdict.ADVISORY: "advisory",
}
_ROW_NAMES = FACT_NAMES
MARKS = {
    Kind.BROKEN: "✖",
    Kind.NOT_COMPARABLE: "≠",
    Kind.INCOMPLETE: "…",
    Kind.REGRESSED: "▼",
    Kind.IMPROVED: "▲",
    Kind.TRADE: "⇄",
    Kind.MIXED: "◆",
    Kind.NO_DETECTABLE_CHANGE: "=",
    Kind.INCONCLUSIVE: "?",
    Kind.NOT_JUDGED: "○",
}
"""The sign of each verdict, for readers and terminals without colours."""
_UNDECIDED = (Kind.BROKEN, Kind.INCOMPLETE, Kind.NOT_JUDGED)
"""Verdicts beside which numbers mislead: they may be of different fixtures, or of a prompt that nobody followed."""
_BEST, _CELLS = 5, 10
MARK = "†"
STEP_NOTE = (
    f"{MARK} changed by {STEP:g} or more: a simple rule on medians would flag it. It does not decide, "
    "because that rule also fires where nothing changed."
)


@dataclass(frozen=True)
class TableRow:
    """One line of the comparison's table."""

    name: str
    base: str
    candidate: str
    delta: str
    interval: str
    mde: str
    verdict: str
    bar: str
    """Ten cells: █ on both sides, ▒ lost, ▓ gained, ░ never there."""


@dataclass(frozen=True)
class StrandRow:
    """One kind of evidence: both sides in a few words, and what it says."""

    name: str
    base: str
    candidate: str
    verdict: str
    details: tuple[str, ...]
    """Quotations from sessions and summaries: whoever shows them makes them harmless."""
    parts: tuple[tuple[str, str, str], ...] = ()
    """The two sides part by part: what, base, candidate."""

    def first(self, most: int) -> tuple[str, ...]:
        """Return the first details, and how many more there are."""
        more = len(self.details) - most
        return (*self.details[:most], f"and {more} more") if more > 0 else self.details


@dataclass(frozen=True)
class FixtureRow:
    """One line of the median table: a cell for each dimension and overall."""

    fixture: str
    cells: tuple[str, ...]
    deltas: tuple[str, ...]
    """Against the baseline's medians; empty where there is no comparable one."""
    note: str = ""

    @property
    def marked(self) -> bool:
        """Whether the simple rule on medians would flag something here."""
        return any(MARK in delta for delta in self.deltas)


@dataclass(frozen=True)
class ReportView:
    """What all reports show."""

    data: ReportData
    label: str
    offline_note: str | None
    kind: Kind | None
    headline: str
    next_step: str
    remarks: tuple[str, ...]
    """What a reader must not miss beside the verdict."""
    notes: tuple[str, ...]
    """What else the verdict rests on."""
    not_looked_at: str
    """Everything that was not exercised, in one sentence, which is the last of the notes."""
    strands: tuple[StrandRow, ...]
    asks: tuple[str, ...]
    """The changed lines of the instructions to the compressor's model, as a diff; quotations, as details are."""
    table: tuple[TableRow, ...]
    size_line: str
    """Facts kept at this size, beside what plain ways to be that small would keep."""
    shown_line: str
    """How many facts are cut before the compressor's own model sees them."""
    accept: str
    """The lines of configuration that accept the removal of what was asked for: a section, or facts to be shown."""
    chance: int
    """Facts that changed no more than chance explains; they are not listed."""
    fixtures: tuple[FixtureRow, ...]
    lost: tuple[LostFact, ...]
    regained: tuple[LostFact, ...]
    misses: tuple[Miss, ...]
    unscored: dict[str, int]
    printed: str
    """What the compressor printed in the first run that failed, on one line; empty if nothing did."""
    doubts: dict[str, int]
    """Where the judge and the facts disagree, and in how many runs."""
    other_models: tuple[str, ...]
    """Models that were answered for by another."""
    metrics: tuple[Metric, ...]
    tokens: TokensPerTask | None
    untested: tuple[str, ...]
    quarantined: tuple[str, ...]
    broken_structure: tuple[str, ...]
    cost: str
    provenance: tuple[tuple[str, str], ...]


def _table(data: ReportData) -> tuple[TableRow, ...]:
    if data.verdict is None:
        return ()
    moved = (RowVerdict.WORSE, RowVerdict.BETTER)
    rows = list(data.verdict.rows)
    # What moved comes first; overall and the facts are always there.
    lead = [row for row in rows if row.name in ("overall", *_ROW_NAMES)]
    rest = sorted((row for row in rows if row not in lead), key=lambda row: (row.verdict not in moved, -abs(row.delta)))
    return (*map(_row, [*lead, *rest]), *map(_spread_row, data.verdict.spread))


def _strands(verdict: Verdict | None) -> tuple[StrandRow, ...]:
    return tuple(
        StrandRow(
            title_of(item.name),
            item.base,
            item.candidate,
            item.state.words,
            () if item.name == "asks" and item.state is StrandState.CHANGED else item.details,
            item.parts,
        )
        for item in (verdict.strands if verdict else ())
    )


def _too_small(measurement: Measurement) -> list[str]:
    """Name the sessions that the agent would not compress in use."""
    found = [
        f"{name} ({note.removeprefix(SMALLER)})"
        for name, runs in measurement.fixtures.items()
        for note in {note for run in runs for note in run.notes if note.startswith(SMALLER)}
    ]
    return [f"Smaller than what the compressor keeps word for word: {listed(found)}."] if found else []


def _accept(data: ReportData) -> str:
    # A single lost fact is hardly ever meant.
    meant = data.verdict is not None and any(strand.removed for strand in data.verdict.strands)
    if not meant or data.offer is None or not data.offer.suffices:
        return ""
    return block_yaml({"accept": data.offer.added.model_dump(exclude_defaults=True)})


def _size_line(measurement: Measurement, base: Measurement | None) -> str:
    """Say what share of the facts is kept at which size, and what the newest messages of that size would keep."""
    kept, old = measurement.facts_kept, base.facts_kept if base else None
    if kept is None:
        return ""
    at, newest = token_words(measurement.tokens_kept or 0.0), percent(measurement.share_kept("recency"))
    now = percent(kept) if old is None else percent_change(old, kept)
    same = old is not None and now.partition(" → ")[0] == now.partition(" → ")[2]
    shown = f"{now.partition(' → ')[0]}, as before," if same else now
    return f"Facts kept: {shown} in {at} tokens; the newest {at} tokens alone would keep {newest}"


def _shown_line(measurement: Measurement) -> str:
    found = shown_finding(measurement)
    if found is None or not found[0]:
        return ""
    return f"{found[0]} of {found[1]} facts at risk are cut before the compressor's model sees them"


def _row(row: Row) -> TableRow:
    if row.p is None:
        together = percents_and_change if row.family == "facts" else scores_and_change
        whole = 1 if row.family == "facts" else _BEST
        return TableRow(
            _ROW_NAMES.get(row.name, "offline grade"),
            *together(row.base, row.candidate),
            "counted" if row.family == "facts" else "-",
            "-",
            _ROW_WORDS[row.verdict],
            _bar(row.base / whole, row.candidate / whole),
        )
    if row.family == "facts":
        ends = "[unknown]" if row.ci_low is None else f"[{pp(row.ci_low, sign=True)}, {pp(row.ci_high, sign=True)}]"
        base, candidate, delta = percents_and_change(row.base, row.candidate)
        return TableRow(
            _ROW_NAMES.get(row.name, row.name),
            base,
            candidate,
            delta,
            ends,
            pp(row.mde),
            _ROW_WORDS[row.verdict],
            _bar(row.base, row.candidate),
        )
    base, candidate, delta = scores_and_change(row.base, row.candidate)
    return TableRow(
        row.name.replace("_", " "),
        base,
        candidate,
        delta,
        interval(row.ci_low, row.ci_high),
        score(row.mde),
        _ROW_WORDS[row.verdict],
        _bar(row.base / _BEST, row.candidate / _BEST),
    )


def _spread_row(item: SpreadFinding) -> TableRow:
    """Return the row of a quantity whose runs differ more, or less, than they did: neither better nor worse."""
    together = scores_and_change if item.name == OVERALL else percents_and_change
    name = f"run-to-run SD of {_ROW_NAMES.get(item.name, item.name)}"
    return TableRow(name, *together(item.base_sd, item.candidate_sd), "-", "-", item.verdict.replace("_", " "), "")


def _bar(base: float, candidate: float) -> str:
    """Draw two shares in one row of text."""
    before, after = (min(max(round(share * _CELLS), 0), _CELLS) for share in (base, candidate))
    both = min(before, after)
    return "█" * both + "▒" * (before - both) + "▓" * (after - both) + "░" * (_CELLS - max(before, after))


def medians(measurement: Measurement, fixture: str, banned: Quarantine = ()) -> dict[str, float]:
    """Return the median over probes of the median over runs, for each dimension and overall."""
    by_probe: dict[str, list[Grade]] = {}
    for run in measurement.fixtures.get(fixture, []):
        for probe, record in run.probes.items():
            if isinstance(record.result, Grade) and (fixture, probe) not in banned:
                by_probe.setdefault(probe, []).append(record.result)
    if not by_probe:
        return {}
    middle = {
        name: median(median(grade.scores[name] for grade in grades) for grades in by_probe.values())
        for name in DIMENSIONS
    }
    return {**middle, "overall": median(median(grade.overall for grade in grades) for grades in by_probe.values())}


def _step(delta: float) -> str:
    """Return a change of medians, marked where the fixed step alone would call it a change."""
    return signed(delta) + (MARK if abs(delta) >= STEP - 1e-9 else "")


def _fixture_rows(data: ReportData) -> tuple[FixtureRow, ...]:
    rows = []
    base = data.base if data.kind_is_comparable else None
    banned = quarantined(data.candidate, *([base] if base else []))
    for fixture, runs in data.candidate.fixtures.items():
        ours = medians(data.candidate, fixture, banned)
        theirs = medians(base, fixture, banned) if base else {}
        failed = [run for run in runs if run.outcome is not Outcome.OK]
        note = f"{len(failed)} of {len(runs)} runs: {failed[0].outcome}" if failed else ""
        rows.append(
            FixtureRow(
                fixture,
                tuple(score(ours.get(name)) if ours else "-" for name in COLUMNS),
                tuple(_step(ours[name] - theirs[name]) for name in COLUMNS) if ours and theirs else (),
                note,
            )
        )
    return tuple(rows)


def _printed(measurement: Measurement) -> str:
    runs = (run for runs in measurement.fixtures.values() for run in runs if run.output)
    return " ".join(next((run.output for run in runs), "").split())


def _untested(measurement: Measurement) -> tuple[str, ...]:
    """Name the fixtures where the compressor left most of the evidence verbatim, so that little was tested."""
    named = []
    for fixture, runs in measurement.fixtures.items():
        facts = [fact for run in runs if run.ok for record in run.probes.values() for fact in record.facts]
        facts = [fact for fact in facts if fact.evidence]
        spared = sum(1 for fact in facts if not fact.at_risk)
        if facts and spared * 2 > len(facts):
            count = len({run.run for run in runs if run.ok}) or 1
            named.append(
                f"{fixture}: this target keeps {spared // count} of {len(facts) // count} facts verbatim; "
                "let it keep fewer messages or use a longer fixture"
            )
    return tuple(named)


def _money(measurement: Measurement) -> str:
    calls = sum(use.calls for role, use in measurement.use.items() if role == "compressor" or not measurement.offline)
    if measurement.offline:
        return "no model was called, $0.00"
    spent = measurement.spent
    price = "price unknown" if spent.cost_usd is None else f"${spent.cost_usd:.2f}"
    tokens = spent.input_tokens + spent.output_tokens
    return f"{price}, {calls} model calls, {tokens:,} tokens ({spent.cached_tokens:,} read from prompt caches)"


def _provenance(data: ReportData) -> tuple[tuple[str, str], ...]:
    ours = data.candidate
    sha = ours.provenance.source_sha
    rows = [
        ("Target", ours.provenance.target),
        (
            "Source",
            f"{sha[:12]}{' with uncommitted changes' if ours.provenance.dirty else ''}" if sha else "not in git",
        ),
        ("Models", ", ".join(f"{role} {model}" for role, model in ours.models.items())),
        *_judge(ours),
        ("Runs", f"{ours.planned_runs} graded, {ours.planned_compress_runs} compressions of each fixture"),
        ("Fingerprint", ours.fingerprint.digest[:12]),
        ("Seed", str(ours.provenance.seed)),
        ("Sandbox", ours.provenance.sandbox),
        ("Version", ours.provenance.version),
        ("Date", ours.provenance.date),
        *(("Warning", warning) for warning in data.warnings),
    ]
    if data.base is not None:
        base = data.base.provenance
        origin = f"{base.target} at {(base.source_sha or 'unknown')[:12]}, {base.date}"
        runs = f"{data.base.planned_runs} graded runs"
        rows.append(("Baseline", f"{data.base_path or data.base.label}: {origin}, {runs}"))
    if data.verdict is not None:
        shares = ", ".join(
            f"{item.side} {item.family} {item.observed} of {item.planned}" for item in data.verdict.coverage
        )
        rows += [("Coverage", shares), ("Look", f"{data.verdict.look} of {data.verdict.planned_looks} planned")]
    return tuple(rows)


def _judge(measurement: Measurement) -> list[tuple[str, str]]:
    """Say how the judge did on obvious cases, and what a difference of its grades is worth where it was audited."""
    record = measurement.extra.calibration
    if record is None:
        return []
    found = record.calibration
    right = "no pair could be" if found.agreement is None else f"{percent(found.agreement)} of {found.pairs} pairs"
    worth = f" {record.audit.sensitivity}" if record.audit is not None else ""
    return [("Judge", f"calibrated {record.date[:10]}: {right} ranked correctly.{worth}")]


def _other_models(measurement: Measurement) -> tuple[str, ...]:
    """Name the models that a provider replaced; a dated version of the same name is the same model."""
    found = []
    for asked, answered in measurement.extra.served.items():
        bare = asked.rpartition("/")[2].lower()
        for name, count in answered.items():
            other = name.rpartition("/")[2].lower()
            if other and not other.startswith(bare) and not bare.startswith(other):
                found.append(f"{asked}: {count} replies came from {name}")
    return tuple(found)


def _judge_note(measurement: Measurement) -> str | None:
    if not measurement.judged:
        return OFFLINE_JUDGE_NOTE
    judge = measurement.models.get("judge")
    shared = [role for role in ("compressor", "answer") if measurement.models.get(role) == judge]
    if measurement.offline or not shared:
        return None
    return f"the judge is the same model as the {' and the '.join(shared)} model"


def _uncompared(data: ReportData) -> str:
    return f"{'First result' if data.first else 'No comparison'}: {data.note or 'no baseline was given'}."


def make_view(data: ReportData) -> ReportView:
    """Compute everything that reports show."""
    verdict = data.verdict
    comparable_base = data.base if data.kind_is_comparable else None
    if verdict is not None and comparable_base is not None:
        changes = named_facts(verdict)
    else:
        changes = lost_facts(data.candidate)
    unseen = f"Not looked at: {'; '.join(WORDS[name] for name in not_looked_at(data))}."
    note = OFFLINE_NOTE if data.candidate.offline else _judge_note(data.candidate)
    failing = sorted(
        {
            f"{fixture}: {check}"
            for fixture, runs in data.candidate.fixtures.items()
            for run in runs
            for check, passed in run.structure.items()
            if not passed
        }
    )
    return ReportView(
        data=data,
        label=data.candidate.label,
        offline_note=note,
        kind=verdict.kind if verdict else None,
        headline=verdict.headline if verdict else _uncompared(data),
        next_step=data.next_step,
        remarks=(*(verdict.remarks if verdict else ()), *filter(None, [touched_unseen(data)])),
        notes=(
            *(note for note in (verdict.notes if verdict else ()) if verdict and note not in verdict.remarks),
            *_too_small(data.candidate),
            unseen,
        ),
        not_looked_at=unseen,
        strands=_strands(verdict),
        asks=asks.details if verdict and (asks := verdict.strand("asks")) and asks.state is StrandState.CHANGED else (),
        table=_table(data),
        size_line="" if verdict and verdict.kind in _UNDECIDED else _size_line(data.candidate, comparable_base),
        shown_line=_shown_line(data.candidate),
        accept=_accept(data),
        chance=sum(not item.clear for item in verdict.facts) if verdict else 0,
        fixtures=_fixture_rows(data),
        lost=tuple(row for row in changes if row.change < 0),
        regained=tuple(row for row in reversed(changes) if row.change > 0 and row.base_kept is not None),
        misses=tuple(misses(data.candidate)),
        unscored=unscored(data.candidate),
        printed=_printed(data.candidate),
        doubts=doubts(data.candidate),
        other_models=_other_models(data.candidate),
        metrics=tuple(target_metrics(data.candidate)),
        tokens=tokens_per_task(data.candidate, task=data.task),
        untested=_untested(data.candidate),
        quarantined=tuple(
            f"{fixture} / {probe}: {control.quarantined}"
            for fixture, controls in data.candidate.controls.items()
            for probe, control in controls.probes.items()
            if control.quarantined
        ),
        broken_structure=tuple(failing),
        cost=_money(data.candidate),
        provenance=_provenance(data),
    )
