"""The anchored summary: sections that are never left out, extended and never rewritten from nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.compressors.decision import Decision
from eval_core.compressors.summary import EMPTY, SECTIONS, AnchoredSummary

# A line of a summary is one line of visible text; the mark of an empty section is not a line.
LINE = (
    st.text(min_size=1, max_size=60)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: text not in ("", EMPTY))
)
LINES = st.lists(LINE, max_size=4)
CHANGE = LINE.filter(lambda text: "; " not in text and not text.startswith(";") and not text.endswith(";"))
PATH = LINE.filter(lambda text: "`" not in text)
# The marks of a decision are its syntax.
PLAIN = LINE.filter(lambda text: not re.search(r"because:|replaces:|[();]", text))
SUMMARIES = st.builds(
    AnchoredSummary,
    session_intent=LINES,
    files_modified=st.dictionaries(PATH, st.lists(CHANGE, max_size=3), max_size=3),
    decisions_made=st.lists(
        st.builds(Decision, PLAIN, st.one_of(st.just(""), PLAIN), st.one_of(st.just(""), PLAIN)), max_size=4
    ),
    current_state=LINES,
    blockers=LINES,
    next_steps=LINES,
    compression_count=st.integers(1, 99),
)


@given(SUMMARIES)
def test_a_rendered_summary_reads_back_as_it_was(summary: AnchoredSummary) -> None:
    assert AnchoredSummary.from_markdown(summary.to_markdown()) == summary


@given(SUMMARIES)
def test_every_section_is_written_out_even_if_it_is_empty(summary: AnchoredSummary) -> None:
    lines = summary.to_markdown().splitlines()
    for name, title in SECTIONS.items():
        at = lines.index(f"## {title}")
        assert (lines[at + 1] == EMPTY) == (not getattr(summary, name))


@given(SUMMARIES, SUMMARIES)
def test_merging_accumulates_history_and_takes_the_newer_state(old: AnchoredSummary, new: AnchoredSummary) -> None:
    both = old.merge(new)
    for name in ("session_intent", "decisions_made"):
        assert set(getattr(both, name)) == {*getattr(old, name), *getattr(new, name)}
        assert len(getattr(both, name)) == len(set(getattr(both, name)))
    assert both.files_modified.keys() == old.files_modified.keys() | new.files_modified.keys()
    for path, changes in both.files_modified.items():
        assert set(changes) == {*old.files_modified.get(path, []), *new.files_modified.get(path, [])}
    assert both.current_state == (new.current_state or old.current_state)
    assert both.blockers == new.blockers
    assert both.next_steps == (new.next_steps or old.next_steps)
    assert both.compression_count == old.compression_count + 1


@given(SUMMARIES, SUMMARIES)
def test_merging_leaves_both_summaries_as_they_were(old: AnchoredSummary, new: AnchoredSummary) -> None:
    before = old.to_markdown(), new.to_markdown()
    old.merge(new)
    assert (old.to_markdown(), new.to_markdown()) == before


def test_text_that_a_model_wrote_freely_is_read_as_far_as_it_fits() -> None:
    text = "Here you go:\n\n## Blockers\n- a\nb\n\n## Something Else\n- c\n\nCompression count: many"
    found = AnchoredSummary.from_markdown(text)
    assert found == AnchoredSummary(blockers=["a", "b"])


def test_nothing_that_a_model_wrote_is_lost_whatever_its_headings() -> None:
    text = (
        "Here you go:\n\n**Blockers:**\n* a\nb\n\n### session intent\n1. c\n\n## Risks\n- d\n\n"
        "## Files Modified\n- src/a.py: e"
    )
    found = AnchoredSummary.from_reply(text)
    assert found.blockers == ["a", "b"]
    assert found.session_intent == ["c"]
    assert found.current_state == ["Here you go:", "[Risks] d"]
    assert found.files_modified == {"src/a.py": ["e"]}


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("Decisions", "decisions_made"), ("Key decisions", "decisions_made"), ("Decision", "decisions_made"),
        ("Intent", "session_intent"), ("User goals", "session_intent"), ("Current status", "current_state"),
        ("Open blockers", "blockers"), ("Next step", "next_steps"),
    ],
)  # fmt: skip
def test_a_heading_that_means_a_section_is_read_as_that_section(heading: str, section: str) -> None:
    found = AnchoredSummary.from_reply(f"## {heading}\n- the ledger moves to Postgres")
    assert [str(getattr(entry, "what", entry)) for entry in getattr(found, section)] == ["the ledger moves to Postgres"]


@pytest.mark.parametrize("heading", ["Decisions", "Files read", "Risks", "Decisions and risks"])
def test_lines_under_any_heading_add_up_over_many_compressions(heading: str) -> None:
    """Whatever a model calls its sections, the news of one compression never replace those of the one before."""
    summary = AnchoredSummary()
    for number in range(1, 4):
        summary = summary.extend(AnchoredSummary.from_reply(f"## {heading}\n- use store{number}, for reason{number}"))
    text = summary.to_markdown()
    assert [f"store{number}" in text and f"reason{number}" in text for number in range(1, 4)] == [True] * 3


def test_news_replace_what_they_name_and_leave_the_rest() -> None:
    old = AnchoredSummary(
        session_intent=["migrate orders"],
        decisions_made=[
            Decision("copy in batches of 10000", "fewer round trips"),
            Decision("keep the old table", "rollback"),
        ],
        current_state=["rows copied: 1,200,000", "branch: feat/orders"],
        blockers=["ChecksumMismatch in shard 7", "staging is read-only"],
        next_steps=["verify"],
    )
    news = AnchoredSummary(
        decisions_made=[
            Decision("copy in batches of 5000", "lock timeouts", "batches of 10000"),
            Decision("keep the old table"),
        ],
        current_state=["Rows copied: 2,400,000"],
        blockers=["resolved: ChecksumMismatch in shard 7"],
    )
    both = old.extend(news)
    assert both.session_intent == ["migrate orders"]
    assert both.decisions_made == [
        Decision("keep the old table", "rollback"),
        Decision("copy in batches of 5000", "lock timeouts", "batches of 10000"),
    ]
    assert both.current_state == ["branch: feat/orders", "Rows copied: 2,400,000"]
    assert both.blockers == ["staging is read-only"]
    assert both.next_steps == ["verify"]
    assert both.compression_count == 2


@given(SUMMARIES)
def test_no_news_lose_nothing(old: AnchoredSummary) -> None:
    both = old.extend(AnchoredSummary())
    # A line that was there twice is there once.
    assert set(both.to_markdown().splitlines()[:-1]) == set(old.to_markdown().splitlines()[:-1])


def test_what_does_not_fit_is_left_out_with_a_word_in_the_text() -> None:
    summary = AnchoredSummary(
        decisions_made=[Decision("keep")], current_state=[f"line {n} " + "x" * 50 for n in range(20)]
    )
    fitted = summary.fitted(600)
    assert len(fitted.to_markdown()) <= 700
    assert fitted.current_state[0].endswith("older entries were left out for room")
    assert fitted.current_state[-1].startswith("line 19")
    assert fitted.decisions_made == summary.decisions_made
    again = fitted.extend(AnchoredSummary(current_state=["y" * 200])).fitted(600)
    assert sum("left out" in line for line in again.current_state) == 1
