"""Changed instructions: which edits of a prompt are seen, line by line, and what is no change of it."""

from __future__ import annotations

import prompted
import pytest
from prompted import REWRITTEN, RULE, Edit

from eval_core.domain.measurement import Measurement
from eval_core.strands.asks import AsksChange, compare_asks
from eval_core.strands.findings import StrandState

PATHS = '    ("Relevant Files", "each path that was read or changed"),\n'


def asking_for(*names: str) -> Edit:
    """Let the compressor ask for these models, or for so much thought."""
    return "PROTECT_FIRST = 2", f"PROTECT_FIRST = 2\nASKED_FOR = {names!r}"


def added(text: str) -> Edit:
    """Let the prompt begin with what an expression says."""
    return RULE, f"{RULE}\n        prompt = {text} + prompt"


def change(
    *edits: Edit, base: tuple[Edit, ...] = (), runs: int = 1, fixtures: tuple[str, ...] = prompted.FIXTURES
) -> AsksChange:
    before = prompted.measured(*base, runs=runs, fixtures=fixtures)
    return compare_asks(before, prompted.measured(*edits, runs=runs, fixtures=fixtures))


@pytest.mark.parametrize(
    ("edit", "details"),
    [
        ((PATHS, ""), ["- ## Relevant Files", "- <each path that was read or changed>"]),
        (
            ("SUMMARY_CHARS = 9_000", "SUMMARY_CHARS = 8_000"),
            [
                "- Summarise the turns below. At most 9000 characters.",
                "+ Summarise the turns below. At most 8000 characters.",
            ],
        ),
        (added('"Be brief.\\n"'), ["+ Be brief."]),
        (("complete([{", 'complete([{"role": "system", "content": "Be brief."}, {'), ["+ (system)", "+ Be brief."]),
        (
            (
                "        if self._previous:",
                '        if self._previous:\n            prompt += "Keep what is in it.\\n"',
            ),
            ["only in step 2, 3", "+ Keep what is in it."],
        ),
        (
            ('"role": "user", "content": prompt}', '"role": "system", "content": prompt}'),
            ["- (user)", "+ (system)"],
        ),
    ],
    ids=["a line removed", "a budget", "a line added", "a system message", "one segment", "another role"],
)
def test_an_edit_of_the_prompt_is_shown_as_its_lines(edit: Edit, details: list[str]) -> None:
    found = change(edit)
    assert found.strand.state is StrandState.CHANGED
    assert list(found.strand.details) == details


def test_a_rewritten_prompt_is_shown_with_what_it_said_before() -> None:
    found = change(REWRITTEN)
    assert "- <each path that was read or changed>" in found.strand.details
    assert "+ Summarise the conversation in two sentences." in found.strand.details
    assert not found.sessions


def test_an_edit_is_seen_where_there_is_one_fixture_only() -> None:
    assert change((PATHS, ""), fixtures=prompted.FIXTURES[:1]).changed


@pytest.mark.parametrize(
    "text",
    [
        '__import__("datetime").datetime.now().strftime("It is %A, %d %B %Y, %H:%M:%S.\\n")',
        "f\"Request {__import__('uuid').uuid4()}.\\n\"",
        "f\"Session {__import__('random').randrange(10**6)}.\\n\"",
        'f"Room for about {sum(len(str(m)) for m in middle) // 7} tokens.\\n"',
        'f"Session {FIXTURE}.\\n"',
    ],
    ids=["a date", "an id", "a random number", "a budget of the session", "the session's name"],
)
@pytest.mark.parametrize("runs", [1, 2])
def test_what_is_written_afresh_in_each_run_is_no_change(text: str, runs: int) -> None:
    edit = added(text)
    again = ('"""Return head, summary and tail."""', '"""Return it."""')
    found = change(edit, again, base=(edit,), runs=runs)
    assert found.strand.state is StrandState.SAME, found.strand.details


def test_what_is_said_beside_a_number_that_varies_is_still_compared() -> None:
    number = "f\"Session {__import__('random').randrange(10**6)}: keep every path.\\n\""
    found = change(added(number.replace("every path", "it short")), base=(added(number),))
    assert [line[:10] for line in found.strand.details] == ["- Session ", "+ Session "]


def test_another_way_of_reckoning_a_budget_is_a_change_where_runs_tell_that_it_is_no_chance() -> None:
    budget = 'f"Room for about {sum(len(str(m)) for m in middle) // 7} tokens.\\n"'
    assert change(added(budget.replace("// 7", "// 14")), base=(added(budget),), runs=2).changed


def test_showing_less_of_the_session_is_another_matter() -> None:
    found = change(("OUTPUT_LIMIT = 4_000", "OUTPUT_LIMIT = 400"))
    assert found.strand.state is StrandState.SAME
    assert found.sessions


def test_instructions_after_the_session_instead_of_before_it_are_a_change() -> None:
    moved = (
        'self._complete([{"role": "user", "content": prompt}])',
        'self._complete([{"role": "user", "content": "\\n".join(reversed(prompt.partition("TURNS:\\n")))}])',
    )
    found = change(moved)
    assert "the same lines in another order" in found.strand.says


def test_a_long_line_is_shown_where_it_differs() -> None:
    text = " ".join(f"Rule {at} of the house holds for all of it." for at in range(60))
    edit = added(f'"{text}\\n"')
    new = added(f'"{text.replace("Rule 30 of the house", "Rule 30 of the garden")}\\n"')
    old_line, new_line = change(new, base=(edit,)).strand.details
    assert "Rule 30 of the house" in old_line
    assert "Rule 30 of the garden" in new_line
    assert max(len(old_line), len(new_line)) < 200


def _without(measurement: Measurement, value: object) -> Measurement:
    fixtures = {
        name: [run.model_copy(update={"asks": value}) for run in runs] for name, runs in measurement.fixtures.items()
    }
    return measurement.model_copy(update={"fixtures": fixtures})


def test_an_older_base_says_nothing_of_it_and_is_not_called_the_same() -> None:
    base = prompted.measured()
    assert compare_asks(_without(base, None), base).unknown
    assert compare_asks(base, _without(base, None)).unknown


def test_a_model_that_is_no_longer_asked_is_a_change() -> None:
    base = prompted.measured()
    found = compare_asks(base, _without(base, []))
    assert found.changed
    assert "debug-session-feishu-id-model, step 1: the model is no longer asked" in found.strand.details


def test_a_compressor_that_asks_no_model_has_nothing_to_compare() -> None:
    nothing = _without(prompted.measured(), [])
    strand = compare_asks(nothing, nothing).strand
    assert (strand.state, strand.base, strand.candidate) == (StrandState.SAME, "no model is asked", "no model is asked")


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (("big",), ("tiny",), "the compressor asks for the model tiny instead of big"),
        ((), ("tiny",), "the compressor asks for the model tiny"),
        (("big",), (), "the compressor no longer asks for the model big"),
        (("big",), ("big", "reasoning_effort minimal"), "the compressor asks for the model reasoning_effort minimal"),
        (
            ("big",),
            ("@everyone `x`\x1b[1m" + "y" * 99,),
            f"the compressor asks for the model everyone x 1m{'y' * 47} instead of big",
        ),
    ],
)
def test_another_model_is_a_change_of_what_is_asked(before: tuple[str, ...], now: tuple[str, ...], says: str) -> None:
    found = change(asking_for(*now), base=(asking_for(*before),))
    assert found.changed
    assert (found.instructions, found.other_model, found.strand.details) == ("", says, (says,))


def test_a_second_choice_in_some_runs_is_no_other_model() -> None:
    falls_back: Edit = "PROTECT_FIRST = 2", 'PROTECT_FIRST = 2\nASKED_FOR = ("big", "small") if RUN else ("big",)'
    for edits, base in ((falls_back, asking_for("big")), (asking_for("big"), falls_back)):
        assert not change(edits, base=(base,), runs=2).changed


def test_a_record_without_the_models_names_tells_of_no_other_one() -> None:
    before, now = prompted.measured(asking_for("big")), prompted.measured(asking_for("tiny"))
    older = before.model_copy(
        update={
            "fixtures": {
                name: [
                    run.model_copy(
                        update={"asks": [item.model_copy(update={"asked_for": None}) for item in run.asks or ()]}
                    )
                    for run in runs
                ]
                for name, runs in before.fixtures.items()
            }
        }
    )
    assert not compare_asks(older, now).changed
