"""One fact is one fact, whoever contributed it; what is in no message is nobody's to keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import small

from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement
from eval_core.facts.haystack import fact_key
from eval_core.facts.session_facts import SessionFacts
from eval_core.reporting.html.first_screen import changes
from eval_core.reporting.json_report import json_report
from eval_core.reporting.losses import misses
from eval_core.reporting.view import make_view
from eval_core.statistics.fates import fates

ABSENT = "no-such-file-anywhere.py"


def test_no_fact_of_the_shipped_suite_is_counted_twice(shipped: list[Case]) -> None:
    for case in shipped:
        known = SessionFacts(case)
        asked = [fact_key(fact.name) for fact, _ in known.authored]
        values = {fact_key(value) for fact, _ in known.authored if fact.all is None for value in fact.values}
        found = [fact_key(fact.value) for fact in known.census]
        assert len(set(asked)) == len(asked)
        assert len(set(found)) == len(found)
        assert not values & set(found)
        assert known.total == len(asked) + len(found)


def test_every_view_counts_the_same_facts(shipped: list[Case], shipped_runs: Callable[[str], Measurement]) -> None:
    base, candidate = shipped_runs("anchored"), shipped_runs("opaque")
    verdict, part = compare_measurements(base, candidate)
    data = ReportData(candidate, base=part, verdict=verdict, cases={case.fixture.name: case for case in shipped})
    lost = [fact for fact in verdict.facts if fact.clear and fact.change < 0]
    gained = [fact for fact in verdict.facts if fact.clear and fact.change > 0]
    names = [(fact.fixture, fact_key(fact.name)) for fact in verdict.facts]
    assert len(set(names)) == len(names)
    total = sum(len(fates(candidate, name)) for name in candidate.fixtures)
    assert total == sum(runs[0].size.facts for runs in candidate.fixtures.values() if runs[0].size)
    facts = verdict.strand("facts")
    assert facts is not None
    assert facts.says == f"{len(lost)} of {total} facts lost, {len(gained) or 'none'} gained"
    view, screen = make_view(data), changes(data)
    assert len(view.lost) == len(screen.lost) == len({(line.fixture, fact_key(line.name)) for line in screen.lost})
    assert len(view.lost) == len(lost)
    kept = {name: sum(any(fate.kept) for fate in fates(candidate, name).values()) for name in candidate.fixtures}
    assert kept == {name: runs[0].size.kept for name, runs in candidate.fixtures.items() if runs[0].size}


@pytest.fixture(scope="module")
def absent(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    """A bank that asks for a fact of which no message speaks, once beside others and once alone."""
    case = small.cases()[1]
    first, *rest = case.bank.probes
    beside = first.model_copy(update={"expected_facts": [*first.expected_facts, *small.probe([ABSENT]).expected_facts]})
    alone = small.probe([ABSENT]).model_copy(update={"id": "alone"})
    bank = case.bank.model_copy(update={"probes": [beside, *rest, alone]})
    measured = small.measure([Case(case.fixture, bank)], Path(tmp_path_factory.mktemp("absent")), "opaque", runs=1)
    return ReportData(measured, cases={case.fixture.name: Case(case.fixture, bank)})


def test_a_fact_in_no_message_is_listed_and_scored_nowhere(absent: ReportData) -> None:
    (name,) = absent.candidate.fixtures
    assert fact_key(ABSENT) not in fates(absent.candidate, name)
    assert ABSENT not in [fact.fact for fact in make_view(absent).lost]
    assert ABSENT not in [line.name for line in changes(absent).lost]
    assert not any(ABSENT in miss.reason for miss in misses(absent.candidate))
    report = json_report(absent, environ={})
    assert f"{name}/alone" not in {*report["probe_scores"], *report["probe_manifest"], *report["unscored_probes"]}
    assert set(report["probe_manifest"]) == {f"{name}/{probe.id}" for probe in small.debug_bank().probes}


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(?i)offset[^.]{0,140}(shrink|pending)|skip", "offset … shrink or pending or skip"),
        (r"8 (tests )?passed", "8 tests passed"),
        (r"\bport\s*[:=]?\s*8413\b", "port … 8413"),
        (r"v?2\.4\.1", "v2.4.1"),
        (r"[Cc]ache (?:miss|fault)", "Cache miss or fault"),
        (r"\d{2,3} ms", "N ms"),
        (".+", ".+"),
    ],
)
def test_a_regular_expression_is_named_by_its_words(pattern: str, name: str) -> None:
    (fact,) = small.probe([{"regex": pattern}]).expected_facts
    assert (fact.name, fact.label) == (name, pattern)
