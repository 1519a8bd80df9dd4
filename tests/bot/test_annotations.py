"""Annotations: a loss is shown at the changed line that it comes from, and at no other."""

from __future__ import annotations

import difflib

import pytest

from bot.github.resources import ChangedFile
from bot.steps.annotations import Clue, annotate

OLD = """from agent import sections

PROMPT = (
    "Summarise the turns below.\\n"
    "## Open questions\\n"
    f"Keep every path and every number, in at most {LIMIT} words.\\n"
)
TEMPLATE = (
    Section("Blockers", "blockers"),
    Section("Next Steps", "next_steps"),
)
"""
BLOCKERS = Clue(kind="name", sign="-", text="blockers", says="The section is gone.")


def changed(new: str, old: str = OLD, path: str = "agent/memory.py", status: str = "modified") -> ChangedFile:
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="")
    return ChangedFile(path=path, status=status, patch="\n".join(list(diff)[2:]))


def places(*files: ChangedFile, clues: tuple[Clue, ...] = (BLOCKERS,)) -> list[tuple[str, int, str]]:
    found = annotate(clues, files, "worse")
    return [(item["path"], item["start_line"], item["message"].split("\n")[0]) for item in found]


def told(text: str, sign: str = "-") -> Clue:
    return Clue.model_validate({"kind": "text", "sign": sign, "text": text, "says": text})


def test_a_lost_section_is_shown_where_its_name_was_removed() -> None:
    without = OLD.replace('    Section("Blockers", "blockers"),\n', "").replace("below", "here")
    assert places(changed(without)) == [("agent/memory.py", 9, "The section is gone.")]


def test_what_was_removed_at_the_end_is_shown_at_the_last_line_that_is_left() -> None:
    cut = "".join(OLD.splitlines(keepends=True)[:8]).replace("below", "here")
    assert [line for _, line, _ in places(changed(cut))] == [8]


@pytest.mark.parametrize("asked", ["Keep every path and every number, in at most 400 words.", "## Open questions"])
def test_a_line_of_the_prompt_is_found_in_the_code_that_writes_it(asked: str) -> None:
    shorter = OLD.replace('    "## Open questions\\n"\n', "").replace("Keep every path and", "Keep")
    elsewhere = changed("SHARE = 0.02\n", "SHARE = 0.28\n", "agent/size.py")
    found = places(changed(shorter), elsewhere, clues=(told(asked), told("Something that no line of the diff has.")))
    assert found == [("agent/memory.py", 5, asked)]


def test_what_the_model_is_told_now_is_shown_at_the_new_line() -> None:
    more = OLD.replace("    Section(", "    # a word\n    Section(", 1).replace(
        "## Open questions", "## Be very brief, two sentences"
    )
    assert places(changed(more), clues=(told("## Be very brief, two sentences", "+"),)) == [
        ("agent/memory.py", 5, "## Be very brief, two sentences")
    ]


def test_a_pull_request_that_changes_one_place_is_shown_there() -> None:
    smaller = changed("SHARE = 0.02\nKEEP = 6\n", "SHARE = 0.28\nKEEP = 6\n")
    (found,) = annotate((), [smaller], "21 facts lost")
    assert (found["start_line"], found["message"].split("\n")[-1]) == (1, "Result: 21 facts lost")


def test_nothing_is_said_where_it_could_be_any_of_several_changes() -> None:
    two = changed(OLD.replace("from agent", "from our_agent").replace("Next Steps", "Next"))
    assert places(two, clues=()) == []
    assert places(changed("a\n", "b\n"), changed("a\n", "b\n", "agent/other.py"), clues=()) == []
    unseen = ChangedFile(path="agent/large.py", status="modified")
    assert places(changed("a\n", "b\n"), unseen, clues=()) == []
    assert places(changed("", OLD, status="removed")) == []


def test_there_are_at_most_ten_and_one_for_each_line() -> None:
    names = [f"topic {at}" for at in range(30)]
    clues = tuple(Clue(kind="name", sign="-", text=name, says=name) for name in names)
    old = "".join(f"{name}\nbetween {at}\n" for at, name in enumerate(names))
    new = "".join(f"between {at}\n" for at, _ in enumerate(names))
    assert len(places(changed(new, old), clues=clues)) == 10
    together = annotate(clues, [changed("x\n", "".join(f"{name}\n" for name in names))], "worse")
    assert len(together) == 1
    assert "And 25 more." in together[0]["message"]


def test_a_control_character_of_a_prompt_is_replaced() -> None:
    (found,) = annotate((told("Keep every \u202epath"),), [changed("b\n", "Keep every \u202epath\n")], "worse")
    assert "\u202e" not in found["message"]
