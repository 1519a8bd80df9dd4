"""Changes that a score alone would misjudge, and every kind of verdict: the comment, read as a maintainer reads it."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import prompted
import pytest
import small
from bot_tickets import allowed, request

from bot.github.resources import ChangedFile
from bot.pull_request.result_body import CommentContext, result_body
from bot.pull_request.ticket import Ticket
from bot.steps.annotations import annotate
from bot.steps.comment import LIMIT
from bot.steps.render_result import clues_of
from eval_core.base.config import AcceptConfig, Config
from eval_core.base.files import parse
from eval_core.base.messages import render
from eval_core.base.strict_yaml import parse_yaml
from eval_core.base.tokens import count_messages
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.comparing.verdict import exit_code
from eval_core.compressors.context_compressor import ContextCompressor
from eval_core.compressors.rule_based import RuleBasedSummariser
from eval_core.compressors.summariser import Request, Section
from eval_core.compressors.thresholds import Thresholds
from eval_core.domain.case import Case, load_suite
from eval_core.domain.compression import Compression, ModelRequest, ModelUse, Outcome, Step
from eval_core.domain.fixture import Fixture
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import ProbeRecord, RunRecord
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.reporting.view import make_view
from eval_core.storage.results import ResultsFolder
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict

GOLDEN = Path(__file__).parent / "golden" / "examples"


class DropsBlockers(ContextCompressor):
    """The template without one of its sections."""

    _template_sections: ClassVar[tuple[Section, ...]] = tuple(
        section for section in ContextCompressor._template_sections if section.field != "blockers"
    )


def _padded(request: Request) -> str:
    text = RuleBasedSummariser()(request)
    return "\n".join(
        f"{line} (as noted earlier in this session)" if "- " in line[:2] else line for line in text.split("\n")
    )


def _inventing(request: Request) -> str:
    return RuleBasedSummariser()(request).replace(
        "## Blockers",
        "- The fix is in src/billing/ledger_sync.py, see https://tracker.example.org/OPS-4417\n\n## Blockers",
    )


def _refusing(request: Request) -> str:
    return "I'm sorry, but I can't help with summarising this conversation."


def _tail(messages: int) -> ContextCompressor:
    return ContextCompressor(thresholds=Thresholds(preserve_recent=messages))


BUILDS: dict[str, Callable[[], ContextCompressor]] = {
    "reference": ContextCompressor,
    "padded": lambda: ContextCompressor(summariser=_padded),
    "hoarding": lambda: _tail(40),
    "larger-tail": lambda: _tail(14),
    "dropped-section": DropsBlockers,
    "inventing": lambda: ContextCompressor(summariser=_inventing),
    "refusing-model": lambda: ContextCompressor(summariser=_refusing),
}


@dataclass(frozen=True)
class ExampleSubject:
    """One of the compressors above."""

    name: str
    deterministic: bool = True

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: object = None
    ) -> Compression:
        compressor, state, start = BUILDS[self.name](), list[dict[str, Any]](), 0
        steps = []
        for cut in fixture.cuts:
            state = [*state, *fixture.messages[start:cut]]
            before, start = count_messages(state), cut
            state = compressor.compress(state)
            steps.append(Step(state, before, count_messages(state), 0.5))
        shown: list[dict[str, Any]] = [{"role": "user", "content": render(fixture.messages)}]
        return Compression(
            Outcome.OK, steps=tuple(steps), use=ModelUse(calls=1), requests=(ModelRequest(tuple(shown)),)
        )


@cache
def suite() -> tuple[Case, ...]:
    names = ("constraints-and-reversals", "debug-session-feishu-id-model")
    return tuple(load_suite(small.REPOSITORY / "fixtures", small.REPOSITORY / "probes", names))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Measurement]:
    @cache
    def measure(name: str) -> Measurement:
        folder = tmp_path_factory.mktemp(name)
        roles = Roles(ExampleSubject(name), ExtractiveAnswerer(), FactJudge(), offline=True)
        fingerprint = make_fingerprint(suite(), None).model_copy(update={"compressor_model": {"model": "acme/large"}})
        session = MeasuringSession(suite(), roles, fingerprint, ResultsFolder(folder), name, 1, 1, tree=folder)
        found = asyncio.run(session.measure())
        fixed = {"date": "2026-01-02T03:04:05Z", "version": "0.1.0", "source_sha": "a" * 40}
        return found.model_copy(update={"provenance": found.provenance.model_copy(update=fixed)})

    return measure


def _whole_comment(
    base: Measurement, candidate: Measurement, accept: AcceptConfig | None = None
) -> tuple[Verdict, str]:
    verdict, part = compare_measurements(base, candidate, accept=accept)
    cases = {case.fixture.name: case for case in suite()}
    data = ReportData(candidate, base=part, verdict=verdict, base_path="baselines/offline.json", cases=cases)
    around = CommentContext(label="eval-compression", warnings=())
    return verdict, result_body(make_view(data), Ticket.of(request(), allowed()), around, budget=LIMIT)


def _comment(base: Measurement, candidate: Measurement) -> tuple[Verdict, str]:
    verdict, text = _whole_comment(base, candidate)
    return verdict, _folded(text)


def _folded(text: str) -> str:
    """Return the comment as it opens: of what is folded away, only the line that opens it."""
    folds = r"<details>\s*<summary>(.*?)</summary>.*?</details>"
    return (
        re.sub(folds, lambda fold: f"\N{BLACK RIGHT-POINTING SMALL TRIANGLE} {fold[1]}", text, flags=re.DOTALL).strip()
        + "\n"
    )


@pytest.mark.parametrize(
    ("name", "base", "kind"),
    [
        ("hoarding", "reference", Kind.TRADE),
        ("larger-tail", "reference", Kind.TRADE),
        ("smaller-and-equal", "padded", Kind.IMPROVED),
        ("dropped-section", "reference", Kind.REGRESSED),
        ("inventing", "reference", Kind.REGRESSED),
        ("refusing-model", "reference", Kind.REGRESSED),
    ],
)
def test_the_comment_says_at_once_what_happened(
    measured: Callable[[str], Measurement], name: str, base: str, kind: Kind
) -> None:
    candidate = measured("reference" if name == "smaller-and-equal" else name)
    verdict, shown = _comment(measured(base), candidate)
    assert verdict.kind is kind, verdict.headline
    _assert_golden(name, shown)


def test_a_lost_section_and_a_changed_prompt_are_shown_at_their_lines(measured: Callable[[str], Measurement]) -> None:
    verdict, _ = compare_measurements(measured("reference"), measured("dropped-section"))
    asked = Finding(name="asks", state=StrandState.CHANGED, details=("- (system)", "- ## Blockers", "+ Be brief."))
    found = clues_of(verdict.model_copy(update={"strands": (verdict.strand("form"), asked)}))
    assert [(clue.kind, clue.sign, clue.text) for clue in found] == [
        ("name", "-", "blockers"),
        ("text", "-", "## Blockers"),
        ("text", "+", "Be brief."),
    ]
    path = "eval_core/compressors/summary.py"
    patch = '@@ -80,3 +80,2 @@\n     Section("A", "a"),\n-    Section("Blockers", "blockers"),\n     Section("Next"),'
    (note,) = annotate(found, [ChangedFile(path=path, status="modified", patch=patch)], verdict.headline)
    assert (note["start_line"], note["message"].split("\n")) == (
        81,
        ["The section “blockers” is gone from the summary.", f"Result: {verdict.headline}"],
    )


def test_the_lines_that_the_comment_gives_accept_the_removal(measured: Callable[[str], Measurement]) -> None:
    base, candidate = measured("reference"), measured("dropped-section")
    _, text = _whole_comment(base, candidate)
    lines = re.search(r"```yaml\n(.*?)\n```", text, flags=re.DOTALL)
    assert lines
    accept = parse(Config, parse_yaml(lines[1], "comment"), "comment").accept
    verdict, _ = compare_measurements(base, candidate, accept=accept)
    assert exit_code(verdict, "regressed") == 0, verdict.headline


# Every kind of verdict, made from the same measurement by the smallest edit.

Edit = Callable[[RunRecord], RunRecord]


def _each(measurement: Measurement, edit: Edit, **update: object) -> Measurement:
    fixtures = {name: [edit(run) for run in runs] for name, runs in measurement.fixtures.items()}
    return measurement.model_copy(update={"fixtures": fixtures, **update})


def _failed(outcome: Outcome, detail: str) -> Edit:
    def edit(run: RunRecord) -> RunRecord:
        if run.fixture != "constraints-and-reversals":
            return run
        return run.model_copy(update={"outcome": outcome, "detail": detail, "probes": {}, "structure": {}})

    return edit


def _swapped(run: RunRecord) -> RunRecord:
    """Lose the first ten kept facts, and keep the first eight lost ones."""
    fates, lost, kept = [], 0, 0
    for fate in run.census.fates:
        flip = (fate == "1" and lost < 10) or (fate == "0" and kept < 8)
        lost, kept = lost + (flip and fate == "1"), kept + (flip and fate == "0")
        fates.append({"1": "0", "0": "1"}[fate] if flip else fate)
    assert run.size is not None
    size = run.size.model_copy(update={"kept": run.size.kept + kept - lost})
    return run.model_copy(update={"census": run.census.model_copy(update={"fates": "".join(fates)}), "size": size})


def _judged(measurement: Measurement, runs: int, *, seed: int) -> Measurement:
    """Return as many runs as given, graded by a model that is not sure."""
    luck = random.Random(seed)

    def graded(record: ProbeRecord) -> ProbeRecord:
        return record.model_copy(
            update={"result": Grade(scores=dict.fromkeys(DIMENSIONS, luck.choice((2.0, 3.0, 5.0))))}
        )

    def run(one: RunRecord, number: int) -> RunRecord:
        fates = "".join("0" if fate == "1" and luck.random() < 0.1 else fate for fate in one.census.fates)
        census = one.census.model_copy(update={"fates": fates})
        probes = {key: graded(item) for key, item in one.probes.items()}
        return one.model_copy(update={"run": number, "probes": probes, "census": census})

    fixtures = {
        name: [run(first, number) for number in range(runs)] for name, (first, *_) in measurement.fixtures.items()
    }
    models = {**measurement.models, "judge": "acme/judge"}
    update = {"fixtures": fixtures, "models": models, "offline": False, "deterministic": False}
    return measurement.model_copy(update={**update, "planned_runs": runs, "planned_compress_runs": runs})


def _sides(measured: Callable[[str], Measurement], kind: Kind) -> tuple[Measurement, Measurement]:
    if kind is Kind.NOT_JUDGED:
        sides = [
            prompted.measured(*edits, runs=3, fixtures=prompted.FIXTURES[:2]) for edits in ((), (prompted.REWRITTEN,))
        ]
        fixed = {"date": "2026-01-02T03:04:05Z", "version": "0.1.0", "source_sha": "a" * 40}
        base, candidate = (
            side.model_copy(update={"provenance": side.provenance.model_copy(update=fixed)}) for side in sides
        )
        return base, candidate
    base = measured("reference")
    if kind is Kind.BROKEN:
        why = "ImportError: cannot import name 'Window' from 'agent.window'"
        return base, _each(base, _failed(Outcome.SETUP_ERROR, why))
    if kind is Kind.INCOMPLETE:
        return base, _each(base, _failed(Outcome.INFRA, "the provider did not answer within 180 s"))
    if kind is Kind.NOT_COMPARABLE:
        return base, base.model_copy(
            update={"fingerprint": base.fingerprint.model_copy(update={"tokenizer": "another"})}
        )
    if kind is Kind.INCONCLUSIVE:
        return _judged(base, 10, seed=1), _judged(base, 3, seed=2)
    changed = {
        Kind.REGRESSED: "dropped-section",
        Kind.TRADE: "larger-tail",
        Kind.IMPROVED: "reference",
        Kind.NO_DETECTABLE_CHANGE: "reference",
    }
    if kind is Kind.MIXED:
        return base, _each(base, _swapped)
    return measured("padded") if kind is Kind.IMPROVED else base, measured(changed[kind])


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_verdict_has_a_comment_that_was_read(measured: Callable[[str], Measurement], kind: Kind) -> None:
    verdict, text = _whole_comment(*_sides(measured, kind))
    assert verdict.kind is kind, verdict.headline
    _assert_golden(f"kind-{kind.value}", _folded(text))


def test_an_accepted_removal_has_a_comment_that_was_read(measured: Callable[[str], Measurement]) -> None:
    base, candidate = measured("reference"), measured("dropped-section")
    verdict, part = compare_measurements(base, candidate)
    found = ReportData(candidate, base=part, verdict=verdict).offer
    assert found is not None
    _, text = _whole_comment(base, candidate, found.added)
    _assert_golden("accepted", _folded(text))


def _assert_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; look at the change, then UPDATE_GOLDEN=1"
