"""The evaluate job: fetch the pull request's tree as data, prepare, measure. It holds no write token."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bot.admission import WORKFLOW
from bot.artifact import unpack_artifact
from bot.github import GitHub
from bot.ticket import Ticket
from bot.tree import fetch_tree
from bot.watch import matches
from eval_core.config import Config
from eval_core.errors import UserError
from eval_core.files import read_json
from eval_core.job import Job
from eval_core.report.data import ReportData
from eval_core.report.files import write_reports
from eval_core.run.record import RunRecord
from eval_core.run.store import ResultsFolder, open_results

__all__ = ["PROMOTED", "evaluate", "fetch", "set_up", "take_up"]

SUBJECT = "subject"
EARLIER = "earlier"
PROMOTED = 3
"""Runs of an accepted pull request that may enter a baseline: more would keep the luck that got it accepted."""


def fetch(github: GitHub, ticket: Ticket, work: Path) -> None:
    """Bring the tree of the evaluated commit, and what an earlier run of it has measured, into the work folder."""
    if ticket.pr is not None:
        fetch_tree(github, ticket.sha, work / SUBJECT)
    name = f"compression-eval-{ticket.sha}"
    found = github.workflow_runs.find_artifact(WORKFLOW, name)
    if found is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "artifact.zip"
        github.workflow_runs.download(found, archive)
        unpack_artifact(archive, work / EARLIER)


def set_up(config: Config, root: Path) -> None:
    """Run the base branch's own setup commands, in a step that has no secret."""
    for command in config.setup:
        print(f"+ {command}", flush=True)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=root, check=False)
        if done.returncode:
            raise UserError(f"setup: {command!r} ended with {done.returncode}; see its output above")


def _same_compressor(config: Config, subject: Path, root: Path) -> bool:
    """Tell whether the watched files of the evaluated commit are those of the tree that is measured now."""

    def watched(tree: Path) -> dict[str, bytes]:
        files = (path for path in tree.rglob("*") if path.is_file() and ".git" not in path.relative_to(tree).parts)
        names = {path.relative_to(tree).as_posix(): path for path in files}
        return {name: path.read_bytes() for name, path in names.items() if matches(name, config.watch)}

    return bool(config.watch) and watched(subject) == watched(root)


def take_up(ticket: Ticket, config: Config, work: Path, root: Path, folder: Path) -> str | None:
    """Put finished runs of an earlier evaluation into the results folder; return a sentence about it."""
    earlier = work / EARLIER
    if not (earlier / "summary.json").exists():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    if ticket.mode == "evaluate":
        for path in earlier.iterdir():
            shutil.copy(path, folder / path.name)
        return "What an earlier run of this commit measured is reused."
    if not _same_compressor(config, work / SUBJECT, root):
        return None
    taken = 0
    for path in sorted(earlier.glob("*-run-*.json")):
        record = RunRecord.model_validate(read_json(path))
        if record.run < PROMOTED and record.graded:
            shutil.copy(path, folder / path.name)
            taken += 1
    return f"{taken} fixture-runs of the accepted pull request #{ticket.pr} are promoted; the rest is measured anew."


def evaluate(
    ticket: Ticket,
    config: Config,
    *,
    root: Path,
    work: Path,
    on_start: Callable[[int], None],
    on_record: Callable[[RunRecord], None],
) -> tuple[ReportData, ResultsFolder]:
    """Measure the evaluated commit with everything else from the base branch, always sandboxed."""
    baseline = ticket.mode == "baseline"
    job = Job(
        settings=config,
        root=root,
        tree=root if baseline else work / SUBJECT,
        runs=ticket.runs or (config.baseline_runs if baseline else config.runs),
        resume=True,
        looks=ticket.looks,
        compare_to="auto",
    )
    if baseline:
        job = job.with_runs(job.plan[0])
    note = take_up(ticket, config, work, root, work / "results" / ticket.label)
    if note:
        print(note, flush=True)
    cases = job.load_cases()
    on_start(job.size(cases))
    with open_results(work / "results", ticket.label, resume=True) as folder:
        data = job.execute(folder, cases, on_record)
        if note and baseline:
            promoted = data.candidate.model_copy(update={"extra": {"promoted": note}})
            folder.write_measurement(promoted)
            data = replace(data, candidate=promoted)
        write_reports(data, folder)
    return data, folder
