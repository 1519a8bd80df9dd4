"""After the merge: propose the new baseline by a pull request of our own; the default branch is never pushed to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.github.api_error import Forbidden, NotFound
from bot.github.repository import GitHub
from bot.github.resources import OpenedPull
from bot.pull_request.ticket import Ticket
from bot.steps.artifact import read_measured
from eval_core.base.config import Config
from eval_core.base.errors import IncompleteError, UserError
from eval_core.base.markdown_text import inline
from eval_core.base.numbers import counted, points, pp, score
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.comparing.noise import NO_NOISE, noise_of, noise_rows
from eval_core.comparing.trend import cumulative_changes
from eval_core.domain.measurement import Measurement
from eval_core.reporting.view import make_view
from eval_core.statistics.hypotheses import row_name
from eval_core.storage.baselines import current_baseline, store_baseline
from eval_core.storage.history import read_history, source_release
from eval_core.strands.findings import RowVerdict, Verdict

BRANCH = "compression-eval/baseline"
_MEASURED = re.compile(r"<!-- compression-eval:baseline ([0-9a-f]{40}) -->")
_REASON = "Why is this acceptable?"


@dataclass(frozen=True)
class Proposed:
    """The pull request that holds the new baseline, or why there is none."""

    url: str | None
    message: str


@dataclass(frozen=True)
class _Change:
    """What a new baseline means for the one it replaces."""

    title: str
    sentence: str
    worse: bool = False


def propose(
    github: GitHub,
    ticket: Ticket,
    config: Config,
    *,
    root: Path,
    folder: Path,
    name: str | None = None,
    own_token: bool = False,
) -> Proposed:
    """Write baseline and history on a branch of ours and open, or bring up to date, one pull request.

    `own_token` says that the token is not the job's: only then does the pull request start other workflows.
    """
    measurement, _ = read_measured(ticket, config, root, folder)
    baselines = root / config.baselines
    chosen = name or measurement.usual_name
    before = current_baseline(baselines / f"{chosen}.json")
    noise = noise_of(measurement)
    verdict = compare_measurements(before, measurement)[0] if before else None
    path = store_baseline(
        measurement,
        baselines,
        chosen,
        noise=noise,
        verdict=verdict.kind.value if verdict else None,
        release=source_release(root, measurement.provenance.source_sha),
    )
    if path is None:
        return Proposed(None, f"{config.baselines}/{chosen}.json already has the same content; nothing to propose.")
    base = github.default_branch()
    if newer := _newer_proposal(github, ticket.base_sha, base):
        return Proposed(
            newer.html_url,
            f"Pull request #{newer.number} proposes the baseline of a newer commit; this one stays in the artifact "
            f"{ticket.artifact}.",
        )
    shares = (before.facts_kept if before else None, measurement.facts_kept)
    moved = None if None in shares else (shares[1] or 0.0) - (shares[0] or 0.0)
    change = _changed(verdict, chosen, moved)
    body = _body(ticket, measurement, change, noise, f"{config.baselines}/{chosen}.json", own_token=own_token)
    for trend in cumulative_changes(read_history(baselines, chosen)):
        body += f"\n\n{inline(trend.sentence, 500)}"
    files = {
        f"{config.baselines}/{path.name}": path,
        f"{config.baselines}/history.jsonl": path.parent / "history.jsonl",
    }
    _write_branch(github, ticket, files)
    try:
        pull = github.contents.open_pull(head=BRANCH, base=base, title=change.title, body=body, draft=change.worse)
    except Forbidden as exc:
        raise UserError(
            f"the branch {BRANCH} holds the new baseline, but GitHub does not let this workflow open a pull request "
            f'({exc.reason}): turn on Settings, Actions, General, "Allow GitHub Actions to create and approve pull '
            'requests", or store a token as the secret COMPRESSION_EVAL_TOKEN, and start again; or open it by hand'
        ) from None
    verb = "opened" if pull.created else "brought up to date"
    return Proposed(pull.html_url, f"Pull request #{pull.number} {verb}: {pull.html_url}")


def _newer_proposal(github: GitHub, base_sha: str, base: str) -> OpenedPull | None:
    """Return the open proposal if its commit is newer than ours: of several runs the last to end need not be it."""
    standing = github.contents.open_pull_of(BRANCH, base)
    found = _MEASURED.search(standing.body) if standing else None
    if standing is None or found is None or found.group(1) == base_sha:
        return None
    try:
        apart = github.compare(base_sha, found.group(1))
    except NotFound:
        return None
    return standing if apart.ahead and not apart.behind else None


def _write_branch(github: GitHub, ticket: Ticket, files: Mapping[str, Path]) -> None:
    """Let our branch hold the files on top of the base, in one move.

    Pointing it to the bare base first would leave an open pull request without commits, and GitHub closes those. The
    files are put together on a branch of this run alone, so that runs at the same time do not meet.
    """
    contents = github.contents
    stage = f"{BRANCH}-run-{ticket.run_id}"
    contents.point_branch(stage, ticket.base_sha)
    for target, source in files.items():
        contents.put_file(target, source.read_bytes(), branch=stage, message=f"Update {target}")
    done = contents.branch(stage)
    if done is None:
        raise IncompleteError(
            f"branch {stage}: it was written, but GitHub does not find it now; run the job `propose` again, which "
            "measures nothing"
        )
    contents.point_branch(BRANCH, done)
    contents.delete_branch(stage)


def _changed(verdict: Verdict | None, name: str, kept: float | None = None) -> _Change:
    """Say whether the new baseline is better, worse or merely newer, in a title that can be judged at a glance.

    `kept` is the change of the share of all facts kept, which is named rather than that of some of them.
    """
    start = f"Compression baseline {name}"
    if verdict is None:
        return _Change(f"{start}: the first one", "There was no such baseline before.")
    sentence = f"Against the one it replaces: {inline(verdict.headline, 500)}"
    moved = [row for row in verdict.rows if row.verdict in (RowVerdict.WORSE, RowVerdict.BETTER)]
    overall = next((row for row in verdict.rows if row.name == "overall"), None)
    row = overall if overall in moved else next((row for row in moved if row.verdict is RowVerdict.WORSE), None)
    row = row or next(iter(moved), None)
    if row is None:
        return _Change(f"{start}: refresh", sentence)
    size, what = points(row.delta), "" if row is overall else f" ({row_name(row.name)})"
    if row.family == "facts":
        alike = kept is not None and kept * row.delta > 0
        size, what = (pp(kept or 0.0), " (facts kept)") if alike else (pp(row.delta), what)
    if row.verdict is RowVerdict.WORSE:
        return _Change(f"{start}: worse by {size}{what}, needs a reason", sentence, worse=True)
    return _Change(f"{start}: better by {size}{what}", sentence)


def _body(
    ticket: Ticket,
    measurement: Measurement,
    change: _Change,
    noise: dict[str, float],
    path: str,
    *,
    own_token: bool,
) -> str:
    """Say what is proposed, against what, and what it cost."""
    view = make_view(ReportData(measurement))
    rows = [f"| {name} | {score(sd)} |" for name, sd in noise_rows(noise)]
    size = f"{measurement.planned_runs} graded runs of {counted(len(measurement.fixtures), 'fixture')}"
    lines = [
        f"<!-- compression-eval:baseline {ticket.base_sha} -->",
        f"The baseline `{path}`, measured at `{ticket.base_sha[:12]}`: {size}.",
        change.sentence,
        "\n".join(["| Run-to-run noise | Standard deviation |", "|---|---:|", *rows]) if rows else NO_NOISE,
        f"Cost: {view.cost}. Fingerprint: `{measurement.fingerprint.digest[:12]}`.",
    ]
    if note := measurement.extra.promoted:
        lines.append(inline(str(note), 300))
    if change.worse:
        lines.append(
            f"**{_REASON}** The next pull requests would be measured against something worse than before. That "
            "is why this is a draft, where your plan has drafts; an earlier approval was given to another baseline. "
            "Write the reason here and mark this ready for review, or close it and look for what was lost."
        )
    else:
        lines.append("Once it is merged, pull requests are compared with it.")
    if not own_token:
        lines.append(
            "_Opened with the job's own token, so no other workflow starts on it: if a required check stays "
            '"expected", close and reopen this pull request, or store a token as the secret COMPRESSION_EVAL_TOKEN._'
        )
    lines.append(f"[Log of the run]({ticket.run_url}).")
    return "\n\n".join(lines)
