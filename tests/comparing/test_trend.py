"""Ten small losses, none of them seen, are one large loss that is."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small

from eval_core.base.errors import UserError
from eval_core.comparing.trend import Trend, cumulative_changes
from eval_core.domain.extra import Extra
from eval_core.domain.history_line import ALL_FACTS, FACTS_KEPT, HistoryLine
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.reporting.html import render_trend
from eval_core.storage.baselines import store_baseline
from eval_core.storage.history import append_history, read_history


def line(number: int, overall: float, facts: float = 0.8, fingerprint: str = "same") -> HistoryLine:
    random = np.random.default_rng(number)

    def runs(mean: float, sd: float) -> tuple[float, ...]:
        return tuple(float(value) for value in mean + random.normal(0, sd, 10))

    fixtures = {f"f{at}": {"overall": runs(overall, 0.25), "facts kept": runs(facts, 0.03)} for at in range(3)}
    return HistoryLine(date=f"2026-01-{number + 1:02}", baseline="models", fingerprint=fingerprint, runs=fixtures)


def trend(history: list[HistoryLine]) -> Trend | None:
    found = cumulative_changes(history)
    assert len(found) <= 1
    return found[0] if found else None


def test_slow_decay_is_seen_over_the_whole_line_and_not_step_by_step() -> None:
    lines = [line(number, 4.5 - 0.1 * number) for number in range(11)]
    steps = [trend(lines[at : at + 2]) for at in range(10)]
    assert sum(item is not None and item.significant for item in steps) <= 4
    whole = trend(lines)
    assert whole is not None
    assert whole.significant
    assert whole.steps == 10
    assert whole.overall is not None
    assert whole.overall[0] == pytest.approx(-1.0, abs=0.2)
    assert whole.sentence.startswith("The baseline has changed since 2026-01-01, 10 baselines ago: overall −")


def test_the_trend_page_tells_the_cumulative_change() -> None:
    lines = [line(number, 4.5 - 0.1 * number) for number in range(11)]
    whole = trend(lines)
    assert whole is not None
    assert f'<p class="warn">{html.escape(whole.sentence)}</p>' in render_trend("models", lines)


def test_the_change_since_the_last_release_is_tested_as_well() -> None:
    lines = [line(number, 4.5 - 0.1 * number) for number in range(14)]
    # The last is the one that is asked about, not one to look back to.
    for at, name in ((2, "v1.0"), (8, "v1.1"), (13, "v1.2")):
        lines[at] = replace(lines[at], release=name)
    ten, release = cumulative_changes(lines)
    assert (ten.since, ten.steps, ten.significant) == ("2026-01-04", 10, True)
    assert (release.since, release.steps, release.significant) == ("release v1.1", 5, True)
    assert release.sentence.startswith("The baseline has changed since release v1.1, 5 baselines ago: overall −")
    assert release.overall is not None
    assert release.overall[0] == pytest.approx(-0.5, abs=0.2)
    page = render_trend("models", lines)
    assert page.count('<p class="warn">The baseline has changed since') == 2


def test_a_release_longer_ago_than_ten_baselines_is_looked_back_to() -> None:
    lines = [replace(line(number, 4.5), release="" if number else "v1") for number in range(14)]
    assert [(item.since, item.steps) for item in cumulative_changes(lines)] == [("release v1", 13), ("2026-01-04", 10)]


def test_a_steady_line_and_one_of_other_conditions_say_nothing() -> None:
    steady = trend([line(number, 4.5) for number in range(5)])
    assert steady is not None
    assert not steady.significant
    assert trend([line(0, 4.5, fingerprint="old"), line(1, 3.0)]) is None
    assert trend([line(0, 4.5)]) is None


def test_a_line_of_copies_is_counted_and_not_tested() -> None:
    def copies(number: int, overall: float, facts: float) -> HistoryLine:
        runs = {"f0": {"overall": (overall,) * 10, "facts kept": (facts,) * 10}}
        return replace(line(number, overall), runs=runs)

    moved = trend([copies(0, 4.25, 0.8), copies(1, 4.0, 0.75)])
    assert moved is not None
    assert moved.significant
    assert moved.sentence == (
        "The baseline has changed since 2026-01-01, 1 baseline ago: overall −0.25, facts kept 80 % → 75 % (counted)."
    )
    still = trend([copies(0, 4.25, 0.8), copies(1, 4.25, 0.8)])
    assert still is not None
    assert not still.significant


def test_a_broken_history_line_is_named_and_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    measured = small.measure(small.cases()[:1], tmp_path / "run", "anchored")
    append_history(tmp_path, "offline", measured)
    path = tmp_path / "history.jsonl"
    path.write_text(path.read_text() + "<<<<<<< ours\n")
    append_history(tmp_path, "offline", measured)
    assert len(read_history(tmp_path, "offline")) == 2
    assert caplog.messages == [f"{path}, line 2: a merge conflict marker; it is skipped, remove it"]


def test_no_path_promotes_more_than_three_runs_that_were_compared(tmp_path: Path) -> None:
    measured = small.measure(small.cases()[:1], tmp_path / "run", "anchored")
    for runs in (3, 10):  # three alone would be all of the baseline, and all of them lucky
        accepted = measured.model_copy(update={"offline": False, "planned_runs": runs, "extra": Extra(compared=True)})
        with pytest.raises(UserError, match=f"these {runs} graded runs .* at most 3 runs of an accepted change"):
            store_baseline(accepted, tmp_path / "baselines", "models", noise={})


def test_the_trend_counts_the_facts_that_the_headline_counts(
    shipped_runs: Callable[[str], Measurement], tmp_path: Path
) -> None:
    base = shipped_runs("anchored")

    def losing(run: RunRecord) -> RunRecord:
        """Lose a tenth of all facts, none of which a probe asks for."""
        assert run.size is not None
        lost = run.size.facts // 10
        return run.model_copy(update={"size": run.size.model_copy(update={"kept": run.size.kept - lost})})

    fixtures = {name: [losing(run) for run in runs] for name, runs in base.fixtures.items()}
    worse = base.model_copy(update={"fixtures": fixtures})
    for measured in (base, worse):
        append_history(tmp_path, "offline", measured)
    before, after = read_history(tmp_path)
    assert (before.values["facts_kept"], after.values["facts_kept"]) == (
        round(base.facts_kept or 0.0, 4),
        round(worse.facts_kept or 0.0, 4),
    )
    (found,) = cumulative_changes([before, after])
    assert found.significant
    assert found.facts[1] - found.facts[0] == pytest.approx((worse.facts_kept or 0) - (base.facts_kept or 0), abs=1e-3)


def test_older_lines_say_what_they_counted_and_are_compared_with_no_newer_one() -> None:
    old = HistoryLine.parse(
        {"date": "2026-01-01", "baseline": "x", "facts_kept": 0.9, "runs": {"f": {"authored facts": [0.9, 0.9]}}}
    )
    new = HistoryLine.parse(
        {
            "date": "2026-01-02",
            "baseline": "x",
            "facts_kept": 0.8,
            "counted": ALL_FACTS,
            "runs": {"f": {FACTS_KEPT: [0.8, 0.8]}},
        }
    )
    assert old is not None
    assert new is not None
    assert old.values == {"expected_kept": 0.9}
    assert new.values == {"facts_kept": 0.8}
    assert cumulative_changes([old, new]) == ()
