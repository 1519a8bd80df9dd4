"""Baselines on disk: stored measurements, packed for review as a diff, and which one to compare with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import digest, parse, pretty, read_json, write_atomic
from eval_core.base.numbers import counted, percent
from eval_core.domain.case import Case
from eval_core.domain.compression import Outcome
from eval_core.domain.fingerprint import INSTRUMENT_VERSION, Fingerprint, differences, narrowed, nearest
from eval_core.domain.grade import DIMENSIONS, PASS_SCORE
from eval_core.domain.measurement import SCHEMA_VERSION, Measurement
from eval_core.storage.history import append_history, grades_of
from eval_core.storage.results import read_measurement

# Baselines: measurements stored for comparison, reviewed as a diff.

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


def dump_baseline(measurement: Measurement, noise: Mapping[str, float]) -> str:
    """Return the file text of a baseline: stable key order, nothing that changes without a reason."""
    body = measurement.model_dump(mode="json")
    texts: dict[str, str] = {}
    facts: dict[str, dict[str, list[list[Any]]]] = {}
    for fixture, runs in body["fixtures"].items():
        facts[fixture] = {}
        for run in runs:
            del run["messages"]
            run["summary"] = _reference(run["summary"], texts)
            for asked in run["asks"] or ():
                asked["text"] = _reference(asked["text"], texts)
            for probe, record in run["probes"].items():
                facts[fixture].setdefault(probe, [[fact["label"], fact["evidence"]] for fact in record["facts"]])
                run["probes"][probe] = _pack_probe(record, texts)
        body["fixtures"][fixture] = _fold(runs)
    body.update(noise=dict(noise), facts=facts, texts=dict(sorted(texts.items())))
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
    try:
        noise = {str(name): float(value) for name, value in body.pop("noise").items()}
        facts, texts = body.pop("facts"), body.pop("texts")
        for fixture, runs in body["fixtures"].items():
            for run in runs:
                if "same_as" in run:
                    continue
                run["summary"] = texts[run["summary"]]
                for asked in run.get("asks") or ():
                    asked["text"] = texts[asked["text"]]
                probes = run["probes"].items()
                run["probes"] = {name: _unpack_probe(packed, facts[fixture][name], texts) for name, packed in probes}
            body["fixtures"][fixture] = _unfold(runs)
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise UserError(f"{path}: broken baseline: {type(exc).__name__} {exc}; restore it from git") from None
    try:
        return parse(Measurement, {"schema_version": version, **body}, str(path)), noise
    except UserError as exc:
        # Its digest is right, so nobody edited it: another version wrote it.
        field = str(exc).removeprefix(f"{path}: ").split("problems:\n")[-1].strip().partition(":")[0]
        raise UserError(
            f"{path}: written by another version of this program, which this one cannot read ({field}); "
            "measure it again with `compression-eval baseline update`"
        ) from None


def current_baseline(path: Path) -> Measurement | None:
    """Return the baseline that an update replaces; None where there is none, or a broken one of an older schema."""
    try:
        return load_baseline(path)[0] if path.exists() else None
    except UserError:
        return None


def _essence(measurement: Measurement) -> Any:
    """Return what a measurement says and of which files, without when and how fast it was taken."""
    parts = {"fingerprint", "fixtures", "planned_runs", "planned_compress_runs"}
    body = measurement.model_dump(mode="json", include=parts)
    body["watched"] = measurement.provenance.watched
    for runs in body["fixtures"].values():
        for run in runs:
            for name in ("messages", "seconds", "cold_seconds", "queued_seconds", "use", "notes"):
                run.pop(name)
            for state in run["strands"].get("rounds", {}).get("rounds", ()):
                state.pop("seconds", None)
                state.pop("use", None)
            for record in run["probes"].values():
                record["answer"] = record["answer"] and record["answer"]["text"]
                record["result"] = record["result"] and (record["result"].get("scores") or record["result"]["reason"])
    return body


def store_baseline(
    measurement: Measurement,
    folder: Path,
    name: str | None,
    *,
    noise: Mapping[str, float],
    force: bool = False,
    accept_failing: bool = False,
    verdict: str | None = None,
    release: str | None = None,
) -> Path | None:
    """Store a complete measurement as a baseline with its noise floor; None where it would say nothing new.

    A compressor that passes no probe at all is refused unless that is accepted: against it everything is better.
    """
    if not measurement.offline and measurement.extra.compared:
        # However few there are: here they would be all of it, and not three beside seven that nobody chose.
        raise UserError(
            f"{measurement.label}: these {counted(measurement.planned_runs, 'graded run')} were compared with a "
            f"baseline, and the luck that got them accepted would be all of the next one: at most {PROMOTED} runs of "
            "an accepted change may enter it, beside others that are measured again. Measure it again with "
            "`compression-eval baseline update`"
        )
    if (why := _unfinished(measurement)) is not None:
        raise UserError(f"a baseline needs a complete measurement, and this one is not: {why}")
    if not accept_failing and not any(grade.overall >= PASS_SCORE for grade in grades_of(measurement)):
        raise UserError(
            f"this compressor fails: no answer reaches {PASS_SCORE:g} of 5 (pass rate 0 %, facts kept "
            f"{percent(measurement.facts_kept)}), and against such a baseline every change looks good. "
            "Nothing was stored: see what is left of the sessions with `compression-eval report`, or store what was "
            f"measured all the same: `compression-eval baseline update --from results/{measurement.label} "
            "--accept-failing`"
        )
    path = folder / f"{name or measurement.usual_name}.json"
    if path.exists() and not force:
        old = current_baseline(path)
        if old is not None and _essence(old) == _essence(measurement):
            return None
    write_atomic(path, dump_baseline(measurement, noise))
    append_history(folder, path.stem, measurement, verdict=verdict, release=release)
    return path


def _unfinished(measurement: Measurement) -> str | None:
    """Say why a measurement is not complete.

    A fixture that the compressor fails on is a result, which a baseline may hold; one that was never graded is a gap.
    """
    if measurement.stopped:
        return measurement.stopped
    if ungraded := [name for name, runs in measurement.fixtures.items() if not any(run.graded for run in runs)]:
        return f"{', '.join(ungraded)}: no graded run"
    runs = [run for runs in measurement.fixtures.values() for run in runs]
    if any(run.ok and run.graded for run in runs):
        return None
    return f"{runs[0].outcome}: {runs[0].detail}" if runs else "no fixture"


def stale_fields(path: Path, cases: Sequence[Case], watched: str | None) -> list[str]:
    """Name what a baseline was measured with and what is another thing now, the watched files by their digest."""
    measurement = load_baseline(path)[0]
    stored = measurement.fingerprint
    now = {f"fixtures/{case.fixture.name}.json": case.fixture.digest for case in cases}
    now |= {f"probes/{case.fixture.name}.probes.json": case.bank.digest for case in cases}
    now |= {f"private probes of {case.fixture.name}": case.private.digest for case in cases if case.private}
    then = {f"private probes of {name}": value for name, value in stored.private.items()}
    then |= {f"fixtures/{name}.json": value for name, value in stored.fixtures.items()}
    then |= {f"probes/{name}.probes.json": value for name, value in stored.probes.items()}
    fields = [name for name in dict.fromkeys([*now, *then]) if now.get(name) != then.get(name)]
    if stored.instrument != INSTRUMENT_VERSION:
        fields.append("the code that finds facts")
    if watched is not None and measurement.provenance.watched not in (None, watched):
        fields.append("watched files")
    return fields


def list_baselines(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def weaknesses(measurement: Measurement) -> list[str]:
    """Say in which fixtures the compressor failed or kept nothing that helps; a baseline of it is a low bar there."""
    found = []
    for fixture, runs in measurement.fixtures.items():
        if failed := [run for run in runs if not run.ok]:
            first = f"{failed[0].outcome}: {failed[0].detail}"[:200]
            found.append(f"{fixture}: {len(failed)} of {len(runs)} runs failed and are not in it ({first})")
        if whole := sum(run.outcome is Outcome.NOT_COMPRESSED for run in runs):
            found.append(f"{fixture}: {whole} of {len(runs)} runs did not make the session smaller")
        part = measurement.model_copy(update={"fixtures": {fixture: runs}})
        if not any(grade.overall >= PASS_SCORE for grade in grades_of(part)):
            found.append(f"{fixture}: no answer passes ({PASS_SCORE:g} of 5)")
    return found


# The other side of a comparison: which one it is, and whether it is comparable, before anything is spent.


@dataclass(frozen=True)
class Reference:
    """A stored measurement, and whether a run with some fingerprint can be compared with it."""

    path: Path
    measurement: Measurement
    comparable: bool


def stored_reference(baselines: Path, fingerprint: Fingerprint) -> Reference | None:
    """Return the stored baseline that is nearest to a fingerprint."""
    names = set(fingerprint.fixtures)
    known = []
    for path in list_baselines(baselines):
        measurement = load_baseline(path)[0]
        base = measurement.fingerprint
        if names < set(base.fixtures):
            parts = {"fixtures": base.fixtures, "probes": base.probes}
            base = base.model_copy(update={key: {name: part[name] for name in names} for key, part in parts.items()})
        known.append(((path, measurement), base))
    found = nearest(fingerprint, known)
    return Reference(*found[0], not found[1]) if found else None


def find_reference(compare_to: str, baselines: Path, fingerprint: Fingerprint) -> Reference | None:
    """Return what `--compare-to` names: none, a path, or with auto the nearest baseline."""
    if compare_to == "none":
        return None
    if compare_to == "auto":
        return stored_reference(baselines, fingerprint)
    measurement = load_side(Path(compare_to))
    base = narrowed(measurement.fingerprint, fingerprint.fixtures)
    return Reference(Path(compare_to), measurement, not differences(base, fingerprint))


def load_side(path: Path) -> Measurement:
    """Read one side of a comparison: a results folder or a baseline file."""
    if path.is_dir():
        return read_measurement(path)
    if not path.exists():
        raise UserError(f"{path}: no such results folder or baseline file; give results/LABEL or baselines/NAME.json")
    return load_baseline(path)[0]
