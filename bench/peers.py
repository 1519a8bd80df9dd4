"""This program beside other ways to do as many calls: inspect_ai, pydantic_evals, promptfoo, bare httpx, one by one.

    python -m bench.peers
    python -m bench.peers --latency 0.1 --only ours httpx
    python -m bench.peers --folder ~/.cache/peers     # keep what is installed for the next time

The peers are installed into a folder of their own, from the package registries, and nowhere else. Each gets its own
loopback provider with the same latency and does an answer and a grade for every sample, 16 calls at once, as its own
documentation shows it. The bound is calls x latency / slots. `evaluation` is timed within the process where the
program lets one, `command` is everything from the start of the process to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from bench.plan import provider

REPOSITORY = Path(__file__).parents[1]
SLOTS = 16
SAMPLES = 312
"""With an answer and a grade each: about as many calls as an evaluation of the shipped sessions makes."""
_ALONE = 20
"""Samples where calls follow each other: more would take minutes and show the same."""
PACKAGES = ("inspect-ai", "pydantic-evals", "openai", "httpx")

_BEGINNING = """
import asyncio, json, os, sys, time
url, samples, slots, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def question(number): return f"Which file holds setting number {number}, and what is its value?"
def rubric(answer): return f"Grade this answer from 0 to 5: {answer[:400]}"
def tell(seconds): print(json.dumps({"seconds": seconds}))
"""
_HTTPX = """
import httpx
async def main():
    gate = asyncio.Semaphore(slots)
    limits = httpx.Limits(max_connections=slots)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        async def ask(text):
            async with gate:
                body = {"model": "loopback", "messages": [{"role": "user", "content": text}]}
                reply = await client.post("/chat/completions", json=body)
                return reply.json()["choices"][0]["message"]["content"]
        async def sample(number):
            return await ask(rubric(await ask(question(number))))
        began = time.perf_counter()
        await asyncio.gather(*map(sample, range(samples)))
        tell(time.perf_counter() - began)
asyncio.run(main())
"""
_SERIAL = """
import httpx
with httpx.Client(base_url=url, timeout=60) as client:
    def ask(text):
        body = {"model": "loopback", "messages": [{"role": "user", "content": text}]}
        return client.post("/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    began = time.perf_counter()
    for number in range(samples):
        ask(rubric(ask(question(number))))
    tell(time.perf_counter() - began)
"""
_PYDANTIC = """
from dataclasses import dataclass
import openai
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
async def ask(text):
    messages = [{"role": "user", "content": text}]
    reply = await client.chat.completions.create(model="loopback", messages=messages)
    return reply.choices[0].message.content
@dataclass
class Judge(Evaluator):
    async def evaluate(self, ctx: EvaluatorContext) -> float:
        return float(len(await ask(rubric(ctx.output))))
cases = [Case(name=str(number), inputs=question(number)) for number in range(samples)]
dataset = Dataset(name="loopback", cases=cases, evaluators=[Judge()])
began = time.perf_counter()
dataset.evaluate_sync(ask, max_concurrency=slots, progress=False)
tell(time.perf_counter() - began)
"""
_INSPECT = """
os.environ |= {"LOCAL_API_KEY": "none", "LOCAL_BASE_URL": url, "INSPECT_DISPLAY": "none"}
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate
dataset = [Sample(input=question(number), target="config.toml") for number in range(samples)]
task = Task(dataset=dataset, solver=generate(), scorer=model_graded_qa())
began = time.perf_counter()
logs = eval(task, model="openai-api/local/loopback", max_connections=slots, max_samples=samples, log_dir=folder)
assert logs[0].status == "success", logs[0].error
tell(time.perf_counter() - began)
"""
_OURS = """
from pathlib import Path
from bench.makespan import pipeline
tell(pipeline(url, 3, slots).seconds)
"""


@dataclass(frozen=True)
class Timed:
    """One program, as multiples of the bound."""

    name: str
    calls: int
    evaluation: float | None
    command: float

    def cells(self) -> tuple[str, ...]:
        """Return the row of a table."""
        return (
            self.name,
            f"{self.calls:,}",
            "-" if self.evaluation is None else f"{self.evaluation:.2f}",
            f"{self.command:.2f}",
        )


@dataclass(frozen=True)
class Place:
    """Where the peers are installed."""

    folder: Path

    @property
    def python(self) -> str:
        """The interpreter that has the peers in Python."""
        return str(self.folder / "venv" / "bin" / "python")

    @property
    def promptfoo(self) -> str:
        """The program that npm installed."""
        return str(self.folder / "node_modules" / ".bin" / "promptfoo")

    def install(self, wanted: Sequence[str]) -> None:
        """Install what is wanted and missing."""
        if any(name in wanted for name in ("httpx", "serial", "pydantic_evals", "inspect_ai")):
            if not Path(self.python).exists():
                subprocess.run([sys.executable, "-m", "venv", str(self.folder / "venv")], check=True)
            pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
            subprocess.run(pip, check=True)
        if "promptfoo" in wanted and not Path(self.promptfoo).exists():
            npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(self.folder), "promptfoo"]
            subprocess.run(npm, check=True)


def _promptfoo_config(url: str, samples: int) -> str:
    model = {"id": "openai:chat:loopback", "config": {"apiBaseUrl": url, "apiKey": "none"}}
    tests = [
        {
            "vars": {"number": number},
            "assert": [{"type": "llm-rubric", "value": "names a file", "provider": model}],
        }
        for number in range(samples)
    ]
    prompts = ["Which file holds setting number {{number}}, and what is its value?"]
    return json.dumps({"prompts": prompts, "providers": [model], "tests": tests})


def _run(command: Sequence[str], folder: str, allowed: Sequence[int] = (0,)) -> tuple[float, str]:
    quiet = {
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": folder,
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "LOGFIRE_IGNORE_NO_CONFIG": "1",
        "PYTHONPATH": str(REPOSITORY) if command[0] == sys.executable else "",
    }
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **quiet})
    took = time.perf_counter() - began
    if done.returncode not in allowed:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return took, done.stdout


def timed(name: str, latency: float, place: Place | None = None) -> Timed:
    """Run one program against a provider of its own, in a process of its own; ours need no place."""
    place = place or Place(REPOSITORY)
    programs = {"httpx": _HTTPX, "serial": _SERIAL, "pydantic_evals": _PYDANTIC, "inspect_ai": _INSPECT, "ours": _OURS}
    samples = _ALONE if name == "serial" else SAMPLES
    seconds: float | None = None
    with tempfile.TemporaryDirectory() as folder, provider("--latency", str(latency)) as url:
        if name == "promptfoo":
            config = Path(folder) / "promptfooconfig.json"
            config.write_text(_promptfoo_config(url, samples), encoding="utf-8")
            command = [place.promptfoo, "eval", "-c", str(config), "--max-concurrency", str(SLOTS)]
            command += ["--no-cache", "--no-table", "--no-progress-bar", "--no-write"]
            took, _ = _run(command, folder, (0, 100))  # 100: some assertions failed, which is no matter here
        elif name == "ours, command":
            flags = ["--model", "openai/loopback", "--set", f"models.api_base={url}"]
            flags += ["--set", "models.prices={openai/loopback: {input: 1, output: 4, cached_input: 0.1}}"]
            flags += [
                "--runs",
                "3",
                "--set",
                "compress_runs=3",
                "--compare-to",
                "none",
                "--set",
                "models.trust_judge=true",
                "--quiet",
            ]
            flags += ["--budget-usd", "1000", "--target", "builtin:anchored", "--results", folder]
            took, _ = _run([sys.executable, "-m", "bot", "run", *flags], folder)
        else:
            python = sys.executable if name == "ours" else place.python
            program = _BEGINNING + programs[name]
            took, said = _run([python, "-c", program, url, str(samples), str(SLOTS), folder], folder)
            seconds = json.loads(said.strip().splitlines()[-1])["seconds"]
        with urlopen(f"{url}/stats") as reply:
            calls = json.load(reply)["asked"]
    bound = calls * latency / SLOTS
    return Timed(name, calls, None if seconds is None else seconds / bound, took / bound)


PEERS = ("httpx", "pydantic_evals", "inspect_ai", "promptfoo", "serial")
NAMES = ("ours", "ours, command", *PEERS)


def side_by_side(latency: float, names: Sequence[str], folder: Path, repeat: int = 1) -> Iterator[Timed]:
    """Measure each program, in turns, and yield the medians."""
    place = Place(folder)
    place.install(names)
    found: dict[str, list[Timed]] = {name: [] for name in names}
    for _ in range(repeat):
        for name in names:
            found[name].append(timed(name, latency, place))
    middle: Callable[[list[float]], float] = statistics.median
    for name, times in found.items():
        inner = [item.evaluation for item in times if item.evaluation is not None]
        yield Timed(name, times[-1].calls, middle(inner) if inner else None, middle([item.command for item in times]))


HEADINGS = ("program", "calls", "evaluation, multiple of the bound", "command, multiple of the bound")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--folder", type=Path, help="where the peers are installed; by default a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}", flush=True)
        for row in side_by_side(options.latency, options.only, folder, options.repeat):
            print(f"| {' | '.join(row.cells())} |", flush=True)
    print(f"\n{options.latency * 1000:.0f} ms a call, {SLOTS} at once, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
