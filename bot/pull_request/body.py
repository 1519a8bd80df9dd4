"""What the comment says around a result: what is under way, what was refused, and the results before."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.pull_request.ledger import Ledger, LedgerNotice, LedgerResult, LedgerRun, NoticeKind
from eval_core.base.config import BotConfig
from eval_core.base.markdown_text import inline, prose

PRODUCT = "Compression eval"
# Every mark has words next to it, so that nobody depends on colours.
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
    # GitHub calls a job that ran out of time cancelled too.
    "cancelled": "The evaluation was cancelled or timed out",
    "timed_out": "The evaluation ran out of time",
    "rejected": "A reviewer rejected the evaluation",
    "superseded": "Cancelled, and a later request follows",
    "vanished": "An evaluation ended without a result",
    "retargeted": "The base branch was changed",
    "merged": "Merged",
}
_NEWS = frozenset({"retargeted", "merged"})
"""What happened to the pull request, and is no failure."""


def mark(outcome: str) -> str:
    """Return the sign of a verdict."""
    return _MARKS.get(outcome, _UNSURE)


def render(ledger: Ledger) -> tuple[str, str]:
    """Return what goes above and below the report of the shown result."""
    above = [f"### {_title(ledger)}", *(f"> {line}" for line in _state(ledger))]
    if ledger.shown is not None and ledger.head not in (None, ledger.shown.sha):
        above.append(
            f"> \N{WARNING SIGN} The result below is for `{ledger.shown.sha[:7]}`, "
            f"not for the last commit, `{(ledger.head or '')[:7]}`."
        )
    below = [_asked(ledger.shown, ledger) if ledger.shown else "", _history(ledger)]
    return "\n\n".join(above), "\n\n".join(part for part in below if part)


def _asked(ended: LedgerResult | LedgerNotice, ledger: Ledger) -> str:
    """Name who asked; only for what ended last, and not while more is going on, with the sign that notifies.

    GitHub notifies those whom an edit adds. The sign is gone while the next evaluation runs, so its end adds it again.
    """
    if not ended.asker:
        return ""
    known = (*ledger.notices, *((ledger.shown,) if ledger.shown else ()))
    last = not ledger.runs and ended.run == max(known, key=lambda item: (item.at, item.run)).run
    return f"Requested by {'@' if last else ''}{ended.asker}."


def _title(ledger: Ledger) -> str:
    if ledger.shown is None:
        return f"{PRODUCT}: no result yet"
    words = ledger.shown.outcome.replace("_", " ").capitalize()
    return f"{mark(ledger.shown.outcome)} {words} \N{MIDDLE DOT} `{ledger.shown.sha[:7]}` \N{MIDDLE DOT} {PRODUCT}"


def _state(ledger: Ledger) -> list[str]:
    """Say what is going on now: evaluations under way, then what was refused or went wrong last."""
    lines = [_under_way(run) for run in ledger.runs]
    current = ledger.shown is not None and ledger.head in (None, ledger.shown.sha)
    return lines + [_noticed(notice, _asked(notice, ledger), current=current) for notice in ledger.notices]


def _under_way(run: LedgerRun) -> str:
    commit, log = f"`{run.sha[:7]}`", f"[Live log]({run.url})"
    note = f" {prose(run.note)}" if run.note else ""
    if run.stage == "approval":
        return (
            f"\N{RAISED HAND} **Waiting for approval** of {commit} since {_clock(run.at)}: a reviewer of the "
            f"environment `compression-eval` has to [approve or reject it]({run.url}).{note}"
        )
    if run.stage == "queued":
        return f"\N{HOURGLASS} **Queued**: {commit} since {_clock(run.at)}, behind another evaluation. {log}.{note}"
    expected = "" if run.minutes is None else f", expected to end by {run.at + timedelta(minutes=run.minutes):%H:%M}"
    return f"\N{HOURGLASS} **Evaluating** {commit} since {_clock(run.at)}{expected}. {log}.{note}"


def _noticed(notice: LedgerNotice, asked: str, *, current: bool) -> str:
    sign = "\N{NO ENTRY SIGN}" if notice.kind in ("refused", "rejected") else "\N{WARNING SIGN}"
    sign = "\N{INFORMATION SOURCE}" if notice.kind in _NEWS else sign
    about = f" (`{notice.sha[:7]}`)" if notice.sha else ""
    still = " The result below still holds." if current and notice.kind not in _NEWS else ""
    said = (
        f"{sign} **{_ENDS[notice.kind]}**{about}, {_clock(notice.at)}: {prose(notice.why)} [Log]({notice.url}).{still}"
    )
    return f"{said} {asked}".rstrip()


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


def asker(sender: str, config: BotConfig) -> str:
    """Return whom to tell when an evaluation ends: the person who asked for it, unless that is turned off."""
    return sender if config.mention and not sender.endswith("[bot]") else ""


def ended_why(kind: NoticeKind, reason: str, label: str) -> str:
    """Say why an evaluation has no result, and what to do."""
    why = f"{inline(reason, 600)}. " if reason else ""
    if kind == "superseded":
        return "Do not add the label again: that would cancel the one that follows. Its result will appear here."
    if kind == "rejected":
        return f"{why}Talk to the reviewer, then add the label `{label}` again."
    return f"{why}Read the log, then add the label `{label}` again: what was measured and paid for is reused."
