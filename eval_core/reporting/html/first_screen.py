"""The first screen of the HTML report: tiles of numbers, and each fact that was lost or gained with its message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_core.base.messages import full_text
from eval_core.base.numbers import percent, percents_and_change
from eval_core.base.numbers import tokens as token_words
from eval_core.comparing.compare import ReportData
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement
from eval_core.reporting.html.plots import PlotTable
from eval_core.reporting.html.text import Sentence, fact_values, sentence_of, slug
from eval_core.reporting.metrics import tokens_per_task
from eval_core.statistics.fates import fates
from eval_core.strands.findings import FactChange, StructureFinding
from eval_core.strands.structure import STRUCTURE_CHECKS


@dataclass(frozen=True)
class FactLine:
    """One fact that moved, as one line to act on."""

    fixture: str
    name: str
    asked_by: tuple[str, ...]
    """Probes that ask for it; empty for a fact that was only found in the session."""
    kind: str
    messages: tuple[int, ...]
    sentence: Sentence | None
    base: str
    candidate: str
    """In how many runs each side keeps it."""
    runs: str
    """The same as a sentence."""
    why: str
    summary: str
    """The address of the summaries in this page, opened at this fact."""


@dataclass(frozen=True)
class BrokenCheck:
    """A structure check that no longer holds, and where."""

    name: str
    meaning: str
    places: tuple[tuple[str, str], ...]
    """Fixture, and in how many runs it still passes."""


@dataclass(frozen=True)
class Changes:
    """Everything that was lost and gained for certain, and how much more may be chance."""

    lost: tuple[FactLine, ...]
    gained: tuple[FactLine, ...]
    chance: int
    broken: tuple[BrokenCheck, ...]
    compared: bool

    @property
    def fixtures(self) -> int:
        """How many fixtures lose something."""
        return len({line.fixture for line in self.lost})


def message_anchor(fixture: str, number: int) -> str:
    """Return the address of a message in the page."""
    return f"{slug('msg', fixture)}-{number}"


def summary_anchor(fixture: str) -> str:
    """Return the address of a fixture's summaries in the page."""
    return slug("summary", fixture)


def _sentence(case: Case | None, change: FactChange) -> Sentence | None:
    if case is None:
        return None
    fact = next(
        (
            fact
            for probe in case.bank.probes
            for fact in probe.expected_facts
            if probe.id in change.asked_by and fact.name == change.name
        ),
        None,
    )
    places = [number for number in change.messages if 0 <= number < len(case.fixture.messages)]
    texts = [full_text(case.fixture.messages[number]) for number in places]
    values = fact_values(change.name, fact, texts)
    return next((found for text in texts if (found := sentence_of(values, text))), None)


def _runs(change: FactChange) -> str:
    if change.change > 0:
        kept = f"kept in {change.candidate_kept} of {change.candidate_runs} runs"
        return f"{kept}, before in {change.base_kept} of {change.base_runs}"
    gone, gone_before = change.candidate_runs - change.candidate_kept, change.base_runs - change.base_kept
    return f"gone in {gone} of {change.candidate_runs} runs, before in {gone_before} of {change.base_runs}"


def _line(data: ReportData, change: FactChange) -> FactLine:
    return FactLine(
        fixture=change.fixture,
        name=change.name,
        asked_by=change.asked_by,
        kind=change.kind,
        messages=tuple(sorted(change.messages)),
        sentence=_sentence(data.cases.get(change.fixture), change),
        base=f"{change.base_kept} of {change.base_runs}",
        candidate=f"{change.candidate_kept} of {change.candidate_runs}",
        runs=_runs(change),
        why=change.shown or "",
        summary=summary_anchor(change.fixture),
    )


def _lines(data: ReportData, found: Sequence[FactChange]) -> tuple[FactLine, ...]:
    """Return one line for each fact: what a probe asks for comes first, since somebody thought of it as needed."""
    return tuple(sorted((_line(data, change) for change in found), key=lambda line: not line.asked_by))


def _lost_alone(data: ReportData) -> list[FactChange]:
    """Return what a measurement loses against its sessions, where there is nothing to compare it with."""
    found = [
        FactChange(
            fixture=fixture,
            name=fate.name,
            asked_by=tuple(fate.asked_by),
            messages=fate.messages,
            base_kept=len(fate.kept),
            base_runs=len(fate.kept),
            candidate_kept=sum(fate.kept),
            candidate_runs=len(fate.kept),
            clear=True,
        )
        for fixture in data.candidate.fixtures
        for fate in fates(data.candidate, fixture).values()
        if fate.asked_by and not all(fate.kept)
    ]
    return sorted(found, key=lambda item: (item.change, item.fixture, item.name))


def _broken(findings: Sequence[StructureFinding]) -> tuple[BrokenCheck, ...]:
    """Return each broken check once, with the fixtures where it broke."""
    places: dict[str, list[tuple[str, str]]] = {}
    for item in findings:
        if item.kind == "broken":
            passed = f"passes in {item.candidate_passed} of {item.candidate_runs} runs"
            places.setdefault(item.check, []).append(
                (item.fixture, f"{passed}, before in {item.base_passed} of {item.base_runs}")
            )
    return tuple(
        BrokenCheck(check.replace("_", " "), STRUCTURE_CHECKS.get(check, ""), tuple(where))
        for check, where in places.items()
    )


def changes(data: ReportData) -> Changes:
    """Collect what moved; without a comparison, what is lost against the sessions."""
    verdict = data.verdict
    if verdict is None or not data.kind_is_comparable:
        alone = _lost_alone(data)
        return Changes(_lines(data, alone), (), 0, (), compared=False)
    clear = [change for change in verdict.facts if change.clear]
    lost = [change for change in clear if change.change < 0]
    gained = [change for change in reversed(clear) if change.change > 0]
    return Changes(
        lost=_lines(data, lost),
        gained=_lines(data, gained),
        chance=len(verdict.facts) - len(clear),
        broken=_broken(verdict.structure),
        compared=True,
    )


@dataclass(frozen=True)
class Tile:
    """One number, and what it was before."""

    name: str
    value: str
    base: str = ""
    change: str = ""
    way: str = ""
    """`up` where it got better, `down` where it got worse."""
    note: str = ""
    words: bool = False
    """Whether the value is a sentence rather than a number."""


def _tokens(count: float, *, sign: bool = False) -> str:
    return f"{'−' if count < 0 else '+' if sign and count else ''}{abs(count):,.0f}"


def _moved(name: str, value: str, base: str, delta: str, note: str = "") -> Tile:
    same = delta.strip("−+0. p") == ""
    way = "" if same else "down" if delta.startswith("−") else "up"
    return Tile(name, value, base, "" if same else delta, way, note)


def tiles(candidate: Measurement, base: Measurement | None, tables: Sequence[PlotTable], cost: str) -> list[Tile]:
    """Return the tiles of a report, size and facts first."""
    found = []
    now, before = candidate.tokens_kept, base.tokens_kept if base else None
    if now is not None:
        # Fewer tokens alone are neither good nor bad.
        change = f"{'−' if now < before else '+'}{percent(abs(now / before - 1))}" if before and now != before else ""
        found.append(Tile("tokens kept", token_words(now), token_words(before) if before else "", change))
    if (kept := candidate.facts_kept) is not None:
        old = base.facts_kept if base else None
        shown, value, delta = percents_and_change(kept if old is None else old, kept)
        note = "each fact once, whether a probe asks for it or not"
        found.append(_moved("facts kept", value, "" if old is None else shown, delta, note))
    rows = {row.name: row for table in tables for row in table.rows}
    if (row := rows.get("overall")) is not None:
        known = "" if row.base == "–" else row.base
        found.append(_moved("overall score, 0 to 5", row.candidate, known, row.delta))
    if (task := tokens_per_task(candidate)) is not None:
        earlier = tokens_per_task(base) if base else None
        moved = task.net - earlier.net if earlier else 0.0
        found.append(
            Tile(
                "net saving per task",
                _tokens(task.net),
                _tokens(earlier.net) if earlier else "",
                _tokens(moved, sign=True) if round(moved) else "",
                "down" if moved < 0 else "up",
                f"tokens over {task.turns:.0f} more turns, including re-reading what was lost",
            )
        )
    found.append(Tile("cost of this run", cost, words=True))
    return found
