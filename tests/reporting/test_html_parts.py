"""The parts of the page, each by itself."""

from __future__ import annotations

import html
import math
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from page_world import case, report, run_record

from eval_core.domain.record import FactRecord
from eval_core.reporting.html.fixtures import message_views, strip
from eval_core.reporting.html.plots import plot_tables, trends
from eval_core.reporting.html.probes import answer_groups, fact_state
from eval_core.reporting.html.text import (
    Needle,
    Span,
    clip,
    diff_rows,
    fact_spans,
    paint,
    runs_words,
    slug,
    visible,
    word_spans,
)

TAGS = re.compile(r"<[^>]*>")


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    # Spaces can be seen by what they part; signs for private use are drawn as boxes.
    allowed = ("Zs", "Co")
    assert all(char.isprintable() or char in "\n\t\u200d" or unicodedata.category(char) in allowed for char in shown)
    shown.encode("utf-8")


def test_plain_text_is_not_touched() -> None:
    text = "naïve Ελλάδα 日本 👩‍💻\n\ttab"
    assert visible(text) == text


@given(
    st.text(alphabet="ab<>&\"' ", max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from(["fact", "gone", "new"])), max_size=6),
)
def test_painting_changes_no_character(text: str, raw: list[tuple[int, int, str]]) -> None:
    spans = [
        Span(min(a, b, len(text)), min(max(a, b), len(text)), kind, "<title>")  # type: ignore[arg-type]
        for a, b, kind in raw
    ]
    assert html.unescape(TAGS.sub("", paint(text, spans))) == text


def test_a_fact_is_found_across_a_line_break_but_not_inside_a_word() -> None:
    needle = Needle.of_values("k", "t", ["port 84"])
    assert len(fact_spans("the Port\n84 is open", [needle])) == 1
    assert fact_spans("port 8443", [needle]) == []


def test_the_same_line_stands_once_and_a_changed_word_is_marked() -> None:
    rows = diff_rows("one\nthe port is 8443 now\nlast", "one\nthe port is 9000 now\nlast", [])
    assert [row.kind for row in rows] == ["same", "changed", "same"]
    assert "<del>8443 </del>" in rows[1].base
    assert "<ins>9000 </ins>" in rows[1].candidate


def test_texts_that_share_nothing_are_not_marked_word_by_word() -> None:
    assert word_spans("alpha beta gamma delta", "one two three four") is None


def test_a_long_pair_of_texts_is_compared_in_reasonable_steps() -> None:
    left = "\n".join(f"line {number} of the base" for number in range(3000))
    right = "\n".join(f"row {number} of the candidate" for number in range(3000))
    assert diff_rows(left, right, [])


@pytest.mark.parametrize(
    ("records", "word", "detail"),
    [
        ([(True, True, True), (False, True, None)], "lost", "in 1 of 2 runs"),
        ([(True, False, False)], "untested", "left verbatim"),
        ([(True, True, False), (True, True, True)], "not used", "by 1 of 2 answers"),
        ([(True, True, True)], "kept", "used by every answer"),
        ([(True, True, None), (True, True, None)], "kept", "in all 2 runs"),
        ([], "not measured", ""),
    ],
)
def test_a_fact_is_summed_up_by_the_worst_that_happened(
    records: list[tuple[bool, bool, bool | None]], word: str, detail: str
) -> None:
    facts = [FactRecord(label="x", kept=kept, at_risk=risk, used=used) for kept, risk, used in records]
    state = fact_state(facts)
    assert (state.word, state.detail) == (word, detail)


def test_answers_that_are_equal_share_one_entry() -> None:
    of = case()
    runs = [run_record(of, run, good=run != 1) for run in range(3)]
    records = [(run, run.probes["recall-port"]) for run in runs]
    base, candidate = answer_groups([], records, [])
    assert base == []
    assert [group.runs for group in candidate] == ["runs 1, 3", "run 2"]


def test_the_noise_band_holds_the_change_exactly_where_the_interval_holds_zero() -> None:
    data = report()
    tables = plot_tables(data.candidate, data.base, data.verdict)
    rows = [row for table in tables for row in table.rows if row.delta_at and row.noise]
    assert rows
    for row in rows:
        assert row.delta_at is not None
        assert row.noise is not None
        start, width = row.noise
        inside = start <= row.delta_at[1] <= start + width
        assert inside == (row.delta_at[0] <= 50 <= row.delta_at[2])


def test_places_on_an_axis_stay_on_it() -> None:
    data = report()
    for table in plot_tables(data.candidate, data.base, data.verdict):
        for row in table.rows:
            for places in (row.base_at, row.candidate_at, row.delta_at):
                assert places is not None
                assert 0 <= places[0] <= places[1] <= places[2] <= 100


def test_a_gap_in_the_history_is_left_out_not_drawn_as_zero() -> None:
    history = [
        {"date": "2026-01-01", "overall": 3.0},
        {"date": "2026-02-01", "overall": None},
        {"dims": {"accuracy": 2}},
    ]
    found = {trend.name: trend for trend in trends([*history, {"overall": math.nan}], report().candidate)}
    assert len(found["overall"].points) == 1
    assert len(found["accuracy"].points) == 1
    assert "completeness" not in found


def test_the_strip_covers_the_whole_session() -> None:
    of = case()
    blocks = strip(message_views(of.fixture, run_record(of, 0, good=True), None, {}), "candidate")
    assert blocks[0].start == 0
    assert blocks[-1].start + blocks[-1].width == pytest.approx(100, abs=0.01)
    assert strip(message_views(of.fixture, None, None, {}), "candidate") == []


def test_words_for_runs_and_ids_and_long_texts() -> None:
    assert runs_words([0, 1, 2, 4]) == "runs 1–3, 5"
    assert runs_words([0]) == "run 1"
    assert slug("probe", "a", "b") == "probe-a-b"
    assert slug("probe", "a b") != slug("probe", "a_b")
    assert re.fullmatch(r"[\w.-]+", slug("probe", '"><script>'))
    assert clip("abcdef", 3).startswith("abc\n… 3 more characters")
