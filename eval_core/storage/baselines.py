"""Baselines on disk: stored measurements, packed for review as a diff, their history, and which one to compare with."""

from __future__ import annotations

import datetime
import hashlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from eval_core.base.errors import UserError
from eval_core.base.files import digest, parse, pretty, read_json, write_atomic
from eval_core.base.numbers import counted
from eval_core.comparing.compare import compare_measurements
from eval_core.domain.case import Case
from eval_core.domain.fingerprint import Difference, Fingerprint, differences, instrument, narrowed, nearest
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import SCHEMA_VERSION, Measurement
from eval_core.storage.results import read_measurement

__all__ = [
    "COMPARED",
    "PROMOTED",
    "STALE",
    "BaseInRun",
    "Reference",
    "append_history",
    "base_notes",
    "base_store",
    "broken_history",
    "dump_baseline",
    "find_baseline",
    "find_reference",
    "is_stale",
    "keep_base",
    "list_baselines",
    "load_baseline",
    "load_side",
    "measured_base",
    "plan_base",
    "read_history",
    "stale_fields",
    "store_baseline",
    "stored_reference",
    "unmeasured",
]

# Baselines: measurements stored for comparison, reviewed as a diff.

HISTORY = "history.jsonl"
COMPARED = "compared"
"""The name in a measurement's extra: it was compared with a baseline, so that accepting it selects for luck."""
PROMOTED = 3
"""Runs of an accepted change that may enter a baseline."""


def _reference(text: str, texts: dict[str, str]) -> str:
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    texts[key] = text
    return key


def _flags(facts: list[dict[str, Any]], name: str) -> str:
    return "".join("-" if fact[name] is None else str(int(fact[name])) for fact in facts)


def _pack_probe(record: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    packed: dict[str, Any] = {name: _flags(record["facts"], name) for name in ("kept", "at_risk", "used")}
    if record["answer"]:
        packed["answer"] = _reference(record["answer"]["text"], texts)
    if record["result"] and record["result"]["kind"] == "grade":
        packed["scores"] = [record["result"]["scores"][name] for name in DIMENSIONS]
        packed["reason"] = _reference(record["result"]["reason"], texts)
    elif record["result"]:
        packed["unscored"] = record["result"]["reason"]
    return packed


def _unpack_probe(packed: dict[str, Any], facts: list[list[Any]], texts: dict[str, str]) -> dict[str, Any]:
    def flag(name: str, at: int) -> bool | None:
        return {"1": True, "0": False, "-": None}[packed[name][at]]

    record: dict[str, Any] = {
        "facts": [
            {"label": label, "evidence": evidence, **{name: flag(name, at) for name in ("kept", "at_risk", "used")}}
            for at, (label, evidence) in enumerate(facts)
        ]
    }
    if "answer" in packed:
        record["answer"] = {"text": texts[packed["answer"]]}
    if "scores" in packed:
        scores = dict(zip(DIMENSIONS, packed["scores"], strict=True))
        record["result"] = {"kind": "grade", "scores": scores, "reason": texts.get(packed.get("reason", ""), "")}
    elif "unscored" in packed:
        record["result"] = {"kind": "unscored", "reason": packed["unscored"]}
    return record


def _fold(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write a run that equals an earlier one as a reference to it: deterministic compressors repeat themselves."""
    seen: dict[str, int] = {}
    folded = []
    for run in runs:
        number = run["run"]
        first = seen.setdefault(digest({name: value for name, value in run.items() if name != "run"}), number)
        folded.append(run if first == number else {"run": number, "same_as": first})
    return folded


def _unfold(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    whole = {run["run"]: run for run in runs if "same_as" not in run}
    return [{**whole[run["same_as"]], "run": run["run"]} if "same_as" in run else run for run in runs]


def dump_baseline(measurement: Measurement, noise: dict[str, float]) -> str:
    """Return the file text of a baseline: stable key order, nothing that changes without a reason."""
    body = measurement.model_dump(mode="json")
    texts: dict[str, str] = {}
    facts: dict[str, dict[str, list[list[Any]]]] = {}
    for fixture, runs in body["fixtures"].items():
        facts[fixture] = {}
        for run in runs:
            del run["messages"]
            run["summary"] = _reference(run["summary"], texts)
            for probe, record in run["probes"].items():
                facts[fixture].setdefault(probe, [[fact["label"], fact["evidence"]] for fact in record["facts"]])
                run["probes"][probe] = _pack_probe(record, texts)
        body["fixtures"][fixture] = _fold(runs)
    body.update(noise=noise, facts=facts, texts=dict(sorted(texts.items())))
    body["fixtures"] = body.pop("fixtures")  # the long part last
    return pretty({"schema_version": body.pop("schema_version"), "digest": digest(body), **body})


def load_baseline(path: Path) -> tuple[Measurement, dict[str, float]]:
    """Read a baseline and its noise floor; a file that was edited by hand is named, not believed."""
    body = read_json(path)
    if not isinstance(body, dict) or "fixtures" not in body or "texts" not in body:
        raise UserError(f"{path}: not a baseline file; `compression-eval baseline update` writes one")
    version = body.pop("schema_version", None)
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path}: schema_version: {version!r}, this program reads {SCHEMA_VERSION}; "
            "measure it again with `compression-eval baseline update`"
        )
    stated = body.pop("digest", None)
    if stated != digest(body):
        raise UserError(
            f"{path}: its content does not match its digest: it was edited by hand; restore it from git, "
            "or measure it again with `compression-eval baseline update`"
        )
    noise, facts, texts = body.pop("noise"), body.pop("facts"), body.pop("texts")
    try:
        for fixture, runs in body["fixtures"].items():
            for run in runs:
                if "same_as" in run:
                    continue
                run["summary"] = texts[run["summary"]]
                probes = run["probes"].items()
                run["probes"] = {name: _unpack_probe(packed, facts[fixture][name], texts) for name, packed in probes}
            body["fixtures"][fixture] = _unfold(runs)
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise UserError(f"{path}: broken baseline: {type(exc).__name__} {exc}; restore it from git") from None
    return parse(Measurement, {"schema_version": version, **body}, str(path)), noise


def _essence(measurement: Measurement) -> Any:
    """Return what a measurement says, without when and how fast it was taken."""
    parts = {"fingerprint", "fixtures", "planned_runs", "planned_compress_runs"}
    body = measurement.model_dump(mode="json", include=parts)
    for runs in body["fixtures"].values():
        for run in runs:
            for name in ("messages", "seconds", "use", "notes"):
                run.pop(name)
            for record in run["probes"].values():
                record["answer"] = record["answer"] and record["answer"]["text"]
                record["result"] = record["result"] and (record["result"].get("scores") or record["result"]["reason"])
    return body


def store_baseline(
    measurement: Measurement, folder: Path, name: str | None, *, force: bool = False
) -> tuple[Path, dict[str, float]] | None:
    """Store a complete measurement as a baseline with its noise floor; None where it would say nothing new."""
    from eval_core.comparing.arms import make_arm
    from eval_core.comparing.noise import noise_floor

    ungraded = unmeasured(measurement)
    if not measurement.offline and measurement.extra.get(COMPARED) and measurement.planned_runs > PROMOTED:
        raise UserError(
            f"{measurement.label}: these {measurement.planned_runs} graded runs were compared with a baseline, and the "
            f"luck that got them accepted would stay in the next one: at most {PROMOTED} runs of an accepted change "
            "may enter it. Measure it anew with `compression-eval baseline update`"
        )
    if measurement.stopped or len(ungraded) == len(measurement.fixtures):
        failed = [run for runs in measurement.fixtures.values() for run in runs if not run.ok]
        why = f"{failed[0].outcome}: {failed[0].detail}" if failed else "no graded run"
        why = measurement.stopped or f"{', '.join(ungraded)}: {why}"
        raise UserError(f"a baseline needs a complete measurement, and this one is not: {why}")
    path = folder / f"{name or ('offline' if measurement.offline else 'models')}.json"
    if path.exists() and not force:
        try:
            old = load_baseline(path)[0]
        except UserError:
            old = None  # unreadable or of an older schema: this is the update that replaces it
        if old is not None and _essence(old) == _essence(measurement):
            return None
    noise = {item.name: round(item.sd, 6) for item in noise_floor(make_arm(measurement))}
    write_atomic(path, dump_baseline(measurement, noise))
    append_history(folder, path.stem, measurement)
    return path, noise


def unmeasured(measurement: Measurement) -> list[str]:
    """Return the fixtures of which no graded run succeeded: told with the baseline, no reason to refuse the rest."""
    return [name for name, runs in measurement.fixtures.items() if not any(run.graded and run.ok for run in runs)]


def stale_fields(path: Path, cases: Sequence[Case]) -> list[str]:
    """Name what a baseline was measured with and what is another thing now: fixtures, probes, the measuring code."""
    stored = load_baseline(path)[0].fingerprint
    now = {f"fixtures/{case.fixture.name}.json": case.fixture.digest for case in cases}
    now |= {f"probes/{case.fixture.name}.probes.json": case.bank.digest for case in cases}
    then = {f"fixtures/{name}.json": value for name, value in stored.fixtures.items()}
    then |= {f"probes/{name}.probes.json": value for name, value in stored.probes.items()}
    fields = [name for name in dict.fromkeys([*now, *then]) if now.get(name) != then.get(name)]
    if stored.instrument != instrument():
        fields.append("the code that finds facts")
    return fields


def list_baselines(folder: Path) -> list[Path]:
    """Return the baseline files of a folder."""
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def find_baseline(folder: Path, fingerprint: Fingerprint) -> tuple[Path, list[Difference]] | None:
    """Return the stored baseline that is nearest to a fingerprint, and what differs (nothing: comparable)."""
    known = []
    for path in list_baselines(folder):
        base = load_baseline(path)[0].fingerprint
        names = set(fingerprint.fixtures)
        if names < set(base.fixtures):
            base = base.model_copy(
                update={
                    "fixtures": {name: base.fixtures[name] for name in names},
                    "probes": {name: base.probes[name] for name in names},
                }
            )
        known.append((path, base))
    return nearest(fingerprint, known)


def append_history(folder: Path, name: str, measurement: Measurement) -> None:
    """Add one line about an updated baseline, for the trend."""
    from eval_core.comparing.trend import run_means

    line = {
        "date": measurement.provenance.date,
        "baseline": name,
        "target": measurement.provenance.target,
        "source_sha": measurement.provenance.source_sha,
        "fingerprint": measurement.fingerprint.digest[:12],
        "overall": _mean(grade.overall for grade in _grades(measurement)),
        **{dim: _mean(grade.scores[dim] for grade in _grades(measurement)) for dim in DIMENSIONS},
        "facts_kept": _mean(
            record.retention for runs in measurement.fixtures.values() for run in runs for record in run.probes.values()
        ),
        "runs": run_means(measurement),
    }
    path = folder / HISTORY
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    before += "" if not before or before.endswith("\n") else "\n"
    write_atomic(path, before + json.dumps(line, ensure_ascii=False) + "\n")


def read_history(folder: Path, name: str | None = None) -> list[dict[str, Any]]:
    """Return the history lines, oldest first, of one baseline or of all; what cannot be read is left out."""
    return [line for _, line in _history(folder) if line is not None and name in (None, line.get("baseline"))]


def broken_history(folder: Path) -> list[str]:
    """Name the history lines that cannot be read, such as the marks of a merge conflict."""
    return [
        f"{folder / HISTORY}, line {number}: not a JSON object; it is skipped, remove it"
        for number, line in _history(folder)
        if line is None
    ]


def _history(folder: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    path = folder / HISTORY
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            whole = isinstance(value, dict) and {"date", "baseline"} <= set(value)
            yield number, value if whole else None


def _grades(measurement: Measurement) -> Iterator[Grade]:
    for fixture, runs in measurement.fixtures.items():
        controls = measurement.controls.get(fixture)
        banned = {name for name, control in controls.probes.items() if control.quarantined} if controls else set()
        for run in runs:
            for probe, record in run.probes.items():
                if isinstance(record.result, Grade) and probe not in banned:
                    yield record.result


def _mean(values: Iterator[float]) -> float | None:
    numbers = list(values)
    return round(sum(numbers) / len(numbers), 4) if numbers else None


# The other side of a comparison: which one it is, and whether it is comparable, before anything is spent.

STALE = "stale"
"""The name in a measurement's extra: the baseline that the base branch has left behind."""
BaseInRun = Literal["nothing", "control", "whole"]
"""What of the base is measured in the candidate's run."""


@dataclass(frozen=True)
class Reference:
    """A stored measurement, and whether a run with this fingerprint can be compared with it."""

    path: Path
    comparable: bool

    @cached_property
    def measurement(self) -> Measurement:
        """The measurement itself."""
        return load_side(self.path)


def stored_reference(baselines: Path, fingerprint: Fingerprint) -> Reference | None:
    """Return the stored baseline that is nearest to a fingerprint."""
    found = find_baseline(baselines, fingerprint)
    return Reference(found[0], not found[1]) if found else None


def find_reference(compare_to: str, root: Path, baselines: Path, fingerprint: Fingerprint) -> Reference | None:
    """Return what `--compare-to` names: none, a path, or with auto the nearest baseline."""
    if compare_to == "none":
        return None
    if compare_to == "auto":
        return stored_reference(baselines, fingerprint)
    path = root / compare_to
    base = load_side(path).fingerprint
    return Reference(path, not differences(narrowed(base, fingerprint.fixtures), fingerprint))


def is_stale(reference: Reference, base_digest: str | None) -> bool:
    """Tell whether a baseline was measured from other watched files than the base branch has now."""
    recorded = reference.measurement.provenance.watched
    return recorded is not None and base_digest is not None and recorded != base_digest


def plan_base(
    reference: Reference | None,
    *,
    control: Literal["auto", "always", "never"],
    base_digest: str | None,
    base_known: bool,
    offline: bool,
) -> BaseInRun:
    """Decide what of the base is measured beside the candidate.

    A stale baseline would blame the candidate for what the base branch did. One that is not stale may still be from
    another day; runs without models know no days.
    """
    if not base_known or control == "never":
        return "nothing"
    if control == "always":
        return "whole"
    if reference is None or not reference.comparable:
        return "nothing"
    if is_stale(reference, base_digest):
        return "whole"
    return "nothing" if offline else "control"


def base_store(results: Path, digest: str, fingerprint: Fingerprint) -> Path:
    """Return where the measurement of a base tree is kept, so that it is paid for once."""
    return results / "bases" / f"{digest[:16]}-{fingerprint.digest[:16]}.json"


def measured_base(path: Path, runs: int) -> Measurement | None:
    """Return a base tree that was measured before with at least so many runs, if it can be read."""
    try:
        found = load_side(path) if path.exists() else None
    except UserError:
        return None  # torn or of another version: measured again
    return found if found is not None and found.planned_runs >= runs and not found.stopped else None


def keep_base(path: Path, measurement: Measurement) -> None:
    """Keep the measurement of a base tree for the next pull requests; one that was cut short is not kept."""
    if not measurement.stopped:
        write_atomic(path, dump_baseline(measurement, {}))


def _age(base: Measurement, candidate: Measurement) -> str:
    try:
        then, now = (datetime.datetime.fromisoformat(item.provenance.date) for item in (base, candidate))
    except ValueError:
        return "at an unknown time"
    days = (now - then).days
    return "today" if days <= 0 else f"{counted(days, 'day')} ago"


def _commits_behind(sha: str | None, root: Path) -> str:
    """Return how many commits the base branch has had since, as far as the history is at hand."""
    if sha is None:
        return ""
    command = ["git", "-C", str(root), "rev-list", "--count", f"{sha}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    count = int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdigit() else 0
    return f", {counted(count, 'commit')} behind the base branch" if count else ""


def base_notes(base: Measurement, candidate: Measurement, *, path: str, in_run: bool, root: Path) -> list[str]:
    """Say which base it is, how old, and what became of a baseline that was left behind."""
    sha = base.provenance.source_sha
    at = f" at {sha[:12]}" if sha else ""
    if not in_run:
        behind = _commits_behind(sha, root)
        return [f"Base: the stored baseline {path}, measured {_age(base, candidate)}{at}{behind}."]
    notes = [f"Base: the base branch{at}, measured for this comparison and not taken from a stored baseline."]
    stale = candidate.extra.get(STALE)
    if isinstance(stale, str):
        stored = load_side(root / stale)
        verdict, _ = compare_measurements(stored, base)
        notes.append(
            f"The stored baseline {stale} is stale: it was measured {_age(stored, candidate)} from other files than "
            f"the base branch has now{_commits_behind(stored.provenance.source_sha, root)}. "
            f"The base branch against it: {verdict.headline} Renew it with `compression-eval baseline update`."
        )
    return notes


def load_side(path: Path) -> Measurement:
    """Read one side of a comparison: a results folder or a baseline file."""
    if path.is_dir():
        return read_measurement(path)
    if not path.exists():
        raise UserError(f"{path}: no such results folder or baseline file")
    return load_baseline(path)[0]
