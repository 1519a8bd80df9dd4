"""The markdown report: golden files for what people read, and no text that takes the report over."""

from __future__ import annotations

import re

import page_world
import pytest
import report_world
from golden_file import assert_golden
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.markdown_text import plain
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view


@pytest.mark.parametrize("name", report_world.REPORTS)
def test_the_report_reads_as_reviewed(name: str) -> None:
    assert_golden(f"{name}.md", render_markdown(make_view(report_world.REPORTS[name]())))


def test_the_table_of_medians_has_the_columns_that_people_know() -> None:
    text = render_markdown(make_view(report_world.alone()))
    lines = text.splitlines()
    at = lines.index("| Fixture | Accuracy | Context | Artifact | Complete | Continuity | Instruction | Overall |")
    assert {line.count("|") for line in lines[at : at + 4]} == {9}
    assert lines[0] == "## Compression eval: label change"
    assert "Per-probe misses (score < 3.0):" in lines


def test_text_of_a_session_stays_text() -> None:
    text = render_markdown(make_view(report_world.incomplete(text=page_world.HOSTILE + " | a | b |\n# title")))
    assert "<script" not in text.replace("\\<", "")
    assert "\n# title" not in text
    assert page_world.BIDI not in text
    assert "](javascript" not in text.replace("\\]", "")


@given(st.text())
def test_plain_text_is_one_line_without_active_characters(text: str) -> None:
    shown = plain(text)
    assert len(shown.splitlines()) <= 1
    bare = re.sub("`[0-9A-Fa-f]{7,40}`", "", shown)  # what may be a commit is code
    for char in "\\`*_[]<>|#@~!":
        bare = bare.replace("\\" + char, "")
        assert char not in bare or char == "\\"
    assert len(shown) <= 800


def test_half_a_character_can_be_printed() -> None:
    plain("cut \ud83d here").encode("utf-8")
