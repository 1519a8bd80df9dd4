"""What offline evidence can say of a compressor that asks a model, and what it must not say."""

from __future__ import annotations

import prompted
import pytest
from prompted import REWRITTEN, Edit

from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.verdict import exit_code
from eval_core.domain.measurement import Measurement
from eval_core.strands.findings import Kind, StrandState, Verdict

LESS_SHOWN: Edit = ("OUTPUT_LIMIT = 4_000", "OUTPUT_LIMIT = 400")
DISCARDED: Edit = ('{PREFACE}\\n\\n{summary}"', '{PREFACE}"')


def verdict(*edits: Edit, base: tuple[Edit, ...] = (), runs: int = 1) -> Verdict:
    return compare_measurements(prompted.measured(*base, runs=runs), prompted.measured(*edits, runs=runs))[0]


def state(found: Verdict, name: str) -> StrandState:
    return next(strand.state for strand in found.strands if strand.name == name)


def test_other_instructions_are_not_judged_and_what_was_counted_is_shown() -> None:
    found = verdict(REWRITTEN)
    assert found.kind is Kind.NOT_JUDGED
    assert [strand.name for strand in found.strands if strand.state is StrandState.SAME] == [
        "outcome", "structure", "window", "size", "calls",
    ]  # fmt: skip
    assert (exit_code(found), exit_code(found, "regressed"), exit_code(found, "inconclusive")) == (0, 3, 3)


def test_a_loss_that_was_counted_is_a_regression_beside_other_instructions_too() -> None:
    found = verdict(REWRITTEN, LESS_SHOWN)
    assert found.kind is Kind.REGRESSED
    assert state(found, "shown") is StrandState.WORSE
    assert any("instructions" in remark for remark in found.remarks)


def test_a_summary_that_is_thrown_away_is_one_too() -> None:
    assert verdict(REWRITTEN, DISCARDED, runs=3).kind is Kind.REGRESSED


@pytest.mark.parametrize("base", [DISCARDED, LESS_SHOWN], ids=["the same text", "other text"])
def test_nothing_that_is_gained_beside_other_instructions_is_claimed(base: Edit) -> None:
    assert verdict(REWRITTEN, base=(base,), runs=3).kind is Kind.NOT_JUDGED


def test_instructions_in_a_system_message_move_no_fact() -> None:
    named: Edit = (
        "complete([{",
        'complete([{"role": "developer", "content": "See skills/review/SKILL.md, AGENTS.md"}, {',
    )
    found = verdict(named)
    assert found.kind is Kind.NOT_JUDGED
    assert not found.facts
    assert not found.false_values


def test_facts_in_a_summary_of_other_text_are_not_claimed() -> None:
    found = verdict(("ARGUMENT_LIMIT = 2_000", "ARGUMENT_LIMIT = 1_000"), LESS_SHOWN, base=(LESS_SHOWN,))
    assert state(found, "asks") is StrandState.SAME
    assert all(fact.shown in ("never shown", "not passed on") for fact in found.facts if fact.change < 0)
    less = verdict(LESS_SHOWN)
    assert less.kind is Kind.REGRESSED
    assert {fact.shown for fact in less.facts if fact.change < 0} <= {"never shown", "not passed on"}
    assert state(less, "form") is StrandState.NOT_JUDGED


def test_more_text_shown_is_a_gain_that_was_counted() -> None:
    found = verdict(base=(LESS_SHOWN,))
    assert state(found, "shown") is StrandState.BETTER
    assert found.kind in (Kind.IMPROVED, Kind.TRADE)
    assert "reach the compressor's model" in found.headline


def _unrecorded(measurement: Measurement) -> Measurement:
    fixtures = {
        name: [run.model_copy(update={"asks": None}) for run in runs] for name, runs in measurement.fixtures.items()
    }
    return measurement.model_copy(update={"fixtures": fixtures})


def test_a_base_that_does_not_say_what_was_asked_is_no_ground_for_calm() -> None:
    base = prompted.measured()
    assert compare_measurements(_unrecorded(base), base)[0].kind is Kind.NOT_JUDGED


def test_another_model_is_judged_by_nobody() -> None:
    big: Edit = ("PROTECT_FIRST = 2", 'PROTECT_FIRST = 2\nASKED_FOR = ("big",)')
    tiny: Edit = ("PROTECT_FIRST = 2", 'PROTECT_FIRST = 2\nASKED_FOR = ("tiny",)')
    found = verdict(tiny, base=(big,))
    assert found.kind is Kind.NOT_JUDGED
    assert "the compressor asks for the model tiny instead of big; here one model answers" in found.headline
    assert "--compressor-model" in found.next_step
    both = verdict(REWRITTEN, tiny, base=(big,))
    assert "instructions" in both.headline
    assert "asks for the model tiny" in both.headline
    assert verdict(tiny, LESS_SHOWN, base=(big,)).kind is Kind.REGRESSED


def test_other_text_from_which_the_stand_in_writes_the_same_is_judged_by_nobody_either() -> None:
    backwards: Edit = ("serialise(middle)", "serialise([*middle[:-2], middle[-1], middle[-2]])")
    found = verdict(backwards)
    assert state(found, "facts") is StrandState.NOT_JUDGED
    assert found.kind is Kind.NOT_JUDGED
    assert "other text of the session" in found.headline


def test_turns_in_reverse_order_are_worse_where_messages_quote_each_other_too() -> None:
    found = verdict(("serialise(middle)", "serialise(middle[::-1])"))
    assert found.kind is Kind.REGRESSED
    assert "another order" in found.headline


def test_other_words_around_the_summary_are_read_by_nobody() -> None:
    told = ("Use it as background.", "Do the tasks it lists again.")
    found = verdict(told, runs=2)
    assert found.kind is Kind.NOT_JUDGED
    assert "what it says before its summary changed" in found.headline
    assert "--judge offline" not in found.next_step
    form = found.strand("form")
    assert form is not None
    assert "new sentence: Do the tasks it lists again." in form.details


def test_a_regression_beside_other_words_around_the_summary_stays_one() -> None:
    told = ("Use it as background.", "Do the tasks it lists again.")
    found = verdict(told, LESS_SHOWN)
    assert found.kind is Kind.REGRESSED
    assert any("before its summary" in remark for remark in found.remarks)


def test_headings_and_numbers_are_no_other_words() -> None:
    sides = [
        ("{PREFACE}", f"{{PREFACE}} Turn {turn} of what was compacted.\\n\\n## Notes {turn} Notes") for turn in (5, 7)
    ]
    base, candidate = (prompted.measured(side, fixtures=prompted.FIXTURES[:2]) for side in sides)
    assert compare_measurements(base, candidate)[0].kind is not Kind.NOT_JUDGED
