"""The rule, one sentence at a time: what decides where strands disagree, and what becomes of size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eval_core.comparing import tested
from eval_core.comparing.control_runs import ControlShift
from eval_core.comparing.rule import decide_kind
from eval_core.comparing.tested import Options
from eval_core.comparing.verdict import decide, exit_code
from eval_core.domain.compression import Outcome
from eval_core.statistics.arms import Arm
from eval_core.statistics.permutation import Shift
from eval_core.strands.evidence import Recorded
from eval_core.strands.fact_changes import FalseValues
from eval_core.strands.facts import facts_strand
from eval_core.strands.findings import Culprit, FactChange, FalseValue, Finding, Kind, StrandState, Verdict, weigh
from eval_core.strands.outcome import Failures, OutcomeChange, outcome_strand
from eval_core.strands.scores import scores_strand
from eval_core.strands.size import SizeChange
from eval_core.strands.structure import StructureChange, structure_strand

from .arms import constant, fixture, noisy
from .records import recorded, size, strand

SAME, WORSE, BETTER, BOTH = StrandState.SAME, StrandState.WORSE, StrandState.BETTER, StrandState.BOTH


def kind(*strands: Finding, size: SizeChange | None = None, certain: bool = False, decided: bool = True) -> Kind:
    return decide_kind({item.name: item for item in strands}, size, certain=certain, decided=decided)


@pytest.mark.parametrize(
    ("loss", "gain", "state"),
    [(0, 0, SAME), (0.1, 0, WORSE), (0, 0.1, BETTER), (0.1, 0.1, BOTH), (0.2, 0.1, BOTH), (0.21, 0.1, WORSE)],
)
def test_gain_and_loss_are_both_told_from_half_of_the_greater_on(loss: float, gain: float, state: StrandState) -> None:
    assert weigh(loss, gain) is state


def test_nothing_gained_outweighs_what_is_certain() -> None:
    gained = strand("facts", gain=0.5)
    assert kind(gained) is Kind.IMPROVED
    assert kind(gained, certain=True) is Kind.REGRESSED
    for name in ("structure", "form"):
        assert kind(gained, strand(name, loss=0.01)) is Kind.REGRESSED
        assert kind(gained, strand(name)) is Kind.IMPROVED


def test_the_greater_decides_and_what_is_of_one_size_is_mixed() -> None:
    assert kind(strand("facts", loss=0.3), strand("scores", gain=0.1)) is Kind.REGRESSED
    assert kind(strand("facts", loss=0.1), strand("scores", gain=0.3)) is Kind.IMPROVED
    assert kind(strand("facts", loss=0.2), strand("scores", gain=0.3)) is Kind.MIXED
    # A strand that cannot be compared is not weighed, whatever its numbers are.
    muted = strand("scores", gain=0.3, state=StrandState.NOT_COMPARABLE)
    assert kind(strand("facts", loss=0.2), muted) is Kind.REGRESSED


def test_what_no_longer_reaches_the_model_breaks_the_tie_only_with_its_own_weight() -> None:
    gained = strand("facts", gain=0.2)
    assert kind(gained, strand("shown", loss=0.1)) is Kind.REGRESSED
    assert kind(strand("facts", loss=0.2, gain=0.2), strand("shown", loss=0.09)) is Kind.MIXED
    assert kind(strand("facts", loss=0.2, gain=0.2), strand("shown")) is Kind.MIXED


def test_a_loss_is_a_trade_where_the_state_shrank_by_twice_its_share() -> None:
    lost = strand("facts", loss=0.1)
    assert kind(lost) is Kind.REGRESSED
    assert kind(lost, size=size(80, kept=0.45)) is Kind.TRADE
    assert kind(lost, size=size(80.1, kept=0.45)) is Kind.REGRESSED
    assert kind(lost, size=size(80, kept=0.45, recorded=False)) is Kind.REGRESSED
    assert kind(lost, size=size(97, kept=0.499)) is Kind.REGRESSED
    assert kind(lost, strand("shown", loss=0.1), size=size(80, kept=0.45)) is Kind.REGRESSED
    assert kind(lost, strand("shown"), size=size(80, kept=0.45)) is Kind.TRADE
    nothing_kept_before = SizeChange(True, 100.0, 80.0)
    assert kind(lost, size=nothing_kept_before) is Kind.TRADE


def test_a_gain_that_a_larger_state_bought_is_a_trade() -> None:
    gained = strand("facts", gain=0.1)
    assert kind(gained, size=size(104)) is Kind.IMPROVED
    assert kind(gained, size=size(110)) is Kind.TRADE
    assert kind(gained, size=size(110, lift=0.03)) is Kind.IMPROVED


def test_a_repair_beside_fewer_messages_kept_verbatim_is_mixed() -> None:
    fewer = strand("window", loss=0.1)
    for name in ("structure", "outcome"):
        repaired = strand(name, gain=0.25)
        assert kind(repaired) is Kind.IMPROVED
        assert kind(repaired, fewer) is Kind.MIXED
        assert kind(repaired, fewer, strand("facts", gain=0.1)) is Kind.IMPROVED
    assert kind(strand("facts", gain=0.1), fewer) is Kind.IMPROVED


def test_where_nothing_moved_size_decides_and_only_what_is_settled_is_calm() -> None:
    assert kind() is Kind.NO_DETECTABLE_CHANGE
    assert kind(decided=False, size=size(80)) is Kind.INCONCLUSIVE
    assert kind(size=size(100)) is Kind.NO_DETECTABLE_CHANGE
    assert kind(size=size(80)) is Kind.IMPROVED
    assert kind(strand("window", loss=0.1), size=size(80)) is Kind.TRADE
    assert kind(size=size(120)) is Kind.REGRESSED


# Facts that are counted


def fact(change: int, source: str = "authored", *, clear: bool = True) -> FactChange:
    return FactChange.model_validate(
        {
            "fixture": "f",
            "asked_by": ("probe",) if source == "authored" else (),
            "name": "n",
            "kind": "" if source == "authored" else "path",
            "messages": (1,),
            "base_kept": 2 if change < 0 else 0,
            "base_runs": 2,
            "candidate_kept": 2 if change > 0 else 0,
            "candidate_runs": 2,
            "clear": clear,
        }
    )


@pytest.mark.parametrize(
    ("facts", "state", "says"),
    [
        ([], SAME, ""),
        ([fact(-1)], WORSE, "1 of 110 facts lost, none gained"),
        ([fact(1)], BETTER, "1 of 110 facts gained, none lost"),
        ([fact(1), fact(1), fact(1), fact(-1)], BETTER, "3 of 110 facts gained, 1 lost"),
        ([fact(1), fact(-1)], BOTH, "1 of 110 facts lost, 1 gained"),
        ([fact(1).model_copy(update={"base_kept": 1})], BETTER, "1 of 110 facts gained, none lost"),
        ([fact(-1).model_copy(update={"candidate_kept": 1})], WORSE, "1 of 110 facts lost, none gained"),
        ([fact(-1, clear=False)], SAME, ""),
        ([fact(-1, "census")], WORSE, "1 of 110 facts lost, none gained"),
    ],
)
def test_facts_of_deterministic_runs_are_counted(facts: list[FactChange], state: StrandState, says: str) -> None:
    found = facts_strand(recorded(*facts), None, (), ())
    assert (found.state, found.says) == (state, says)


def test_a_lost_fact_weighs_as_its_share_of_its_own_kind() -> None:
    found = facts_strand(recorded(fact(-1), fact(-1, "census"), fact(1, "census"), fact(1, "census")), None, (), ())
    assert found.loss == pytest.approx((1 / 10 + 1 / 100) / 2)
    assert found.gain == pytest.approx(2 / 100 / 2)


@pytest.mark.parametrize("exact", [True, False])
def test_the_only_fact_of_its_kind_weighs_as_all_of_it(*, exact: bool) -> None:
    found = recorded(fact(-1), fact(-1, "census"), authored=1, every=1, exact=exact, judged=True)
    verdict = verdict_of(noisy(1, 10, fact=0.6), noisy(2, 10, fact=0.8), found)
    assert next(item.loss for item in verdict.strands if item.name == "facts") == 1.0


def test_less_than_a_hundredth_of_the_census_is_told_and_does_not_decide() -> None:
    found = facts_strand(recorded(fact(-1, "census"), every=101), None, (), ())
    assert (found.state, found.loss, found.says) == (SAME, 0.0, "1 of 111 facts lost, none gained")


def test_an_invented_or_stale_value_is_worse_whatever_was_gained() -> None:
    invented = FalseValue(kind="invented", value="8081", where="port, a")
    stale = invented.model_copy(update={"kind": "stale"})

    def more(item: FalseValue) -> FalseValues:
        return FalseValues(more=True, named=(item,))

    found = facts_strand(recorded(fact(1), invented=more(invented)), None, (), ())
    assert (found.state, found.details) == (WORSE, ("invented: 8081 (port, a)",))
    gained = "1 of 110 facts gained, none lost"
    assert found.says == f"the summary states 1 value not found in the session, but {gained}"
    found = facts_strand(recorded(stale=more(stale)), None, (), ())
    assert found.says == "the summary states 1 superseded value without the new one"
    assert (found.state, found.details) == (WORSE, ("stale: 8081 (port, a)",))
    unnamed = FalseValues(more=True, named=())
    found = facts_strand(recorded(fact(-1), invented=unnamed, stale=unnamed), None, (), ())
    assert found.says == (
        "the summary states invented values more often; the summary states superseded values more often without the"
        " new one; 1 of 110 facts lost, none gained"
    )
    harmless = FalseValues(more=False, named=(invented,))
    found = facts_strand(recorded(invented=harmless), None, (), ())
    assert (found.state, found.details) == (SAME, ())


def test_a_check_that_broke_weighs_everything_and_a_repaired_one_its_share() -> None:
    arm = constant(2, 4.0)
    broken, repaired = (
        StructureChange("f0", "no_empty_messages", "broken", 2, 2, 0, 2),
        StructureChange("f1", "no_empty_messages", "repaired", 0, 2, 2, 2),
    )
    found = structure_strand([repaired], arm, arm)
    assert (found.state, found.loss) == (BETTER, 0.0)
    assert found.gain == pytest.approx(1 / 6)
    assert (found.base, found.candidate) == ("6 of 6 checks", "6 of 6 checks")
    found = structure_strand([broken, repaired], arm, arm)
    assert (found.state, found.loss) == (WORSE, 1.0)
    assert found.says.startswith("the compressor writes an empty message (1 fixture); repaired: ")
    assert structure_strand([], arm, arm).state is SAME
    one = Arm("one", {"f1": fixture(np.full((2, 2, 6), 4.0), structure=({"no_empty_messages": True},) * 2)})
    assert structure_strand([repaired], one, one).gain == 1.0


def test_a_side_without_runs_says_nothing_of_itself() -> None:
    assert outcome_strand(OutcomeChange((), (), (), (), ())).base == ""


# The whole decision, with what the records say


def verdict_of(base: Arm, candidate: Arm, found: Recorded | None = None) -> Verdict:
    return decide(base, candidate, recorded=found, options=Options(arrangements=200))


def test_counted_facts_are_two_numbers_without_a_test_and_grades_without_a_judge_are_advice() -> None:
    base, candidate = constant(3, 4.0, fact=0.9), constant(3, 3.0, fact=0.8)
    verdict = verdict_of(base, candidate, recorded(fact(-1)))
    assert (verdict.kind, verdict.exact, verdict.tests, verdict.culprits) == (Kind.REGRESSED, True, (), ())
    rows = [(row.name, row.verdict.value, row.p, row.ci_low, row.mde) for row in verdict.rows]
    assert rows == [
        ("overall", "advisory", None, None, None),
        ("authored facts", "worse", None, None, None),
        ("census", "worse", None, None, None),
    ]
    overall = verdict.rows[0]
    assert (overall.median_base, overall.median_candidate) == (4.0, 3.0)
    # The facts by name say that nothing moved: neither do the rows.
    verdict = verdict_of(base, candidate, recorded())
    assert [row.verdict.value for row in verdict.rows] == ["advisory"] + ["no_detectable_change"] * 2
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert "every fact is kept or lost as before" in verdict.headline
    # Beside counted facts a judge's scores are tested, and the headline says what would have been seen.
    verdict = verdict_of(noisy(1, 10), noisy(1, 10), recorded(judged=True))
    assert "smallest detectable change" in verdict.headline
    verdict = verdict_of(base, base, recorded(fact(1)))
    assert [row.verdict.value for row in verdict.rows] == ["advisory"] + ["no_detectable_change"] * 2


@pytest.mark.parametrize(
    ("exact", "judged", "families"),
    [
        (True, True, ["scores"]),
        (True, False, []),
        (False, True, ["scores", "facts"]),
        (False, False, ["facts"]),
    ],
)
def test_counted_facts_and_unjudged_grades_are_not_tested(exact: bool, judged: bool, families: list[str]) -> None:
    verdict = verdict_of(noisy(1, 10), noisy(2, 10), recorded(exact=exact, judged=judged))
    assert [test.family for test in verdict.tests] == families
    says = [note for note in verdict.notes if note.startswith("No scores were compared")]
    assert bool(says) is ("scores" not in families)


def test_tested_facts_weigh_as_their_share_each_average_half() -> None:
    base, candidate = noisy(1, 10, fact=0.6), noisy(2, 10, fact=0.8)
    for verdict, sign in ((verdict_of(base, candidate), 1), (verdict_of(candidate, base), -1)):
        strand = next(item for item in verdict.strands if item.name == "facts")
        moved = [row.delta for row in verdict.rows if row.family == "facts"]
        assert strand.gain - strand.loss == pytest.approx(sum(moved) / 2)
        assert min(strand.gain, strand.loss) == 0.0
        assert strand.state is (BETTER if sign > 0 else WORSE)


def test_facts_named_lost_count_where_the_averages_hide_them() -> None:
    lost = [fact(-1)] * 5
    found = recorded(*lost, exact=False, judged=True)
    verdict = verdict_of(noisy(1, 10, fact=0.6), noisy(2, 10, fact=0.8), found)
    strand = next(item for item in verdict.strands if item.name == "facts")
    assert strand.loss == pytest.approx(5 / 10 / 2)
    assert strand.says.endswith(" (5 clearly lost)")
    assert strand.state is BOTH


def test_the_shipped_rule_is_the_documented_one() -> None:
    shipped = Options()
    assert shipped.alpha_scores + shipped.alpha_compressions == pytest.approx(0.05)
    assert shipped.margin_scores / 5 == pytest.approx(shipped.margin_facts) == pytest.approx(0.07)
    assert (shipped.culprit_alpha, shipped.coverage_floor, shipped.seed) == (0.05, 0.95, 0)
    assert (shipped.alpha_scores, shipped.alpha_facts) == (0.025, 0.008)
    assert (shipped.alpha_losses, shipped.alpha_size) == (0.01, 0.007)


def test_a_sentence_shows_the_interval_of_what_decided_and_none_that_contains_zero() -> None:
    def culprit(name: str, low: float, high: float, kind: str = "dimension") -> Culprit:
        body = {"kind": kind, "direction": "worse", "name": name, "delta": -0.4, "ci_low": low, "ci_high": high}
        return Culprit.model_validate({**body, "p": 0.02})

    evidence, _ = tested._test(
        tested.Sides(noisy(1, 10), noisy(2, 3, mean=3.0), Options(arrangements=200)),
        set(),
        deterministic=False,
        judged=True,
    )
    unsure, sure = culprit("overall", -0.9, 0.1), culprit("accuracy", -0.7, -0.1)
    for found, says in (
        ([unsure, sure], "accuracy −0.40 [−0.70, −0.10]"),
        ([unsure, culprit("p1", 0, 0, "probe")], "1 probe answered worse"),
        ([unsure], "overall −0.40 (p 0.020)"),
    ):
        assert scores_strand(evidence[0], found, (), judged=True).says == says


def test_runs_left_out_as_stubs_are_counted_in_a_note() -> None:
    for number, words in ((1, "1 run with"), (2, "2 runs with")):
        verdict = verdict_of(noisy(1, 3), noisy(1, 3), replace(recorded(), stubs=number, runs=9))
        assert any(words in note for note in verdict.notes)
    verdict = verdict_of(noisy(1, 3), noisy(1, 3), replace(recorded(), stubs=1, runs=9, stubs_count=True))
    assert not any("stub" in note for note in verdict.notes)


def test_a_trade_fails_a_gate_only_where_something_became_worse() -> None:
    fair = verdict_of(noisy(1, 3), noisy(1, 3)).model_copy(update={"kind": Kind.TRADE, "strands": ()})
    assert exit_code(fair, "regressed") == 0
    assert exit_code(fair.model_copy(update={"strands": (strand("facts", loss=0.1),)}), "regressed") == 1
    assert exit_code(fair.model_copy(update={"strands": (strand("facts"),)}), "inconclusive") == 0


def test_a_compressor_that_fails_is_broken() -> None:
    base, failing = Failures("f0", 3, {}), Failures("f0", 3, {Outcome.TARGET_ERROR: 3})
    change = OutcomeChange((base,), (failing,), ("f0",), (), ())
    verdict = verdict_of(noisy(1, 3), noisy(1, 3), replace(recorded(), outcome=change))
    assert (verdict.kind, [item.loss for item in verdict.strands]) == (Kind.BROKEN, [1.0])
    assert [item.fixture for item in verdict.culprits] == ["f0"]


def test_models_that_answer_otherwise_today_mute_the_scores_alone() -> None:
    for seen, codes in ((-2.0, ["models"]), (0.0, [])):
        shifted = ControlShift(Shift({}, {}), seen, 0.01, 3)
        verdict = decide(noisy(1, 10), noisy(2, 10, fact=0.5), control=shifted, options=Options(arrangements=200))
        assert [(item.code, item.mutes) for item in verdict.reasons] == [(code, "scores") for code in codes]
        states = {item.name: item.state for item in verdict.strands}
        assert states["facts"] is WORSE
        assert (states["scores"] is StrandState.NOT_COMPARABLE) is bool(codes)
