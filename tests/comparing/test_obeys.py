"""Obeys in the verdict: what is tested, for which models, what other strands have counted, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import pytest
import small

from eval_core.comparing.compare import ReportData, compare_measurements
from eval_core.domain.measurement import Measurement, ObeyControl
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.statistics.exact import fewer_total_p
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict

Answers = Mapping[str, str]
"""Model to one word for each run: a sign for each probe, 1 right, 0 wrong, - no answer."""
PROBES = ("first", "second", "third", "fourth")
ABOUT = {
    name: {"line": name, "kind": "rule", "text": f"Never {name}.", "anchors": [f"anchor-{name}"], "held": True}
    for name in PROBES
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    return small.measure(small.cases(), tmp_path_factory.mktemp("small"), "anchored", runs=10, compress_runs=10)


def side(plain: Measurement, runs: int, answers: Answers, *, asked: str = "a", fixtures: int = 1) -> Measurement:
    """Put the same answers into so many fixtures."""
    found = {}
    for at, (name, records) in enumerate(plain.fixtures.items()):
        found[name] = [
            record.model_copy(update={"strands": {**record.strands, **_strand(record.run, answers, asked)}})
            if at < fixtures
            else record
            for record in records[:runs]
        ]
    return plain.model_copy(update={"fixtures": found, "planned_runs": runs, "planned_compress_runs": runs})


def _strand(run: int, answers: Answers, asked: str) -> dict[str, dict[str, object]]:
    models = {
        model: {
            name: {"asked": asked, "right": None if sign == "-" else sign == "1"}
            for name, sign in zip(PROBES, signs.split()[run], strict=False)
        }
        for model, signs in answers.items()
    }
    return {"obeys": {"probes": ABOUT, "models": models}}


def compared(base: Measurement, candidate: Measurement) -> tuple[Verdict, Finding]:
    verdict, _ = compare_measurements(base, candidate)
    finding = verdict.strand("obeys")
    assert finding is not None
    return verdict, finding


ALL = "1111 " * 10


@pytest.mark.parametrize(
    ("base", "candidate", "state"),
    [
        (ALL, "1110 1110 1110", StrandState.WORSE),
        (ALL, "1111 1111 1111", StrandState.SAME),
        (ALL, "1110 1111 1110", StrandState.SAME),
        ("1110 1111 " * 5, "1110 1111 1110", StrandState.SAME),
        ("1110 " * 10, "1111 1111 1111", StrandState.BETTER),
        ("1111 1111 1111", "1110 1110 1110", StrandState.CANNOT_TELL),
        # What one run forgets, it forgets at once: four probes of one run are one event.
        (ALL, "0000 1111 1111", StrandState.SAME),
    ],
)
def test_runs_are_exchanged_whole(plain: Measurement, base: str, candidate: str, state: StrandState) -> None:
    sides = [side(plain, len(signs.split()), {"m": signs}) for signs in (base, candidate)]
    assert compared(*sides)[1].state is state


def test_a_rule_that_is_no_longer_acted_on_is_a_regression_and_named(plain: Measurement) -> None:
    base, candidate = side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "0111 0111 0111"})
    verdict, finding = compared(base, candidate)
    assert verdict.kind is Kind.REGRESSED
    assert (
        verdict.next_step == "Look at what is no longer acted on, listed below; then fix the compressor and run again."
    )
    assert finding.says == "1 rule is no longer acted on (done as demanded: 100 % → 75 %)"
    assert '"Never first." (first, small-chained): 10 of 10 → 0 of 3 runs' in finding.details
    assert "p 0.003 for fewer" in finding.details[0]
    assert "1 of 4 gone in every run would have been seen" in finding.details[0]
    assert finding.loss == pytest.approx(0.25)
    text = render_markdown(make_view(ReportData(candidate, base=base, verdict=verdict)))
    assert "| Obeys | 100 % as demanded | 75 % as demanded |" in text
    assert "no longer acted on" in text


def test_three_runs_of_each_side_need_the_rule_in_several_sessions(plain: Measurement) -> None:
    sides = [side(plain, 3, {"m": signs}, fixtures=2) for signs in ("1111 1111 1111", "0111 0111 0111")]
    _, finding = compared(*sides)
    assert finding.state is StrandState.WORSE
    assert "2 of 8 gone in every run would have been seen" in finding.details[0]


@pytest.mark.parametrize(
    ("small_model", "said"),
    [
        ("0111 0111 0111", "1 rule is no longer acted on for both models (done as demanded: 100 % → 75 %)"),
        ("1111 1111 1111", "1 rule is no longer acted on only for large (done as demanded: 100 % → 75 %)"),
    ],
)
def test_the_sentence_says_for_which_models(plain: Measurement, small_model: str, said: str) -> None:
    base = side(plain, 10, {"large": ALL, "small": ALL}, fixtures=2)
    candidate = side(plain, 3, {"large": "0111 0111 0111", "small": small_model}, fixtures=2)
    _, finding = compared(base, candidate)
    assert finding.says.replace("2 rules are", "1 rule is") == said
    assert [line.partition(":")[0] for line in finding.details[:2]] == ["large", "small"]


def test_another_wording_is_another_probe_and_what_was_not_asked_is_not_compared(plain: Measurement) -> None:
    base, other = side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "0000 0000 0000"}, asked="b")
    _, finding = compared(base, other)
    assert finding.state is StrandState.NOT_RECORDED
    assert compare_measurements(plain, side(plain, 3, {"m": "0000 0000 0000"}))[0].kind is Kind.NO_DETECTABLE_CHANGE


def test_a_probe_without_an_answer_in_a_run_is_left_out_by_name(plain: Measurement) -> None:
    _, finding = compared(side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "0111 -111 0111"}))
    assert finding.state is StrandState.SAME
    assert "left out: first (small-chained): not answered in every run of both sides" in finding.details


def test_a_lost_rule_that_is_disobeyed_is_one_loss_with_two_witnesses(plain: Measurement) -> None:
    base, candidate = side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "0111 0111 0111"})
    meaning = {"ledger": "d", "lines": dict.fromkeys(PROBES, "same"), "misstated": {}}
    lost = {**meaning, "misstated": {"first": ['lost its "not"', "First."]}}

    def said(found: Measurement, record: dict[str, object]) -> Measurement:
        fixtures = {
            name: [run.model_copy(update={"strands": {**run.strands, "meaning": record}}) for run in runs]
            for name, runs in found.fixtures.items()
        }
        return found.model_copy(update={"fixtures": fixtures})

    verdict, finding = compared(said(base, meaning), said(candidate, lost))
    assert (finding.state, finding.loss) == (StrandState.WORSE, 0.0)
    assert "100 % → 75 %, itself lost or misstated as well" in finding.says
    assert finding.details[1].endswith("runs, also misstated in the summary")
    assert verdict.kind is Kind.REGRESSED


def test_the_effect_of_a_rule_is_what_the_state_still_has_of_a_restated_one(plain: Measurement) -> None:
    base, candidate = side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "0011 0011 0011"})
    name = next(iter(plain.fixtures))
    whole = ObeyControl(asked="a", ceiling=True, floor=False, restated=True)
    controls = {
        "first": whole,
        "second": whole.model_copy(update={"restated": False}),
        "third": whole,
        "fourth": whole.model_copy(update={"ceiling": False}),
    }
    known = plain.controls[name].model_copy(update={"obeys": {"m": controls}})
    candidate = candidate.model_copy(update={"controls": {**candidate.controls, name: known}})
    _, finding = compared(base, candidate)
    assert "effect of a restated rule that the state has: 100 % → 50 %" in finding.details[0]
    assert f"left out: fourth ({name}): not even the full transcript brings it about" in finding.details


def test_what_is_in_the_text_and_not_used_is_told_beside_what_is(plain: Measurement) -> None:
    base, candidate = side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "0011 0011 0011"})
    _, finding = compared(base, candidate)
    assert "lines in the text 100 % → 100 %, acted on 100 % → 50 %" in finding.details
    (facts,) = [line for line in finding.details if line.startswith("expected facts in the text")]
    assert "stated by the answers" in facts


def test_scores_spend_less_where_choices_are_tested(plain: Measurement) -> None:
    asked, _ = compared(side(plain, 10, {"m": ALL}), side(plain, 3, {"m": "1111 1111 1111"}))
    without, _ = compare_measurements(plain, side(plain, 3, {}))
    assert asked.alpha == pytest.approx(without.alpha)


@pytest.mark.parametrize(
    "blocks",
    [[([3, 3, 2, 3], [1, 3])], [([1, 0], [0, 0, 1]), ([2, 2, 2], [0])], [([1, 1, 1], [1, 1])]],
)
def test_the_exact_chance_is_that_of_all_arrangements(blocks: list[tuple[list[int], list[int]]]) -> None:
    sums = [0.0]
    ways = [1.0]
    for base, candidate in blocks:
        pooled = [*base, *candidate]
        drawn = [sum(pooled[at] for at in places) for places in combinations(range(len(pooled)), len(candidate))]
        sums = [total + more for total in sums for more in drawn]
        ways = [1.0] * len(sums)
    observed = sum(sum(candidate) for _, candidate in blocks)
    assert fewer_total_p(blocks) == pytest.approx(sum(total <= observed for total in sums) / len(ways))
