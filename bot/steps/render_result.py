"""Rendering a result as markdown: the evaluate job's artifact is read as untrusted input and decided again.

Publishing needs a write token and this needs the whole of the comparison; it runs as a process of its own without the
token. One line goes in, the question. One comes out with the commit of the baseline; the number of commits since goes
back in, and the answer comes out.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot.pull_request.result_body import CommentContext, result_body
from bot.steps.annotations import Clue
from bot.steps.artifact import read_result
from bot.steps.check import FIRST_RESULT
from bot.steps.comment import RESULT_BUDGET
from bot.steps.publish import RenderedResult, ResultAsked
from eval_core.base.config import CONFIG_FILE
from eval_core.base.errors import UserError
from eval_core.base.markdown_text import inline
from eval_core.base.numbers import counted
from eval_core.comparing.compare import ReportData
from eval_core.domain.measurement import Provenance
from eval_core.domain.target import TargetSpec, read_target, target_from
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.strands.asks import SESSION
from eval_core.strands.findings import Kind, StrandState, Verdict

CommitsSince = Callable[[str], int | None]
"""Tells how many commits the base branch has had since one; None if GitHub does not say."""
_log = logging.getLogger(__name__)
_ROLE = re.compile(r"\([\w:= .-]*\)")
_QUOTED = 200
_MOST_CLUES = 200


def render_result(asked: ResultAsked, commits_since: CommitsSince) -> RenderedResult:
    """Read the result, decide and put it into words; refuse one that this ticket's evaluation could not have left."""
    try:
        data = read_result(asked.ticket, asked.config, asked.root, asked.folder)
        return _written(asked, data, commits_since)
    except UserError:
        raise
    except Exception as exc:
        # Impossible numbers may break any calculation on the way; the pull request gets an answer anyway.
        _log.exception("The result cannot be read")
        raise UserError(f"the result is invalid ({type(exc).__name__}); refused") from exc


def _written(asked: ResultAsked, data: ReportData, commits_since: CommitsSince) -> RenderedResult:
    ticket, config = asked.ticket, asked.config
    view = make_view(_in_repository(data, asked.root))
    around = CommentContext(
        label=config.bot.label,
        warnings=_warnings(asked, data),
        report_url=asked.report_url,
        base=_base(asked, data, commits_since),
    )
    return RenderedResult(
        outcome=view.kind.value if view.kind else FIRST_RESULT if data.first else Kind.NOT_COMPARABLE.value,
        headline=view.headline,
        report=render_markdown(view),
        body=result_body(view, ticket, around, budget=RESULT_BUDGET),
        clues=clues_of(data.verdict) if data.verdict and data.verdict.harmful else None,
    )


def clues_of(verdict: Verdict) -> list[Clue]:
    """Return what a changed line holds that a loss comes from: a lost section's name, or a line of a prompt."""
    form, asks = verdict.strand("form"), verdict.strand("asks")
    sections = form.removed if form is not None and form.state is StrandState.WORSE else ()
    found = [
        Clue(kind="name", sign="-", text=item.name, says=f"The section “{item.name}” is gone from the summary.")
        for item in sections
    ]
    for line in asks.details if asks is not None and asks.state is StrandState.CHANGED else ():
        sign, _, text = line.partition(" ")
        if sign in ("-", "+") and text != SESSION and not _ROLE.fullmatch(text):
            now = "is no longer told" if sign == "-" else "is now told"
            says = f"The compressor's model {now} this: {text[:_QUOTED]}"
            found.append(Clue(kind="text", sign="-" if sign == "-" else "+", text=text, says=says))
    return found[:_MOST_CLUES]


def _warnings(asked: ResultAsked, data: ReportData) -> list[str]:
    """Return the gate's warnings, with what has become of the job since; the ledger tells a moved head."""
    found = list(asked.ticket.warnings)
    ticket = asked.ticket
    if asked.base_ref is not None and ticket.base_ref not in (None, asked.base_ref):
        found.append(
            f"The pull request is meant for {inline(asked.base_ref)} now. This was measured for "
            f"{inline(ticket.base_ref or '')}; add the label again."
        )
    if (moved := _moved(asked, data)) is not None:
        found.append(moved)
    if data.base is None and ticket.behind:
        found.append(
            f"Merge {_branch(asked)} into the pull request: it lacks {counted(ticket.behind, 'commit')} of it."
        )
    if asked.head is None:
        found.append(f"Whether {asked.ticket.sha[:7]} is still the head could not be checked.")
    if data.overfitting is not None:
        found.append(data.overfitting.words)
    if data.candidate.stopped:
        found.append(f"The run stopped early: {inline(data.candidate.stopped)}")
    elif asked.result == "cancelled":
        found.append("The job was cancelled or timed out. These are the results up to that point.")
    elif asked.result == "failure":
        found.append("The job failed after these results were measured; its log says why.")
    return found


def _moved(asked: ResultAsked, data: ReportData) -> str | None:
    """Say what of the pull request's own configuration was used, or what to do where more of it was needed."""
    value = asked.config.target
    spec = read_target(asked.root / value) if isinstance(value, str) else target_from(value, "target")
    file = value if isinstance(value, str) else CONFIG_FILE
    name = data.candidate.provenance.target
    if isinstance(spec, TargetSpec) and name != spec.name:
        return (
            f"{inline(name)} was measured, which is what {inline(file)} of this pull request names. On the base it is "
            f"{inline(spec.name)}. Everything else that describes the compressor was taken from the base."
        )
    if (
        data.verdict
        and data.verdict.kind is Kind.BROKEN
        and any(line.startswith(f"{file} (") for line in asked.ticket.ignored_files)
    ):
        return (
            f"{inline(file)} was taken from the base. If this pull request moves the compressor, merge a change of "
            "that file that fits both places first."
        )
    return None


def _base(asked: ResultAsked, data: ReportData, commits_since: CommitsSince) -> str:
    """Say what the pull request was compared with: the commit that it branched from, or a baseline and its age."""
    if data.base is None:
        return ""
    ticket = asked.ticket
    behind = f", {counted(ticket.behind, 'commit')} behind its tip" if ticket.behind else ""
    base = f"{_branch(asked)} at {ticket.compared_sha[:7]}{behind}"
    if data.candidate.extra.base == "rerun":
        return f"compared with {base}"
    age = _age(data.base.provenance, commits_since)
    stored = f"stored baseline{f' ({age})' if age else ''}"
    if asked.config.baseline.control == "never":
        return f"compared with the {stored}, whatever {base} is"
    return f"compared with {base}, by its {stored}"


def _age(provenance: Provenance, commits_since: CommitsSince) -> str:
    """Say how old a baseline is: days, and commits of the base branch since; empty if nothing is known of it."""
    words = []
    try:
        days = (datetime.now(UTC) - datetime.fromisoformat(provenance.date)).days
        words.append(f"{counted(days, 'day')} old" if days else "measured today")
    except (TypeError, ValueError):
        pass
    behind = commits_since(provenance.source_sha) if provenance.source_sha else None
    if behind:
        words.append(f"{counted(behind, 'commit')} behind")
    return ", ".join(words)


def _branch(asked: ResultAsked) -> str:
    return inline(asked.ticket.base_ref) if asked.ticket.base_ref else "the base branch"


def _in_repository(data: ReportData, root: Path) -> ReportData:
    """Show the baseline's path as it is called in the repository."""
    if data.base_path and Path(data.base_path).is_relative_to(root):
        return replace(data, base_path=Path(data.base_path).relative_to(root).as_posix())
    return data


def main() -> None:
    """Answer one question on standard input."""

    def say(**answer: object) -> None:
        print(json.dumps(answer), flush=True)

    def commits_since(sha: str) -> int | None:
        say(since=sha)
        behind = json.loads(sys.stdin.readline())
        return behind if isinstance(behind, int) else None

    asked = ResultAsked.model_validate_json(sys.stdin.readline())
    try:
        say(written=render_result(asked, commits_since).model_dump(mode="json"))
    except UserError as exc:
        say(refused=str(exc))


if __name__ == "__main__":
    main()
