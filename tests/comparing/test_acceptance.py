"""What is accepted is out of the comparison by its key; where no fact is clear, as few are accepted as it takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eval_core.base.config import AcceptConfig
from eval_core.domain.record import PRIVATE_PLACE
from eval_core.strands.acceptance import covers, offer, together
from eval_core.strands.findings import FactChange, Finding, Item, Kind, StrandState, Verdict


def _lost(name: str, kept: int = 0, *, clear: bool = True, place: int = 1) -> FactChange:
    return FactChange(
        fixture="deploy",
        name=name,
        kind="path",
        messages=(place,),
        base_kept=10,
        base_runs=10,
        candidate_kept=kept,
        candidate_runs=10,
        clear=clear,
    )


def _verdict(*facts: FactChange, kind: Kind = Kind.REGRESSED) -> Verdict:
    state = StrandState.WORSE if kind is Kind.REGRESSED else StrandState.SAME
    strands = (Finding(name="facts", state=state),)
    return Verdict(
        kind=kind, headline="", next_step="", base_label="", candidate_label="", facts=facts, strands=strands
    )


def _again(
    facts: tuple[FactChange, ...], tolerated: int
) -> tuple[list[AcceptConfig], Callable[[AcceptConfig], Verdict]]:
    tried: list[AcceptConfig] = []

    def again(accept: AcceptConfig) -> Verdict:
        tried.append(accept)
        left = [fact for fact in facts if not covers(accept.facts, Item(fact.name, fact.fixture))]
        return _verdict(*left, kind=Kind.NO_DETECTABLE_CHANGE if len(left) <= tolerated else Kind.REGRESSED)

    return tried, again


@pytest.mark.parametrize("name", ["src/App.py", "`src/app.py`", "SRC/APP.PY"])
def test_a_fact_is_covered_in_its_own_fixture_however_it_is_written(name: str) -> None:
    assert covers({"deploy": ["src/app.py"]}, Item(name, "deploy"))
    assert not covers({"deploy": ["src/app.py"]}, Item(name, "other"))
    assert not covers({"deploy": ["src/app.py"]}, Item(f"{name}2", "deploy"))


def test_only_clear_losses_are_accepted_where_that_is_enough() -> None:
    facts = (_lost("a"), _lost("b", 9, clear=False))
    _, again = _again(facts, 1)
    found = offer(_verdict(*facts), again, AcceptConfig())
    assert found is not None
    assert found.suffices
    assert found.added == AcceptConfig(facts={"deploy": ["a"]})


def test_a_loss_that_is_spread_is_accepted_worst_first_and_no_more_than_it_takes() -> None:
    facts = tuple(_lost(name, kept, clear=False) for kept, name in enumerate("hgfedcba"))
    tried, again = _again(facts, 3)
    found = offer(_verdict(*facts), again, AcceptConfig(facts={"other": ["x"]}))
    assert found is not None
    assert found.added == AcceptConfig(facts={"deploy": ["h", "g", "f", "e", "d"]})
    assert all(accept.facts["other"] == ["x"] for accept in tried)


def test_a_private_fact_and_what_is_no_removal_cannot_be_accepted() -> None:
    _, again = _again((), 0)
    assert offer(_verdict(_lost("private fact 1", place=PRIVATE_PLACE)), again, AcceptConfig()) is None
    assert offer(_verdict(_lost("a"), kind=Kind.INCONCLUSIVE), again, AcceptConfig()) is None


def test_what_is_accepted_twice_is_written_once() -> None:
    one = AcceptConfig(sections=["a"], facts={"deploy": ["x"]})
    assert together(one, AcceptConfig(sections=["a", "b"], facts={"deploy": ["x", "y"]})) == AcceptConfig(
        sections=["a", "b"], facts={"deploy": ["x", "y"]}
    )
