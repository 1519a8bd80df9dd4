"""What every strategy keeps, and what the reference compressor promises about summaries."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_core.base.messages import Message, message_problem, render
from eval_core.compressors.context_compressor import SUMMARY_MARK, ContextCompressor, head_length
from eval_core.compressors.rule_based import RuleBasedSummariser
from eval_core.compressors.strategies import STRATEGIES, create
from eval_core.compressors.summariser import ModelSummariser, Request
from eval_core.compressors.summary import EMPTY, SECTIONS, AnchoredSummary
from eval_core.compressors.transcript import message_text
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement
from eval_core.sandbox.targets import BuiltinSubject

WORDS = st.sampled_from(["ran the tests", "edited src/app.py", "Error 500 in worker", "next: deploy", "", "ok " * 60])


@st.composite
def sessions(draw: Any) -> list[Message]:
    """Build a session that a provider would accept: prompts, prose, and calls with all their answers."""
    messages: list[Message] = [{"role": draw(st.sampled_from(["system", "developer"])), "content": "Rules."}] * draw(
        st.integers(0, 2)
    )
    for turn in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["user", "assistant", "parts", "calls"]))
        if kind == "calls":
            names = [f"t{turn}-{number}" for number in range(draw(st.integers(1, 4)))]
            messages.append(small.calls(*((name, "terminal", {"command": draw(WORDS)}) for name in names)))
            messages.extend(small.result(name, draw(WORDS)) for name in draw(st.permutations(names)))
        elif kind == "parts":
            messages.append({"role": "user", "content": [{"type": "text", "text": draw(WORDS)}, "and more"]})
        else:
            messages.append({"role": kind, "content": draw(WORDS)})
    return messages


@given(messages=sessions(), data=st.data())
def test_no_strategy_breaks_a_session_or_its_input(messages: list[Message], data: st.DataObject) -> None:
    assert message_problem(messages) is None
    name = data.draw(st.sampled_from(sorted(STRATEGIES)))
    before = copy.deepcopy(messages)
    compressor = create(name)
    state = compressor.compress(messages)
    assert messages == before
    assert message_problem(state) is None
    assert state[: head_length(messages)] == messages[: head_length(messages)]
    assert not messages[-1:] or state[-1] == messages[-1]
    again = compressor.compress([*state, small.user("go on"), small.say("yes")])
    assert message_problem(again) is None


@given(messages=sessions())
def test_the_reference_keeps_the_newest_five_messages_verbatim(messages: list[Message]) -> None:
    state = ContextCompressor().compress(messages)
    tail = messages[max(head_length(messages), len(messages) - 5) :]
    assert state[len(state) - len(tail) :] == tail


@settings(max_examples=15)
@given(messages=sessions())
def test_compressing_is_deterministic(messages: list[Message]) -> None:
    for name in STRATEGIES:
        assert create(name).compress(messages) == create(name).compress(messages)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_makes_the_small_sessions_shorter(strategy: str) -> None:
    for case in small.cases():
        state = create(strategy).compress(case.fixture.messages)
        assert len(render(state)) < 0.75 * len(render(case.fixture.messages))


def test_a_session_with_nothing_in_the_middle_is_returned_as_it_is() -> None:
    messages = [small.SYSTEM, small.user("a"), small.say("b"), small.user("c")]
    assert ContextCompressor().compress(messages) == messages


def _summary(state: list[Message]) -> str:
    (text,) = [message_text(message) for message in state if message_text(message).startswith(SUMMARY_MARK)]
    return text


def test_a_section_without_content_is_written_out_as_empty() -> None:
    messages = [small.SYSTEM, small.user("Say something."), *[small.say("hm")] * 8]
    text = _summary(ContextCompressor().compress(messages))
    for title in SECTIONS.values():
        assert f"## {title}" in text
    assert f"## Files Modified\n{EMPTY}" in text


def test_a_second_compression_extends_the_first_summary() -> None:
    fixture = small.chained_fixture()
    cut = fixture.segments[0]
    compressor = ContextCompressor()
    first = compressor.compress(fixture.messages[:cut])
    assert "Compression count: 1" in _summary(first)
    text = _summary(compressor.compress([*first, *fixture.messages[cut:]]))
    assert "Compression count: 2" in text
    for fact in ("MIG-77", "migrations/0004_orders.sql", "batches of 5000", "ChecksumMismatch"):
        assert fact in text


def test_a_fresh_process_extends_the_summary_that_it_finds_in_the_messages() -> None:
    fixture = small.chained_fixture()
    cut = fixture.segments[0]
    compressor = ContextCompressor()
    first = compressor.compress(fixture.messages[:cut])
    later = [*first, *fixture.messages[cut:]]
    assert ContextCompressor().compress(later) == compressor.compress(later)


def test_regenerating_starts_the_count_anew() -> None:
    fixture = small.chained_fixture()
    compressor = create("regenerative")
    first = compressor.compress(fixture.messages[: fixture.segments[0]])
    text = _summary(compressor.compress([*first, *fixture.messages[fixture.segments[0] :]]))
    assert "Compression count: 1" in text


@pytest.mark.parametrize(
    ("section", "fact"),
    [
        ("session_intent", "v2.4.1"),
        ("files_modified", "POOL_SIZE = 32"),
        ("decisions_made", "pooled connection"),
        ("blockers", "41 passed"),
    ],
)
def test_a_section_that_is_taken_out_of_the_template_takes_its_facts_along(section: str, fact: str) -> None:
    class Without(ContextCompressor):
        _template_sections = tuple(item for item in ContextCompressor._template_sections if item.field != section)

    messages = [*small.debug_fixture().messages, *[small.say("fine")] * 6]
    assert fact in _summary(ContextCompressor().compress(messages))
    text = _summary(Without().compress(messages))
    assert fact not in text
    assert f"## {SECTIONS[section]}" not in text


def test_what_concerns_the_focus_topic_is_kept_before_other_things() -> None:
    noise = [small.say(f"I decided to keep shard_{n} because of limit_{n} and node_{n}/disk_{n}.") for n in range(60)]
    wanted = small.say("We decided for the llama endpoint, all things considered.")
    messages = [small.SYSTEM, small.user("Go."), noise[0], wanted, *noise[1:], *[small.say("fine")] * 6]
    plain, focused = (
        RuleBasedSummariser()(Request(messages[1:-5], None, ContextCompressor._template_sections, 600, topic))
        for topic in (None, "llama endpoint")
    )
    assert "llama" not in plain
    assert any("llama" in item.what for item in AnchoredSummary.from_markdown(focused).decisions_made)
    state = ContextCompressor().compress(messages, focus_topic="llama endpoint")
    assert "llama" in render(state)


def test_a_model_is_asked_with_the_template_the_previous_summary_and_the_focus() -> None:
    asked: list[list[Message]] = []

    def complete(messages: list[Message]) -> str:
        asked.append(messages)
        return f"## Session Intent\n- written by a model, number {len(asked)}"

    fixture = small.chained_fixture()
    compressor = ContextCompressor(summariser=ModelSummariser(complete))
    first = compressor.compress(fixture.messages[: fixture.segments[0]])
    second = compressor.compress([*first, *fixture.messages[fixture.segments[0] :]], focus_topic="checksums")
    assert "number 2" in _summary(second)
    for title in SECTIONS.values():
        assert f"## {title}" in str(asked[0][0]["content"])
    # What this run wrote comes last: before it every run of the session asks the same.
    assert "number 1" in str(asked[1][-1]["content"])
    assert "number 1" not in str(asked[1][:-1])
    assert "checksums" in str(asked[1][-1]["content"])
    assert "number 1" not in str(asked[0])


def test_with_a_model_that_writes_only_news_every_earlier_decision_is_still_there() -> None:
    replies = iter(
        [
            "## Decisions Made\n- Postgres (because: transactions)\n\n## Next Steps\n1. schema",
            "## Decisions Made\n- batches of 5000 (because: locks)\n\n## Blockers\n- shard 7 is down",
            "## Current State\n- rows: 12",
        ]
    )
    compressor = ContextCompressor(summariser=ModelSummariser(lambda messages: next(replies)))
    state: list[Message] = [small.SYSTEM]
    for segment in range(3):
        state = compressor.compress([*state, *[small.say(f"part {segment}.{n} " + "words " * 40) for n in range(12)]])
    text = _summary(state)
    for kept in (
        "Postgres (because: transactions)",
        "batches of 5000 (because: locks)",
        "shard 7",
        "schema",
        "rows: 12",
    ):
        assert kept in text
    assert "Compression count: 3" in text


Runs = Callable[[str], Measurement]


def _removed(measurement: Measurement) -> dict[str, float]:
    return {name: 1 - run.tokens_after / run.tokens_before for name, (run, *_) in sorted(measurement.fixtures.items())}


def test_the_opaque_control_squeezes_the_shipped_sessions_by_94_to_99_percent(shipped_runs: Runs) -> None:
    removed = _removed(shipped_runs("opaque"))
    assert all(0.94 <= share <= 0.99 for share in removed.values()), removed


def test_the_reference_removes_60_to_80_percent_of_the_shipped_sessions(
    shipped_runs: Runs, shipped: list[Case]
) -> None:
    chained = {case.fixture.name: bool(case.fixture.segments) for case in shipped}
    removed = _removed(shipped_runs("anchored"))
    assert 0.60 <= fmean(removed.values()) <= 0.80, removed
    # A chained session is compressed again and again, so that more of it is gone at the end.
    assert all(0.60 <= share <= 0.80 for name, share in removed.items() if not chained[name]), removed


# Sessions longer than a window.


def _long(turns: int, name: str = "a") -> list[Message]:
    made = [small.user(f"Work through queue {name}.")]
    for turn in range(turns):
        call = (f"{name}{turn}", "terminal", {"command": f"cat {name}/part_{turn}.py"})
        made += [small.calls(call), small.result(call[0], f"part {turn} of {name}: " + "value = compute(); " * 40)]
    return [*made, small.say(f"Queue {name} is done.")]


@pytest.mark.parametrize("chars_per_token", [2.5, 4.0, 5.5])
def test_the_room_for_a_summary_is_what_the_window_leaves_however_tokens_are_counted(chars_per_token: float) -> None:
    asked: list[Request] = []

    def write(request: Request) -> str:
        asked.append(request)
        return "## Current State\n- fine"

    messages = _long(400)
    size = sum(len(message_text(m)) + sum(len(str(c["function"])) for c in m.get("tool_calls", [])) for m in messages)
    tokens = int(size / chars_per_token)
    ContextCompressor(summariser=write, context_length=tokens // 4).compress(messages, tokens)
    (request,) = asked
    assert request.total_chars is not None
    # Half of the window, less the few messages that stay.
    assert 0.45 * tokens // 4 <= request.total_chars / chars_per_token <= 0.5 * tokens // 4


def test_the_shipped_compressors_keep_to_the_window_of_the_fixture(shipped: list[Case]) -> None:
    fixture = shipped[0].fixture.model_copy(update={"context_length": 8_000})
    wide, narrow = (
        asyncio.run(BuiltinSubject().compress(item, run=0, seed=0)) for item in (shipped[0].fixture, fixture)
    )
    assert narrow.steps[-1].tokens_after < wide.steps[-1].tokens_after
    assert narrow.steps[-1].tokens_after < 0.6 * 8_000


def test_a_sliding_window_drops_an_output_that_alone_is_more_than_its_share() -> None:
    call = ("huge", "terminal", {"command": "make all"})
    huge = [small.calls(call), small.result("huge", "warning: unused\n" * 40_000)]
    messages = [*_long(20), *huge, small.user("Go on."), small.say("Done.")]
    state = create("sliding-window").compress(messages)
    assert len(str(state)) < 0.1 * len(str(messages))
    assert state[-1] == messages[-1]
    assert message_problem(state) is None


@pytest.mark.parametrize("name", ["anchored", "regenerative"])
def test_a_summary_stays_within_the_window_after_many_rounds(name: str) -> None:
    window = 6_000
    compressor = create(name, window=window)
    state: list[Message] = [small.SYSTEM]
    for round_ in range(25):
        state = compressor.compress([*state, *_long(12, f"queue_{round_}")])
        assert len(render(state)) / 4 < 0.6 * window, round_
