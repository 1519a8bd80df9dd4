"""A job: from what a user asked for to a measurement and its comparison."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from eval_core.baseline import find_baseline, read_history
from eval_core.cast import Cast, make_cast
from eval_core.compare.comparison import compare_measurements, load_side
from eval_core.compare.finding import Kind
from eval_core.config import Config
from eval_core.errors import UserError
from eval_core.measurement import Controls, Measurement
from eval_core.model.settings import ModelFlags, Models, resolve
from eval_core.report.data import ReportData
from eval_core.run.plan import make_plan
from eval_core.run.record import RunRecord
from eval_core.run.roles import make_fingerprint
from eval_core.run.session import Session
from eval_core.run.store import ResultsFolder
from eval_core.run.suite import Case, load_suite
from eval_core.run.target import Target, find_target
from eval_core.subject.sandbox import Wanted

__all__ = ["Job"]

_DECIDED = (Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED)


@dataclass(frozen=True)
class Job:
    """One run of the eval, as asked for on the command line or by the bot."""

    settings: Config
    root: Path = field(default_factory=Path)
    """Where configuration, fixtures, probes and baselines lie: the base branch."""
    tree: Path | None = None
    """The code under test; the root by default."""
    names: tuple[str, ...] | None = None
    runs: int | None = None
    compress_runs: int | None = None
    target: str | None = None
    flags: ModelFlags = field(default_factory=ModelFlags)
    budget_usd: float | None = None
    max_tokens_total: int | None = None
    focus_topic: str | None = None
    concurrency: int | None = None
    stop: Literal["full", "early"] = "full"
    sandbox: Wanted = "auto"
    seed: int = 0
    resume: bool = False
    looks: int = 1
    compare_to: str = "auto"

    @property
    def models(self) -> Models | None:
        """The models of this run; None is offline."""
        return resolve(self.flags, os.environ, self.settings.models)

    @property
    def plan(self) -> tuple[int, int]:
        """Graded runs and compressions of each fixture."""
        graded = self.runs or self.settings.runs
        return graded, max(graded, self.compress_runs or self.settings.compress_runs)

    def with_runs(self, runs: int) -> Job:
        """Return the same job with this many graded runs and no fewer compressions."""
        return replace(self, runs=runs, compress_runs=max(runs, self.compress_runs or self.settings.compress_runs))

    def load_cases(self) -> list[Case]:
        """Read the suite."""
        return load_suite(self.root / self.settings.fixtures, self.root / self.settings.probes, self.names)

    def load_target(self) -> Target:
        """Find the compressor under test."""
        return find_target(self.target, self.settings.target, self.root, self.tree or self.root)

    def size(self, cases: list[Case]) -> int:
        """Count the fixture-runs."""
        return len(make_plan(cases, *self.plan))

    def execute(self, folder: ResultsFolder, cases: list[Case], on_record: Callable[[RunRecord], None]) -> ReportData:
        """Measure and compare; what is finished is in the folder at once."""
        if self.compare_to not in ("auto", "none"):
            load_side(self.root / self.compare_to)  # a mistake here must not come out after the money is spent
        measurement = asyncio.run(self._measure(folder, cases, on_record))
        return self.compared(measurement, cases)

    async def _measure(
        self, folder: ResultsFolder, cases: list[Case], on_record: Callable[[RunRecord], None]
    ) -> Measurement:
        target = self.load_target()
        async with AsyncExitStack() as stack:
            cast = await make_cast(
                stack,
                target,
                self.models,
                journal=folder.journal,
                budget_usd=self.budget_usd or self.settings.budget_usd,
                max_tokens_total=self.max_tokens_total,
                concurrency=self.concurrency or self.settings.concurrency,
                sandbox=self.sandbox,
                hidden=(self.settings.fixtures, self.settings.probes, self.settings.baselines, self.settings.results),
            )
            runs, compress_runs = self.plan
            session = Session(
                cases=cases,
                roles=cast.roles,
                folder=folder,
                label=folder.path.name,
                runs=runs,
                compress_runs=compress_runs,
                seed=self.seed,
                focus_topic=self.focus_topic or self.settings.focus_topic,
                concurrency=self.concurrency or self.settings.concurrency,
                tree=target.tree,
                known_controls=self._known_controls(cases, cast),
                on_record=on_record,
                stopped=cast.stopped,
                resume=self.resume,
            )
            return await session.measure(self._settled if self.stop == "early" else None)

    def _known_controls(self, cases: list[Case], cast: Cast) -> dict[str, Controls]:
        """Take the controls of a baseline with the equal fingerprint: the same calls are not paid twice."""
        fingerprint = make_fingerprint(cases, cast.roles, self.focus_topic or self.settings.focus_topic)
        try:
            found = find_baseline(self.root / self.settings.baselines, fingerprint)
        except UserError:
            if self.compare_to == "auto":
                raise
            found = None  # an unreadable baseline must not stand in the way of the update that replaces it
        return load_side(found[0]).controls if found and not found[1] else {}

    def _settled(self, measurement: Measurement) -> bool:
        """Tell whether the facts alone decide."""
        base = self._base(measurement)
        if base is None:
            return False
        verdict, _ = compare_measurements(load_side(base), measurement, looks=self.looks)
        return verdict.kind in _DECIDED

    def _base(self, measurement: Measurement) -> Path | None:
        if self.compare_to == "none":
            return None
        if self.compare_to != "auto":
            return self.root / self.compare_to
        found = find_baseline(self.root / self.settings.baselines, measurement.fingerprint)
        return found[0] if found else None

    def compared(self, measurement: Measurement, cases: list[Case]) -> ReportData:
        """Compare a measurement with the chosen baseline, or say why not."""
        suite = {case.fixture.name: case for case in cases}
        path = self._base(measurement)
        if path is None:
            folder = self.settings.baselines
            why = f"no baseline in {folder}; `compression-eval baseline update` makes one"
            return ReportData(measurement, cases=suite, note="none was asked for" if self.compare_to == "none" else why)
        verdict, base = compare_measurements(load_side(path), measurement, looks=self.looks)
        history = read_history(self.root / self.settings.baselines, path.stem)
        return ReportData(measurement, base=base, verdict=verdict, base_path=str(path), cases=suite, history=history)
