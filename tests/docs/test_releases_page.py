"""The page of releases that shipped: its rows are pairs of the bench, judged as the bench judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.releases import PAIRS, Known, Pair
from eval_core.strands.findings import Kind

PAGE = Path(__file__).parents[2] / "docs" / "releases.md"


def _rows(table: str) -> list[list[str]]:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"<!-- {table}: python -m bench.releases -->")
    lines = rest.partition(f"<!-- end of {table} -->")[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_row_is_a_pair_of_the_bench_and_its_verdict_is_the_one_that_is_judged() -> None:
    known = {(Path(pair.target).stem, f"{pair.old} → {pair.new}"): pair for pair in PAIRS}
    rows = _rows("pairs")
    assert rows
    for agent, versions, is_known, said, _code, verdict, judged, _seconds in rows:
        pair = known[agent, versions]
        assert (is_known, said) == (pair.known, pair.said)
        if not judged.startswith(("told", "not measured")):
            head = verdict.partition(":")[0]
            kind = next(kind for kind in Kind if kind.words == head)
            assert judged.partition(":")[0] == pair.judged(kind)


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
