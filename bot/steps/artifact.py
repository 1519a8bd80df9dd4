"""The artifact of the evaluate job, read as untrusted input: that job ran the pull request's code.

Numbers are believed within their ranges. Words are not: whatever the base branch's own fixtures and banks can say is
taken from there or has to be the same, names are plain, and only what the compressor itself wrote stays free text,
which every view shows as a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.pull_request.ticket import Ticket, is_small_file
from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.files import parse, read_json
from eval_core.comparing.compare import ReportData
from eval_core.comparing.control_runs import control_of
from eval_core.domain.case import Case, load_suite, with_private
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.private_probes import sealed_headers
from eval_core.domain.record import PRIVATE_PLACE, FactRecord, RunRecord
from eval_core.facts.census import CENSUS_KINDS
from eval_core.facts.ledger_reading import BAD, BESIDE, LONGEST_NAME, LineState
from eval_core.facts.session_facts import SessionFacts
from eval_core.measuring.base_branch import name_of
from eval_core.measuring.compare_with_base import compare, find_base
from eval_core.statistics.looks import looks_before, planned_looks
from eval_core.storage.results import BASE_FOLDER, SUMMARY
from eval_core.strands.invented import STRONG_KINDS
from eval_core.strands.structure import STRUCTURE_CHECKS

_LARGEST = 64 << 20
_MOST_RUNS = 200
_LARGEST_COUNT = 1e12
# Letters, digits and signs that markdown hardly acts on. What GitHub makes of them by itself, mentions and addresses,
# the templates take out of whatever they show; refusing the plain ones here only gives a clearer answer.
_PLAIN = re.compile(r"(?:[\w .,;:/()+%$='~{}-]|(?<=\w)@){0,300}")
_ADDRESS = re.compile(r"://|\bwww\.", re.IGNORECASE)
# Texts of sessions and models; whoever shows them makes them harmless.
_FREE = frozenset(
    {"detail", "notes", "summary", "text", "reason", "label", "worst", "flags", "stopped", "extra", "value", "values"}
    | {"headings", "sentences", "output", "refused", "opaque", "lines", "misstated"}
)


def read_result(ticket: Ticket, config: Config, root: Path, folder: Path) -> ReportData:
    """Read the measurement and decide again, with the baseline of this checkout or the base that was measured as well.

    Nothing but the numbers of `summary.json` is believed: verdict, texts and deltas are made here.
    """
    measurement, cases = read_measured(ticket, config, root, folder)
    base = find_base(measurement, config, root)
    if measurement.extra.base is None:
        return compare(base, measurement, cases)
    path = folder / BASE_FOLDER
    own = _read_checked(path, f"{path.name}/{SUMMARY}", cases)
    provenance = own.provenance.model_copy(update={"source_sha": ticket.compared_sha, "dirty": False})
    own = own.model_copy(update={"provenance": provenance, "label": f"{ticket.label}/{path.name}"})
    own = own.noting(branch=ticket.base_ref)
    data = compare(replace(base, own=(path, own)), measurement, cases)
    return data if data.base is None else replace(data, base_path=f"{name_of(own)}, measured in this run")


def read_measured(ticket: Ticket, config: Config, root: Path, folder: Path) -> tuple[Measurement, Sequence[Case]]:
    """Read `summary.json` if it is what this ticket's evaluation could have left, and refuse it otherwise."""
    cases = load_suite(root / config.fixtures, root / config.probes, tuple(ticket.fixtures) or None)
    if (private := config.private_probes) is not None:
        cases = with_private(cases, sealed_headers(private, root), private.file)
    measurement = _read_checked(folder, SUMMARY, cases)
    if (control := control_of(measurement)) is not None:
        _check_runs(control, measurement.probe_types, f"{SUMMARY}: extra.control")
    # The fetched tree is no git checkout and cannot know its commit; the ticket does.
    source = ticket.base_sha if ticket.mode == "baseline" else ticket.sha
    provenance = measurement.provenance.model_copy(update={"source_sha": source, "dirty": False})
    # How often this commit was looked at is the ticket's to say: it decides how much alpha is left.
    bought = config.compress_runs is None and measurement.model_wrote
    looks = looks_before(planned_looks(ticket.looks, config.runs, measurement, bought=bought), measurement)
    return measurement.model_copy(update={"provenance": provenance, "label": ticket.label}).noting(looks=looks), cases


def _read_checked(folder: Path, file: str, cases: Sequence[Case]) -> Measurement:
    """Read the `summary.json` of a folder, called `file` in messages."""
    path = folder / SUMMARY
    if not is_small_file(path, _LARGEST):
        raise UserError(f"the evaluation left no {file} that can be read")
    body = read_json(path)
    for where, word in _names(body):
        if not _PLAIN.fullmatch(word) or _ADDRESS.search(word):
            raise UserError(f"{file}: {where}: {word[:60]!a} is not a plain text; refused")
    measurement = parse(Measurement, body, file)
    _check_suite(measurement, cases, file)
    _check_runs(measurement, measurement.probe_types, file)
    # Of what was read, not of the file: a number in quotes becomes a number, and "nan" is less than nothing.
    if not all(abs(number) <= _LARGEST_COUNT for number in _numbers(measurement.model_dump())):
        raise UserError(f"{file}: holds a number that no measurement has; refused")
    for case in cases:
        _check_words(measurement, case, file)
    return measurement


def _names(value: Any, where: str = "", free: bool = False) -> Iterator[tuple[str, str]]:
    """Yield every key, and every value that is shown unchanged, with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield where or "a field", key
            place = f"{where}.{key}" if where else key
            # The label of a measurement is a name; that of a fact is a quotation.
            yield from _names(item, place, free or (key in _FREE and place != "label"))
    elif isinstance(value, list):
        for item in value:
            yield from _names(item, where, free)
    elif isinstance(value, str) and not free:
        yield where, value


def _check_suite(measurement: Measurement, cases: Sequence[Case], file: str) -> None:
    fixtures = {case.fixture.name: case.fixture.digest for case in cases}
    banks = {case.fixture.name: case.bank.digest for case in cases}
    private = {case.fixture.name: case.private for case in cases if case.private is not None}
    sealed = {name: bank.digest for name, bank in private.items()}
    found = measurement.fingerprint
    if found.fixtures != fixtures or found.probes != banks or found.private != sealed:
        raise UserError(f"{file}: measured with other fixtures or probes than those of the base branch; refused")
    types = {case.fixture.name: _types(case, measurement.probe_types.get(case.fixture.name, {})) for case in cases}
    if set(measurement.fixtures) != set(fixtures) or measurement.probe_types != types:
        raise UserError(f"{file}: holds other fixtures or probes than it says; refused")


def _check_runs(measurement: Measurement, probes: Mapping[str, Collection[str]], file: str) -> None:
    """Check what the runs say of themselves, and that grades are grades; `probes` are the known ones by fixture."""
    runs = [(fixture, run) for fixture, found in measurement.fixtures.items() for run in found]
    if any(set(run.probes) - set(probes.get(fixture, ())) for fixture, run in runs):
        raise UserError(f"{file}: holds other fixtures or probes than it says; refused")
    if any(run.fixture != fixture for fixture, run in runs):
        raise UserError(f"{file}: a run is filed under another fixture; refused")
    numbers = [[run.run for run in found] for found in measurement.fixtures.values()]
    if any(len(set(found)) != len(found) or len(found) > _MOST_RUNS for found in numbers):
        raise UserError(f"{file}: a run appears twice, or there are more than {_MOST_RUNS}; refused")
    results = (record.result for _, run in runs for record in run.probes.values())
    scores = (result.scores for result in results if isinstance(result, Grade))
    if any(set(six) != set(DIMENSIONS) or not all(0 <= value <= 5 for value in six.values()) for six in scores):
        raise UserError(f"{file}: a grade is not six scores from 0 to 5; refused")


def _types(case: Case, said: Mapping[str, str]) -> dict[str, str]:
    """Return the probes that an evaluation asks: the bank, and those of the private ones that it drew."""
    known = {probe.id: probe.type for probe in case.bank.probes}
    return known | {name: kind for name, kind in (case.private.types if case.private else {}).items() if name in said}


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _check_words(measurement: Measurement, case: Case, file: str) -> None:
    """Refuse words about a fixture that its session and its bank do not say."""
    known = SessionFacts(case)
    name, evidence = case.fixture.name, known.evidence
    entries = known.entries
    # A fixture of which no run was measured, such as one of a lost shard, has no census yet.
    measured = any(run.ok for run in measurement.fixtures.get(name, ()))
    expected = (entries,) if measured else ([], entries)
    if measurement.census.get(name, []) not in expected:
        raise UserError(f"{file}: census.{name}: not what is found in the fixture; refused")
    worst = {f"{entry.kind}: {entry.value}" for entry in entries}
    facts = {probe.id: [(fact.name, evidence.of(fact)) for fact in probe.required] for probe in case.bank.probes}
    superseded = {(probe.id, fact.values[0]) for probe in case.bank.probes for fact in probe.superseded}
    stated = case.ledger.texts if case.ledger is not None else {}
    for run in measurement.fixtures[name]:
        where = f"{file}: fixtures.{name}, run {run.run}"
        if not _fits_ledger(run.strands.get("meaning"), stated):
            raise UserError(f"{where}: strands.meaning: other lines or states than the ledger's; refused")
        for probe, record in run.probes.items():
            told = [(fact.label, fact.evidence) for fact in record.facts]
            if told != facts[probe] if probe in facts else not _are_private(record.facts):
                raise UserError(f"{where}: {probe}: other facts than the bank's; refused")
        if any((item.probe, item.value) not in superseded for item in run.stale or ()):
            raise UserError(f"{where}: stale: a value that no probe calls superseded; refused")
        if not set(run.census.worst) <= worst:
            raise UserError(f"{where}: census.worst: not in the fixture's census; refused")
        _check_signs(run, len(entries), len(case.fixture.messages), where)


def _fits_ledger(read: Mapping[str, Any] | None, texts: Mapping[str, str]) -> bool:
    """Tell whether lines of the ledger are what states are recorded of; of what is misstated, the quotation is free."""
    if read is None:
        return True
    match read:
        case {"ledger": str(), "lines": dict(lines), "misstated": dict(misstated)}:
            quoted = all(
                isinstance(item, list)
                and len(item) > 1
                and str(item[0]) in BAD
                and isinstance(item[1], str)
                and item[2:] in ([], [texts.get(name, "")])
                for name, item in misstated.items()
            )
            states = [*lines.items(), *((name, item[0]) for name, item in misstated.items())] if quoted else []
            known = all(name in texts or (str(state) in BESIDE and len(name) <= LONGEST_NAME) for name, state in states)
            return quoted and known and set(map(str, lines.values())) <= set(LineState)
    return False


def _are_private(facts: Sequence[FactRecord]) -> bool:
    """Tell whether facts are recorded as those of a private probe: by number only."""
    return all(
        fact.label == f"private fact {number}" and fact.evidence in ([], [PRIVATE_PLACE])
        for number, fact in enumerate(facts, 1)
    )


def _check_signs(run: RunRecord, facts: int, messages: int, where: str) -> None:
    """Check what is written in signs, indexes and names of our own."""
    kinds = {kind for counts in (run.census.total, run.census.at_risk, run.census.lost) for kind in counts}
    shown = run.shown.facts if run.shown is not None else ""
    fits = (
        re.fullmatch(rf"(?:[01-]{{{facts}}})?", run.census.fates)
        and re.fullmatch(rf"(?:[01p]{{{facts}}})?", shown)
        and all(re.fullmatch("[01p]?", fact.shown) for probe in run.probes.values() for fact in probe.facts)
        and kinds <= set(CENSUS_KINDS)
        and set(run.structure) <= set(STRUCTURE_CHECKS)
        and all(item.kind in STRONG_KINDS for item in run.invented or ())
        and all(0 <= index < messages for index in run.verbatim)
    )
    if not fits:
        raise UserError(f"{where}: signs, kinds or checks that no measurement has; refused")
