"""The page of releases that shipped: its rows are pairs of the bench, judged as the bench judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.releases import PAGE, PAIRS, Known, Pair, counts, rows
from eval_core.strands.findings import Kind


def test_every_row_is_a_pair_of_the_bench_and_its_verdict_is_the_one_that_is_judged() -> None:
    known = {(Path(pair.target).stem, f"{pair.old} → {pair.new}"): pair for pair in PAIRS}
    found = rows("pairs")
    assert f"\n{counts(found)}\n" in PAGE.read_text(encoding="utf-8")
    for agent, versions, is_known, said, _code, verdict, judged, _seconds in found:
        pair = known[agent, versions]
        assert (is_known, said) == (pair.known, pair.said)
        if not judged.startswith(("told", "not measured")):
            head = verdict.partition(":")[0]
            kind = next(kind for kind in Kind if kind.words == head)
            assert judged.partition(":")[0] == pair.judged(kind)


def test_the_page_holds_what_it_promises() -> None:
    """At least 20 pairs of 9 agents, 8 regressions and 8 neighbours among them, and no confident wrong answer."""
    found = rows("pairs")
    known = [cells[2] for cells in found]
    assert len(found) >= 20
    assert len({cells[0] for cells in found} - {"claude_code_opus", "strands_own_agent"}) >= 9
    assert min(known.count(Known.REGRESSION), known.count(Known.NEIGHBOUR)) >= 8
    assert not [cells for cells in found if cells[6].startswith("wrong")]
    assert all(cells[6] == "right" for cells in found if cells[2] == Known.NEIGHBOUR)


def test_the_first_page_says_what_the_page_says() -> None:
    readme = " ".join((PAGE.parents[1] / "README.md").read_text(encoding="utf-8").split())
    found = rows("pairs")
    reported = [cells[6] for cells in found if cells[2] == Known.REGRESSION]
    assert f"[{counts(found).partition('.')[0]}](docs/releases.md)" in readme
    assert f"Of {len(reported)} regressions that users reported, one is named" in readme
    assert [judged for judged in reported if judged in ("told", "right")] == ["told"]


@pytest.mark.parametrize(
    ("known", "kind", "judged"),
    [
        (Known.REGRESSION, Kind.REGRESSED, "right"),
        (Known.REGRESSION, Kind.IMPROVED, "wrong"),
        (Known.REGRESSION, Kind.NO_DETECTABLE_CHANGE, "wrong"),
        (Known.REGRESSION, Kind.NOT_JUDGED, "not judged"),
        (Known.NEIGHBOUR, Kind.NO_DETECTABLE_CHANGE, "right"),
        (Known.NEIGHBOUR, Kind.REGRESSED, "wrong"),
        (Known.CHANGE, Kind.NOT_JUDGED, "right"),
        (Known.CHANGE, Kind.IMPROVED, "wrong"),
    ],
)
def test_only_what_is_known_is_right(known: Known, kind: Kind, judged: str) -> None:
    assert Pair("agent", "1", "2", known).judged(kind) == judged


def test_calm_is_excused_by_a_reason_and_nothing_else_is() -> None:
    pair = Pair("agent", "1", "2", Known.REGRESSION, "users said so", "only with a subscription")
    assert pair.judged(Kind.NO_DETECTABLE_CHANGE) == "not visible"
    assert pair.judged(Kind.IMPROVED) == "wrong"
