"""The sentence at the top says only what is known."""

from __future__ import annotations

import pytest

from eval_core.comparing import headline
from eval_core.strands.findings import Family, Finding, Item, Kind, Row, RowVerdict, StrandState


def row(name: str, family: Family, mde: float | None) -> Row:
    low, high = (None, None) if mde is None else (-0.1, 0.1)
    return Row(
        name=name,
        family=family,
        base=0.8,
        candidate=0.8,
        delta=0.0,
        ci_low=low,
        ci_high=high,
        ci90_low=low,
        ci90_high=high,
        p=None if mde is None else 0.5,
        mde=mde,
        mde_two_more=mde,
        verdict=RowVerdict.NO_DETECTABLE_CHANGE,
    )


def test_no_smallest_change_is_named_of_facts_that_were_counted() -> None:
    rows = [row("overall", "scores", 0.2), row("authored facts", "facts", None)]
    said = headline.no_change(rows, None, exact=False)
    assert said == "No detectable change: overall 0.00 [−0.10, +0.10]; smallest detectable change: 0.20."
    rows[1] = row("authored facts", "facts", 0.05)
    assert headline.no_change(rows, None, exact=False).endswith("0.20 or about 5 pp of facts.")


def test_a_dimension_is_called_as_people_call_it() -> None:
    open_row = row("artifact_trail", "scores", 0.2).model_copy(update={"verdict": RowVerdict.INCONCLUSIVE})
    said = headline.inconclusive([row("overall", "scores", 0.2), open_row], None)
    assert "open: artifact trail 0.00" in said


def test_an_interval_without_zero_is_not_called_too_wide() -> None:
    """The test of the scores is about what the facts do not explain, the interval about all of the change."""
    moved = {"delta": -0.4, "ci_low": -0.8, "ci_high": -0.02, "explained": -0.3, "verdict": RowVerdict.INCONCLUSIVE}
    said = headline.inconclusive([row("overall", "scores", 0.2).model_copy(update=moved)], None)
    assert said == "Inconclusive: overall −0.40 [−0.80, −0.02]; it follows from the facts kept, which may be luck."


def test_a_removal_is_to_be_undone_or_accepted_and_a_loss_to_be_looked_at() -> None:
    def step(*removed: Item) -> str:
        form = Finding(name="form", state=StrandState.WORSE, loss=0.1, removed=removed)
        return headline.next_step(Kind.REGRESSED, fixtures=["deploy"], strands={"form": form})

    assert step(Item("blockers")).startswith("Put back what was removed, or accept the removal")
    assert step().startswith("Look at what was lost, listed below, starting with deploy")


@pytest.mark.parametrize(
    ("false_values", "step"),
    [
        (True, "Look at the values that the summary should not state, listed below; then fix the compressor and run"),
        (False, "No single fact stands out: read some summaries beside the baseline's; then fix it and run again."),
    ],
)
def test_the_next_step_names_only_what_is_listed(step: str, *, false_values: bool) -> None:
    strands: dict[str, Finding] = {"facts": Finding(name="facts", state=StrandState.WORSE, loss=0.1)}
    assert headline.next_step(Kind.REGRESSED, strands=strands, false_values=false_values).startswith(step)


def test_a_misstated_line_is_looked_at_before_what_was_lost_beside_it() -> None:
    meaning = Finding(name="meaning", state=StrandState.WORSE, loss=0.1, says="a rule became a suggestion")
    facts = Finding(name="facts", state=StrandState.BOTH, loss=0.1, gain=0.2, says="2 of 70 facts lost, 1 gained")
    strands = {"meaning": meaning, "facts": facts}
    step = headline.next_step(Kind.REGRESSED, fixtures=["deploy"], strands=strands)
    assert step.startswith("Look at the lines that are misstated and at what was lost, listed below;")
    # Of what was lost and gained, the loss comes first, and does not speak against the verdict.
    said = headline.changed(Kind.REGRESSED, strands, None)
    assert said == "Regressed: a rule became a suggestion; 2 of 70 facts lost, 1 gained."
    strands["form"] = Finding(name="form", state=StrandState.WORSE, loss=0.1)
    assert headline.next_step(Kind.REGRESSED, strands=strands).startswith("Look at the lines that are misstated,")
