"""The view: everything that reports show, computed once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import report_world
import small

from eval_core.base.config import TaskConfig
from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.case import Case
from eval_core.domain.compression import SMALLER
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Controls, Measurement, ProbeControl
from eval_core.facts.session_facts import SessionFacts
from eval_core.reporting.html import render_html
from eval_core.reporting.losses import named_facts, places
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.metrics import TokenPrices, target_metrics, task_cost, tokens_per_task
from eval_core.reporting.view import make_view, medians
from eval_core.storage.results import read_measurement
from eval_core.strands.findings import Kind, SpreadFinding


def test_a_table_of_medians_holds_medians_over_probes_of_medians_over_runs() -> None:
    data = report_world.regressed()
    found = medians(data.candidate, "deploy")
    # recall-port: 1.5, 1.6, 1.7; decision-staging: 4.0 each time.
    assert found["overall"] == pytest.approx((1.6 + 4.0) / 2)
    assert set(found) == {*DIMENSIONS, "overall"}


def test_changes_stand_beside_the_medians_where_both_sides_may_be_compared() -> None:
    view = make_view(report_world.regressed())
    assert view.kind is Kind.REGRESSED
    assert {row.fixture for row in view.fixtures} == {"deploy", "migrate"}
    assert all(delta == "−1.50†" for row in view.fixtures for delta in row.deltas)
    assert all(row.marked for row in view.fixtures), "the simple rule would flag a change of 1.5"


def test_less_stable_runs_have_a_row_of_their_own_and_are_told_above_the_fold() -> None:
    data = report_world.regressed()
    assert data.verdict is not None
    finding = SpreadFinding(name="overall", base_sd=0.2, candidate_sd=0.6, p=0.001, verdict="less_stable")
    verdict = data.verdict.model_copy(update={"spread": (finding,)}).noted("Less stable: overall.", remark=True)
    view = make_view(replace(data, verdict=verdict))
    row = view.table[-1]
    assert (row.name, row.base, row.candidate, row.delta) == ("run-to-run SD of overall", "0.20", "0.60", "+0.40")
    assert row.verdict == "less stable"
    assert view.remarks == ("Less stable: overall.",)
    assert "Less stable: overall." not in view.notes
    for shown in (render_markdown(view), render_html(view.data)):
        assert shown.count("Less stable: overall.") == 1


def test_where_sides_may_not_be_compared_no_number_of_the_baseline_is_shown() -> None:
    view = make_view(report_world.not_comparable())
    assert view.kind is Kind.NOT_COMPARABLE
    assert {row.name for row in view.table} == {"facts that probes ask for", "other facts"}
    assert all(row.deltas == () for row in view.fixtures)
    assert all(fact.base_kept is None for fact in view.lost)


def test_lost_facts_come_with_their_place_and_what_the_baseline_kept() -> None:
    first, *rest = make_view(report_world.regressed()).lost
    assert (first.fact, first.evidence, first.kept, first.base_kept) == ("8443", (1,), 0.0, 1.0)
    assert [fact.fixture for fact in rest] == ["migrate"]


def test_a_loss_that_may_be_chance_is_not_named() -> None:
    verdict = report_world.regressed().verdict
    assert verdict is not None
    first, *rest = verdict.facts
    unclear = verdict.model_copy(update={"facts": (first.model_copy(update={"clear": False}), *rest)})
    assert len(named_facts(verdict)) == 1 + len(rest)
    assert [fact.fixture for fact in named_facts(unclear)] == [fact.fixture for fact in rest]


def test_facts_found_again_are_listed_when_the_sides_are_turned() -> None:
    data = report_world.regressed()
    assert data.base is not None
    verdict, _ = compare_measurements(data.candidate, data.base)
    view = make_view(ReportData(data.base, base=data.candidate, verdict=verdict))
    assert [fact.fact for fact in view.regained] == ["8443", "8443"]
    assert view.lost == ()


def test_misses_say_what_was_lost_and_what_was_not_used() -> None:
    view = make_view(report_world.regressed())
    (first, _) = view.misses
    assert (first.fixture, first.probe) == ("deploy", "recall-port")
    assert first.overall == pytest.approx(1.6)
    assert first.reason == "lost in compression: 8443 (message 1)"


def test_a_failed_fixture_shows_dashes_and_its_outcome() -> None:
    view = make_view(report_world.incomplete())
    assert view.kind is Kind.INCOMPLETE
    row = view.fixtures[1]
    assert (set(row.cells), row.deltas, row.note) == ({"-"}, (), "6 of 6 runs: infra")
    assert view.unscored == {
        "the compressor could not reach its model: ValueError: boom": 6,
        "no answer: rate_limit": 1,
    }


def test_what_moved_and_what_everybody_looks_for_comes_first() -> None:
    names = [row.name for row in make_view(report_world.regressed()).table]
    assert set(names[:3]) == {"overall", "facts that probes ask for", "other facts"}
    assert len(names) == 9


def test_an_offline_result_says_so_and_costs_nothing() -> None:
    view = make_view(report_world.alone())
    assert view.offline_note == "offline: no model was called, so scores are advisory"
    assert view.cost == "no model was called, $0.00"
    assert view.headline == "No comparison: no baseline in baselines."


def test_an_unknown_price_is_unknown_and_not_zero() -> None:
    assert make_view(report_world.regressed()).cost.startswith("price unknown, 12 model calls")


def _priced(measurement: Measurement) -> Measurement:
    use = {role: item.model_copy(update={"cost_usd": 0.5}) for role, item in measurement.use.items()}
    return measurement.model_copy(update={"use": use, "models": {**measurement.models, "judge": "m"}})


def test_a_judge_that_grades_itself_is_mentioned() -> None:
    view = make_view(ReportData(_priced(report_world.regressed().candidate)))
    assert view.offline_note == "the judge is the same model as the compressor and the answer model"
    assert "$0.50" in view.cost


def test_failing_structure_checks_are_named_once() -> None:
    assert make_view(report_world.regressed()).broken_structure == ("deploy: one_summary", "migrate: one_summary")


def _quarantine(measurement: Measurement) -> Measurement:
    bad = ProbeControl(
        ceiling=0.3, floor=0.0, ceiling_facts=1.0, floor_facts=0.0, quarantined="the full transcript fails"
    )
    return measurement.model_copy(update={"controls": {"deploy": Controls(probes={"recall-port": bad})}})


def test_a_quarantined_probe_is_named_and_counts_in_no_score() -> None:
    view = make_view(ReportData(_quarantine(report_world.regressed().candidate)))
    assert view.quarantined == ("deploy / recall-port: the full transcript fails",)
    assert view.fixtures[0].cells[-1] == "4.00"
    assert [miss.fixture for miss in view.misses] == ["migrate"]


def test_metrics_without_a_measurement_are_not_measured() -> None:
    data = report_world.incomplete()
    failed = data.candidate.model_copy(update={"fixtures": {"migrate": data.candidate.fixtures["migrate"]}})
    assert {metric.status for metric in target_metrics(failed)} == {"not measured"}
    assert tokens_per_task(failed) is None


def test_metrics_stand_beside_their_targets() -> None:
    found = {metric.name: metric for metric in target_metrics(report_world.regressed().candidate)}
    assert (found["Probe pass rate"].value, found["Probe pass rate"].status) == ("50 %", "red flag")
    assert (found["Compression ratio"].value, found["Compression ratio"].status) == ("70 %", "on target")
    assert found["Task completion"].status == "not measured"
    # Runs of older versions do not tell which lost facts were needed.
    assert tokens_per_task(report_world.regressed().candidate) is None


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ((), "message unknown"),
        ((4,), "message 4"),
        ((1, 2, 3), "messages 1, 2, 3"),
        ((1, 2, 3, 4), "messages 1, 2, 3 …"),
    ],
)
def test_places_are_told_briefly(evidence: tuple[int, ...], words: str) -> None:
    assert places(evidence) == words


def test_grades_hold_all_six_dimensions() -> None:
    run = report_world.regressed().candidate.fixtures["deploy"][0]
    result = run.probes["recall-port"].result
    assert isinstance(result, Grade)
    assert result.overall == pytest.approx(1.5)


def test_short_sighted_compression_costs_more_than_it_saves() -> None:
    plain = TokenPrices(cached=1.0)
    light = task_cost(2_000, 1_000, turns=1, reread_tokens=0, searches=0, prices=plain)
    aggressive = task_cost(2_000, 100, turns=1, reread_tokens=3_000, searches=0, prices=plain)
    assert (light.net, aggressive.net) == (1_000, -1_100)
    assert light.pays_after == 1
    later = task_cost(2_000, 100, turns=4, reread_tokens=3_000, searches=0, prices=plain)
    assert later.pays_after == 4


def test_losing_nearly_everything_costs_more_than_forgetting_the_beginning(shipped: list[Case], tmp_path: Path) -> None:
    chosen = [case for case in shipped if case.fixture.name == "debug-session-feishu-id-model"]
    nets = {}
    for name in ("opaque", "sliding-window", "anchored"):
        tokens = tokens_per_task(small.measure(chosen, tmp_path / name, name))
        assert tokens is not None
        nets[name] = tokens.net
    assert nets["opaque"] < 0
    assert nets["opaque"] < nets["sliding-window"] < nets["anchored"]


def test_only_what_a_tool_can_show_again_is_looked_up(tmp_path: Path) -> None:
    case = Case(small.debug_fixture(), small.debug_bank())
    known = SessionFacts(case)
    tools = [at for at, message in enumerate(case.fixture.messages) if message["role"] == "tool"]
    assert known.had_again([0, 1]) is None, "what only the system and the user said"
    assert known.had_again([1, tools[-1]]) == tools[-1]
    run = small.measure([case], tmp_path, "opaque").fixtures[case.fixture.name][0]
    lost = {
        fact.label: fact for probe in run.probes.values() for fact in probe.facts if fact.evidence and not fact.kept
    }
    again = [place for fact in lost.values() if (place := known.had_again(fact.evidence)) is not None]
    assert run.refetch_facts == len(again) < len(lost)
    assert run.refetch_tokens == sum(known.tokens[place] for place in set(again))


def test_turns_and_prices_of_tokens_per_task_are_settings(project: Path, cli: small.Cli) -> None:
    cli("run", "--runs", "1", "--set", "compress_runs=1", "--quiet", "--compare-to", "none", "--label", "l")
    measured = read_measurement(project / "results" / "l")
    usual, long = tokens_per_task(measured), tokens_per_task(measured, task=TaskConfig(turns=40, cached_price=1.0))
    assert usual is not None
    assert long is not None
    assert long.turns == 40
    assert long.uncompressed == pytest.approx(usual.uncompressed / usual.turns * 40 / 0.1)
    small.write(project / ".compression-eval.yml", "task: {turns: 40, cached_price: 1.0}\n")
    shown = cli("report", "results/l", "--details").out
    assert "Tokens per task over 40 further turns" in shown


def test_sessions_that_the_agent_would_not_compress_in_use_are_named() -> None:
    data = report_world.regressed()
    assert not any("Smaller than" in note for note in make_view(data).notes)
    name, runs = next(iter(data.candidate.fixtures.items()))
    small_runs = [run.model_copy(update={"notes": [f"{SMALLER}900 of 15,000 tokens"]}) for run in runs]
    candidate = data.candidate.model_copy(update={"fixtures": {**data.candidate.fixtures, name: small_runs}})
    expected = f"Smaller than what the compressor keeps word for word: {name} (900 of 15,000 tokens)."
    assert expected in make_view(replace(data, candidate=candidate)).notes
