"""The parts of the page, each by itself."""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from page_world import case, recorded, report, run_record

from eval_core.domain.history_line import ALL_FACTS, HistoryLine
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Fact
from eval_core.domain.record import FactRecord, SizeRecord
from eval_core.reporting.html.fixtures import message_views
from eval_core.reporting.html.frontier import frontier
from eval_core.reporting.html.payload import pack, unpack
from eval_core.reporting.html.plots import plot_tables
from eval_core.reporting.html.probes import answer_groups, fact_state
from eval_core.reporting.html.text import Sentence, clip, fact_values, runs_words, sentence_of, slug, visible, with_code
from eval_core.reporting.html.trends import trends


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    # Spaces can be seen by what they part; signs for private use are drawn as boxes.
    allowed = ("Zs", "Co")
    assert all(char.isprintable() or char in "\n\t\u200d" or unicodedata.category(char) in allowed for char in shown)
    shown.encode("utf-8")


def test_a_command_in_a_sentence_is_shown_as_code_and_nothing_else_is_markup() -> None:
    assert with_code("run `a <b>` & again") == "run <code>a &lt;b&gt;</code> &amp; again"
    assert with_code("one ` alone") == "one ` alone"


def test_plain_text_is_not_touched() -> None:
    text = "naïve Ελλάδα 日本 👩‍💻\n\ttab"
    assert visible(text) == text


def test_the_sentence_of_a_fact_is_cut_at_its_ends_and_around_the_value() -> None:
    text = "First this. The Port\n84 is open, as always. And that." + " padding" * 100
    assert sentence_of(["port 84"], text) is not None
    found = sentence_of(["is open"], "First this. The gate is open, as always. And that.")
    assert found == Sentence("The gate ", "is open", ", as always.")
    far = sentence_of(["needle"], "hay " * 100 + "needle" + " hay" * 100)
    assert far is not None
    assert far.before.startswith("…")
    assert far.after.endswith("…")
    assert sentence_of(["port 84"], "port 8443") is None


def test_a_pattern_is_shown_by_what_it_finds() -> None:
    fact = Fact.model_validate({"regex": r"port \d+"})
    assert fact_values("a port", fact, ["on port 80 and Port 443", "port 80"]) == ("port 80", "Port 443")
    assert fact_values("label", None, []) == ("label",)


@given(
    st.dictionaries(
        st.text(max_size=5).map(lambda key: f"k{visible(key)}"), st.text() | st.integers() | st.none(), max_size=5
    )
)
def test_what_is_packed_comes_back_visible(value: dict[str, object]) -> None:
    packed = pack(value)
    assert re.fullmatch(r"[A-Za-z0-9+/=]*", packed)
    assert unpack(packed) == {
        name: visible(inner) if isinstance(inner, str) else inner for name, inner in value.items()
    }


def test_a_number_that_json_does_not_know_is_packed_as_nothing() -> None:
    assert unpack(pack({"a": math.nan, "b": [math.inf, 0.123456]})) == {"a": None, "b": [None, 0.1235]}


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
    assert [group.runs for group in answer_groups(records)] == ["runs 1, 3", "run 2"]


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


def _sized(places: dict[str, tuple[int, int]]) -> list[tuple[str, str, Measurement]]:
    """Return sides by name, each with its tokens and its facts kept of 100."""
    whole = recorded().candidate
    sides = []
    for name, (tokens, kept) in places.items():
        size = SizeRecord(facts=100, kept=kept, recency=40.0, proportional=50.0)
        fixtures = {
            key: [run.model_copy(update={"size": size, "tokens_after": tokens}) for run in runs]
            for key, runs in whole.fixtures.items()
        }
        sides.append((name, "base" if not sides else "candidate", whole.model_copy(update={"fixtures": fixtures})))
    return sides


@pytest.mark.parametrize(
    "places",
    [
        {"base": (300, 75), "candidate": (280, 71)},
        {"base": (300, 75), "candidate": (300, 74)},
        {"base": (300, 100), "candidate": (30, 2)},
        {"base": (0, 0), "candidate": (0, 1)},
        {"anchored": (550, 75), "regenerative": (548, 74), "sliding-window": (600, 60), "opaque": (60, 10)},
    ],
)
@pytest.mark.parametrize("width", [410, 780])
def test_the_words_of_the_size_picture_cover_neither_each_other_nor_a_mark(
    places: dict[str, tuple[int, int]], width: int
) -> None:
    picture = frontier(_sized(places), width)
    assert picture is not None
    boxes = [mark.label.box for mark in picture.marks if mark.label]
    assert len(boxes) == len(places)
    for at, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert right <= width
        assert top >= 0
        assert bottom <= picture.height
        for other in boxes[at + 1 :]:
            assert left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]
        for mark in picture.marks:
            assert not (left < mark.x < right and top < mark.y < bottom)
    assert all(picture.left <= mark.x <= picture.right for mark in picture.marks)
    assert all(picture.top <= mark.y <= picture.bottom for mark in picture.marks)


def test_two_marks_at_one_place_share_their_words() -> None:
    picture = frontier(_sized({"base": (300, 75), "candidate": (300, 75)}))
    assert picture is not None
    assert [mark.label.words for mark in picture.marks if mark.label] == ["base, candidate 75 %, 300"]


def _history(*lines: dict[str, object]) -> list[HistoryLine]:
    found = [HistoryLine.parse({"date": "", "baseline": "models", **line}) for line in lines]
    return [line for line in found if line is not None]


def test_a_gap_in_the_history_is_left_out_not_drawn_as_zero() -> None:
    history = _history(
        {"date": "2026-01-01", "overall": 3.0},
        {"date": "2026-02-01", "overall": None},
        {"dims": {"accuracy": 2}},
        {"overall": math.nan},
        {"overall": 10**400},
    )
    found = {trend.name: trend for trend in trends(history, report().candidate)}
    assert len(found["overall"].points) == 1
    assert len(found["accuracy"].points) == 1
    assert "completeness" not in found


def test_a_very_long_session_is_cut_short_except_for_its_evidence() -> None:
    of = case(extra=" and so on" * 70_000)
    views = message_views(of.fixture, None, None, evidence={2})
    assert len(views[2].text) > 12_000
    assert views[2].size > 600_000
    assert len(message_views(of.fixture, None, None)[2].text) < 1_600


def test_words_for_runs_and_ids_and_long_texts() -> None:
    assert runs_words([0, 1, 2, 4]) == "runs 1–3, 5"
    assert runs_words([0]) == "run 1"
    assert slug("probe", "a", "b") == "probe-a-b"
    assert slug("probe", "a b") != slug("probe", "a_b")
    assert re.fullmatch(r"[\w.-]+", slug("probe", '"><script>'))
    assert clip("abcdef", 3).startswith("abc\n… 3 more characters")


def _baselines() -> list[dict[str, object]]:
    kinds = (None, "no_detectable_change", "improved", "regressed", "trade", "of-another-version")
    return [
        {
            "date": f"2026-0{month}-01T00:00:00Z",
            "baseline": "models",
            "fingerprint": "a" if month < 5 else "b",
            "overall": 3.0 + month / 50,
            "facts_kept": 0.8,
            "counted": ALL_FACTS,
            "tokens": 5000.0 + month,
            **({"verdict": kind} if kind else {}),
            **({"release": f"v{month}.0"} if month in (2, 3, 6) else {}),
        }
        for month, kind in enumerate(kinds, 1)
    ]


def test_the_trend_shows_releases_and_what_each_update_was_found_to_be() -> None:
    found = {trend.name: trend for trend in trends(_history(*_baselines()))}
    points = found["overall"].points
    # A step between baselines that were measured otherwise has no verdict; nor has one that we do not know.
    assert [point.mark.sign if point.mark else "" for point in points] == ["", "=", "▲", "▼", "", ""]
    assert [point.release for point in points] == ["", "v2.0", "v3.0", "", "", "v6.0"]
    assert points[2].spoken == "2026-03-01: 3.06, improved, release v3.0"
    assert list(found)[:3] == ["overall", "facts kept", "tokens kept"]


def test_where_no_model_graded_the_dimensions_are_not_drawn_as_six_findings() -> None:
    lines = [{**line, "judged": False, "accuracy": 4.0} for line in _baselines()]
    assert [trend.name for trend in trends(_history(*lines))] == ["offline grade", "facts kept", "tokens kept"]
    assert "accuracy" in [trend.name for trend in trends(_history(*lines, {**lines[-1], "judged": True}))]
    older = [{key: value for key, value in line.items() if key != "judged"} | {"baseline": "offline"} for line in lines]
    assert [trend.name for trend in trends(_history(*older))] == ["offline grade", "facts kept", "tokens kept"]


def test_a_small_step_is_seen_and_noise_is_no_cliff() -> None:
    found = {trend.name: trend for trend in trends(_history(*_baselines()))}
    ends = [tick.label for tick in found["overall"].ticks]
    assert ends[0] <= "4.00"
    assert ends[-1] >= "2.00"
    heights = [point.y for point in found["overall"].points]
    assert heights == sorted(heights, reverse=True)
    assert max(heights) - min(heights) < 20
    for trend in found.values():
        assert all(0 <= point.y <= 100 for point in trend.points)
    (one,) = (trend for trend in trends(_history({"date": "2026-01-01", "overall": 0.0})))
    assert [tick.label for tick in one.ticks] == ["0.50", "0.25", "0.00"]
