"""Two one-line edits of the merge, found where sessions are compressed again and again, and nowhere else.

    python -m bench.round_edits [--comparisons 200]

Both edits are of `AnchoredSummary.merge`, in a copy of the shipped compressor that runs in the sandbox: one drops the
oldest decision at each merge, the other a quarter of the decisions from the fifth compression on. They are measured
with the fixtures alone (quick) and with rounds: offline, and with a model on loopback that forgets a tenth of what is
new.

That model's runs are also recorded, many of each session, and comparisons are drawn from them: the same compressor
against itself must be called changed in at most one of twenty.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from bot.demo.journey import package_source, write_tree
from eval_core import compressors
from eval_core.base.messages import Message
from eval_core.base.shipped import shipped
from eval_core.comparing.compare import compare_measurements
from eval_core.compressors.summary import AnchoredSummary
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.case import Case
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.record import RoundsRecord
from eval_core.facts.verbatim import Kept
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.statistics.arms import Arm
from eval_core.storage.results import read_measurement
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.rounds import compare_rounds, read_rounds
from eval_core.strands.strand import SeenRun
from eval_core.suite.generate import generate
from eval_core.suite.sizes import SIZES
from tests.model_provider import LoopbackProvider

ROOT = Path(__file__).resolve().parents[1]
SUMMARY = "agent/summary.py"
LINE = "decisions_made=decisions(self.decisions_made, newer.decisions_made),"
EDITS = {
    "none": LINE,
    "oldest decision": LINE.replace("),", ")[1:],"),
    "a quarter of decisions from round 5": LINE.replace(
        "(self.decisions_made,",
        "(self.decisions_made[len(self.decisions_made) // 4 * (self.compression_count >= 4) :],",
    ),
}
CONFIG = """\
fixtures: {fixtures}
probes: {probes}
target:
  pythonpath: [.]
  compressor: agent.context_compressor:ContextCompressor
  init: {{context_length: "${{CONTEXT_LENGTH}}"}}
  {more}
watch: [agent/**]
runs: 1
"""
ADAPTER = """\
import json
from urllib.request import Request, urlopen

from agent.summariser import ModelSummariser


def create(spec):
    def ask(messages):
        body = json.dumps({"model": spec["model"], "messages": messages, "max_tokens": 8000}).encode()
        headers = {"Authorization": f"Bearer {spec['api_key']}", "Content-Type": "application/json"}
        with urlopen(Request(spec["base_url"] + "/chat/completions", body, headers)) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    return spec["target"](summariser=ModelSummariser(ask), **spec["init"])
"""
_TELLING = re.compile(
    r"I decided to use `\w+`[^.]*\.|The setting of [^.]*\.|Please also add [^.]*\.|Never edit [^.]*\."
)
_FORGETS = 0.1


def forgetful(messages: Sequence[Message], draw: object, forgets: float = _FORGETS) -> str:
    """Write down most of what people said; which, depends on the draw."""
    transcript = next(str(message["content"]) for message in messages if message["role"] == "user")
    rng = random.Random(f"{draw} {len(transcript)} {transcript[-200:]}")
    kept = [line for line in dict.fromkeys(_TELLING.findall(transcript)) if rng.random() >= forgets]
    decisions, others = ([line for line in kept if ("decided" in line) is wanted] for wanted in (True, False))
    text = "## Decisions Made\n" + "\n".join(f"- {line}" for line in decisions)
    return text + "\n## Session Intent\n" + "\n".join(f"- {line}" for line in others)


# Through the whole program: a tree for each edit, the sandbox, the gateway, a provider on loopback.


async def command(folder: Path, *words: str) -> str:
    """Run the program in a folder and return what it printed."""
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", *words),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "loopback"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, said = await done.communicate()
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {said.decode()[-1000:]}")
    return printed.decode()


async def _run(folder: Path, label: str, suite: str, *words: str) -> None:
    options = ("--label", label, "--suite", suite, "--compare-to", "none", "--quiet")
    await command(folder, "run", *options, *words, "--results", str(folder.parent / "results"))


def _tree(folder: Path, edit: str, *, model: bool) -> None:
    tree = package_source(Path(compressors.__file__).parent, "agent")
    source = tree[SUMMARY].decode()
    assert LINE in source, "the merge is written in other words now"
    more = "adapter: adapter.py\n  llm: required" if model else "llm: none"
    config = CONFIG.format(fixtures=shipped("fixtures"), probes=shipped("probes"), more=more)
    tree |= {SUMMARY: source.replace(LINE, EDITS[edit]).encode(), ".compression-eval.yml": config.encode()}
    write_tree(tree | ({"adapter.py": ADAPTER.encode()} if model else {}), folder)


async def through_the_program(work: Path, *, model: bool) -> list[str]:
    """Measure every edit with quick and with rounds, and return the rows of the table."""
    repeats: Counter[str] = Counter()

    def reply(messages: Sequence[Message]) -> str:
        prompt = str(messages)
        repeats[prompt] += 1
        return forgetful(messages, repeats[prompt])

    rows, name = [], "model" if model else "offline"
    async with LoopbackProvider(reply=reply) as server:
        words: tuple[str, ...] = ()
        if model:
            price = "models.prices={openai/loopback: {input: 3, output: 15}}"
            words = ("--compressor-model", "openai/loopback", "--judge", "offline", "--set", price)
            words = (*words, "--set", f"models.api_base={server.base_url}", "--budget-usd", "100")
        for number, edit in enumerate(EDITS):
            folder = work / f"{name}-{number}"
            _tree(folder, edit, model=model)
            await _run(folder, f"{name}-{number}-quick", "quick", *words)
            await _run(folder, f"{name}-{number}-rounds", "rounds", *words)
    for number, edit in enumerate(EDITS):
        cells = []
        for suite in ("quick", "rounds"):
            base, candidate = (read_measurement(work / "results" / f"{name}-{at}-{suite}") for at in (0, number))
            verdict = compare_measurements(base, candidate)[0]
            strand = verdict.strand("rounds")
            cells.append(f"{verdict.kind.value}{'; ' + strand.says if strand is not None and strand.says else ''}")
        rows.append(f"| {name} | {edit} | {' | '.join(cells)} |")
    return rows


# Many runs of each session, recorded once; comparisons are drawn from them.


def _oldest(merged: AnchoredSummary, before: AnchoredSummary) -> AnchoredSummary:
    return replace(merged, decisions_made=merged.decisions_made[1:])


def _late(merged: AnchoredSummary, before: AnchoredSummary) -> AnchoredSummary:
    gone = len(before.decisions_made) // 4 if before.compression_count >= 4 else 0
    return replace(merged, decisions_made=merged.decisions_made[gone:])


@contextmanager
def _edited(edit: Callable[[AnchoredSummary, AnchoredSummary], AnchoredSummary] | None) -> Any:
    """Let merges end in an edit, for the time of the block."""
    merge = AnchoredSummary.merge

    def edited(self: AnchoredSummary, newer: AnchoredSummary, **joins: Any) -> AnchoredSummary:
        merged = merge(self, newer, **joins)
        return merged if edit is None else edit(merged, self)

    with patch.object(AnchoredSummary, "merge", edited):
        yield


def play(case: Case, draws: Sequence[object]) -> list[RoundsRecord]:
    """Play a session once for each draw of the forgetful model."""
    found = []
    for draw in draws:

        async def complete(call: ModelCall, draw: object = draw) -> Completion:
            return Completion(forgetful(call.messages, draw), Usage(output_tokens=10), model="test", seconds=0.0)

        subject = BuiltinSubject("anchored", complete, "openai/test")
        made = asyncio.run(subject.compress(case.fixture, run=0, seed=0))
        record = read_rounds(SeenRun(case.fixture, made, Kept(case.fixture.messages, made.state), case.ledger))
        assert record is not None
        found.append(record)
    return found


def compared(base: Sequence[RoundsRecord], candidate: Sequence[RoundsRecord]) -> Finding:
    """Compare by the shipped strand."""
    beside = PlayedRounds(base=list(base), candidate=list(candidate))
    recorded = cast(Recorded, SimpleNamespace(played_rounds=beside, sides=()))
    finding = compare_rounds(Evidence(Arm("a", {}), Arm("b", {}), recorded))
    assert finding is not None
    return finding


Pool = Mapping[str, Sequence[RoundsRecord]]


def drawn(base: Pool, candidate: Pool, comparisons: int) -> list[Finding]:
    """Draw comparisons of four runs against two of each session; of one pool, no run is on both sides."""
    rng, found = random.Random(0), []
    for _ in range(comparisons):
        picked = {name: rng.sample(range(len(runs)), 6) for name, runs in base.items()}
        ours = [base[name][at] for name, places in picked.items() for at in places[:4]]
        theirs = [
            candidate[name][at]
            for name, places in picked.items()
            for at in (places[4:] if candidate is base else rng.sample(range(len(candidate[name])), 2))
        ]
        found.append(compared(ours, theirs))
    return found


def from_records(comparisons: int, runs: int) -> list[str]:
    """Return the rows: how often each edit is called changed, and round 5 named."""
    cases = [generate(plan) for plan in SIZES["rounds"]]
    pools: dict[str, Pool] = {}
    for name, edit, many in (("none", None, runs), ("oldest", _oldest, runs // 3), ("late", _late, runs // 3)):
        with _edited(edit):
            draws = [f"{name} {draw}" for draw in range(many)]
            pools[name] = {case.fixture.name: play(case, draws) for case in cases}
    rows = []
    for (title, _), pool in zip(EDITS.items(), pools.values(), strict=True):
        found = drawn(pools["none"], pool, comparisons)
        seen = [item for item in found if item.state not in (StrandState.SAME, StrandState.CANNOT_TELL)]
        named = sum("round 5" in item.says for item in seen)
        share = f"{named / len(seen):.0%}" if seen and "round 5" in title else ""
        rows.append(f"| {title} | {len(seen)} of {comparisons} | {share} |")
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.round_edits")
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--runs", type=int, default=24, help="recorded runs of each session")
    parser.add_argument("--only", choices=["program", "records"])
    given = parser.parse_args()
    if given.only != "records":
        print("| model | edit | quick | rounds |\n|---|---|---|---|", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for model in (False, True):
                rows = asyncio.run(through_the_program(Path(folder), model=model))
                print("\n".join(rows), flush=True)
    if given.only != "program":
        print("\n| edit, model on loopback | called changed | round 5 named |\n|---|---|---|", flush=True)
        print("\n".join(from_records(given.comparisons, given.runs)))


if __name__ == "__main__":
    main()
