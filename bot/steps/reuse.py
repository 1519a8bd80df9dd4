"""What was measured before and need not be paid for again: an earlier run of the same, or an accepted evaluation."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from bot.steps.fetch import ACCEPTED, EARLIER, SUBJECT
from bot.ticket import Ticket
from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.files import parse, read_json
from eval_core.domain.case import Case
from eval_core.measuring.options import Job
from eval_core.measuring.wiring import make_cast, make_fingerprint
from eval_core.storage.baselines import PROMOTED
from eval_core.storage.results import Claim, ResultsFolder
from eval_core.watched import watched_digest

__all__ = ["take_up"]


def take_up(ticket: Ticket, job: Job, cases: Sequence[Case], work: Path, folder: ResultsFolder) -> str | None:
    """Put runs that were measured under the same conditions into the results folder; return a sentence about it."""
    earlier, accepted = ResultsFolder(work / EARLIER), ResultsFolder(work / ACCEPTED)
    if not earlier.path.is_dir() and not accepted.path.is_dir():
        return None
    now = _claim(job, cases)
    if _same_conditions(earlier, now):
        # No report and no summary: should this run die, the old verdict must not be taken for its own.
        for path in (*earlier.path.glob("*-run-*.json"), earlier.journal):
            if path.is_file():
                shutil.copy(path, folder.path / path.name)
        return f"What an earlier run measured of {now.target} is reused."
    if not _same_conditions(accepted, now) or not _same_compressor(job.settings, work, job.root):
        return None
    taken = 0
    for case in cases:
        for run in range(PROMOTED):
            record = accepted.read_run(case.fixture.name, run)
            if record is not None and record.graded and (record.fixture, record.run) == (case.fixture.name, run):
                folder.write_run(record)
                taken += 1
    return f"{taken} fixture-runs of the accepted pull request #{ticket.pr} are promoted; the rest is measured anew."


def _claim(job: Job, cases: Sequence[Case]) -> Claim:
    """Say what a run of this job would be about, without running it."""

    async def cast() -> Claim:
        async with AsyncExitStack() as stack:
            journal = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.jsonl"
            made = await make_cast(
                stack,
                job.load_target(),
                job.models,
                journal=journal,
                budget_usd=job.settings.budget_usd,
                max_tokens_total=None,
                concurrency=1,
                sandbox=job.sandbox,
                hidden=(),
            )
            fingerprint = make_fingerprint(cases, made.roles, job.settings.focus_topic)
            return Claim(target=made.roles.subject.name, source_sha=None, seed=job.seed, fingerprint=fingerprint)

    return asyncio.run(cast())


def _same_conditions(folder: ResultsFolder, now: Claim) -> bool:
    """Tell whether results were measured with the fixtures, probes, models and prompts of now."""
    path = folder.path / "session.json"
    if not path.is_file():
        return False
    try:
        then = parse(Claim, read_json(path), str(path))
    except UserError:
        return False
    # The commit is in the artifact's name; the one in the claim is that of the base branch around the tree.
    return then.model_copy(update={"source_sha": None}) == now


def _same_compressor(config: Config, work: Path, root: Path) -> bool:
    """Tell whether the watched files of the accepted commit are those of the tree that is measured now."""
    accepted = watched_digest(work / SUBJECT, config.watch)
    return accepted is not None and accepted == watched_digest(root, config.watch, skipped=[work])
