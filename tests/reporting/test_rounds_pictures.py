"""What is drawn of rounds: always of the same sessions, and in sentences that say what the lines show."""

from __future__ import annotations

from eval_core.domain.record import LineRecord, RoundsRecord, RoundState
from eval_core.reporting.html.rounds_pictures import RoundsPictures, rounds_pictures
from eval_core.strands.rounds import Played


def _run(session: str, fates: list[str], said: list[int] | None = None) -> Played:
    """Return a run of decisions, the last of the facts being a host."""
    kinds = ["decision"] * (len(fates[0]) - 1) + ["host"]
    facts = [
        LineRecord.model_validate(
            {"name": f"f{n}", "kind": kind, "value": f"value_{n}", "message": n, "said": said or [0]}
        )
        for n, kind in enumerate(kinds)
    ]
    rounds = [RoundState(before=1000, after=400, written=300, fates=signs) for signs in fates]
    return Played(RoundsRecord(session=session, facts=facts, rounds=rounds, oracle=[1.0] * len(fates)))


def _drawn(base: list[Played], candidate: list[Played]) -> RoundsPictures:
    found = rounds_pictures([("base", "base", base), ("candidate", "candidate", candidate)])
    assert found is not None
    return found


def test_a_round_that_only_some_sessions_have_is_not_drawn_beside_the_others() -> None:
    usual = [_run(name, ["sss0"] * 3) for name in "abc"]
    drawn = _drawn([*usual, _run("long", ["sss0"] * 3 + ["0000"])], [*usual, _run("short", ["0000"] * 2)])
    kept, freed, decisions = drawn.plots
    assert [len(line.points) for line in (*kept.lines, *freed.lines)] == [3, 3, 3, 3]
    assert kept.sentence == "Kept after round 3: base 75 %; candidate 75 %."
    assert kept.lines[0].points == kept.lines[1].points
    assert len({y for _, y in freed.lines[0].points}) == 1
    assert decisions.title == "decisions", "a host that no side ever writes is not drawn"


def test_the_round_in_which_half_is_gone_is_said() -> None:
    drawn = _drawn([_run("a", ["ssss0", "ss000", "ss000"])], [_run("a", ["ssss0", "sss00", "sss00"])])
    assert (
        drawn.plots[2].sentence
        == "base: half is gone after 2 compressions; candidate: more than half is kept to the end."
    )


def test_what_is_said_again_is_young_again() -> None:
    drawn = _drawn([_run("a", ["s0", "s0", "s0"])], [_run("a", ["s0", "s0", "s0"], said=[0, 2])])
    base, candidate = drawn.plots[2].lines
    assert (len(base.points), len(candidate.points)) == (3, 2)


def test_what_merges_drop_more_often_than_those_of_the_base_is_named() -> None:
    drawn = _drawn(
        [_run("a", ["sss0", "0ss0"]), _run("a", ["sss0", "0ss0"])],
        [_run("a", ["sss0", "00s0"]), _run("a", ["sss0", "0000"])],
    )
    (dropped,) = drawn.dropped
    assert (dropped.round, dropped.names, dropped.more) == (2, ("value_1 (decision, a)", "value_2 (decision, a)"), 0)
    assert rounds_pictures([]) is None
