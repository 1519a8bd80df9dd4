"""What the built-in compressors and published ones keep over rounds: a table, and a page with curves.

    python -m bench.round_curves FOLDER [--only hermes] [--suite rounds] [--page curves.html]

Installs each published compressor into FOLDER as `bench/targets.py` does, unmodified, and plays the generated sessions
through the whole program: the built-in ones by rules; the anchored one again, and the published ones, with a model on
loopback that copies what people decided, set, asked for and forbade, and loses one line in fifty. The
page shows those with the model; `scripts/pictures` takes its picture.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from itertools import count
from pathlib import Path
from statistics import fmean

from bench.round_edits import command, forgetful
from bench.targets import RECIPES, TARGETS, install
from eval_core.compressors.strategies import STRATEGIES
from eval_core.storage.results import read_measurement
from eval_core.strands.rounds import Played
from tests.model_provider import LoopbackProvider

WITH_MODEL = "anchored-with-model"
_FORGETS = 0.02
_SMALL = ("--fixtures", "two-subjects-one-focus", "--runs", "1", "--set", "compress_runs=1", "--compare-to", "none")


async def play(folder: Path, names: list[str], suite: str) -> list[str]:
    """Play what is not there yet, and return the labels."""
    results = folder / "results"
    words = ("--suite", suite, *_SMALL, "--results", str(results), "--quiet")
    for name in STRATEGIES:
        if not (results / name / "summary.json").exists():
            await command(folder, "run", "--label", name, "--target", f"builtin:{name}", *words)
    asked = count()
    async with LoopbackProvider(reply=lambda messages: forgetful(messages, next(asked), _FORGETS)) as server:
        price = "models.prices={openai/loopback: {input: 3, output: 15}}"
        model = ("--compressor-model", "openai/loopback", "--judge", "offline", "--set", price, "--budget-usd", "100")
        model = (*model, "--set", f"models.api_base={server.base_url}")
        if not (results / WITH_MODEL / "summary.json").exists():
            await command(folder, "run", "--label", WITH_MODEL, "--target", "builtin:anchored", *words, *model)
        for name in names:
            if (results / name / "summary.json").exists():
                continue
            where, version = install(RECIPES[name], folder / name)
            print(version, file=sys.stderr, flush=True)
            here = folder / f"{name}-target"
            here.mkdir(exist_ok=True)
            for file in TARGETS.glob(f"{name}*"):
                shutil.copy(file, here)
            spec = (here / f"{name}.yml").read_text(encoding="utf-8")
            lines = [line for line in spec.splitlines() if not line.strip().startswith(tuple(f"{at}:" for at in where))]
            at = lines.index("target:") + 1
            lines[at:at] = [f"  {key}: {value}" for key, value in where.items()]
            (here / f"{name}.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
            target = ("--target", str(here / f"{name}.yml"), "--tree", str(here))
            await command(folder, "run", "--label", name, *target, *words, *model)
    return [*STRATEGIES, WITH_MODEL, *names]


def row(folder: Path, label: str) -> str:
    """Return what one compressor keeps after each round, and frees in each."""
    rounds = read_measurement(folder / "results" / label).extra.rounds
    assert rounds is not None
    runs = [Played(record) for record in rounds.candidate]
    if not runs:
        return f"| {label} | {'; '.join(rounds.failed[:1]) or 'nothing was recorded'} | | | |"
    kept = [fmean(run.kept()[at] for run in runs) for at in range(min(len(run.fates) for run in runs))]
    freed = fmean(1 - state.after / state.before for run in runs for state in run.record.rounds)
    idle = sum(run.idle for run in runs)
    shown = " → ".join(f"{share:.0%}" for share in kept)
    return f"| {label} | {shown} | {freed:.0%} | {idle} of {sum(len(run.fates) for run in runs)} | {len(runs)} |"


def main() -> None:
    """Play, print the table and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.round_curves")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="hermes")
    parser.add_argument("--suite", default="rounds", choices=["rounds", "long"])
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    labels = asyncio.run(play(folder, [name for name in given.only.split(",") if name], given.suite))
    print("| compressor | kept after each round | freed in each | idle rounds | runs |\n|---|---|---|---|---|")
    print("\n".join(row(folder, label) for label in labels))
    if given.page is not None:
        paths = [str(folder / "results" / label) for label in labels[len(STRATEGIES) :]]
        given.page.write_text(asyncio.run(command(folder, "report", *paths, "--format", "html")), encoding="utf-8")


if __name__ == "__main__":
    main()
