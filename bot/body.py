"""What the comment says at each stage of its life: pure functions from plain data to markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from jinja2 import Template

from bot.github.check import FAILED
from bot.github.escape import inline
from bot.ticket import Ticket
from eval_core.reporting.markdown import markdown_environment
from eval_core.reporting.view import COLUMNS, STEP_NOTE, ReportView

__all__ = ["ended", "final", "last_runs", "queued", "refused", "run_line"]

_MOST_RUNS = 5
_RUN_LINE = re.compile(r"^- `[0-9a-f]{7}` \d{4}-\d\d-\d\d \d\d:\d\d: [a-z ]+ \(\[log\]\([^)\s]+\)\)$", re.MULTILINE)
# In the order in which they are given up when the comment grows too long; the first sections never are.
_SECTIONS = ("verdict", "table", "lost", "unscored", "ignored", "medians", "metrics", "provenance", "runs")
_DROP = ("runs", "medians", "ignored", "metrics", "unscored", "lost", "provenance", "table")


@cache
def _template() -> Template:
    environment = markdown_environment("bot").overlay()
    environment.filters["inline"] = inline
    return environment.get_template("comment.md.j2")


def run_line(ticket: Ticket, outcome: str, moment: str) -> str:
    """Return the line of this run in the list of the last runs."""
    return f"- `{ticket.sha[:7]}` {moment}: {outcome} ([log]({ticket.run_url}))"


def last_runs(standing: str, newest: str | None = None) -> list[str]:
    """Return the list of runs that a standing comment of ours shows, with the newest before it."""
    found = _RUN_LINE.findall(standing)
    lines = [newest, *found] if newest else found
    return list(dict.fromkeys(lines))[:_MOST_RUNS]


def _with_runs(text: str, runs: Sequence[str]) -> str:
    if not runs:
        return text
    return f"{text}\n\n<details><summary>Last runs</summary>\n\n" + "\n".join(runs) + "\n\n</details>"


def queued(ticket: Ticket, *, models: str, estimate: str, minutes: str, runs: Sequence[str] = ()) -> str:
    """Say that the evaluation is on its way, of what, with what, and at which cost."""
    lines = [
        f"### Evaluating `{ticket.sha[:7]}`",
        f"The compressor of this commit is being measured. [Follow the log]({ticket.run_url}); expected: {minutes}.",
        f"Models: {models}. Estimated cost: {estimate}. This comment will hold the result.",
        *(f"> {warning}" for warning in ticket.warnings),
    ]
    return _with_runs("\n\n".join(lines), runs)


def refused(why: str, runs: Sequence[str] = ()) -> str:
    """Say in one sentence why nothing is evaluated, and what to do."""
    return _with_runs(f"### Not evaluated\n\n{why}", runs)


def ended(ticket: Ticket, result: str, reason: str, runs: Sequence[str] = ()) -> str:
    """Say that the evaluation ended without a result."""
    title = "The evaluation was cancelled" if result == "cancelled" else FAILED
    why = f"\n\n{inline(reason, 600)}" if reason else ""
    text = (
        f"### {title}\n\nThis says nothing about `{ticket.sha[:7]}`: no result was lost or counted against it.{why}\n\n"
        f"[Read the log]({ticket.run_url}), then add the label again: what was measured and paid for is kept."
    )
    return _with_runs(text, runs)


def final(
    view: ReportView,
    ticket: Ticket,
    *,
    label: str,
    warnings: Sequence[str],
    judged: Sequence[str],
    runs: Sequence[str],
    budget: int,
) -> str:
    """Write the result; sections are left out, least important first, until it fits the budget in bytes.

    `judged` names what was taken from the base branch, so that whoever reproduces the result does the same.
    """
    context = _template().new_context(
        {
            "view": view,
            "ticket": ticket,
            "label": label,
            "warnings": warnings,
            "judged": judged,
            "ignored": ticket.ignored_files,
            "ignored_count": len(ticket.ignored_files) + ticket.ignored_more,
            "columns": list(COLUMNS.values()),
            "step_note": STEP_NOTE,
            "base_path": view.data.base_path or "auto",
            "runs": runs,
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


def _joined(blocks: dict[str, str]) -> str:
    return "\n\n".join(block for block in blocks.values() if block)


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()
