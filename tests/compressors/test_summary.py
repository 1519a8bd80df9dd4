"""The anchored summary: sections that are never left out, extended and never rewritten from nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

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
SUMMARIES = st.builds(
    AnchoredSummary,
    session_intent=LINES,
    files_modified=st.dictionaries(PATH, st.lists(CHANGE, max_size=3), max_size=3),
    decisions_made=LINES,
    current_state=LINES,
    blockers=LINES,
    next_steps=LINES,
    compression_count=st.integers(1, 99),
)


@settings(max_examples=40)
@given(SUMMARIES)
def test_a_rendered_summary_reads_back_as_it_was(summary: AnchoredSummary) -> None:
    assert AnchoredSummary.from_markdown(summary.to_markdown()) == summary


@settings(max_examples=40)
@given(SUMMARIES)
def test_every_section_is_written_out_even_if_it_is_empty(summary: AnchoredSummary) -> None:
    lines = summary.to_markdown().splitlines()
    for name, title in SECTIONS.items():
        at = lines.index(f"## {title}")
        assert (lines[at + 1] == EMPTY) == (not getattr(summary, name))


@settings(max_examples=40)
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


@settings(max_examples=40)
@given(SUMMARIES, SUMMARIES)
def test_merging_leaves_both_summaries_as_they_were(old: AnchoredSummary, new: AnchoredSummary) -> None:
    before = old.to_markdown(), new.to_markdown()
    old.merge(new)
    assert (old.to_markdown(), new.to_markdown()) == before


def test_text_that_a_model_wrote_freely_is_read_as_far_as_it_fits() -> None:
    text = "Here you go:\n\n## Blockers\n- a\nb\n\n## Something Else\n- c\n\nCompression count: many"
    found = AnchoredSummary.from_markdown(text)
    assert found == AnchoredSummary(blockers=["a", "b"])
