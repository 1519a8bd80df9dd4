"""Reusing results that were already paid for: an earlier run of the same commit, or an accepted evaluation."""

from __future__ import annotations

import shutil
from pathlib import Path

from bot.pull_request.ticket import Ticket
from bot.steps.fetch import ACCEPTED, BASE, EARLIER, SUBJECT
from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.files import parse, read_json
from eval_core.base.globs import watched_digest
from eval_core.measuring.plan import Plan
from eval_core.sandbox.targets import Target
from eval_core.storage.baselines import PROMOTED
from eval_core.storage.results import BASE_FOLDER, CONTROL_FOLDER, ResultsFolder, RunIdentity


def reuse_results(ticket: Ticket, plan: Plan, work: Path, folder: ResultsFolder) -> str | None:
    """Put runs that were measured under the same conditions into the results folder; return a sentence about it."""
    earlier, accepted = ResultsFolder(work / EARLIER), ResultsFolder(work / ACCEPTED)
    if not earlier.path.is_dir() and not accepted.path.is_dir():
        return None
    now = _identity(plan, plan.target)
    if _stored_identity(earlier) == now:
        # No report and no summary: should this run die, the old verdict must not be taken for its own.
        for path in (*earlier.path.glob("*-run-*.json"), earlier.journal):
            if path.is_file():
                shutil.copy(path, folder.path / path.name)
        _take_base_runs(plan, earlier, folder)
        return f"What an earlier run measured of {now.target} is reused."
    then = _stored_identity(accepted)
    if then is None or _without_files(then) != _without_files(now):
        return None
    if not _same_compressor(plan.options.settings, work):
        return None
    taken = 0
    for case in plan.cases:
        for run in range(PROMOTED):
            record = accepted.read_run(case.fixture.name, run)
            if record is not None and record.graded and (record.fixture, record.run) == (case.fixture.name, run):
                folder.write_run(record)
                taken += 1
    return f"{taken} fixture-runs of the accepted pull request #{ticket.pr} are promoted; the rest is measured again."


def _take_base_runs(plan: Plan, earlier: ResultsFolder, folder: ResultsFolder) -> None:
    """Take what was measured of the base beside an earlier run, if that base is still the one of now."""
    parts = [ResultsFolder(earlier.path / name) for name in (BASE_FOLDER, CONTROL_FOLDER)]
    identities = [(part, identity) for part in parts if (identity := _stored_identity(part)) is not None]
    now = _identity(plan, plan.base_target) if identities and plan.base_target is not None else None
    for part, identity in identities:
        if identity == now:
            into = folder.path / part.path.name
            into.mkdir(exist_ok=True)
            for path in part.path.glob("*-run-*.json"):
                shutil.copy(path, into / path.name)


def _identity(plan: Plan, target: Target) -> RunIdentity:
    """Say what a run of this plan, with this target, would be about."""
    options = plan.options
    return RunIdentity(
        target=target.name, source=options.source(target), seed=options.seed, fingerprint=plan.fingerprint
    )


def _stored_identity(folder: ResultsFolder) -> RunIdentity | None:
    """Return what stored results are about; None where they do not say it as this version does."""
    path = folder.path / "session.json"
    try:
        return parse(RunIdentity, read_json(path), str(path)) if path.is_file() else None
    except UserError:
        return None


def _without_files(identity: RunIdentity) -> RunIdentity:
    """Leave out the files: between a pull request and the base branch, others may have changed."""
    return identity.model_copy(update={"source": identity.source.model_copy(update={"files": {}})})


def _same_compressor(config: Config, work: Path) -> bool:
    """Tell whether the watched files of the accepted commit are those of the tree that is measured now."""
    accepted = watched_digest(work / SUBJECT, config.watch)
    return accepted is not None and accepted == watched_digest(work / BASE, config.watch)
