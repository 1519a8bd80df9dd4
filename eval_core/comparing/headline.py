"""The headline and the next step: one sentence on what was found, one on what to do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from eval_core.base.numbers import (
    counted,
    interval,
    listed,
    percent,
    percent_change,
    percents_and_change,
    points,
    pp,
    signed,
    tokens,
)
from eval_core.statistics.hypotheses import FACT_NAMES, OVERALL
from eval_core.strands.findings import Advice, Finding, Kind, Reason, Row, RowVerdict, StrandState, Verdict
from eval_core.strands.outcome import OutcomeChange
from eval_core.strands.size import SizeChange

_ORDER: tuple[str, ...] = ("outcome", "form", "structure", "shown", "facts", "scores", "window")
_MOST = 2
"""Findings that fit into one sentence; the others are listed below it."""
_MOST_CLAUSES = 3


def _findings(strands: Mapping[str, Finding], states: Sequence[StrandState]) -> list[str]:
    order = dict.fromkeys([*_ORDER, *strands])
    found = [strands[name] for name in order if name in strands and strands[name].state in states]
    # What is worse without a doubt comes before what is both, and a cause before what follows from it.
    found.sort(
        key=lambda item: (StrandState.WORSE in states and item.state is StrandState.BOTH, item.code == "emptied")
    )
    if any(item.name == "structure" for item in found):
        # A form that lost nothing is worse for the order to the reader that the structure check names.
        found = [item for item in found if item.name != "form" or item.loss]
    return [item.says for item in found if item.says]


def _at(size: SizeChange | None) -> str:
    """Say at which size, where it is another."""
    if size is None or not (size.larger or size.smaller):
        return ""
    word = "more" if size.larger else "fewer"
    sizes = f"{tokens(size.base_tokens)} → {tokens(size.candidate_tokens)}"
    return f"{percent(abs(size.ratio - 1))} {word} tokens ({sizes})"


def untested(strands: Mapping[str, Finding]) -> list[str]:
    """Return what every run shows and too few runs are there to test: a heading that no summary has any more."""
    form = strands.get("form")
    return [form.says] if form is not None and form.state is StrandState.CANNOT_TELL and form.says else []


def _gains(strands: Mapping[str, Finding]) -> list[str]:
    """Return what speaks against a regression: strands in which more was gained than lost."""
    better = [item for item in strands.values() if item.state in (StrandState.BETTER, StrandState.BOTH)]
    return _findings(
        {item.name: item for item in better if item.gain > item.loss}, (StrandState.BETTER, StrandState.BOTH)
    )


def changed(kind: Kind, strands: Mapping[str, Finding], size: SizeChange | None) -> str:
    """Say what moved, in one sentence."""
    worse = _findings(strands, (StrandState.WORSE, StrandState.BOTH))
    better = _findings(strands, (StrandState.BETTER, StrandState.BOTH))
    facts = strands.get("facts")
    if facts is not None and facts.leans_down:
        worse.append(facts.says)
    at = _at(size)
    if kind is Kind.MIXED:
        parts = list(dict.fromkeys([*worse[:_MOST], *better[:_MOST]]))
        return f"{kind.words}: {'; '.join(parts)}{f', with {at}' if at else ''}."
    if kind is Kind.TRADE:
        if size is None or not size.larger:
            lost = "; ".join(worse[:_MOST]) or f"{accepted(strands)}, as accepted"
            return f"{kind.words}: {lost}, for {at}."
        return f"{kind.words}: {'; '.join(better[:_MOST])}, bought with {at}."
    form = strands.get("form")
    if kind is Kind.REGRESSED and form is not None and form.code == "all_stubs" and form.says in worse:
        # All else follows from it.
        return f"{kind.words}: {form.says}."
    if kind is Kind.REGRESSED:
        against = _gains(strands)
        moved = [text for text in worse if text not in against] or worse
    else:
        against = [text for text in worse if text not in better]
        moved = better
    if not moved:
        return f"{kind.words}: {_only_size(kind, strands.get('facts'))} {at}."
    clauses = [clause for text in moved[:_MOST] for clause in text.split("; ")][:_MOST_CLAUSES]
    clauses += [text for text in untested(strands) if text not in clauses]
    # What speaks against the verdict is told beside it: the room that a cut frees is filled with other facts.
    joint = "; " if kind is Kind.REGRESSED and against and against[0] in worse else ", but "
    but = f"{joint}{against[0]}" if against and against[0] not in moved else ""
    return f"{kind.words}: {'; '.join(clauses)}{but}{f', with {at}' if at else ''}."


def _only_size(kind: Kind, facts: Finding | None) -> str:
    """Say that the size alone moved, and what few facts did."""
    few = f"{facts.says}," if facts is not None and facts.says else ""
    if kind is Kind.REGRESSED:
        return f"{few or 'no fact gained'} for"
    return f"{few or 'the same facts'} in"


def _row(row: Row) -> str:
    if row.family == "scores":
        return f"{row.name.replace('_', ' ')} {signed(row.delta)} {interval(row.ci_low, row.ci_high)}"
    text = f"{FACT_NAMES[row.name]}: {percent_change(row.base, row.candidate)} kept"
    if row.ci_low is None or row.ci_high is None:
        return text
    return f"{text} [{pp(row.ci_low, sign=True)}, {pp(row.ci_high, sign=True)}]"


def _lead(rows: Sequence[Row]) -> tuple[Row | None, Row | None]:
    """Return the row that stands for the scores and the row that stands for the facts."""
    overall = next((row for row in rows if row.name == OVERALL and row.p is not None), None)
    return overall, next((row for row in rows if row.family == "facts"), None)


def no_change(rows: Sequence[Row], facts: Finding | None, *, exact: bool, single: int | None = None) -> str:
    """Say that nothing moved; where runs vary, also what would have been seen: everywhere, and in one fixture."""
    if exact:
        what = (facts.says if facts else "") or "every fact is kept or lost as before"
        return f"{Kind.NO_DETECTABLE_CHANGE.words}: {what}."
    overall, kept = _lead(rows)
    first = overall or kept
    seen = []
    if overall is not None:
        seen.append(points(overall.mde))
    if kept is not None and kept.mde is not None:  # facts that were counted are all seen
        seen.append(f"about {pp(kept.mde)} of facts")
    if single is not None:
        seen.append(f"{counted(single, 'fact')} of one fixture lost in every run")
    described = _row(first) if first is not None else "nothing measured"
    least = (
        f"; smallest detectable change: {' or '.join(filter(None, [', '.join(seen[:-1]), *seen[-1:]]))}" if seen else ""
    )
    return f"{Kind.NO_DETECTABLE_CHANGE.words}: {described}{least}."


def but_told(sentence: str, strands: Mapping[str, Finding]) -> str:
    """Add what changed for every session and is neither better nor worse by itself: when the compressor sets in."""
    trigger = strands.get("sets_in")
    if trigger is None or trigger.state is not StrandState.CHANGED:
        return sentence
    return f"{sentence.removesuffix('.')}; but {trigger.says}."


def inconclusive(rows: Sequence[Row], unreachable: str | None, hints: Sequence[str] = ()) -> str:
    """Say what is still open; what to do about it is the next step's to say. `hints` are what may be luck or not."""
    if hints:
        return f"{Kind.INCONCLUSIVE.words}: {'; '.join(hints)}."
    if not rows:
        return f"{Kind.INCONCLUSIVE.words}: nothing that was compared had anything at risk."
    overall, facts = _lead(rows)
    first = overall or facts or rows[0]
    parts = [_row(first)]
    open_rows = [row for row in rows if row.verdict is RowVerdict.INCONCLUSIVE]
    widest = max(open_rows, key=lambda row: (row.ci90_high or 9.0) - (row.ci90_low or -9.0), default=first)
    if first.verdict is not RowVerdict.INCONCLUSIVE and widest is not first:
        parts.append(f"open: {_row(widest)}")
    shifted = first.explained is not None and ((first.ci_low or 0) > 0 or (first.ci_high or 0) < 0)
    why = "it follows from the facts kept, which may be luck" if shifted else "too wide to tell a change from luck"
    parts.append(unreachable or why)
    return f"{Kind.INCONCLUSIVE.words}: {'; '.join(parts)}."


def not_comparable(reasons: Sequence[Reason]) -> str:
    """Say which field differs, or that the models changed; no number of the comparison."""
    return f"{Kind.NOT_COMPARABLE.words}: {listed([reason.text for reason in reasons])}."


def incomplete(reasons: Sequence[Reason]) -> str:
    """Say what is missing and where."""
    # What is missing altogether lowers the coverage as well.
    first = [reason for reason in reasons if reason.code == "missing"] or reasons
    return f"{Kind.INCOMPLETE.words}: {listed([reason.text for reason in first])}."


def broken(outcome: OutcomeChange, fixtures: Sequence[str]) -> str:
    """Say how often the compressor failed, in what way and where; its own words are listed elsewhere."""
    items = [item for item in outcome.candidate if item.fixture in fixtures]
    failed, runs = sum(item.failed for item in items), sum(item.runs for item in items)
    kinds: dict[str, int] = {}
    for item in items:
        for kind, count in item.kinds.items():
            kinds[kind.words] = kinds.get(kind.words, 0) + count
    how = " or ".join(kinds)
    base = [item for item in outcome.base if item.fixture in fixtures]
    before = f", in the base in {sum(item.failed for item in base)} of {sum(item.runs for item in base)}"
    where = f"in {failed} of {counted(runs, 'run')} of {listed(list(fixtures))}"
    return f"{Kind.BROKEN.words}: the compressor {how} {where}{before if base else ''}."


_LOOK: dict[str, str] = {
    "meaning": "the lines that are misstated",
    "form": "the form of the summary",
    "structure": "the structure checks that fail",
    "facts": "the values that the summary should not state",
    "obeys": "what is no longer acted on",
    "shown": "what the compressor's model is no longer shown",
    "rounds": "the facts and the rounds that are named under Over rounds",
    "tasks": "the tasks and rules that are named under Tasks finished",
    "scores": "the answers that were graded lower",
}


def _look(fixtures: Sequence[str], strands: Mapping[str, Finding], *, false_values: bool) -> str:
    """Say where to look first: at what was removed, at lost facts, or at what the strand that got worse lists."""
    worse = [name for name in _LOOK if name in strands and strands[name].state is StrandState.WORSE]
    if "form" in worse and strands["form"].may_be_refusal:
        return "Read one of the summaries: if the model refused, change what it is asked; then run again."
    if any(strands[name].removed for name in ("form", "shown") if name in worse):
        return "Put back what was removed, or accept the removal (`compression-eval accept`); then run again."
    if fixtures and "meaning" in worse:
        return f"Look at {_LOOK['meaning']} and at what was lost, listed below; then fix the compressor and run again."
    if fixtures:
        return f"Look at what was lost, listed below, starting with {listed(fixtures, 2)}; then fix it and run again."
    if not worse:
        return "Find out what made the compressed state larger; then run again."
    if worse[0] == "facts" and not false_values:
        # The averages moved, and no single fact or value by more than chance: there is nothing to list.
        return "No single fact stands out: read some summaries beside the baseline's; then fix it and run again."
    return f"Look at {_LOOK[worse[0]]}, listed below; then fix the compressor and run again."


def _worth(size: SizeChange | None, strands: Mapping[str, Finding]) -> str:
    """Say what a larger state is to be weighed against: keeping more of the newest messages needs no compressor."""
    if accepted(strands) and not any(item.state is StrandState.WORSE for item in strands.values()):
        return "Merge if the smaller size is what you wanted, then update the baseline."
    if size is None or not size.larger:
        return "Decide whether the smaller size is worth the loss."
    more = percent(size.ratio - 1)
    if not size.recorded:
        return f"Decide whether what was gained is worth {more} more tokens."
    plain = size.candidate_kept - (size.candidate_lift - size.base_lift)
    before, now, _ = percents_and_change(size.base_kept, size.candidate_kept)
    return (
        f"Decide whether keeping {now} of the facts instead of {before} is worth {more} more tokens. "
        f"Spent on keeping more of the newest messages instead, the same tokens would keep {percent(min(plain, 1.0))}."
    )


def next_step(
    kind: Kind,
    *,
    reasons: Sequence[Reason] = (),
    fixtures: Sequence[str] = (),
    strands: Mapping[str, Finding] | None = None,
    size: SizeChange | None = None,
    advice: Advice | None = None,
    label: str = "",
    exact: bool = False,
    false_values: bool = False,
    judge_it: str = "",
) -> str:
    """Return one sentence on what to do; `false_values` says that such values are listed."""
    if kind is Kind.NOT_COMPARABLE:
        return _comparably(reasons)
    if kind is Kind.REGRESSED:
        return _look(fixtures, strands or {}, false_values=false_values)
    if kind is Kind.TRADE:
        return _worth(size, strands or {})
    if kind is Kind.NOT_JUDGED:
        return judge_it
    if kind is Kind.NO_DETECTABLE_CHANGE:
        # What was counted has no change too small to be seen.
        return "Nothing to do." if exact else "Nothing to do, unless a smaller change matters to you."
    if kind is Kind.INCONCLUSIVE and advice is not None:
        return look_again(advice, f"run `compression-eval run --label {shlex.quote(label)} --next-look`")
    return _STEPS[kind]


_STEPS = {
    Kind.BROKEN: "Read the error below, fix the compressor or its description, and run again.",
    Kind.INCOMPLETE: "Resume the run: finished calls are kept, and only the missing ones are made.",
    Kind.MIXED: "Decide whether the gain is worth the loss; both are listed below.",
    Kind.IMPROVED: "Merge if this is the gain you wanted, then update the baseline.",
    Kind.INCONCLUSIVE: (
        "Add fixtures, or runs of the baseline: the last planned look left it open, or nothing was at risk."
    ),
}


def _comparably(reasons: Sequence[Reason]) -> str:
    if any(reason.code == "difference" for reason in reasons):
        return (
            "Measure the baseline with these settings (`compression-eval baseline update`), or run with the baseline's."
        )
    return "Measure the baseline again with the current models, then compare."


def look_again(advice: Advice, how: str) -> str:
    """Say how to take the next look, what it adds, and how likely it settles the matter where that is likely."""
    added = f"It adds {counted(advice.runs, 'run')} of each fixture"
    if advice.chance is None:
        return f"Look again: {how}. {added}."
    # To the nearest ten percent: it is an estimate itself.
    rough = min(0.9, max(0.1, round(advice.chance, 1)))
    return f"Look again: {how}. {added}; the chance that this settles it is about {percent(rough)}."


def undecided(verdict: Verdict, fail_on: str) -> str:
    """Say for a gate that could not be decided that it was not passed, and what to do about it."""
    gate = "" if fail_on == "never" else f"--fail-on {fail_on} cannot be decided: "
    return f"{gate}{verdict.kind.words.lower()}. {verdict.next_step}"


def accepted(strands: Mapping[str, Finding]) -> str:
    """Say what is gone and was accepted."""

    def count(name: str, word: str) -> list[str]:
        number = len(strands[name].accepted) if name in strands else 0
        return [counted(number, word)] if number else []

    lost, unseen = [*count("form", "section"), *count("facts", "fact")], count("shown", "fact")
    parts = [f"{' and '.join(lost)} lost"] if lost else []
    return " and ".join([*parts, *(f"{number} not shown to its model" for number in unseen)])
