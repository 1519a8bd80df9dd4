"""A result as the comment shows it: the verdict, the table, what was lost, and where it all comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Template

from bot.github.repository import WORKFLOW
from bot.pull_request.ticket import Ticket
from eval_core.base.markdown_text import fenced, inline
from eval_core.base.numbers import counted, percent
from eval_core.comparing.headline import look_again
from eval_core.domain.record import PRIVATE_PLACE
from eval_core.reporting.losses import PARAPHRASED, LostFact, places
from eval_core.reporting.markdown import markdown_environment
from eval_core.reporting.view import ReportView
from eval_core.strands.findings import Kind, StrandState
from eval_core.strands.registry import title_of

READING = "https://github.com/compression-eval/compression-eval/blob/main/docs/reading-the-comment.md"
# In the order in which they are given up when the comment grows too long; the first sections never are.
_SECTIONS = (
    "verdict",
    "accept",
    "table",
    "asks",
    "details",
    "lost",
    "unscored",
    "ignored",
    "misses",
    "metrics",
    "provenance",
    "reading",
)
_DROP = ("misses", "ignored", "metrics", "unscored", "details", "lost", "provenance", "asks", "accept", "table")
_WORST = 3
_MOST_DETAILS = 6
_MOST_ASKED = 40


@dataclass(frozen=True, kw_only=True)
class CommentContext:
    """What a result's report says beside the result itself."""

    label: str
    warnings: Sequence[str]
    report_url: str | None = None
    """Where the full report opens; None leaves the link to the run."""
    base: str = ""
    """What the pull request was compared with."""


@cache
def _template() -> Template:
    environment = markdown_environment("bot").overlay()
    environment.filters["diff"] = lambda lines: fenced("\n".join(lines[:_MOST_ASKED]), language="diff")
    return environment.get_template("comment.md.j2")


def result_body(view: ReportView, ticket: Ticket, around: CommentContext, *, budget: int) -> str:
    """Write a result; sections are left out, least important first, until it fits the budget in bytes."""
    moved = [row for row in view.strands if row.verdict not in _quiet(view)]
    moved.sort(key=lambda row: row.verdict == StrandState.NOT_RECORDED.words)  # what was compared comes first
    context = _template().new_context(
        {
            "view": view,
            "ticket": ticket,
            "around": around,
            "lead": _lead(view.headline),
            "next_step": _next_step(view, around.label),
            "counted": counted,
            "comparable": view.data.kind_is_comparable,
            "worst": [*_errors(view), *_false_values(view), *_losses(view)][:_WORST],
            "ignored": ticket.ignored_files,
            "ignored_count": len(ticket.ignored_files) + ticket.ignored_more,
            "tested": any(row.p is not None for row in view.data.verdict.rows) if view.data.verdict else False,
            "measured": [row for row in view.table if row.verdict != "advisory"],
            "moved": moved,
            "details": [
                (row.name, detail)
                for row in moved
                if row.name != title_of("size")
                for detail in row.first(_MOST_DETAILS)
            ],
            "reading": READING,
            "reproduce": _reproduce(ticket),
            "form": f"{ticket.run_url.partition('/runs/')[0]}/workflows/{WORKFLOW}",
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


def _reproduce(ticket: Ticket) -> str:
    """Return the command that measures the same on another machine."""
    words = [f"{ticket.run_url.partition('/actions/')[0]}/pull/{ticket.pr}"]
    words += ["--sha", ticket.sha, "--base", ticket.base_sha]
    words += ["--runs", str(ticket.runs)] if ticket.runs else []
    words += ["--look", str(ticket.looks)] if ticket.looks > 1 else []
    words += ["--fixtures", ",".join(ticket.fixtures)] if ticket.fixtures else []
    return " ".join(["compression-eval reproduce", *words])


def _lead(headline: str) -> str:
    """Leave out the verdict's words: the comment's title says them. What others call the candidate is this one."""
    _, colon, rest = headline.partition(": ")
    rest = re.sub(r"^the candidate\b", "this pull request", rest)
    return f"{rest[0].upper()}{rest[1:]}" if colon and rest else headline


def _quiet(view: ReportView) -> tuple[str, ...]:
    """Return the states of which a row says nothing that is not said above the table."""
    quiet = [StrandState.SAME, StrandState.ADVISORY]
    if view.kind in (Kind.NOT_COMPARABLE, Kind.INCOMPLETE):
        quiet += [StrandState.NOT_COMPARABLE, StrandState.INCOMPLETE]
    return tuple(state.words for state in quiet)


def _next_step(view: ReportView, label: str) -> str:
    """Return what to do; here the label asks for more, not a command."""
    if view.kind is Kind.INCOMPLETE:
        return f"Add the label `{label}` again: what was measured is kept, and only the rest is paid for."
    advice = view.data.verdict.advice if view.data.verdict else None
    return look_again(advice, f"add the label `{label}` again") if advice else view.next_step


def _losses(view: ReportView) -> list[str]:
    return [_loss(fact) for fact in view.lost] if view.data.kind_is_comparable or not view.data.base else []


def _loss(fact: LostFact) -> str:
    """Say in a sentence what was lost: where it was, in how many runs it is gone, and what the baseline did."""
    gone = round((1 - fact.kept) * fact.runs)
    before = ""
    if fact.base_kept is not None:
        before = "; the base always kept it"
        if fact.base_kept < 1:
            before = f"; the base kept it in {percent(fact.base_kept)} of its runs"
    where = f"{inline(fact.fact, 120)} was in {_messages(fact.evidence)} of {fact.fixture}"
    often = f" in {gone} of {fact.runs} runs" if gone < fact.runs else f" in all {gone} runs" if gone > 1 else ""
    reworded = f" ({fact.why})" if fact.why == PARAPHRASED else ""
    return f"{where} and is gone{often}{reworded}{before}."


def _errors(view: ReportView) -> list[str]:
    """Say what a broken compressor or an outage ended with: there is nothing else to know about it."""
    if view.kind not in (Kind.BROKEN, Kind.INCOMPLETE):
        return []
    found = [f"{inline(reason, 500)} ({counted(number, 'run')})" for reason, number in view.unscored.items()]
    return [*found[:_WORST], *([f"It printed: {inline(view.printed, 500)}"] if view.printed else [])]


_WRONG = {"invented": "is nowhere in the session", "stale": "is superseded, and its successor is missing"}


def _false_values(view: ReportView) -> list[str]:
    """Say which values the summary states and should not."""
    found = view.data.verdict.false_values if view.data.verdict else ()
    return [f"{inline(item.value, 120)} {_WRONG[item.kind]} ({item.where})." for item in found]


def _messages(evidence: Sequence[int]) -> str:
    """Name the messages of a session as a sentence does."""
    if PRIVATE_PLACE in evidence or len(evidence) < 2:
        return places(evidence)
    shown = [str(index) for index in evidence[:_WORST]]
    last = f"{len(evidence) - _WORST} more" if len(evidence) > _WORST else shown.pop()
    return f"messages {', '.join(shown)} and {last}"


def _joined(blocks: dict[str, str]) -> str:
    return "\n\n".join(block for block in blocks.values() if block)


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()
