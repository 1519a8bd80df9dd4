"""The bars over the whole sessions: `python -m bench.scrubbing` prints the same measure by set."""

from __future__ import annotations

from bench.scrubbing import measure_sessions

SECRETS, PERSONAL, PERSONAL_LISTED, LOOK_ALIKES, FACTS = 97.5, 87, 93, 2, 1


def test_whole_sessions_lose_what_must_go_and_keep_the_rest() -> None:
    of = measure_sessions()["together"]
    assert of["secrets", False].share >= SECRETS
    assert of["personal", False].share >= PERSONAL
    assert of["personal", True].share >= PERSONAL_LISTED
    assert of["keep", False].share <= LOOK_ALIKES
    assert of["facts", False].share <= FACTS
