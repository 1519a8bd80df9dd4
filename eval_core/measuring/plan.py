"""The plan of a run: everything that is decided before anything is started or paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval_core.base.errors import UserError
from eval_core.domain.case import Case, Cell, plan_cells
from eval_core.domain.extra import Look
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Measurement
from eval_core.measuring.ask_obeys import OBEYED_RUNS
from eval_core.measuring.base_branch import BasePlan, base_store, plan_base
from eval_core.measuring.compare_with_base import Base, own_base
from eval_core.measuring.options import RunOptions
from eval_core.measuring.play_rounds import RoundsPlan, stored_rounds
from eval_core.measuring.play_tasks import TasksPlan
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.models.settings import Models
from eval_core.sandbox.targets import Target
from eval_core.statistics.looks import runs_at
from eval_core.storage.baselines import Reference, find_reference, stored_reference

FREE_COMPRESSIONS = 10
"""Of each fixture, where no model is paid for them."""


@dataclass(frozen=True)
class Plan:
    """One run, as it will be if nothing stops it."""

    options: RunOptions
    results: Path
    """The folder that holds the results folders of all labels."""
    models: Models | None
    """None is offline."""
    target: Target
    base_target: Target | None
    """The compressor of the base, where it may be measured in this run."""
    cases: tuple[Case, ...]
    runs: int
    """Graded runs of each fixture."""
    compress_runs: int
    fingerprint: Fingerprint
    stored: Reference | None
    """The nearest stored baseline: what it has paid for, controls and the judge's record, is not paid for again."""
    reference: Reference | None
    """What `compare_to` names."""
    base: BasePlan
    rounds: RoundsPlan
    tasks: TasksPlan
    """What an agent is to finish, where that was asked for."""

    @property
    def cells(self) -> list[Cell]:
        """The fixture-runs that are measured here."""
        return self._here(plan_cells(self.cases, self.runs, self.compress_runs))

    @property
    def obeyed_runs(self) -> int:
        """Graded runs from whose states models choose and act: of a baseline all, since every look is held to it."""
        return self.runs if self.options.every_private_probe else min(self.runs, OBEYED_RUNS)

    @property
    def base_runs(self) -> tuple[int, int]:
        """Graded runs and compressions of each fixture of the base in the same run."""
        control = self.options.settings.baseline.control_runs
        counts = {"nothing": (0, 0), "control": (control, control), "whole": (self.runs, self.compress_runs)}
        return counts[self.base.in_run]

    @property
    def size(self) -> int:
        """The number of fixture-runs, with those of the base that are measured too and those in rounds."""
        return len(self.cells) + len(self._here(plan_cells(self.cases, *self.base_runs))) + self.rounds.runs

    def _here(self, cells: list[Cell]) -> list[Cell]:
        shard = self.options.shard
        return cells if shard is None or not cells else shard.cells(cells)

    @property
    def paid_before(self) -> list[Measurement]:
        """Measurements that may hold what has been paid for before."""
        return [self.stored.measurement] if self.stored else []

    @property
    def does_once(self) -> bool:
        """Whether what is done once for a run is done here, and not by another shard."""
        return self.options.shard is None or self.options.shard.first

    @property
    def stops_early(self) -> bool:
        """Whether grading is left out where facts alone decide; a shard cannot know what the others found."""
        free = self.models is None or self.models.offline_judge
        return self.options.shard is None and (self.options.settings.stop or ("full" if free else "early")) == "early"

    @property
    def compresses_more(self) -> bool:
        """Whether a paid compressor is run more often while the facts are open; not where a number is configured."""
        asked = self.options.compress_runs or self.options.settings.compress_runs
        return self.options.shard is None and asked is None and self.models is not None and self.target.asks_model

    @property
    def earlier_looks(self) -> tuple[Look, ...]:
        """What the plan had measured at the looks before this one."""
        runs = [runs_at(look, self.options.settings.runs) for look in range(1, self.options.looks)]
        return tuple(Look(count, _compressions(self.options, self.models, self.target, count)) for count in runs)

    @property
    def budget_usd(self) -> float:
        """What may be spent here: a shard's part of the budget, else all of it."""
        whole, shard = self.options.budget, self.options.shard
        if shard is None:
            return whole
        return round(whole * shard.share(plan_cells(self.cases, self.runs, self.compress_runs)), 4)

    @property
    def no_base(self) -> str | None:
        """Why there will be nothing to compare with; None where there is something."""
        if self.base.own or self.options.baseline == "rerun":
            return None
        stored = self.reference
        if stored is None:
            return f"there is no baseline in {self.options.baselines}"
        return None if stored.comparable else f"{stored.path} has other fixtures, probes, models or settings"

    def base_of(self, measurement: Measurement, folder: Path) -> Base:
        """Return what a measurement of this plan is compared with."""
        options = self.options
        return Base(options.settings, options.root, options.compare_to, self.reference, own_base(measurement, folder))


def make_plan(options: RunOptions, results: Path | None = None) -> Plan:
    """Decide everything that can be known before the run; mistakes come out here, and not after the money is spent."""
    models, target, results = options.models, options.load_target(), results or options.results
    if options.shard is not None and options.baseline == "rerun":
        raise UserError(
            f"--shard {options.shard}: the base is not measured in shards; leave out --compare-to rerun, and compare "
            "the merged result with a stored baseline"
        )
    base_target = options.load_base_target() if options.baseline == "rerun" or options.base_tree is not None else None
    cases = tuple(options.load_cases())
    fingerprint = make_fingerprint(cases, models, options.topic)
    stored = _stored(options, fingerprint)
    reference = (
        stored if options.compare_to == "auto" else find_reference(options.compare_to, options.baselines, fingerprint)
    )
    runs, compress_runs = run_counts(options)
    digest = options.digest_of(options.base_tree)
    base = plan_base(
        reference,
        control=_control(options),
        rerun=options.baseline == "rerun",
        required=options.compare_to != "auto",
        base_digest=digest,
        base_known=options.base_tree is not None,
        tip_digest=None if options.base_point is None else options.base_point.tip,
        offline=models is None,
        # What is kept of a base for later runs are measurements; an agent goes on from the states themselves.
        store=base_store(results, digest, fingerprint) if digest and not options.settings.play_tasks else None,
        runs=runs,
    )
    found = (options, results, models, target, base_target, cases, runs, compress_runs, fingerprint, stored, reference)
    return Plan(*found, base, _rounds(options, models, reference), _tasks(options, models, cases, base))


def _control(options: RunOptions) -> Literal["auto", "always", "never"]:
    """Return how much of the base is measured beside a stored one; tasks need all of its states."""
    if options.compare_to == "none":
        return "never"
    return "always" if options.settings.play_tasks else options.settings.baseline.control


def _tasks(options: RunOptions, models: Models | None, cases: Sequence[Case], base: BasePlan) -> TasksPlan:
    """Load the tasks, if they were asked for."""
    if not options.settings.play_tasks:
        return TasksPlan()
    if options.shard is not None:
        raise UserError(f"--shard {options.shard}: tasks need the states of both sides in one place; leave out --tasks")
    if models is None or models.offline_judge:
        raise UserError("--tasks: an agent needs a model; name one with --model, or try tasks with `task check`")
    return TasksPlan.of(options.settings, options.root, cases, 1 if base.in_run == "nothing" else 2)


def _rounds(options: RunOptions, models: Models | None, reference: Reference | None) -> RoundsPlan:
    """Plan what is played in rounds, by one shard for all; a base is played where none is stored."""
    usable = reference is not None and reference.comparable and options.baseline == "stored"
    known = reference.measurement if usable and reference is not None else None
    suite = options.settings.suite
    return RoundsPlan.of(
        suite if options.shard is None or options.shard.first else "quick",
        base=options.base_tree is not None and options.compare_to != "none" and not stored_rounds(known, suite),
        baseline=options.every_private_probe,
        offline=models is None,
    )


def run_counts(options: RunOptions) -> tuple[int, int]:
    """Return the graded runs and the compressions of each fixture."""
    graded = options.runs or runs_at(options.looks, options.settings.runs)
    return graded, _compressions(options, options.models, options.load_target(), graded)


def _compressions(options: RunOptions, models: Models | None, target: Target, graded: int) -> int:
    """Return the compressions of each fixture beside so many graded runs: a paid one is bought when needed."""
    asked = options.compress_runs or options.settings.compress_runs
    if asked is None and (models is None or not target.asks_model):
        asked = FREE_COMPRESSIONS
    return max(graded, asked or graded)


def _stored(options: RunOptions, fingerprint: Fingerprint) -> Reference | None:
    try:
        return stored_reference(options.baselines, fingerprint)
    except UserError:
        if options.compare_to == "auto" and options.baseline == "stored":
            raise
        return None  # an unreadable baseline must not stand in the way of the update that replaces it
