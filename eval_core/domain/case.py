"""The suite as cases (a fixture with its probe bank), and the plan: how often each is compressed and graded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval_core.base.errors import UserError
from eval_core.domain.fixture import Fixture, find_fixtures, fixture_files, fixture_name, load_fixture
from eval_core.domain.private_probes import PrivateBank
from eval_core.domain.probe import Probe, ProbeBank, load_bank
from eval_core.domain.session_ledger import SessionLedger, load_ledger

# The suite: fixtures with their probe banks, as the user chose them.


@dataclass(frozen=True)
class Case:
    """One fixture and the questions asked about it."""

    fixture: Fixture
    bank: ProbeBank
    private: PrivateBank | None = None
    ledger: SessionLedger | None = None
    """What the session has established, where somebody wrote it down."""

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Everything that is asked: the bank, then what is private of it."""
        return (*self.bank.probes, *(self.private.probes if self.private else ()))

    @property
    def probe_types(self) -> dict[str, str]:
        """The type of every probe that is asked."""
        return {probe.id: probe.type for probe in self.probes}


def bank_path(probes: Path, fixture: str) -> Path:
    """Return where the probe bank of a fixture is stored."""
    return probes / f"{fixture}.probes.json"


def ledger_path(probes: Path, fixture: str) -> Path:
    """Return where the ledger of a fixture is stored, if it has one."""
    return probes / f"{fixture}.ledger.json"


def _chosen(fixtures: Path, names: Sequence[str] | None) -> list[str]:
    if not fixtures.is_dir():
        raise UserError(
            f"{fixtures}: no such folder; `compression-eval fixture import SESSION` makes a fixture there, "
            "or name another folder as `fixtures:` in .compression-eval.yml"
        )
    known = dict.fromkeys(sorted(fixture_name(path) for path in fixture_files(fixtures)))
    if not known:
        raise UserError(f"{fixtures}: no fixture here; `compression-eval fixture import` makes one from a session log")
    if names is None:
        return list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise UserError(f"{name}: no such fixture in {fixtures}; {hint}")
    return list(dict.fromkeys(names))


def load_suite(fixtures: Path, probes: Path, names: Sequence[str] | None = None) -> list[Case]:
    """Load the chosen fixtures (all by default) with their banks, sorted by name."""
    cases = []
    chosen = sorted(_chosen(fixtures, names))
    files = find_fixtures(fixtures, chosen)
    for name in chosen:
        fixture = load_fixture(files[name])
        path = bank_path(probes, name)
        if not path.exists():
            raise UserError(
                f"{path}: no probe bank for fixture {name}; `compression-eval probe propose {name}` drafts one"
            )
        bank = load_bank(path)
        if bank.fixture != name:
            raise UserError(f"{path}: fixture: {bank.fixture!r} is another fixture's bank, {name!r} was expected")
        _check_evidence(bank, fixture, path)
        ledger = ledger_of(probes, fixture)
        cases.append(Case(fixture, _with_lines(bank, ledger, path), ledger=ledger))
    return cases


def with_private(cases: Sequence[Case], private: Mapping[str, PrivateBank], where: str) -> list[Case]:
    """Add private probes to the cases they belong to; one with the id of a public probe is refused."""
    joined = []
    for case in cases:
        found = private.get(case.fixture.name)
        if found is None:
            joined.append(case)
            continue
        if lined := [probe.id for probe in found.probes if probe.line is not None]:
            raise UserError(f"{where}: {case.fixture.name}/{lined[0]}: a private probe names no line; remove it")
        for twice in sorted(set(found.types) & {probe.id for probe in case.bank.probes}):
            raise UserError(
                f"{where}: {case.fixture.name}/{twice}: the public bank has a probe of this id; rename the private one"
            )
        joined.append(replace(case, private=found))
    return joined


def draft_counts(cases: Iterable[Case]) -> dict[str, int]:
    """Count the probes that nobody has read yet, by fixture."""
    counts = {case.fixture.name: sum(probe.draft for probe in case.bank.probes) for case in cases}
    return {name: count for name, count in counts.items() if count}


def ledger_of(probes: Path, fixture: Fixture) -> SessionLedger | None:
    """Load the ledger of a fixture, if it has one, and check that the messages it names are there."""
    path = ledger_path(probes, fixture.name)
    if not path.exists():
        return None
    ledger = load_ledger(path)
    if ledger.fixture != fixture.name:
        raise UserError(
            f"{path}: fixture: {ledger.fixture!r} is another fixture's ledger, {fixture.name!r} was expected"
        )
    last = len(fixture.messages) - 1
    for number, line in enumerate(ledger.lines):
        for name, index in line.places:
            if index > last:
                raise UserError(
                    f"{path}: lines[{number}].{name}: {index} is not a message of {fixture.name} (0 to {last})"
                )
    return ledger


def _check_evidence(bank: ProbeBank, fixture: Fixture, path: Path) -> None:
    for at, probe in enumerate(bank.probes):
        for number, fact in enumerate(probe.expected_facts):
            for index in fact.evidence or ():
                if not 0 <= index < len(fixture.messages):
                    raise UserError(
                        f"{path}: probes[{at}].expected_facts[{number}].evidence: {index} is not a message of "
                        f"{fixture.name} (0 to {len(fixture.messages) - 1})"
                    )


def _with_lines(bank: ProbeBank, ledger: SessionLedger | None, path: Path) -> ProbeBank:
    """Check the lines that probes name, and write down what a judge is told of them."""
    texts = ledger.texts if ledger is not None else {}
    named = [(f"obeys[{at}]", probe.line) for at, probe in enumerate(bank.obeys)]
    named += [(f"probes[{at}]", probe.line) for at, probe in enumerate(bank.probes) if probe.line is not None]
    for where, line in named:
        if line not in texts:
            raise UserError(
                f"{path}: {where}.line: {line!r} is no line of {bank.fixture}.ledger.json; name the line "
                "that the probe tests"
            )
    probes = [
        probe.model_copy(update={"established": probe.line and f"The session established: {texts[probe.line]}"})
        for probe in bank.probes
    ]
    return bank.model_copy(update={"probes": probes})


# The plan: which fixture is compressed how often, and which of these runs are graded.


@dataclass(frozen=True)
class Cell:
    """One fixture-run: the unit that is repeated."""

    case: Case
    run: int
    graded: bool


def plan_cells(cases: Sequence[Case], runs: int, compress_runs: int) -> list[Cell]:
    """Plan run after run over all fixtures, so that a run that is cut short is short everywhere alike."""
    return [Cell(case, run, graded=run < runs) for run in range(max(runs, compress_runs)) for case in cases]
