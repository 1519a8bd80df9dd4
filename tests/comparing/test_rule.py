"""The rule, one sentence at a time: what decides where strands disagree, and what becomes of size."""

from __future__ import annotations

import pytest

from eval_core.comparing.culprits import StructureChange
from eval_core.comparing.fact_changes import FalseValues
from eval_core.comparing.findings import FactChange, Kind, Strand, StrandName, StrandState
from eval_core.comparing.form_changes import FormChange
from eval_core.comparing.outcome import OutcomeChange
from eval_core.comparing.rule import decide_kind, facts_strand, outcome_strand, structure_strand, weigh
from eval_core.comparing.strands import Recorded, SizeChange

from .arms import constant

SAME, WORSE, BETTER, BOTH = StrandState.SAME, StrandState.WORSE, StrandState.BETTER, StrandState.BOTH
NONE = FalseValues(True, 0, 0, more=False, fewer=False, named=())


def strand(name: StrandName, loss: float = 0.0, gain: float = 0.0, state: StrandState | None = None) -> Strand:
    return Strand(name=name, state=state or weigh(loss, gain), loss=loss, gain=gain)


def kind(*strands: Strand, size: SizeChange | None = None, certain: bool = False, settled: bool = True) -> Kind:
    return decide_kind({item.name: item for item in strands}, size, certain=certain, settled=settled)


def size(tokens: float, kept: float = 0.5, lift: float = 0.0, *, recorded: bool = True) -> SizeChange:
    return SizeChange(recorded, 100.0, tokens, 0.5, kept, 0.0, lift)


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
    assert kind(settled=False, size=size(80)) is Kind.INCONCLUSIVE
    assert kind(size=size(100)) is Kind.NO_DETECTABLE_CHANGE
    assert kind(size=size(80)) is Kind.IMPROVED
    assert kind(strand("window", loss=0.1), size=size(80)) is Kind.TRADE
    assert kind(size=size(120)) is Kind.REGRESSED


# Facts that are counted


def fact(change: int, source: str = "authored", *, clear: bool = True) -> FactChange:
    return FactChange.model_validate(
        {
            "fixture": "f",
            "source": source,
            "name": "n",
            "kind": "path",
            "messages": (1,),
            "base_kept": 2 if change < 0 else 0,
            "base_runs": 2,
            "candidate_kept": 2 if change > 0 else 0,
            "candidate_runs": 2,
            "clear": clear,
        }
    )


def recorded(*facts: FactChange, invented: FalseValues = NONE, stale: FalseValues = NONE, every: int = 100) -> Recorded:
    return Recorded(
        outcome=OutcomeChange((), (), (), (), ()),
        window=strand("window"),
        shown=strand("shown"),
        form=FormChange(True),
        facts=facts,
        invented=invented,
        stale=stale,
        size=size(100),
        authored_facts=10,
        census_facts=every,
        exact=True,
        judged=False,
    )


@pytest.mark.parametrize(
    ("facts", "state", "says"),
    [
        ([], SAME, ""),
        ([fact(-1)], WORSE, "1 of 110 facts lost, none gained"),
        ([fact(1)], BETTER, "1 of 110 facts gained, none lost"),
        ([fact(1), fact(1), fact(1), fact(-1)], BETTER, "3 of 110 facts gained, 1 lost"),
        ([fact(1), fact(-1)], BOTH, "1 of 110 facts lost, 1 gained"),
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


def test_a_census_fact_in_a_thousand_is_told_and_does_not_decide() -> None:
    found = facts_strand(recorded(fact(-1, "census"), every=101), None, (), ())
    assert (found.state, found.loss, found.says) == (SAME, 0.0, "1 of 111 facts lost, none gained")


def test_an_invented_or_stale_value_is_worse_whatever_was_gained() -> None:
    false = FalseValues(True, 0, 2, more=True, fewer=False, named=("8081",))
    found = facts_strand(recorded(fact(1), invented=false), None, (), ())
    assert (found.state, found.details) == (WORSE, ("invented: 8081",))
    gained = "1 of 110 facts gained, none lost"
    assert found.says == f"the summary states 1 value not found in the session, but {gained}"
    found = facts_strand(recorded(stale=false), None, (), ())
    assert found.says == "the summary states 1 superseded value without the new one"
    assert (found.state, found.details) == (WORSE, ("stale: 8081",))
    unnamed = FalseValues(True, 1, 2, more=True, fewer=False, named=())
    found = facts_strand(recorded(fact(-1), invented=unnamed, stale=unnamed), None, (), ())
    assert found.says == (
        "the summary states invented values more often; the summary states superseded values more often without the"
        " new one; 1 of 110 facts lost, none gained"
    )
    harmless = FalseValues(True, 2, 2, more=False, fewer=False, named=("8081",))
    found = facts_strand(recorded(invented=harmless), None, (), ())
    assert (found.state, found.details) == (SAME, ())


def test_a_check_that_broke_weighs_everything_and_a_repaired_one_its_share() -> None:
    arm = constant(2, 4.0)
    broken, mended = (
        StructureChange("f0", "no_empty_messages", "broken", 2, 2, 0, 2),
        StructureChange("f1", "no_empty_messages", "mended", 0, 2, 2, 2),
    )
    found = structure_strand([mended], arm, arm)
    assert (found.state, found.loss) == (BETTER, 0.0)
    assert found.gain == pytest.approx(1 / 6)
    assert (found.base, found.candidate) == ("6 of 6 checks", "6 of 6 checks")
    found = structure_strand([broken, mended], arm, arm)
    assert (found.state, found.loss) == (WORSE, 1.0)
    assert found.says.startswith("the compressor writes an empty message (1 fixture); repaired: ")
    assert structure_strand([], arm, arm).state is SAME


def test_a_side_without_runs_says_nothing_of_itself() -> None:
    assert outcome_strand(OutcomeChange((), (), (), (), ())).base == ""
