"""Drive published compressors for real, through the shipped specs, against a model on loopback.

    python bench/targets.py FOLDER [--only langchain,strands] [--fixture fixtures/NAME.json]

Makes one throwaway virtual environment per target in FOLDER (kept, so that a second run is quick),
installs the packages from the configured index, and compresses one fixture twice with each: with a
model that answers, and with one that is down. The model is a function in this process, so nothing is
sent anywhere. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from eval_core.base.messages import Message, render
from eval_core.domain.call import Completion, Failed, ModelCall, Usage
from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture, load_fixture
from eval_core.domain.target import TargetSpec, read_target
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ROOT / "docs" / "targets"
PACKAGES = {
    "langchain": ["langchain", "langchain-openai"],
    "strands": ["strands-agents[openai]"],
    "headroom": ["headroom-ai"],
    "aider": ["aider-chat"],
}


def count(messages: list[Message]) -> int:
    """Estimate tokens; a fixed rule is enough to compare before with after."""
    return len(json.dumps(messages)) // 4


async def answering(call: ModelCall) -> Completion:
    """Summarise by rule: the first words of every twentieth line of the prompt, and a digest that ties it to it."""
    prompt = render(call.messages)
    lines = [line[:80] for line in prompt.splitlines() if line.strip()][::20][:40]
    text = f"Summary {hashlib.sha256(prompt.encode()).hexdigest()[:12]}\n" + "\n".join(f"- {line}" for line in lines)
    return Completion(text, Usage(len(prompt) // 4, 0, len(text) // 4, 0.0), call.model, 0.0)


async def down(call: ModelCall) -> Failed:
    """Be out of service."""
    return Failed("server", retryable=False, message="down for the test")


def environment(folder: Path, name: str) -> tuple[Path, str]:
    """Return the interpreter of a target's environment and the version that was installed."""
    home = folder / name
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES[name]], check=True, stdout=subprocess.DEVNULL)
    package = PACKAGES[name][0].partition("[")[0]
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = subprocess.run([str(python), "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    return python, f"{package} {version}"


def drive(spec: TargetSpec, sandbox: SandboxChoice, fixture: Fixture, model: object) -> tuple[Compression, float]:
    """Compress once; return the result and the time of the whole run, start of the child included."""
    with tempfile.TemporaryDirectory() as tree:
        subject = ProcessSubject(spec, Path(tree), sandbox, "bench-model", model, count, retries=0)
        started = time.monotonic()
        done = asyncio.run(subject.compress(fixture, run=0, seed=0))
        return done, time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(PACKAGES))
    parser.add_argument("--fixture", type=Path)
    options = parser.parse_args()
    largest = max((ROOT / "fixtures").glob("*.json"), key=lambda path: path.stat().st_size)
    fixture = load_fixture(options.fixture or largest)
    sandbox = detect()
    roles = Counter(message["role"] for message in fixture.messages)
    print(
        f"Fixture {fixture.name}: {dict(roles)}, about {count(fixture.messages):,} tokens, {len(fixture.cuts)} steps."
    )
    print(f"Sandbox: {sandbox.level}.\n")
    print("| target | outcome | calls | messages left | tokens, each step | compress, s | whole run, s | model down |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.only.split(","):
        try:
            python, version = environment(options.folder.resolve(), name)
        except subprocess.CalledProcessError as exc:
            print(f"| {name} | not installed (pip ended with {exc.returncode}) | | | | | | |", flush=True)
            continue
        spec = read_target(TARGETS / f"{name}.yml")
        assert isinstance(spec, TargetSpec)
        spec = spec.model_copy(update={"python": str(python), "adapter": spec.adapter and str(TARGETS / spec.adapter)})
        done, whole = drive(spec, sandbox, fixture, answering)
        broken = drive(spec, sandbox, fixture, down)[0].outcome.value if spec.llm == "required" else "-"
        sizes = "; ".join(f"{step.tokens_before:,} -> {step.tokens_after:,}" for step in done.steps)
        print(
            f"| {version} | {done.outcome.value} | {done.use.calls} | {len(done.state)} | {sizes} "
            f"| {done.seconds:.2f} | {whole:.1f} | {broken} |",
            flush=True,
        )
        if done.detail:
            print(f"\n{name}: {done.detail}\n{done.output[-1500:]}\n", file=sys.stderr)


if __name__ == "__main__":
    main()
