"""Meaning in the verdict: what is counted, what is tested, what is left out, and how the comment says it."""

from __future__ import annotations

from typing import Any

import prompted
import pytest

from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.compression import ModelUse
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict
from eval_core.strands.meaning import compare_meaning

Says = dict[str, list[str]]
LOST: Says = {"schema-untouched": ['lost its "not"', "Touch schema/ledger.sql.", "Never touch schema/ledger.sql."]}
CONSENT: Says = {"the migration": ["consent that no message gives", "The user approved the migration."]}


def runs(*misstated: Says, fixtures: int = 2, model: bool = True, ledger: str = "") -> Measurement:
    """The compressor in the manner of Hermes', with one run for each of what its summaries misstate."""
    once = prompted.measured()

    def run(found: RunRecord, at: int) -> RunRecord:
        meaning: dict[str, Any] = {**found.strands["meaning"], "misstated": misstated[at]}
        if ledger:
            meaning["ledger"] = ledger
        summary = f"{found.summary}{at}" if model else found.summary
        use = {"compressor": ModelUse(calls=int(model))}
        update = {"run": at, "summary": summary, "use": use, "strands": {**found.strands, "meaning": meaning}}
        return found.model_copy(update=update)

    names = prompted.FIXTURES[:fixtures]
    return once.model_copy(
        update={
            "deterministic": None if model else True,
            **dict.fromkeys(("planned_runs", "planned_compress_runs"), len(misstated)),
            "models": {**once.models, "compressor": "acme/large" if model else "none"},
            "fixtures": {name: [run(once.fixtures[name][0], at) for at in range(len(misstated))] for name in names},
        }
    )


def compared(base: Measurement, candidate: Measurement) -> tuple[Verdict, Finding]:
    verdict, _ = compare_measurements(base, candidate)
    finding = verdict.strand("meaning")
    assert finding is not None
    return verdict, finding


def test_what_deterministic_runs_turn_round_is_counted() -> None:
    verdict, finding = compared(runs({}, model=False, fixtures=1), runs(LOST, model=False, fixtures=1))
    assert (verdict.kind, finding.state) == (Kind.REGRESSED, StrandState.WORSE)
    assert finding.says == 'a rule lost its "not"'
    (told,) = finding.details
    quote = 'the session says "Never touch schema/ledger.sql.", the summary "Touch schema/ledger.sql."'
    where = "constraints-and-reversals, 1 of 1 runs"
    assert told == f'misstated: schema-untouched: lost its "not" ({quote}, {where})'


def test_a_record_of_an_older_version_quotes_the_summary_alone() -> None:
    older = {name: quoted[:2] for name, quoted in LOST.items()}
    _, finding = compared(runs({}, model=False, fixtures=1), runs(older, model=False, fixtures=1))
    assert '("Touch schema/ledger.sql.", ' in finding.details[0]


@pytest.mark.parametrize(
    ("base", "candidate", "state"),
    [
        ([{}] * 3, [LOST] * 3, StrandState.WORSE),
        ([{}] * 3, [LOST, LOST, {}], StrandState.SAME),
        ([LOST, {}, {}], [LOST] * 3, StrandState.SAME),
        ([LOST] * 3, [LOST] * 3, StrandState.SAME),
        ([LOST] * 3, [{}] * 3, StrandState.BETTER),
        ([{}] * 3, [{}] * 3, StrandState.SAME),
    ],
)
def test_what_a_model_writes_is_tested(base: list[Says], candidate: list[Says], state: StrandState) -> None:
    assert compared(runs(*base), runs(*candidate))[1].state is state


def test_too_few_runs_to_test_what_all_of_them_say_leave_it_open() -> None:
    verdict, finding = compared(runs({}, {}, {}, fixtures=1), runs(LOST, LOST, LOST, fixtures=1))
    assert finding.state is StrandState.CANNOT_TELL
    assert verdict.kind is Kind.INCONCLUSIVE
    assert "schema-untouched" in render(verdict, runs({}, {}, {}, fixtures=1), runs(LOST, LOST, LOST, fixtures=1))


@pytest.mark.parametrize(
    ("ledger", "update"),
    [("other", {}), ("", {"fixtures": {}})],
    ids=["another ledger", "no record"],
)
def test_sides_that_were_read_by_other_ledgers_are_not_compared(ledger: str, update: dict[str, Any]) -> None:
    base = runs({}, ledger=ledger).model_copy(update=update)
    found = compare_meaning(base, runs(LOST), exact=True).strand
    assert found is not None
    assert found.state is StrandState.NOT_RECORDED


def test_the_summaries_of_the_stand_in_are_not_judged() -> None:
    found = compare_meaning(runs({}), runs(LOST), exact=True, unread=prompted.FIXTURES).strand
    assert found is not None
    assert found.state is StrandState.NOT_JUDGED


def render(verdict: Verdict, base: Measurement, candidate: Measurement) -> str:
    part = compare_measurements(base, candidate)[1]
    cases = {case.fixture.name: case for case in prompted.suite()}
    return render_markdown(make_view(ReportData(candidate, base=part, verdict=verdict, cases=cases)))


def test_several_kinds_are_told_in_one_clause_each() -> None:
    base, candidate = runs(*[{}] * 3), runs(*[{**LOST, **CONSENT, "no-push": LOST["schema-untouched"]}] * 3)
    verdict, finding = compared(base, candidate)
    assert finding.says == 'states consent that no message gives; 2 rules lost their "not"'
    text = render(verdict, base, candidate)
    assert "The user approved the migration." in text
    assert all(said in text for said in LOST["schema-untouched"][1:])
    assert finding.says in text.replace("\\", "")


def test_a_record_is_kept_of_each_run_with_a_ledger() -> None:
    found = prompted.measured()
    for runs_ in found.fixtures.values():
        record = runs_[0].strands["meaning"]
        assert set(record) == {"ledger", "lines", "misstated"}
        assert len(record["lines"]) >= 10
