"""Merging shards: their journals and fixture-runs become one result, as if one machine had measured all of it.

A shard's folder may come from a job that ran a stranger's code. Only files that the plan names are read, each as what
it must be; what does not fit refuses the merge.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.files import parse, pretty, read_json
from eval_core.base.strict_json import BadJson
from eval_core.base.tokens import count_messages
from eval_core.domain.case import Case, Cell, plan_cells
from eval_core.domain.compression import ModelUse, Outcome
from eval_core.domain.extra import ControlRuns, Extra, MergedShards
from eval_core.domain.fingerprint import differences
from eval_core.domain.measurement import Controls, Measurement
from eval_core.domain.record import RunRecord
from eval_core.domain.shard import Shard, shard_of_folder
from eval_core.domain.target import changed_parts
from eval_core.measuring.blame import attribute_refusals
from eval_core.measuring.compare_with_base import load_cases
from eval_core.models.journal import parse_line
from eval_core.storage.results import BASE_FOLDER, IDENTITY, SUMMARY, ResultsFolder, RunIdentity, spending

_MERGING = ".merging"
_LARGEST_RUN = 16 << 20
_LARGEST_SUMMARY = 256 << 20
_LARGEST_JOURNAL = 2 << 30


@dataclass(frozen=True)
class _Part:
    """What one shard left."""

    shard: Shard
    folder: ResultsFolder
    identity: RunIdentity
    summary: Measurement | None
    """None where the shard did not finish."""

    @property
    def stopped(self) -> str | None:
        if self.summary is None:
            return f"shard {self.shard} did not finish"
        return f"shard {self.shard}: {self.summary.stopped}" if self.summary.stopped else None


@dataclass(frozen=True)
class MergedRun:
    """A merged measurement and the shards that have to be run again."""

    measurement: Measurement
    cases: list[Case]
    missing: tuple[Shard, ...]


def find_shards(results: Path, label: str) -> dict[Shard, Path]:
    """Return the folders of a label's shards; all must be of one split."""
    found: dict[Shard, Path] = {}
    for path in sorted(results.iterdir() if results.is_dir() else ()):
        named = shard_of_folder(path.name)
        if named is not None and named[0] == label and path.is_dir() and not path.is_symlink():
            found[named[1]] = path
    if not found:
        raise UserError(
            f"{results}: no shards of {label} here ({label}-shard-1-of-N); "
            f"`compression-eval run --label {label} --shard 1/N` measures one"
        )
    if len({shard.of for shard in found}) > 1:
        names = ", ".join(path.name for path in found.values())
        raise UserError(f"{results}: shards of different splits ({names}); remove those that do not belong together")
    return found


def merge_shards(settings: Config, root: Path, shards: Mapping[Shard, Path], into: ResultsFolder) -> MergedRun:
    """Put the shards' journals and fixture-runs into one folder and make one measurement of them."""
    _refuse_overwriting(into)
    found = [_read_part(shard, path) for shard, path in sorted(shards.items(), key=lambda item: item[0].index)]
    parts = [part for part in found if part is not None]
    if not parts:
        raise UserError(f"{into.path.name}: no shard has measured anything; run them again, then merge")
    _check_alike(parts)
    whole = next((part.summary for part in parts if part.summary is not None), None)
    if whole is None:
        raise UserError(f"{into.path.name}: no shard has finished; run them again with --resume, then merge")
    cases = load_cases(settings, root, tuple(whole.fingerprint.fixtures))
    _check_suite(parts[0].identity, cases)
    count = parts[0].shard.of
    held = {part.shard.index: part for part in parts}
    missing = tuple(Shard(index, count) for index in range(1, count + 1) if index not in held)
    reasons = [f"shard {shard} left no result" for shard in missing]
    reasons += [part.stopped for part in parts if part.stopped is not None]
    # Everything is read and checked before anything is written.
    records, controls, extra = (
        _records(plan_cells(cases, whole.planned_runs, whole.planned_compress_runs), held, count),
        _controls(parts, cases),
        _extra(parts),
    )
    marker = into.write(_MERGING, "")
    journal, broken = _merge_journals(parts, into.journal)
    into.write(IDENTITY, pretty(parts[0].identity.model_dump(mode="json")))
    fixtures: dict[str, list[RunRecord]] = {case.fixture.name: [] for case in cases}
    for record in attribute_refusals(records):
        if record.outcome is not Outcome.INFRA:
            into.write_run(record)
        fixtures[record.fixture].append(record.model_copy(update={"messages": []}))
    measurement = whole.model_copy(
        update={
            "label": into.path.name,
            "fixtures": fixtures,
            "controls": controls,
            "census": _joined([part.summary.census for part in parts if part.summary]),
            "frontier": _joined([part.summary.frontier for part in parts if part.summary]),
            "use": spending(into.journal) if journal else _use(parts),
            "stopped": "; ".join(reasons) or None,
            "extra": extra.model_copy(
                update={"shards": MergedShards(of=count, journal_bytes=journal), "broken_lines": broken}
            ),
        }
    )
    into.write_measurement(measurement)
    if extra.base == "rerun":
        _merge_bases(settings, root, parts, into)
    marker.unlink()
    unfinished = [part.shard for part in parts if part.stopped is not None]
    return MergedRun(measurement, cases, (*missing, *unfinished))


def _merge_bases(settings: Config, root: Path, parts: Sequence[_Part], into: ResultsFolder) -> None:
    """Merge the base that was measured beside the candidate; one that was known before is the same in every shard."""
    folders = {part.shard: part.folder.path / BASE_FOLDER for part in parts}
    base = ResultsFolder(into.path / BASE_FOLDER)
    for path in folders.values():
        if os.path.lexists(path / SUMMARY) and not os.path.lexists(path / IDENTITY):
            known = _checked(path / SUMMARY, _LARGEST_SUMMARY)
            base.write_measurement(parse(Measurement, read_json(known), str(known)))
            return
    merge_shards(settings, root, folders, base)


def _refuse_overwriting(into: ResultsFolder) -> None:
    """Refuse to replace results that were paid for beside the shards: a merged run may have been resumed since."""
    summary = into.path / SUMMARY
    if (into.path / _MERGING).exists():
        return  # a merge that was interrupted: all of it comes from the shards
    if not summary.exists():
        if into.journal.exists() or any(into.path.glob("*-run-*.json")):
            raise UserError(f"{into.path}: holds a run that has not ended; --resume it, or merge under another label")
        return
    known = parse(Measurement, read_json(summary), str(summary)).extra.shards
    size = into.journal.stat().st_size if into.journal.exists() else 0
    if known is None or known.journal_bytes != size:
        raise UserError(
            f"{into.path}: holds results of its own; nothing is overwritten. "
            f"`compression-eval run --label {into.path.name} --resume` completes it"
        )


def _checked(path: Path, limit: int) -> Path:
    """Return the path of a regular file of a sensible size; a link could lead anywhere."""
    about = os.lstat(path)
    if not stat.S_ISREG(about.st_mode):
        raise UserError(f"{path}: not a regular file; refused")
    if about.st_size > limit:
        raise UserError(f"{path}: {about.st_size:,} bytes, more than the {limit:,} allowed; refused")
    return path


def _read_part(shard: Shard, path: Path) -> _Part | None:
    """Read what a shard left; None where it did not even begin to measure."""
    identity, summary = path / IDENTITY, path / SUMMARY
    if not path.is_dir() or path.is_symlink() or not os.path.lexists(identity):
        return None
    held = parse(RunIdentity, read_json(_checked(identity, _LARGEST_RUN)), str(identity))
    measured = None
    if os.path.lexists(summary):
        measured = parse(Measurement, read_json(_checked(summary, _LARGEST_SUMMARY)), str(summary))
        if measured.extra.shard != str(shard):
            raise UserError(f"{summary}: claims to be shard {measured.extra.shard!r} and not {shard}; refused")
        if measured.fingerprint != held.fingerprint:
            raise UserError(f"{summary}: its fingerprint is not that of {IDENTITY}; refused")
        # Its runs are read from files of their own; two copies of a large suite are gigabytes.
        measured = measured.model_copy(update={"fixtures": {}})
    return _Part(shard, ResultsFolder(path), held, measured)


def _check_alike(parts: Sequence[_Part]) -> None:
    """Refuse shards that did not measure the same thing."""
    first = parts[0]
    for part in parts[1:]:
        changed = [name for name in ("target", "seed") if getattr(first.identity, name) != getattr(part.identity, name)]
        changed += changed_parts(first.identity.source, part.identity.source)
        changed += [item.field for item in differences(first.identity.fingerprint, part.identity.fingerprint)]
        plans = {
            (summary.planned_runs, summary.planned_compress_runs)
            for summary in (first.summary, part.summary)
            if summary is not None
        }
        changed += ["runs"] if len(plans) > 1 else []
        if changed:
            raise UserError(
                f"{part.folder.path}: shard {part.shard} measured something else than shard {first.shard}: "
                f"{', '.join(changed)}; run it again with the same options and the same code"
            )


def _check_suite(identity: RunIdentity, cases: Sequence[Case]) -> None:
    fixtures = {case.fixture.name: case.fixture.digest for case in cases}
    banks = {case.fixture.name: case.bank.digest for case in cases}
    if identity.fingerprint.fixtures != fixtures or identity.fingerprint.probes != banks:
        raise UserError("the shards were measured with other fixtures or probes than those here; use the same commit")


def _records(plan: Sequence[Cell], held: Mapping[int, _Part], count: int) -> list[RunRecord]:
    """Return the record of every cell of the plan, from the shard that it belongs to."""
    owners = {
        (cell.case.fixture.name, cell.run): index
        for index in range(1, count + 1)
        for cell in Shard(index, count).cells(plan)
    }
    records = []
    for cell in plan:
        index = owners[cell.case.fixture.name, cell.run]
        part = held.get(index)
        found = None if part is None else _record(part, cell)
        why = f"shard {index}/{count} did not measure it"
        records.append(found or _unmeasured(cell, (part.stopped if part else None) or why))
    return records


def _record(part: _Part, cell: Cell) -> RunRecord | None:
    name = cell.case.fixture.name
    path = part.folder.path / f"{name}-run-{cell.run}.json"
    if not os.path.lexists(path):
        return None
    record = parse(RunRecord, read_json(_checked(path, _LARGEST_RUN)), str(path))
    known = {probe.id for probe in cell.case.bank.probes}
    if (record.fixture, record.run) != (name, cell.run) or not set(record.probes) <= known:
        raise UserError(f"{path}: is not about run {cell.run} of {name} and its probes; refused")
    return record if record.graded == cell.graded else None


def _unmeasured(cell: Cell, why: str) -> RunRecord:
    return RunRecord(
        fixture=cell.case.fixture.name,
        run=cell.run,
        graded=cell.graded,
        outcome=Outcome.INFRA,
        detail=f"not measured: {why}",
        tokens_before=count_messages(cell.case.fixture.messages),
    )


def _merge_journals(parts: Sequence[_Part], into: Path) -> tuple[int, int]:
    """Write all journals one after the other; return the bytes, and how many damaged lines were left out."""
    temporary = into.with_name(f".{into.name}.merging")
    size = broken = 0
    with temporary.open("wb") as merged:
        for part in parts:
            if not os.path.lexists(part.folder.journal):
                continue
            with _checked(part.folder.journal, _LARGEST_JOURNAL).open("rb") as stream:
                for raw in stream:
                    if not raw.endswith(b"\n"):
                        continue  # torn by a crash
                    try:
                        parse_line(raw)
                    except BadJson:
                        broken += 1
                        continue
                    size += merged.write(raw)
        merged.flush()
        os.fsync(merged.fileno())
    if size:
        temporary.replace(into)
    else:
        temporary.unlink()
    return size, broken


def _use(parts: Sequence[_Part]) -> dict[str, ModelUse]:
    """Add up what the shards say they used, where no journal tells."""
    use: dict[str, ModelUse] = {}
    for part in parts:
        for role, spent in part.summary.use.items() if part.summary else ():
            use[role] = use.get(role, ModelUse()) + spent
    return use


def _controls(parts: Sequence[_Part], cases: Sequence[Case]) -> dict[str, Controls]:
    """Join the controls, in the order of the suite; those of other probes are refused."""
    found = _joined([part.summary.controls for part in parts if part.summary])
    controls = {}
    for case in cases:
        name = case.fixture.name
        if name in found:
            if set(found[name].probes) != {probe.id for probe in case.bank.probes}:
                raise UserError(f"controls of {name}: they are of other probes than the bank's; refused")
            controls[name] = found[name]
    return controls


_Value = TypeVar("_Value")


def _joined(parts: Sequence[Mapping[str, _Value]]) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    for part in parts:
        for name, value in part.items():
            found.setdefault(name, value)
    return dict(sorted(found.items()))


def _extra(parts: Sequence[_Part]) -> Extra:
    """Join what the shards noted: of models that answered for others the counts, of the base's control its runs."""
    noted = [part.summary.extra for part in parts if part.summary]
    served: dict[str, dict[str, int]] = {}
    for extra in noted:
        for model, counts in extra.served.items():
            mine = served.setdefault(model, {})
            for name, number in counts.items():
                mine[name] = mine.get(name, 0) + number
    control: dict[str, list[RunRecord]] = {}
    controls = [extra.control for extra in noted if extra.control is not None]
    for found in controls:
        for name, runs in found.fixtures.items():
            control.setdefault(name, []).extend(runs)
    first: dict[str, object] = {}
    for extra in noted:
        for name in Extra.model_fields:
            value = getattr(extra, name)
            if value and name not in first:
                first[name] = value
    joined = {
        **first,
        "shard": None,
        "served": served,
        "control": ControlRuns(fixtures=control, source_sha=controls[-1].source_sha) if controls else None,
    }
    return Extra().model_copy(update=joined)
