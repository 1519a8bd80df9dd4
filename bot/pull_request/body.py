"""What the comment says: pure functions from the ledger and a result to markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from jinja2 import Template

from bot.github.escape import inline
from bot.pull_request.ledger import Ledger, LedgerNotice, LedgerRun, NoticeKind
from bot.pull_request.ticket import Ticket
from eval_core.base.numbers import percent
from eval_core.reporting.losses import LostFact, places
from eval_core.reporting.markdown import markdown_environment
from eval_core.reporting.view import COLUMNS, STEP_NOTE, ReportView

__all__ = ["Surroundings", "ended_why", "mark", "render", "result_body"]

PRODUCT = "Compression eval"
# Words stand beside every mark: neither colour nor picture is needed to read it.
_MARKS = {
    "improved": "\N{LARGE GREEN CIRCLE}",
    "no_detectable_change": "\N{MEDIUM WHITE CIRCLE}",
    "regressed": "\N{LARGE RED CIRCLE}",
    "broken": "\N{LARGE RED CIRCLE}",
    "mixed": "\N{LARGE ORANGE CIRCLE}",
    "trade": "\N{LARGE ORANGE CIRCLE}",
}
_UNSURE = "\N{LARGE YELLOW CIRCLE}"
_ENDS: dict[NoticeKind, str] = {
    "refused": "Not evaluated",
    "failed": "The evaluation failed",
    "cancelled": "The evaluation was cancelled",
    "timed_out": "The evaluation ran out of time",
    "rejected": "A reviewer rejected the evaluation",
    "vanished": "An evaluation ended without a result",
}
# In the order in which they are given up when the comment grows too long; the first sections never are.
_SECTIONS = ("verdict", "table", "lost", "unscored", "ignored", "medians", "metrics", "provenance")
_DROP = ("medians", "ignored", "metrics", "unscored", "lost", "provenance", "table")
_WORST = 3


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a result's report says beside the result itself."""

    label: str
    warnings: Sequence[str]
    judged: Sequence[str]
    """What was taken from the base branch, so that whoever reproduces the result does the same."""
    report_url: str | None = None
    """Where the full report opens; None leaves the link to the run."""
    baseline_age: str = ""
    mention: str | None = None
    """Who asked for it and is told that it is done."""


@cache
def _template() -> Template:
    environment = markdown_environment("bot").overlay()
    environment.filters["inline"] = inline
    return environment.get_template("comment.md.j2")


def mark(outcome: str) -> str:
    """Return the sign of a verdict."""
    return _MARKS.get(outcome, _UNSURE)


def render(ledger: Ledger) -> tuple[str, str]:
    """Return what stands above and below the report of the shown result."""
    above = [f"### {_title(ledger)}", *(f"> {line}" for line in _state(ledger))]
    if ledger.shown is not None and ledger.head not in (None, ledger.shown.sha):
        above.append(
            f"> \N{WARNING SIGN} The result below is of `{ledger.shown.sha[:7]}`; "
            f"the last commit is `{(ledger.head or '')[:7]}`."
        )
    return "\n\n".join(above), _history(ledger)


def _title(ledger: Ledger) -> str:
    if ledger.shown is None:
        return f"{PRODUCT}: no result yet"
    words = ledger.shown.outcome.replace("_", " ").capitalize()
    return f"{mark(ledger.shown.outcome)} {words} \N{MIDDLE DOT} `{ledger.shown.sha[:7]}` \N{MIDDLE DOT} {PRODUCT}"


def _state(ledger: Ledger) -> list[str]:
    """Say what is going on now: evaluations under way, then what was refused or went wrong last."""
    lines = [_under_way(run) for run in ledger.runs]
    current = ledger.shown is not None and ledger.head in (None, ledger.shown.sha)
    return lines + [_noticed(notice, current=current) for notice in ledger.notices]


def _under_way(run: LedgerRun) -> str:
    commit, log = f"`{run.sha[:7]}`", f"[live log]({run.url})"
    note = f" {run.note}" if run.note else ""
    if run.stage == "approval":
        return (
            f"\N{RAISED HAND} **Waiting for approval** of {commit} since {_clock(run.at)}: a reviewer of the "
            f"environment `compression-eval` [approves or rejects it]({run.url}).{note}"
        )
    if run.stage == "queued":
        return (
            f"\N{HOURGLASS} **Queued**: {commit} since {_clock(run.at)}, after the evaluation before it. {log}.{note}"
        )
    expected = "" if run.minutes is None else f", expected to end by {run.at + timedelta(minutes=run.minutes):%H:%M}"
    return f"\N{HOURGLASS} **Evaluating** {commit} since {_clock(run.at)}{expected}. {log}.{note}"


def _noticed(notice: LedgerNotice, *, current: bool) -> str:
    sign = "\N{NO ENTRY SIGN}" if notice.kind in ("refused", "rejected") else "\N{WARNING SIGN}"
    about = f" (`{notice.sha[:7]}`)" if notice.sha else ""
    still = " The result below still holds." if current else ""
    return f"{sign} **{_ENDS[notice.kind]}**{about}, {_clock(notice.at)}: {notice.why} [Log]({notice.url}).{still}"


def _history(ledger: Ledger) -> str:
    others = [result for result in ledger.results if ledger.shown is None or result.run != ledger.shown.run]
    if not others:
        return ""
    lines = [
        f"- {mark(result.outcome)} `{result.sha[:7]}` {_clock(result.at)}: {result.outcome.replace('_', ' ')} "
        f"([log]({result.url}))"
        for result in ledger.results
    ]
    return f"<details><summary>Last {len(lines)} results</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def ended_why(kind: NoticeKind, reason: str, label: str) -> str:
    """Say why an evaluation has no result, and what to do."""
    why = f"{inline(reason, 600)}. " if reason else ""
    if kind == "rejected":
        return f"{why}Talk to the reviewer, then add the label `{label}` again."
    return f"{why}Read the log, then add the label `{label}` again: what was measured and paid for is reused."


def result_body(view: ReportView, ticket: Ticket, around: Surroundings, *, budget: int) -> str:
    """Write a result; sections are left out, least important first, until it fits the budget in bytes."""
    context = _template().new_context(
        {
            "view": view,
            "ticket": ticket,
            "around": around,
            "lead": _lead(view.headline),
            "worst": [*_false_values(view), *(_loss(view, fact) for fact in view.lost)][:_WORST],
            "ignored": ticket.ignored_files,
            "ignored_count": len(ticket.ignored_files) + ticket.ignored_more,
            "columns": list(COLUMNS.values()),
            "step_note": STEP_NOTE,
            "base_path": view.data.base_path or "auto",
        }
    )
    blocks = {name: _tidy("".join(_template().blocks[name](context))) for name in _SECTIONS}
    text = _joined(blocks)
    dropped: list[str] = []
    for name in _DROP:
        if len(text.encode()) <= budget:
            break
        dropped.append(name)
        blocks.pop(name)
        note = f"_Left out to fit: {', '.join(dropped)}; the [full report]({ticket.run_url}) has everything._"
        text = _joined({**blocks, "note": note})
    return text


def _lead(headline: str) -> str:
    """Set only the verdict's words in bold: the sentence after them is long."""
    words, colon, rest = headline.partition(":")
    return f"**{words}:**{rest}" if colon else f"**{headline}**"


def _loss(view: ReportView, fact: LostFact) -> str:
    """Say in a sentence what was lost: where it was, in how many runs it is gone, and what the baseline did."""
    gone = round((1 - fact.kept) * fact.runs)
    before = "" if fact.base_kept is None else f" (the baseline kept it in {percent(fact.base_kept)})"
    where = f"{inline(fact.fact, 120)} was in {places(fact.evidence)} of {fact.fixture}"
    return f"{where}; it is gone in {gone} of {fact.runs} runs{before}."


_FALSE = {"invented": "is nowhere in the session", "stale": "is superseded, and its successor is missing"}


def _false_values(view: ReportView) -> list[str]:
    """Say which values the summary states and should not."""
    found = [detail.partition(": ") for row in view.strands for detail in row.details]
    # What a detail quotes may look like another detail's head; only the first part of each is ours.
    return [
        f"{inline(value, 120)} {_FALSE[kind]} ({where}."
        for kind, _, rest in found
        if kind in _FALSE
        for value, _, where in [rest.rpartition(" (")]
    ]


def _joined(blocks: dict[str, str]) -> str:
    return "\n\n".join(block for block in blocks.values() if block)


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()
