"""The two sentences at the top: what was found, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eval_core.base.numbers import change, counted, interval, listed, percent, percent_change, points, pp, signed
from eval_core.comparing.findings import Culprit, Kind, Reason, Row, RowVerdict
from eval_core.comparing.hypotheses import AUTHORED, CENSUS, OVERALL

__all__ = ["changed", "incomplete", "inconclusive", "next_step", "no_change", "not_comparable"]

RETENTION = {AUTHORED: "facts kept", CENSUS: "census facts kept"}


def _dimension(item: Culprit) -> str:
    return f"{item.name} {signed(item.delta)} {interval(item.ci_low, item.ci_high)}"


def _shares(item: Culprit, name: str) -> str:
    return f"{name} {percent_change(item.base or 0.0, item.candidate or 0.0)}"


def _side(culprits: Sequence[Culprit], direction: str) -> str:
    """Return all that moved in one direction, in a fixed order of kinds."""
    mine = [item for item in culprits if item.direction == direction]

    def of(kind: str) -> list[Culprit]:
        return [item for item in mine if item.kind == kind]

    worse = direction == "worse"
    # Overall first: it is what a reader looks for.
    dimensions = sorted(of("dimension"), key=lambda item: (item.name != OVERALL, -abs(item.delta or 0.0)))
    parts = [listed([_dimension(item) for item in dimensions])] if dimensions else []
    sections = (
        ("probe", "broken probes" if worse else "mended probes"),
        ("fact", "facts lost in" if worse else "facts regained in"),
        ("census", "census facts lost in" if worse else "census facts regained in"),
    )
    retention = of("retention")
    for kind, title in sections:
        items = sorted(of(kind), key=lambda item: -abs(item.delta or 0.0))
        # The overall share says it shorter; single units are named where they alone moved.
        covered = {"fact": AUTHORED, "census": CENSUS}.get(kind)
        if items and not any(item.name == covered for item in retention):
            shown = [f"{item.label} ({_move(item)})" for item in items]
            parts.append(f"{title}: {listed(shown)}")
    parts += [_shares(item, RETENTION[item.name]) for item in retention]
    if of("structure"):
        broken = "structure broken" if worse else "structure mended"
        parts.append(f"{broken}: {listed([item.label for item in of('structure')])}")
    return "; ".join(parts)


def _move(item: Culprit) -> str:
    move = change if item.kind == "probe" else percent_change
    return move(item.base or 0.0, item.candidate or 0.0)


def changed(kind: Kind, culprits: Sequence[Culprit]) -> str:
    """Say what moved."""
    if kind is Kind.MIXED:
        return f"{kind.words}: worse: {_side(culprits, 'worse')}; better: {_side(culprits, 'better')}."
    return f"{kind.words}: {_side(culprits, 'worse' if kind is Kind.REGRESSED else 'better')}."


def _row(row: Row) -> str:
    if row.family == "scores":
        return f"{row.name} {signed(row.delta)} {interval(row.ci_low, row.ci_high)}"
    text = f"{RETENTION[row.name]} {percent_change(row.base, row.candidate)}"
    if row.ci_low is None or row.ci_high is None:
        return text
    return f"{text} [{pp(row.ci_low, sign=True)}, {pp(row.ci_high, sign=True)}]"


def _lead(rows: Sequence[Row]) -> tuple[Row | None, Row | None]:
    """Return the row that stands for the scores and the row that stands for the facts."""
    overall = next((row for row in rows if row.name == OVERALL), None)
    return overall, next((row for row in rows if row.family == "facts"), None)


def no_change(rows: Sequence[Row]) -> str:
    """Say that nothing moved, and what would have been seen."""
    overall, facts = _lead(rows)
    first = overall or facts
    seen = []
    if overall is not None:
        seen.append(f"{points(overall.mde)} or more")
    if facts is not None:
        seen.append(f"about {pp(facts.mde)} of facts")
    described = _row(first) if first is not None else "nothing measured"
    return f"{Kind.NO_DETECTABLE_CHANGE.words}: {described}; would have seen {', or '.join(seen)}."


def _resolve(row: Row) -> str:
    text = points if row.family == "scores" else pp
    return "" if row.mde_two_more is None else f"2 more runs would resolve {text(row.mde_two_more)}"


def inconclusive(rows: Sequence[Row], unreachable: str | None) -> str:
    """Say what is still open and what two more runs would show."""
    if not rows:
        return f"{Kind.INCONCLUSIVE.words}: nothing that was compared had anything at risk."
    overall, facts = _lead(rows)
    first = overall or facts or rows[0]
    parts = [_row(first)]
    open_rows = [row for row in rows if row.verdict is RowVerdict.INCONCLUSIVE]
    widest = max(open_rows, key=lambda row: (row.ci90_high or 9.0) - (row.ci90_low or -9.0), default=first)
    if first.verdict is not RowVerdict.INCONCLUSIVE and widest is not first:
        parts.append(f"open: {_row(widest)}")
    # Where so few runs could not have shown anything, a promise about two more would be empty.
    promise = unreachable or _resolve(widest if first.verdict is not RowVerdict.INCONCLUSIVE else first)
    if promise:
        parts.append(promise)
    return f"{Kind.INCONCLUSIVE.words}: {'; '.join(parts)}."


def not_comparable(reasons: Sequence[Reason]) -> str:
    """Say which field differs, or that the judge drifted; no number of the comparison."""
    return f"{Kind.NOT_COMPARABLE.words}: {listed([reason.text for reason in reasons])}."


def incomplete(reasons: Sequence[Reason], broken: Iterable[Culprit]) -> str:
    """Say what is missing and where, and what is certain already."""
    seen = [item.label for item in broken]
    certain = f"; already certain: structure broken: {listed(seen)}" if seen else ""
    return f"{Kind.INCOMPLETE.words}: {listed([reason.text for reason in reasons])}{certain}."


def next_step(
    kind: Kind,
    *,
    reasons: Sequence[Reason] = (),
    fixtures: Sequence[str] = (),
    more_runs: int | None = None,
    chance: float | None = None,
) -> str:
    """Return one sentence on what to do."""
    if kind is Kind.NOT_COMPARABLE:
        if any(reason.code == "difference" for reason in reasons):
            return "Make a baseline with these settings, or run again with the baseline's."
        return "Grade the baseline's stored answers again with the judge of today, then compare."
    if kind is Kind.INCOMPLETE:
        return "Resume the run: what has been paid for is kept, only the missing cells are run."
    if kind is Kind.REGRESSED:
        where = f", starting with {listed(fixtures, 2)}" if fixtures else ""
        return f"Look at what the compressed state lost{where}; then run again."
    if kind is Kind.MIXED:
        return "Decide whether the gain is worth the loss; the table names both."
    if kind is Kind.IMPROVED:
        return "Merge when the gain is the one intended, and update the baseline afterwards."
    if kind is Kind.NO_DETECTABLE_CHANGE:
        return "Nothing to do, unless a smaller change than the one named would matter."
    if more_runs is None:
        return "More candidate runs alone will hardly settle it: add runs to the baseline as well, or more fixtures."
    if chance is None:
        return f"Add {counted(more_runs, 'run')} of each fixture; fewer cannot show any change."
    return (
        f"Add {counted(more_runs, 'run')} of each fixture; the chance that this settles it is about {_rough(chance)}."
    )


def _rough(chance: float) -> str:
    """Return a chance to the nearest ten percent: it is an estimate itself."""
    return percent(min(0.9, max(0.1, round(chance, 1))))
