"""What the changed files speak of, and what a report says was not looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import page_world
import pytest
import small

from eval_core.domain.case import Case
from eval_core.measuring.measure import touched_by
from eval_core.reporting.not_looked_at import not_looked_at, touched_unseen

OLD = "def compress(messages):\n    return messages\n\n\ndef should_compress(tokens):\n    return tokens > 900\n"


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (OLD.replace("return messages", "return messages[-2:]"), ()),
        (OLD.replace("def should_compress(tokens)", "def should_compress(tokens, limit)"), ("trigger",)),
        (OLD.replace("compress(messages)", "compress(messages, focus_topic=None)"), ("focus",)),
    ],
)
def test_changed_lines_say_what_they_are_about(tmp_path: Path, new: str, found: tuple[str, ...]) -> None:
    small.write(tmp_path / "base" / "agent" / "compressor.py", OLD)
    small.write(tmp_path / "base" / "notes.md", "should_compress, focus_topic")
    small.write(tmp_path / "new" / "agent" / "compressor.py", new)
    assert touched_by(tmp_path / "base", tmp_path / "new", ["agent/**"]) == found


def test_the_trigger_is_never_looked_at_and_said_in_one_line_where_the_change_is_about_it() -> None:
    data = page_world.report(offline=True)
    assert not_looked_at(data) == ("focus", "trigger", "chain")
    assert touched_unseen(data) == ""
    touched = replace(data, candidate=data.candidate.noting(touched=("trigger",)))
    assert "should_compress" in touched_unseen(touched)


def test_the_shipped_suite_has_a_focus_topic_and_a_session_of_four_compressions_or_more(shipped: list[Case]) -> None:
    assert any(case.fixture.focus_topic for case in shipped)
    assert max(len(case.fixture.cuts) for case in shipped) >= 4
