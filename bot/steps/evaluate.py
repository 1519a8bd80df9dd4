"""The evaluate step: measure the pull request's compressor. It holds no write token."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from bot.pull_request.admission import check_target
from bot.pull_request.ticket import Ticket, forget_error, is_small_file, read_error
from bot.steps.fetch import BASE, SHARDS, SUBJECT
from bot.steps.reuse import reuse_results
from eval_core.base.config import CONFIG_FILE, Config, load_config
from eval_core.base.errors import UserError
from eval_core.base.globs import watched_digest
from eval_core.comparing.compare import ReportData
from eval_core.domain.record import RunRecord
from eval_core.domain.shard import Shard
from eval_core.domain.target import Builtin, TargetSpec
from eval_core.measuring.base_branch import BranchPoint
from eval_core.measuring.compare_with_base import compare, find_base
from eval_core.measuring.measure import Sinks, compare_run, measure
from eval_core.measuring.merge import merge_shards
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.reporting.write import write_reports
from eval_core.sandbox.isolation import Wanted
from eval_core.sandbox.targets import find_target
from eval_core.storage.results import ResultsFolder, open_results


def set_up(config: Config, root: Path) -> None:
    """Run the base branch's own setup commands, in a step that has no secret."""
    for command in config.setup:
        print(f"+ {command}", flush=True)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=root, check=False)
        if done.returncode:
            raise UserError(f"setup: {command!r} ended with {done.returncode}; its output is in the job's log")


def moved_compressor(config: Config, root: Path, tree: Path) -> TargetSpec | None:
    """Return the pull request's own description of its compressor if that has another name than on the base.

    Only the name and its import roots are taken from it: without them a renamed compressor could never be measured.
    """
    try:
        if not is_small_file(tree / CONFIG_FILE, _LARGEST_CONFIG):
            return None
        theirs = load_config(None, tree).target
        if isinstance(theirs, str) and not is_small_file(tree / theirs, _LARGEST_CONFIG):
            return None
        there, here = (
            find_target(None, value, at, at, {}).spec for value, at in ((theirs, tree), (config.target, root))
        )
    except UserError:
        return None  # what is wrong with it is its author's to find out; the base's description serves
    if isinstance(there, Builtin) or isinstance(here, Builtin) or None in (there.compressor, here.compressor):
        return None
    return there if there.compressor != here.compressor else None


_LARGEST_CONFIG = 256 << 10


def minutes_left(deadline: int | None, environ: Mapping[str, str], now: float) -> float | None:
    """Return how much of the job's deadline is left; installing, fetching and setup take of it too."""
    began = environ.get("COMPRESSION_EVAL_JOB_STARTED", "")
    if deadline is None or not began.isdecimal():
        return deadline
    return max(round(deadline - (now - int(began)) / 60, 1), 0.1)


def evaluate(
    ticket: Ticket,
    config: Config,
    *,
    root: Path,
    work: Path,
    on_start: Callable[[int], None],
    on_record: Callable[[RunRecord], None],
    deadline_minutes: float | None = None,
    shard: Shard | None = None,
    sandbox: Wanted = "auto",
) -> tuple[ReportData, ResultsFolder]:
    """Measure the evaluated commit with everything else from the base branch.

    No command, variable or file of a workflow sets `sandbox`: only the demo does, for code that we ship ourselves.
    """
    check_target(config, root)
    baseline = ticket.mode == "baseline"
    tree = work / (BASE if baseline else SUBJECT)
    options = RunOptions(
        settings=config.model_copy(update={"suite": ticket.suite, "play_tasks": ticket.tasks}),
        root=root,
        tree=tree,
        moved_to=None if baseline else moved_compressor(config, root, tree),
        # Measured as well where there is no baseline of its files, or where that is of another day.
        base_tree=None if baseline else work / BASE,
        base_point=None if baseline else _branch_point(ticket, config, root, work),
        names=tuple(ticket.fixtures) or None,
        runs=ticket.runs or (config.baseline_runs if baseline else None),
        resume=True,
        looks=1 if baseline else ticket.looks,
        compare_to="none" if baseline else "auto",
        deadline_minutes=deadline_minutes,
        every_private_probe=baseline,
        shard=shard,
        sandbox=sandbox,
    )
    if config.private_probes is not None and options.sealing is None:
        raise UserError(
            f"private_probes: {config.private_probes.key_env} is not set, so {config.private_probes.file} cannot be "
            "opened; store its key as a secret of the environment compression-eval"
        )
    plan = make_plan(options, work / "results")
    with open_results(work / "results", shard.label(ticket.label) if shard else ticket.label, resume=True) as folder:
        note = reuse_results(ticket, plan, work, folder)
        if note:
            print(note, flush=True)
        on_start(plan.size)
        data = compare_run(plan, measure(plan, Sinks(folder, on_record)), folder)
        if note and baseline:
            promoted = data.candidate.noting(promoted=note)
            folder.write_measurement(promoted)
            data = replace(data, candidate=promoted)
        if shard is None:
            write_reports(data, folder)
    forget_error(folder.path)
    return data, folder


def _branch_point(ticket: Ticket, config: Config, root: Path, work: Path) -> BranchPoint | None:
    """Return what the pull request branched from; the checkout is the tip of that branch."""
    if ticket.base_ref is None:
        return None
    tip = watched_digest(root, config.watch, [work]) if ticket.behind else None
    return BranchPoint(ticket.compared_sha, ticket.base_ref, tip)


# The merge job: the shards of an evaluation become one result. It has no key and no write token.


def merge(ticket: Ticket, config: Config, *, root: Path, work: Path) -> tuple[ReportData, ResultsFolder]:
    """Join what the shards left, as hostile input, into the result that is published."""
    shards = {shard: work / SHARDS / f"{ticket.artifact}{shard.suffix}" for shard in ticket.parts}
    compare_to = "none" if ticket.mode == "baseline" else "auto"
    with open_results(work / "results", ticket.label, resume=True) as folder:
        try:
            merged = merge_shards(config, root, shards, folder)
        except UserError as exc:
            told = [why for path in shards.values() if (why := read_error(path)) is not None]
            if told:
                raise UserError(told[0]) from exc
            raise
        base = find_base(merged.measurement, config, root, compare_to=compare_to, folder=folder.path)
        data = compare(base, merged.measurement, merged.cases)
        write_reports(data, folder)
    return data, folder
