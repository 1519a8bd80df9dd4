"""Count false alarms of the facts: a compressor compared with itself, whose texts differ in every run.

    python -m bench.fact_alarms                       # some minutes
    python -m bench.fact_alarms --comparisons 20      # fewer, to look at

The shipped fixtures are compressed once. Each side is then drawn from that: some facts are kept by chance, all facts of
a run share its luck, and every text is another one. Whatever is called better or worse is a false alarm. The last table
makes the candidate 10 % smaller, its facts unchanged: what is not an improvement there is called a trade by chance.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.tested import Options
from eval_core.domain.case import load_suite
from eval_core.domain.compression import ModelUse
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from tests.small import measure

_ROOT = Path(__file__).resolve().parent.parent
_RULE = Options(arrangements=300)
_NOISE_OF_SIZE = 0.01
_SMALLER = 0.9

Key = tuple[str, str, int]
"""A fact: its fixture, its probe (or "" in the census), and its place there."""


@dataclass(frozen=True)
class Chance:
    """What is left to chance: how many facts, or which share of them, and how uneven the luck of runs is."""

    name: str
    facts: int = 0
    share: float = 0.0
    luck: float = 0.2

    def odds(self, authored: list[Key], census: list[Key], rng: random.Random) -> dict[Key, float]:
        """Draw the facts and how often each is kept."""
        if self.share:
            picked = [key for group in (authored, census) for key in rng.sample(group, int(len(group) * self.share))]
        else:
            picked = rng.sample(authored, self.facts)
        return {key: rng.uniform(0.1, 0.9) if self.share else 0.5 for key in picked}


def _facts(measured: Measurement) -> tuple[list[Key], list[Key]]:
    """Return the facts at risk, those of probes and those of the census."""
    first = {name: runs[0] for name, runs in measured.fixtures.items()}
    authored = [
        (name, probe, place)
        for name, run in first.items()
        for probe, record in run.probes.items()
        for place, fact in enumerate(record.facts)
        if fact.evidence and fact.at_risk
    ]
    census = [
        (name, "", place) for name, run in first.items() for place, fate in enumerate(run.census.fates) if fate != "-"
    ]
    return authored, census


def _run(
    name: str, first: RunRecord, number: int, odds: Mapping[Key, float], luck: float, rng: random.Random, *, model: bool
) -> RunRecord:
    shift = rng.gauss(0, luck)

    def kept(before: bool, key: Key) -> bool:
        if key not in odds:
            return before
        return rng.random() < 1 / (1 + math.exp(-math.log(odds[key] / (1 - odds[key])) - shift))

    fates = "".join(
        fate if fate == "-" else str(int(kept(fate == "1", (name, "", place))))
        for place, fate in enumerate(first.census.fates)
    )
    probes = {
        probe: record.model_copy(
            update={
                "facts": [
                    fact.model_copy(update={"kept": kept(fact.kept, (name, probe, place))})
                    if fact.evidence and fact.at_risk
                    else fact
                    for place, fact in enumerate(record.facts)
                ]
            }
        )
        for probe, record in first.probes.items()
    }
    return first.model_copy(
        update={
            "run": number,
            "probes": probes,
            "census": first.census.model_copy(update={"fates": fates}),
            "summary": f"{first.summary}\n- summary id {rng.random()}",
            "tokens_after": int(first.tokens_after * (1 + rng.gauss(0, _NOISE_OF_SIZE))),
            "use": {"compressor": ModelUse(calls=int(model))},
        }
    )


def _side(
    measured: Measurement, odds: Mapping[Key, float], runs: int, luck: float, rng: random.Random, *, model: bool
) -> Measurement:
    fixtures = {
        name: [_run(name, records[0], number, odds, luck, rng, model=model) for number in range(runs)]
        for name, records in measured.fixtures.items()
    }
    models = {**measured.models, "compressor": "acme/large" if model else "offline:rules"}
    return measured.model_copy(
        update={
            "fixtures": fixtures,
            "deterministic": None,
            "models": models,
            "planned_runs": runs,
            "planned_compress_runs": runs,
        }
    )


def _smaller(measured: Measurement) -> Measurement:
    fixtures = {
        name: [run.model_copy(update={"tokens_after": int(run.tokens_after * _SMALLER)}) for run in runs]
        for name, runs in measured.fixtures.items()
    }
    return measured.model_copy(update={"fixtures": fixtures})


def alarms(
    measured: Measurement,
    chance: Chance,
    runs: tuple[int, int],
    comparisons: int,
    *,
    model: bool,
    smaller: bool = False,
) -> Counter[str]:
    """Compare a compressor with itself so many times and count the verdicts."""
    rng = random.Random(f"{chance.name}{runs}{model}{smaller}")
    authored, census = _facts(measured)
    found: Counter[str] = Counter()
    for _ in range(comparisons):
        odds = chance.odds(authored, census, rng)
        base, candidate = (_side(measured, odds, count, chance.luck, rng, model=model) for count in runs)
        verdict, _ = compare_measurements(base, _smaller(candidate) if smaller else candidate, options=_RULE)
        found[verdict.kind.value] += 1
    return found


_ONE = Chance("one fact, kept in half of the runs", facts=1)
_THREE = Chance("three facts", facts=3)
_FIFTH = Chance("a fifth of all facts", share=0.2, luck=0.4)
_UNEVEN = Chance("four in ten facts, very uneven luck", share=0.4, luck=1.2)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=180, help="for each cell; a third of it for shares of facts")
    comparisons = parser.parse_args().comparisons
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(load_suite(_ROOT / "fixtures", _ROOT / "probes"), Path(folder), "anchored")
    authored, census = _facts(measured)
    print(
        f"{len(measured.fixtures)} fixtures, {len(authored) + len(census)} facts at risk; regressed + improved, in %\n"
    )
    print(
        "| what is left to chance | runs | comparisons | without a model | with a model |",
        "|---|---|---:|---:|---:|",
        sep="\n",
    )
    for chance, runs in (
        (_ONE, (3, 3)),
        (_ONE, (3, 4)),
        (_ONE, (10, 10)),
        (_THREE, (3, 3)),
        (_FIFTH, (3, 3)),
        (_FIFTH, (10, 10)),
    ):
        many = comparisons // 3 if chance.share else comparisons
        cells = [
            f"{100 * found['regressed'] / many:.1f} + {100 * found['improved'] / many:.1f}"
            for model in (False, True)
            for found in [alarms(measured, chance, runs, many, model=model)]
        ]
        print(f"| {chance.name} | {runs[0]} and {runs[1]} | {many} | {cells[0]} | {cells[1]} |", flush=True)
    print(
        "\n| what is left to chance, the state 10 % smaller | runs | comparisons | called a trade |",
        "|---|---|---:|---:|",
        sep="\n",
    )
    for chance in (_FIFTH, _UNEVEN):
        for runs in ((3, 3), (10, 10)):
            many = comparisons // 3
            found = alarms(measured, chance, runs, many, model=True, smaller=True)
            print(
                f"| {chance.name} | {runs[0]} and {runs[1]} | {many} | {100 * found['trade'] / many:.1f} % |",
                flush=True,
            )


if __name__ == "__main__":
    main()
