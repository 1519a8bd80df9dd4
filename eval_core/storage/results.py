"""Results on disk: one locked folder per label, whole files only, what a resume must match, and the spending."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from eval_core.base.errors import UserError
from eval_core.base.files import open_file, parse, pretty, pretty_parts, read_json, write_atomic
from eval_core.base.strict_json import parse_json
from eval_core.domain.compression import ModelUse, TokenUse
from eval_core.domain.fingerprint import Fingerprint, differences
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import Record, RunRecord
from eval_core.domain.target import CompressorSource, changed_parts
from eval_core.storage.round_log import RoundFile

# Results on disk: one folder for each label, whole files only, never two writers.

_LABEL = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")
BASE_FOLDER = "base"
"""Below a result: the base branch, measured whole in the same run."""
CONTROL_FOLDER = "control"
"""Below a result: a few runs of the base branch, measured beside the candidate."""
SUMMARY = "summary.json"


@dataclass(frozen=True)
class ResultsFolder:
    """The folder of one label."""

    path: Path

    @property
    def journal(self) -> Path:
        """The append-only record of model calls."""
        return self.path / "journal.jsonl"

    def write(self, name: str, text: str) -> Path:
        """Write one file of the result, as a whole."""
        write_atomic(self.path / name, text)
        return self.path / name

    def write_run(self, record: RunRecord) -> None:
        """Write down one finished fixture-run."""
        self.write(f"{record.fixture}-run-{record.run}.json", pretty(record.model_dump(mode="json")))

    def read_run(self, fixture: str, run: int) -> RunRecord | None:
        """Return a fixture-run that was finished before, if it can be read."""
        path = self.path / f"{fixture}-run-{run}.json"
        if not path.exists():
            return None
        try:
            return RunRecord.model_validate(read_json(path))
        except (UserError, ValidationError):
            return None  # written by another version or torn by hand: measure it again

    def round_log(self, fixture: str, run: int) -> RoundFile:
        """Return where the rounds of a fixture-run are written down until it is finished."""
        return RoundFile(self.path / f"{fixture}-run-{run}.rounds.jsonl")

    def write_measurement(self, measurement: Measurement) -> None:
        """Write `summary.json`: everything comparisons and reports need, without the message lists."""
        write_atomic(self.path / SUMMARY, _summary(measurement))

    def point_latest(self) -> None:
        """Let `latest` name this folder."""
        link = self.path.parent / "latest"
        temporary = self.path.parent / f".latest.{os.getpid()}"
        try:
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(self.path.name)
            temporary.replace(link)
        except OSError as exc:
            temporary.unlink(missing_ok=True)
            raise UserError(f"{link}: cannot point to the newest result: {exc.strerror}") from None


def _summary(measurement: Measurement) -> Iterator[str]:
    """Lay a measurement out, fixture by fixture: as one value, a large suite takes gigabytes."""

    def fixtures() -> Iterator[tuple[str, Any]]:
        for name, runs in measurement.fixtures.items():
            yield name, [run.model_copy(update={"messages": []}).model_dump(mode="json") for run in runs]

    others = measurement.model_dump(mode="json", exclude={"fixtures"})
    yield from pretty_parts(
        (name, fixtures() if name == "fixtures" else others[name]) for name in type(measurement).model_fields
    )
    yield "\n"


def free_label(root: Path, wanted: str) -> str:
    """Return the wanted label, or it with a number where it is taken: two runs may begin in one second."""
    label, number = wanted, 1
    while (root / label).exists():
        number += 1
        label = f"{wanted}-{number}"
    return label


@contextmanager
def open_results(root: Path, label: str, *, resume: bool) -> Iterator[ResultsFolder]:
    """Open the folder of a label for writing and keep other processes out of it."""
    if not _LABEL.fullmatch(label) or label == "latest":
        raise UserError(
            f"--label {label!r}: use letters, digits, '.', '_' and '-' (at most 80, not 'latest'); "
            "a label is one folder inside the results folder"
        )
    folder = root / label
    if (folder / SUMMARY).exists() and not resume:
        raise UserError(f"{folder}: this label has results already; choose another --label, or --resume to complete it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(f"{folder}: another run is writing here; wait for it or choose another --label") from None
    except OSError as exc:
        raise UserError(f"{folder}: cannot be written: {exc.strerror}; choose another folder with --results") from None
    try:
        yield ResultsFolder(folder)
    finally:
        lock.release()


def read_measurement(path: Path) -> Measurement:
    """Read the measurement of a results folder."""
    summary = path / SUMMARY
    if not summary.exists():
        raise UserError(f"{path}: no {SUMMARY} here; give a results folder such as results/latest, or a baseline file")
    return parse(Measurement, read_json(summary), str(summary))


def read_runs(path: Path) -> Measurement:
    """Read a results folder with the compressed messages of its runs, where they are still there."""
    measurement, folder = read_measurement(path), ResultsFolder(path)
    fixtures = {
        name: [folder.read_run(name, run.run) or run for run in runs] for name, runs in measurement.fixtures.items()
    }
    return measurement.model_copy(update={"fixtures": fixtures})


# What a results folder is about: a resumed run must be of the same thing as the one it completes.

IDENTITY = "session.json"


class RunIdentity(Record):
    """Everything that shapes a fixture-run, besides its number."""

    target: str
    source: CompressorSource
    seed: int
    fingerprint: Fingerprint


def keep_identity(folder: ResultsFolder, identity: RunIdentity, *, resume: bool) -> None:
    """Write the identity down; refuse to mix two different measurements in one folder."""
    path = folder.path / IDENTITY
    if resume and path.exists():
        before = _read(path)
        changed = [name for name in ("target", "seed") if getattr(before, name) != getattr(identity, name)]
        changed = changed or changed_parts(before.source, identity.source)
        changed += [item.field for item in differences(before.fingerprint, identity.fingerprint)]
        if changed:
            raise UserError(
                f"{folder.path}: --resume cannot complete this run: {', '.join(changed)} changed since it began; "
                "use the same options and the same code, or start over with another --label"
            )
    folder.write(IDENTITY, pretty(identity.model_dump(mode="json")))


def _read(path: Path) -> RunIdentity:
    try:
        return parse(RunIdentity, read_json(path), str(path))
    except UserError as exc:
        raise UserError(
            f"{exc}. --resume cannot tell what this run was about: another version of this program began it, or the "
            "file was edited; start over with another --label"
        ) from None


# What a run has cost so far, by role: every call of its journal, failed and repeated attempts included.


def spending(journal: Path) -> dict[str, ModelUse]:
    """Sum up a journal; an unreadable line costs its own numbers only."""
    found: dict[str, ModelUse] = {}
    if not journal.exists():
        return found
    with open_file(journal) as stream:
        for raw in stream:
            try:
                line = parse_json(raw)
                if line["at"] not in ("done", "paid"):
                    continue
                usage = line["usage"]
                use = ModelUse(calls=1, **{name: usage[name] for name in TokenUse.model_fields})
            except (ValueError, KeyError, TypeError):
                continue
            role = str(line.get("role"))
            found[role] = found.get(role, ModelUse()) + use
    return found
