"""The evaluate job: fetch the pull request's tree as data, prepare, measure. It holds no write token."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bot.earlier import take_up
from bot.failure import forget_error
from bot.fetching import SUBJECT
from bot.target import check_target
from bot.ticket import Ticket
from eval_core.config import Config
from eval_core.errors import UserError
from eval_core.job import Job
from eval_core.report.data import ReportData
from eval_core.report.files import write_reports
from eval_core.run.record import RunRecord
from eval_core.run.store import ResultsFolder, open_results

__all__ = ["evaluate", "set_up"]


def set_up(config: Config, root: Path) -> None:
    """Run the base branch's own setup commands, in a step that has no secret."""
    for command in config.setup:
        print(f"+ {command}", flush=True)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=root, check=False)
        if done.returncode:
            raise UserError(f"setup: {command!r} ended with {done.returncode}; see its output above")


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
    check_target(config, root)
    baseline = ticket.mode == "baseline"
    job = Job(
        settings=config,
        root=root,
        # The sandbox is started from elsewhere: a relative path would lead nowhere.
        tree=(root if baseline else work / SUBJECT).resolve(),
        runs=ticket.runs or (config.baseline_runs if baseline else config.runs),
        resume=True,
        looks=ticket.looks,
        compare_to="auto",
    )
    if baseline:
        job = job.with_runs(job.plan[0])
    cases = job.load_cases()
    with open_results(work / "results", ticket.label, resume=True) as folder:
        note = take_up(ticket, job, cases, work, folder)
        if note:
            print(note, flush=True)
        on_start(job.size(cases))
        data = job.execute(folder, cases, on_record)
        if note and baseline:
            promoted = data.candidate.model_copy(update={"extra": {**data.candidate.extra, "promoted": note}})
            folder.write_measurement(promoted)
            data = replace(data, candidate=promoted)
        write_reports(data, folder)
    forget_error(folder.path)
    return data, folder
