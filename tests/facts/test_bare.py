"""Facts that no sentence carries: told apart from the lists and lines that summaries are made of."""

from __future__ import annotations

import pytest
import small

from eval_core.facts.bare import usable_texts
from eval_core.facts.verbatim import Kept

LOOSE = " ".join(f"word{number} retry_in_{number} src/m{number}.py {number}00" for number in range(12))
PATHS = "\n".join(f"- src/part{number}/module.py" for number in range(40))
SUMMARY = "## Current State\n- The loader was moved to `src/queue.py`, and 41 tests passed.\n- TOKEN_TTL = 900\n"
ORIGINAL = [small.SYSTEM, small.user("Go on."), small.say("Done.")]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (SUMMARY, SUMMARY),
        (f"{SUMMARY}\n## Files Modified\n{PATHS}", f"{SUMMARY}\n## Files Modified\n{PATHS}"),
        (f"{SUMMARY}\n{LOOSE}", SUMMARY),
        (f"{SUMMARY}\nKeywords: {LOOSE}", SUMMARY),
        (f"{SUMMARY}<!--\n{LOOSE}\n-->", SUMMARY),
        (f"{SUMMARY}<!-- {LOOSE}", SUMMARY),
    ],
)
def test_what_a_sentence_or_a_title_carries_is_usable(text: str, left: str) -> None:
    kept = Kept(ORIGINAL, [small.SYSTEM, small.user(text)])
    assert "".join(usable_texts(kept)).split() == left.split()


def test_a_note_of_the_system_beside_a_summary_is_aside_and_alone_it_is_the_summary() -> None:
    noted = {**small.SYSTEM, "content": f"{small.SYSTEM['content']}\n{SUMMARY}"}
    assert "".join(usable_texts(Kept(ORIGINAL, [noted, small.user("The session goes on.")]))).split() == [
        *["The", "session", "goes", "on."]
    ]
    assert SUMMARY.split() == "".join(usable_texts(Kept(ORIGINAL, [noted, *ORIGINAL[1:]]))).split()
