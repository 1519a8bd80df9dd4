"""A job: from what a user asked for to a measurement and its comparison."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.globs import watched_digest
from eval_core.base.sealing import SealingKey
from eval_core.comparing.compare import ReportData
from eval_core.domain.case import Case, Cell, make_plan
from eval_core.domain.extra import Look
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.domain.shard import Shard
from eval_core.domain.target import Builtin, CompressorSource, TargetSpec
from eval_core.measuring.base_branch import BasePlan, BranchPoint, base_store, plan_base
from eval_core.measuring.compare_with_base import compare_with_base, load_cases, own_base
from eval_core.measuring.evaluate import Trial
from eval_core.measuring.play_rounds import RoundsPlan, stored_rounds
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.wiring import Traffic
from eval_core.models.settings import ModelFlags, Models, resolve
from eval_core.sandbox.compressor_source import source_of
from eval_core.sandbox.isolation import Wanted
from eval_core.sandbox.targets import Target, find_target
from eval_core.statistics.looks import runs_at
from eval_core.storage.baselines import Reference, find_reference, load_side
from eval_core.storage.results import ResultsFolder

__all__ = ["FREE_COMPRESSIONS", "Job"]

FREE_COMPRESSIONS = 10
"""Of each fixture, where no model is paid for them."""
_IN_PARTS = "this is one part of a run; `compression-eval merge` puts the parts together and compares"


@dataclass(frozen=True)
class Job:
    """One run of the eval, as asked for on the command line or by the bot."""

    settings: Config
    root: Path = field(default_factory=Path)
    """The configuration's folder, with fixtures, probes and baselines: the base branch."""
    tree: Path | None = None
    """The code under test; by default the root, or where a target file from outside the root lies."""
    names: tuple[str, ...] | None = None
    runs: int | None = None
    compress_runs: int | None = None
    target: str | None = None
    moved_to: TargetSpec | None = None
    """A description of where the tree under test has the compressor; all else about it is the configured target's."""
    flags: ModelFlags = field(default_factory=ModelFlags)
    budget_usd: float | None = None
    deadline_minutes: float | None = None
    """No model call starts later than this after the beginning of the run."""
    focus_topic: str | None = None
    sandbox: Wanted = "auto"
    seed: int = 0
    resume: bool = False
    looks: int = 1
    """Which of the planned looks at this candidate it is: a later one has more graded runs."""
    compare_to: str = "auto"
    baseline: Literal["stored", "rerun"] = "stored"
    """rerun: measure the base beside the candidate instead of reading a stored result."""
    base_tree: Path | None = None
    base_point: BranchPoint | None = None
    """The commit of `base_tree` and its branch, where they are known."""
    every_private_probe: bool = False
    """Ask all private probes and not the drawn share: a baseline must serve every draw."""
    shard: Shard | None = None
    """The part of the plan that is measured here; its results are merged with those of the others."""

    @property
    def models(self) -> Models | None:
        """The models of this run; None is offline."""
        return resolve(self.flags, os.environ, self.settings.models)

    @property
    def stops_early(self) -> bool:
        """Whether grading is left out where facts alone decide; a shard cannot know what the others found."""
        free = self.models is None or self.models.offline_judge
        return self.shard is None and (self.settings.stop or ("full" if free else "early")) == "early"

    @property
    def compresses_more(self) -> bool:
        """Whether a paid compressor is run more often while the facts are open; not where a number is configured."""
        asked = self.compress_runs or self.settings.compress_runs
        return self.shard is None and asked is None and self.models is not None and self.load_target().asks_model

    @property
    def plan(self) -> tuple[int, int]:
        """Graded runs and compressions of each fixture."""
        graded = self.runs or runs_at(self.looks, self.settings.runs)
        return graded, self.compressions(graded)

    @property
    def looked_at(self) -> tuple[Look, ...]:
        """What the plan had measured at the looks before this one."""
        runs = [runs_at(look, self.settings.runs) for look in range(1, self.looks)]
        return tuple(Look(count, self.compressions(count)) for count in runs)

    def with_runs(self, runs: int) -> Job:
        """Return the same job with this many graded runs and no fewer compressions."""
        return replace(self, runs=runs, compress_runs=self.compressions(runs))

    def compressions(self, graded: int) -> int:
        """Return the compressions of each fixture beside so many graded runs: a paid one is bought when needed."""
        asked = self.compress_runs or self.settings.compress_runs
        if asked is None and (self.models is None or not self.load_target().asks_model):
            asked = FREE_COMPRESSIONS
        return max(graded, asked or graded)

    def load_cases(self) -> list[Case]:
        """Read the suite."""
        return load_cases(self.settings, self.root, self.names, every_private=self.every_private_probe)

    @property
    def sealing(self) -> SealingKey | None:
        """The key of the private probes, where it is at hand."""
        private = self.settings.private_probes
        return None if private is None else SealingKey.of_environment(private.key_env, os.environ)

    def load_target(self) -> Target:
        """Find the compressor under test."""
        target = find_target(self.target, self.settings.target, self.root, self.tree)
        return target if self.moved_to is None else target.moved_to(self.moved_to)

    def load_base_target(self) -> Target:
        """Find the compressor of the base, which is measured in the same run."""
        target = self.load_target()
        if self.base_tree is None:
            if isinstance(target.spec, Builtin):
                return target
            raise UserError("--compare-to rerun: give the tree of the base with --base-tree")
        if not self.base_tree.is_dir():
            raise UserError(f"--base-tree {self.base_tree}: no such folder; it holds the tree of the base commit")
        return find_target(self.target, self.settings.target, self.root, self.base_tree)

    def source(self, target: Target) -> CompressorSource:
        """Read what a target is made of now."""
        return source_of(target, watch=self.settings.watch, hidden=self.hidden)

    def digest_of(self, tree: Path | None) -> str | None:
        """Return the digest of the watched files of a tree; the tree under test may lie inside the base's."""
        if tree is None:
            return None
        skipped = [self.results]
        if self.tree is not None and tree.resolve() != self.tree.resolve():
            skipped.append(self.tree)
        return watched_digest(tree, self.settings.watch, skipped)

    def plan_base(self, fingerprint: Fingerprint, reference: Reference | None, results: Path) -> BasePlan:
        """Decide what of the base is measured beside the candidate."""
        digest = self.digest_of(self.base_tree)
        return plan_base(
            reference,
            control="never" if self.compare_to == "none" else self.settings.baseline.control,
            rerun=self.baseline == "rerun",
            required=self.compare_to != "auto",
            base_digest=digest,
            base_known=self.base_tree is not None,
            tip_digest=None if self.base_point is None else self.base_point.tip,
            offline=self.models is None,
            shelf=base_store(results, digest, fingerprint) if digest else None,
            runs=self.plan[0],
        )

    def expected_base(self, cases: list[Case], results: Path | None = None) -> BasePlan:
        """Return what of the base a run would measure, before anything is started."""
        if self.base_tree is None and self.baseline == "stored":
            return BasePlan()
        fingerprint = make_fingerprint(cases, self.models, self.topic)
        reference = self._reference(fingerprint) if self.baseline == "stored" else None
        return self.plan_base(fingerprint, reference, results or self.results)

    def _reference(self, fingerprint: Fingerprint) -> Reference | None:
        return find_reference(self.compare_to, self.root / self.settings.baselines, fingerprint)

    def no_base(self, cases: list[Case], results: Path | None = None) -> str | None:
        """Say why a run would have nothing to compare with, before anything is started; None where it has something."""
        if self.baseline == "rerun" or self.expected_base(cases, results).own:
            return None
        reference = self._reference(make_fingerprint(cases, self.models, self.topic))
        if reference is None:
            return f"there is no baseline in {self.root / self.settings.baselines}"
        return None if reference.comparable else f"{reference.path} has other fixtures, probes, models or settings"

    def base_runs(self, base: BasePlan) -> tuple[int, int]:
        """Return the graded runs and compressions of each fixture of the base in the same run."""
        control = self.settings.baseline.control_runs
        return {"nothing": (0, 0), "control": (control, control), "whole": self.plan}[base.beside]

    def size(self, cases: list[Case], results: Path | None = None) -> int:
        """Count the fixture-runs, with those of the base that are measured too."""
        beside = self.base_runs(self.expected_base(cases, results))
        whole = len(self.cells(cases)) + (len(self._here(make_plan(cases, *beside))) if any(beside) else 0)
        return whole + self.expected_rounds(cases).runs

    def rounds(self, reference: Reference | None) -> RoundsPlan:
        """Plan what is played in rounds, by one shard for all; a base is played where none is stored."""
        known = reference.measurement if reference is not None and reference.comparable else None
        suite = self.settings.suite
        return RoundsPlan.of(
            suite if self.shard is None or self.shard.first else "quick",
            base=self.base_tree is not None and self.compare_to != "none" and not stored_rounds(known, suite),
            baseline=self.every_private_probe,
            offline=self.models is None,
        )

    def expected_rounds(self, cases: list[Case]) -> RoundsPlan:
        """Plan the same before anything is started."""
        if self.settings.suite == "quick" or self.baseline == "rerun":
            return self.rounds(None)
        return self.rounds(self._reference(make_fingerprint(cases, self.models, self.topic)))

    def cells(self, cases: Sequence[Case]) -> list[Cell]:
        """Return the fixture-runs that are measured here."""
        return self._here(make_plan(cases, *self.plan))

    def _here(self, plan: list[Cell]) -> list[Cell]:
        return plan if self.shard is None else self.shard.cells(plan)

    def budget(self, cases: Sequence[Case]) -> float:
        """Return what may be spent here: a shard's part of the budget, else all of it."""
        whole = self.budget_usd or self.settings.budget_usd
        return whole if self.shard is None else round(whole * self.shard.share(make_plan(cases, *self.plan)), 4)

    @property
    def deadline_s(self) -> float | None:
        """Seconds from the beginning of the run after which no model call starts."""
        minutes = self.deadline_minutes or self.settings.deadline_minutes
        return None if minutes is None else 60 * minutes

    @property
    def topic(self) -> str | None:
        """The focus topic."""
        return self.focus_topic or self.settings.focus_topic

    @property
    def hidden(self) -> tuple[str, ...]:
        """What the compressor under test must not see."""
        names = (self.settings.fixtures, self.settings.probes, self.settings.baselines, self.settings.results)
        # At the same place in the tree, which may be another commit's, and where they are read from.
        return (*names, *(str((self.root / name).resolve()) for name in names))

    @property
    def results(self) -> Path:
        """Where results are written to, unless the command names another folder."""
        return self.root / self.settings.results

    def execute(
        self,
        folder: ResultsFolder,
        cases: list[Case],
        on_record: Callable[[RunRecord], None],
        watch: Callable[[Callable[[], Traffic | None]], None] = lambda traffic: None,
    ) -> ReportData:
        """Measure and compare; what is finished is in the folder at once."""
        self.check()
        measurement = asyncio.run(Trial(self, folder, cases, on_record, watch).measure())
        if self.shard is not None:
            return ReportData(measurement, cases={case.fixture.name: case for case in cases}, note=_IN_PARTS)
        return self.compared(measurement, cases, folder.path)

    def check(self) -> None:
        """Find mistakes that must not come out after the money is spent."""
        if self.compare_to not in ("auto", "none"):
            load_side(Path(self.compare_to))
        if self.baseline == "rerun" or self.base_tree is not None:
            self.load_base_target()
        if self.shard is not None and self.baseline == "rerun":
            raise UserError(
                f"--shard {self.shard}: the base is not measured in shards; leave out --compare-to rerun, and compare "
                "the merged result with a stored baseline"
            )

    def compared(self, measurement: Measurement, cases: list[Case], folder: Path | None = None) -> ReportData:
        """Compare a measurement with the chosen baseline, or the base it brought along, or say why not."""
        own = own_base(measurement, folder)
        return compare_with_base(
            measurement,
            cases,
            settings=self.settings,
            root=self.root,
            compare_to=self.compare_to,
            own=None if own is None else (own, load_side(own)),
        )
