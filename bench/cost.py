"""What the defaults cost on a price list: the first look at a pull request, all looks, a baseline, a first run.

    python -m bench.cost
    python -m bench.cost --model openai/gpt-5

The dry run's own count of calls and tokens, over the shipped sessions and the built-in compressor that asks a model.
Nothing is sent. Against a baseline, controls and calibration are known and 90 stored answers are graded again. Looks
on different days find the provider's cache empty; with `--all-looks` one follows the other within the five minutes
for which a prompt is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from eval_core.base.config import Config
from eval_core.measuring.ask_obeys import OBEYED_RUNS
from eval_core.measuring.cost import price_compressions
from eval_core.measuring.count_calls import CHECKS, Share, StandIn, count_calls, make_stand_ins
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import run_counts
from eval_core.measuring.price_calls import CountedCalls, estimate, total
from eval_core.models.settings import ModelFlags, Models

REPOSITORY = Path(__file__).parents[1]
MODEL = "anthropic/claude-sonnet-4-5"
SEED_SHAPE = ("config-build-competitive-scouts", "debug-session-feishu-id-model", "feature-impl-context-priority")
LOOKS = (3, 6, 10)
"""Graded runs of each fixture when a verdict is given."""


@dataclass(frozen=True)
class Priced:
    """One way to use the program, what it costs, and what it may cost."""

    what: str
    calls: int
    usd: float | None
    cached_usd: float | None
    bar_usd: float | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        plain, cached, bar = (
            "-" if value is None else f"${value:.2f}" for value in (self.usd, self.cached_usd, self.bar_usd)
        )
        return self.what, f"{self.calls:,}", plain, cached, bar


def _priced(what: str, parts: Sequence[CountedCalls], models: Models, bar: float | None = None) -> Priced:
    row = total(estimate(parts, {model: models.tariff(model) for model in models.distinct}))
    return Priced(what, row.calls, row.cost_usd, row.cached_cost_usd, bar)


def price_defaults(model: str = MODEL) -> list[Priced]:
    """Price the defaults of the configuration."""
    settings = Config()
    options = RunOptions(settings, REPOSITORY, flags=ModelFlags(model=model), target="builtin:anchored")
    models, target = options.models, options.load_target()
    assert models is not None
    everything = make_stand_ins(options.load_cases(), target)
    seed = [item for item in everything if item.case.fixture.name in SEED_SHAPE]
    runs, compressions = run_counts(options)

    def look(more: int, before: int = 0, base: int = 0, among: Sequence[StandIn] = everything) -> list[CountedCalls]:
        obeyed = max(0, min(OBEYED_RUNS - before, more)) + base
        share = Share(more + base, more + base, False, obeyed, False)
        return count_calls(among, models, {item.case.fixture.name: share for item in among}, calibrates=False)

    def anew(graded: int, compressed: int) -> list[CountedCalls]:
        share = Share(graded, compressed)
        return count_calls(everything, models, {item.case.fixture.name: share for item in everything})

    first, stored = look(LOOKS[0]), settings.baseline_runs
    # The checks of the first look are in the journal.
    later = [
        part for before, after in pairwise(LOOKS) for part in look(after - before, before) if part.purpose != CHECKS
    ]
    obeys = [part for part in first if part.purpose == "choices and actions"]
    labelled = look(LOOKS[0], base=settings.baseline.control_runs)
    at_once = look(LOOKS[-1])  # `--all-looks`: the cache of the first look serves the others
    alone = anew(2 * runs, 2 * compressions)
    return [
        _priced("first look at a pull request (3 runs)", first, models, 3.5),
        _priced("of it, choices and actions", obeys, models, 0.4),
        _priced("the same by a label: the base once as well", labelled, models),
        _priced("where facts decide: compressions alone", _facts(first), models),
        _more("while facts are open: 3 more compressions", everything, models, 3),
        _more("7 more compressions", everything, models, 7),
        _priced("the compressor's model, judged offline", _facts(first), models, 1.4),
        _priced("all three looks in one command (10 runs)", at_once, models, 8.4),
        _priced("all three looks, on three days", first + later, models, 8.4),
        _priced("first look, 3 fixtures", look(3, among=seed), models, 1.5),
        _priced(f"first baseline ({stored} runs)", anew(stored, stored), models, 11.2),
        _priced("the first label without a baseline: the whole base as well", alone, models, settings.budget_usd),
    ]


def _facts(parts: Sequence[CountedCalls]) -> list[CountedCalls]:
    return [part for part in parts if part.role == "compressor"]


def _more(what: str, everything: Sequence[StandIn], models: Models, runs: int) -> Priced:
    """Price the compressions that are made beside those of a first look, with its beginnings in the cache."""
    first, all_ = (price_compressions(everything, models, count) for count in (LOOKS[0], LOOKS[0] + runs))
    assert first is not None
    assert all_ is not None
    usd, cached = (
        None if before is None or after is None else after - before
        for before, after in ((first.cost_usd, all_.cost_usd), (first.cached_cost_usd, all_.cached_cost_usd))
    )
    return Priced(what, all_.calls - first.calls, usd, cached)


HEADINGS = ("what", "calls", "without caching", "with prompt caching", "bar")


def table(model: str = MODEL) -> str:
    """Return the prices as a table in markdown."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in price_defaults(model))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=MODEL)
    options = parser.parse_args()
    print(table(options.model))


if __name__ == "__main__":
    main()
