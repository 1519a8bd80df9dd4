"""What the change lost and gained, for the first screen: each fact with its message, its sentence and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_core.base.messages import full_text
from eval_core.comparing.compare import ReportData
from eval_core.comparing.findings import FactChange, StructureFinding
from eval_core.domain.case import Case
from eval_core.domain.record import RunRecord
from eval_core.evidence.structure import STRUCTURE_CHECKS
from eval_core.reporting.html.text import Sentence, fact_values, sentence_of, slug

__all__ = ["BrokenCheck", "Changes", "FactLine", "changes", "message_anchor", "summary_anchor"]


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
    lost_count: int
    gained_count: int
    """Facts as the verdict counts them: a value that a probe asks for and the census found is two, in one line."""
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
            if change.source == "authored" and probe.id == change.kind and fact.label == change.name
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


def _lines(data: ReportData, found: Sequence[FactChange]) -> tuple[FactLine, ...]:
    """Return one line for each value of a fixture, whoever asks for it."""
    grouped: dict[tuple[str, str], list[FactChange]] = {}
    for change in found:
        grouped.setdefault((change.fixture, change.name.casefold()), []).append(change)
    lines = []
    for alike in grouped.values():
        first = alike[0]
        lines.append(
            FactLine(
                fixture=first.fixture,
                name=first.name,
                asked_by=tuple(dict.fromkeys(item.kind for item in alike if item.source == "authored")),
                kind=next((item.kind for item in alike if item.source == "census"), ""),
                messages=tuple(sorted({number for item in alike for number in item.messages})),
                sentence=_sentence(data.cases.get(first.fixture), first),
                base=f"{first.base_kept} of {first.base_runs}",
                candidate=f"{first.candidate_kept} of {first.candidate_runs}",
                runs=_runs(first),
                why=next((item.shown for item in alike if item.shown), ""),
                summary=summary_anchor(first.fixture),
            )
        )
    # What a probe asks for comes first: somebody thought of it as needed.
    return tuple(sorted(lines, key=lambda line: not line.asked_by))


def _lost_alone(data: ReportData) -> list[FactChange]:
    """Return what a measurement loses against its sessions, where there is nothing to compare it with."""
    found = []
    for fixture, records in data.candidate.fixtures.items():
        runs: list[RunRecord] = [run for run in records if run.ok]
        tallies: dict[tuple[str, str], tuple[int, tuple[int, ...]]] = {}
        for run in runs:
            for probe, record in run.probes.items():
                for fact in record.facts:
                    if fact.evidence:
                        kept, _ = tallies.get((probe, fact.label), (0, ()))
                        tallies[probe, fact.label] = (kept + fact.kept, tuple(fact.evidence))
        for (probe, label), (kept, evidence) in tallies.items():
            if kept < len(runs):
                found.append(
                    FactChange(
                        fixture=fixture,
                        source="authored",
                        name=label,
                        kind=probe,
                        messages=evidence,
                        base_kept=len(runs),
                        base_runs=len(runs),
                        candidate_kept=kept,
                        candidate_runs=len(runs),
                        clear=True,
                    )
                )
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
        return Changes(_lines(data, alone), (), len(alone), 0, 0, (), compared=False)
    clear = [change for change in verdict.facts if change.clear]
    lost = [change for change in clear if change.change < 0]
    gained = [change for change in reversed(clear) if change.change > 0]
    return Changes(
        lost=_lines(data, lost),
        gained=_lines(data, gained),
        lost_count=len(lost),
        gained_count=len(gained),
        chance=len(verdict.facts) - len(clear),
        broken=_broken(verdict.structure),
        compared=True,
    )
