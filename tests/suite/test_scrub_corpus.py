"""The bars on planted data: `bench/scrubbing.py` prints the same measure by kind."""

from __future__ import annotations

import pytest

from bench.scrubbing import Measured, measure, measure_session
from tests.suite.broad_secrets import BROAD, RULED, split
from tests.suite.corpus_held_out import HELD_OUT
from tests.suite.corpus_later import LATER
from tests.suite.corpus_negatives import NEGATIVES
from tests.suite.corpus_people import PEOPLE
from tests.suite.corpus_secrets import SECRETS
from tests.suite.corpus_unseen import UNSEEN, UNSEEN_AFTER
from tests.suite.planted import SETS, WholeSession, kinds, whole_sessions

pytestmark = pytest.mark.long

KINDS = (*SECRETS, *PEOPLE, *LATER, *NEGATIVES)
# Secrets, personal data without and with a list, look-alikes, by value; others than these keep 97, 90, 95 and 5 %.
_BARS = {
    "eighth": (0.95, 0.92, 0.95, 0.05),
    "fifteenth": (0.95, 0.92, 0.95, 0.05),
    "thirteenth": (0.96, 0.92, 0.95, 0.05),
}

# A set whose kinds the audit's rules for lines were written with; the scrubber leaves too little of the ninth to count.
_AUDITED = ("eighth",)


@pytest.fixture(scope="module")
def measured() -> Measured:
    return measure(KINDS, seed=5, rounds=2)


def test_identities_are_learned_from_where_tools_print_them() -> None:
    found = measure((*UNSEEN, *UNSEEN_AFTER), seed=5, rounds=2)
    assert found.share("secret") >= 0.97
    assert found.share("personal") >= 0.95
    assert found.share("negative") <= 0.05
    assert found.facts_kept / found.facts >= 0.99
    assert found.unstable == 0


# The older sets have long been found nearly whole; the bench measures them. With a list, only the newest.
_TESTED = [(name, seed) for name, seed in SETS if name in _AUDITED or (name, seed) in SETS[10:]]
_LISTED = ("fourteenth", "fifteenth", "seventeenth", "eighteenth", "nineteenth")


# One session of each set; `python -m bench.scrubbing --sessions` measures all of them.
_SESSIONS = {one.set: one for one in reversed(whole_sessions())}


@pytest.mark.parametrize("session", _SESSIONS.values(), ids=lambda session: session.name)
def test_whole_sessions_lose_what_must_go_and_keep_the_rest(session: WholeSession) -> None:
    bare, listed = (measure_session(session, listed=listed) for listed in (False, True))
    assert bare["secrets"].gone / bare["secrets"].values >= 0.9
    assert bare["personal"].gone / bare["personal"].values >= 0.85
    assert listed["personal"].gone / listed["personal"].values >= 0.9
    assert bare["keep"].gone / bare["keep"].values <= 0.1
    assert bare["facts"].gone / bare["facts"].values <= 0.07


@pytest.mark.parametrize(
    ("name", "seed", "listed"),
    [(name, seed, listed) for name, seed in _TESTED for listed in (False, True) if not listed or name in _LISTED],
)
def test_the_sets_that_were_measured_unseen_keep_the_bars(name: str, seed: int, listed: bool) -> None:
    found = measure(kinds(name), seed + 1, rounds=1, listed=listed)
    secret, personal, with_list, touched = _BARS.get(name, (0.97, 0.9, 0.95, 0.05))
    assert found.value_share("secret") >= secret
    assert found.value_share("personal") >= (with_list if listed else personal)
    assert found.value_share("negative") <= touched
    if name in _AUDITED and not listed:
        assert found.audit_share() >= 0.8
    assert found.facts_kept / found.facts >= 0.99
    assert found.broken_json == 0


@pytest.mark.parametrize("half", [0, 1])
def test_the_broad_kinds_keep_their_bars(half: int) -> None:
    found = measure(split(BROAD)[half], seed=5, rounds=2, listed=False)
    assert found.share("secret") >= 0.97
    assert found.share("personal") >= 0.85
    assert found.share("negative") <= 0.05
    assert found.facts_kept / found.facts >= 0.99
    assert found.unstable == 0


def test_the_split_is_by_kind_and_halves_every_group() -> None:
    developed, held_out = split(BROAD)
    assert not {kind.name for kind in developed} & {kind.name for kind in held_out}
    assert len(BROAD) == len({kind.name for kind in BROAD}) >= 120
    for group in ("secret", "personal", "negative"):
        sizes = [sum(kind.group == group for kind in half) for half in (developed, held_out)]
        assert abs(sizes[0] - sizes[1]) <= 1
    assert {kind.name for kind in held_out} >= RULED


def test_the_corpus_is_wide_enough() -> None:
    names = [kind.name for kind in (*KINDS, *HELD_OUT)]
    assert len(names) == len(set(names))
    assert sum(kind.group != "negative" for kind in KINDS) >= 80
    assert len(NEGATIVES) >= 30


def test_secrets_and_personal_data_are_gone(measured: Measured) -> None:
    assert measured.share("secret") >= 0.99
    assert measured.share("personal") >= 0.97


def test_no_secret_is_left_in_part(measured: Measured) -> None:
    assert [tally.kind.name for tally in measured.kinds.values() if tally.partial] == []


def test_look_alikes_and_facts_stay(measured: Measured) -> None:
    assert measured.share("negative") <= 0.05
    assert measured.facts > 1_000
    assert measured.facts_kept / measured.facts >= 0.99


def test_json_parses_and_a_second_scrub_changes_nothing(measured: Measured) -> None:
    assert measured.broken_json == 0
    assert measured.unstable == 0
