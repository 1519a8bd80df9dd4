"""One run from plan to measurement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval_core.measurement import Controls, Measurement, Provenance
from eval_core.run.claim import Claim, claim_folder
from eval_core.run.controls import measure_controls
from eval_core.run.execute import Executor
from eval_core.run.plan import Cell, make_plan
from eval_core.run.provenance import now, package_version, source_commit
from eval_core.run.record import RunRecord, UseRecord
from eval_core.run.roles import Roles, make_fingerprint
from eval_core.run.store import ResultsFolder
from eval_core.run.suite import Case

__all__ = ["Session"]


@dataclass
class Session:
    """Measures one target; what is finished is on disk at once, and a resumed session starts from there."""

    cases: Sequence[Case]
    roles: Roles
    folder: ResultsFolder
    label: str
    runs: int
    compress_runs: int
    seed: int = 0
    focus_topic: str | None = None
    concurrency: int = 16
    tree: Path = field(default_factory=Path)
    known_controls: dict[str, Controls] = field(default_factory=dict)
    """Controls measured before under the same fingerprint: not paid for again."""
    on_record: Callable[[RunRecord], None] = lambda record: None
    stopped: Callable[[], str | None] = lambda: None
    """Why the run cannot go on, e.g. that the budget is used up."""
    resume: bool = False

    async def measure(self, settled: Callable[[Measurement], bool] | None = None) -> Measurement:
        """Execute the plan. With `settled`, all compressions come first and grading is skipped if facts decide."""
        sha, _ = source_commit(self.tree)
        fingerprint = make_fingerprint(self.cases, self.roles, self.focus_topic)
        claim = Claim(target=self.roles.subject.name, source_sha=sha, seed=self.seed, fingerprint=fingerprint)
        claim_folder(self.folder, claim, resume=self.resume)
        executor = Executor(
            self.roles.subject,
            self.roles.answerer,
            self.roles.judge,
            seed=self.seed,
            focus_topic=self.focus_topic,
            concurrency=self.concurrency,
            on_record=self._keep,
        )
        plan = make_plan(self.cases, self.runs, self.compress_runs)
        if settled is not None:
            facts_only = [Cell(cell.case, cell.run, graded=False) for cell in plan]
            records = await self._execute(executor, facts_only)
            measurement = self._measurement(records, {}, runs=0)
            if settled(measurement):
                return self._finish(measurement)
        controls, records = await asyncio.gather(self._controls(), self._execute(executor, plan))
        return self._finish(self._measurement(records, controls, runs=self.runs))

    async def _execute(self, executor: Executor, plan: Sequence[Cell]) -> list[RunRecord]:
        done = {id(cell): record for cell in plan if (record := self._finished(cell))}
        for record in done.values():
            self.on_record(record)
        fresh = iter(await executor.run([cell for cell in plan if id(cell) not in done]))
        return [done.get(id(cell)) or next(fresh) for cell in plan]

    def _finished(self, cell: Cell) -> RunRecord | None:
        if not self.resume:
            return None
        record = self.folder.read_run(cell.case.fixture.name, cell.run)
        if record is None or not record.ok or record.graded != cell.graded:
            return None
        if set(record.probes) != {probe.id for probe in cell.case.bank.probes}:
            return None
        unscored = any(probe.result is None or probe.result.kind == "unscored" for probe in record.probes.values())
        return None if cell.graded and unscored else record

    def _keep(self, record: RunRecord) -> None:
        self.folder.write_run(record)
        self.on_record(record)

    async def _controls(self) -> dict[str, Controls]:
        names = [case.fixture.name for case in self.cases]
        measured = await asyncio.gather(*(self._control(case) for case in self.cases))
        return dict(zip(names, measured, strict=True))

    async def _control(self, case: Case) -> Controls:
        known = self.known_controls.get(case.fixture.name)
        return known or await measure_controls(case, self.roles.answerer, self.roles.judge)

    def _measurement(self, records: Sequence[RunRecord], controls: dict[str, Controls], runs: int) -> Measurement:
        sha, dirty = source_commit(self.tree)
        fixtures: dict[str, list[RunRecord]] = {case.fixture.name: [] for case in self.cases}
        use: dict[str, UseRecord] = {}
        for record in records:
            fixtures[record.fixture].append(record)
            for role, spent in record.use.items():
                use[role] = use.get(role, UseRecord()).plus(spent)
        return Measurement(
            label=self.label,
            offline=self.roles.offline,
            fingerprint=make_fingerprint(self.cases, self.roles, self.focus_topic),
            provenance=Provenance(
                target=self.roles.subject.name,
                source_sha=sha,
                dirty=dirty,
                date=now().strftime("%Y-%m-%dT%H:%M:%SZ"),
                version=package_version(),
                seed=self.seed,
                sandbox=self.roles.sandbox,
            ),
            models=self.roles.models,
            planned_runs=runs,
            planned_compress_runs=max(self.runs, self.compress_runs),
            fixtures=fixtures,
            probe_types={
                case.fixture.name: {probe.id: probe.type for probe in case.bank.probes} for case in self.cases
            },
            controls=controls,
            use=use,
            stopped=self.stopped(),
        )

    def _finish(self, measurement: Measurement) -> Measurement:
        self.folder.write_measurement(measurement)
        return measurement
