"""After the merge: propose the new baseline by a pull request of our own; the default branch is never pushed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.github.api_error import Forbidden
from bot.github.escape import inline
from bot.github.repository import GitHub
from bot.steps.publish import read_measured
from bot.ticket import Ticket
from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.numbers import score
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.comparing.trend import trend
from eval_core.domain.measurement import Measurement
from eval_core.reporting.view import make_view
from eval_core.storage.baselines import load_baseline, read_history, store_baseline

__all__ = ["Proposed", "propose"]

BRANCH = "compression-eval/baseline"
STAGE = "compression-eval/baseline-next"


@dataclass(frozen=True)
class Proposed:
    """The pull request that holds the new baseline, or why there is none."""

    url: str | None
    message: str


def propose(
    github: GitHub, ticket: Ticket, config: Config, *, root: Path, folder: Path, name: str | None = None
) -> Proposed:
    """Write baseline and history on a branch of ours and open, or bring up to date, one pull request."""
    measurement, _, _ = read_measured(ticket, config, root, folder)
    baselines = root / config.baselines
    chosen = name or ("offline" if measurement.offline else "models")
    before = _standing(baselines / f"{chosen}.json")
    stored = store_baseline(measurement, baselines, chosen)
    if stored is None:
        return Proposed(None, f"{config.baselines}/{chosen}.json already says the same; nothing to propose.")
    path, noise = stored
    body = _body(ticket, measurement, before, noise, f"{config.baselines}/{chosen}.json")
    if (change := trend(read_history(baselines, chosen))) is not None:
        body += f"\n\n{inline(change.sentence, 500)}"
    base = github.default_branch()
    files = {
        f"{config.baselines}/{path.name}": path,
        f"{config.baselines}/history.jsonl": path.parent / "history.jsonl",
    }
    _write_branch(github, ticket.base_sha, files)
    try:
        title = f"Update the compression baseline {chosen}"
        pull = github.contents.open_pull(head=BRANCH, base=base, title=title, body=body)
    except Forbidden as exc:
        raise UserError(
            f"the branch {BRANCH} holds the new baseline, but GitHub does not let this workflow open a pull request "
            f"({exc.reason}): allow it under Settings, Actions, General, and start again, or open it by hand"
        ) from None
    verb = "opened" if pull.created else "brought up to date"
    return Proposed(pull.html_url, f"Pull request #{pull.number} {verb}: {pull.html_url}")


def _write_branch(github: GitHub, base_sha: str, files: Mapping[str, Path]) -> None:
    """Let our branch hold the files on top of the base, in one move.

    Pointing it to the bare base first would leave an open pull request without commits, and GitHub closes those.
    """
    contents = github.contents
    contents.point_branch(STAGE, base_sha)
    for target, source in files.items():
        contents.put_file(target, source.read_bytes(), branch=STAGE, message=f"Update {target}")
    done = contents.branch(STAGE)
    assert done is not None
    contents.point_branch(BRANCH, done)
    contents.delete_branch(STAGE)


def _standing(path: Path) -> Measurement | None:
    try:
        return load_baseline(path)[0] if path.exists() else None
    except UserError:
        return None  # of an older schema or broken: replaced by what is proposed


def _compared(before: Measurement | None, after: Measurement) -> str:
    if before is None:
        return "There was no such baseline before."
    verdict, _ = compare_measurements(before, after)
    return f"Against the one it replaces: {inline(verdict.headline, 500)}"


def _body(
    ticket: Ticket, measurement: Measurement, before: Measurement | None, noise: dict[str, float], path: str
) -> str:
    """Say what is proposed, against what, and what it cost."""
    view = make_view(ReportData(measurement))
    rows = [f"| {name.replace('_', ' ')} | {score(value)} |" for name, value in noise.items()]
    size = f"{measurement.planned_runs} graded runs of each of {len(measurement.fixtures)} fixtures"
    lines = [
        f"The baseline `{path}`, measured at `{ticket.base_sha[:12]}`: {size}.",
        _compared(before, measurement),
        "\n".join(["| Run-to-run noise | Standard deviation |", "|---|---:|", *rows]),
        f"Cost: {view.cost}. Fingerprint: `{measurement.fingerprint.digest[:12]}`.",
    ]
    if note := measurement.extra.get("promoted"):
        lines.append(inline(str(note), 300))
    lines.append(f"[Log of the run]({ticket.run_url}). Merge it to make it the measure of the next pull requests.")
    return "\n\n".join(lines)
