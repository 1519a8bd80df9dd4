"""Drive published compressors for real, through the shipped targets, against a model on loopback.

    python -m bench.targets FOLDER [--only pi,codex] [--fixture fixtures/NAME.json] [--write]

Installs each into a folder of its own under FOLDER (kept, so that a second run is quick), unmodified, from the
configured package indexes; compresses one chained fixture in the sandbox with a model that answers, one that is down
and one that answers with nothing. The model is a function in this process, so nothing is sent anywhere. Prints a
markdown table; --write puts it into docs/targets/README.md, with the date. Sizes and times say nothing of quality.
What could not be driven is listed below the others, with the reason.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from eval_core.base.errors import UserError
from eval_core.base.messages import Message, render
from eval_core.domain.call import Completion, Failed, ModelCall, Usage
from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture, load_fixture
from eval_core.domain.target import TargetSpec, read_target
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ROOT / "docs" / "targets"
PAGE = TARGETS / "README.md"
BEGIN, END = "<!-- table: python -m bench.targets -->", "<!-- end of table -->"

Complete = Callable[[ModelCall], Awaitable[Completion | Failed]]


@dataclass(frozen=True)
class Recipe:
    """How to get one target, and how its compaction is set off."""

    packages: tuple[str, ...]
    trigger: str
    npm: bool = False
    """The packages are npm's; the last one is the agent."""
    python: tuple[int, int] = (3, 11)
    """The oldest Python that runs it."""
    scripts: bool = True
    """Whether its packages may run scripts while they are installed."""

    @property
    def package(self) -> str:
        """The package whose version is shown, without a version of its own."""
        name = self.packages[-1 if self.npm else 0].partition("[")[0]
        return name[0] + name[1:].partition("@")[0]

    @property
    def interpreter(self) -> str:
        """The Python to make its environment with: ours, if it is new enough."""
        return sys.executable if sys.version_info >= self.python else "python{}.{}".format(*self.python)


RECIPES = {
    "pi": Recipe(
        ("node@22", "@earendil-works/pi-coding-agent@0.87.1"), "`compact` over `pi --mode rpc`; OpenAI chat, SSE",
        npm=True,
    ),
    "codex": Recipe(
        ("node@22", "@openai/codex@0.166.0"), "`thread/compact/start` of `codex app-server`; OpenAI responses, SSE",
        npm=True,
    ),
    "opencode": Recipe(
        ("opencode-ai@1.18.33",), "`POST /session/ID/summarize` of `opencode serve`; OpenAI chat, SSE", npm=True
    ),
    "claude_code": Recipe(
        ("node@22", "@anthropic-ai/claude-code@2.1.197"), "`claude -p /compact --resume ID`; Anthropic messages, SSE",
        npm=True,
    ),
    "gemini_cli": Recipe(
        ("node@22", "@google/gemini-cli-core@0.61.0"), "`tryCompressChat(id, true)` of its core; Gemini", npm=True
    ),
    "hermes": Recipe(("hermes-agent",), "`ContextCompressor.compress`; OpenAI chat"),
    "langchain": Recipe(("langchain", "langchain-openai"), "`SummarizationMiddleware.before_model`; OpenAI chat"),
    "strands": Recipe(("strands-agents[openai]",), "`SummarizingConversationManager.reduce_context`; OpenAI chat, SSE"),
    "headroom": Recipe(("headroom-ai",), "`compress()`; no model"),
    "aider": Recipe(("aider-chat",), "`ChatSummary.summarize`; OpenAI chat"),
    "inspect_ai": Recipe(("inspect-ai", "openai"), "`CompactionSummary.compact`; OpenAI chat"),
    "openhands": Recipe(
        ("openhands-sdk",), "`LLMSummarizingCondenser.condense`, on request; OpenAI chat; Python 3.12", python=(3, 12)
    ),
}  # fmt: skip

UNDRIVEN = {
    "OpenAI's compact endpoint": (
        "-", "`POST /responses/compact`; OpenAI responses",
        "the state is encrypted by the provider; the gateway's own endpoint is tested with the official clients",
    ),
    "Anthropic's context editing": (
        "-", "`context_management` of a request; Anthropic messages", "happens at the provider, which returns no state",
    ),
}  # fmt: skip
"""Compaction without a target: its package, how it is set off, and why it could not be driven."""


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


async def silent(call: ModelCall) -> Completion:
    """Answer with nothing."""
    return Completion("", Usage(1, 0, 0, 0.0), call.model, 0.0)


def install(recipe: Recipe, home: Path) -> tuple[dict[str, str], str]:
    """Install a target; return the fields of its spec that say where, and the version that was installed."""
    if recipe.npm:
        home.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--prefix", str(home), "--no-audit", "--no-fund", "--loglevel=error"]
        words += [] if recipe.scripts else ["--ignore-scripts"]
        subprocess.run([*words, *recipe.packages], check=True, stdout=subprocess.DEVNULL)
        about = json.loads((home / "node_modules" / recipe.package / "package.json").read_text())
        return {"runtime": str(home)}, f"{recipe.package} {about['version']}"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([recipe.interpreter, "-m", "venv", str(home)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", *recipe.packages], check=True, stdout=subprocess.DEVNULL)
    asked = f"import importlib.metadata as m; print(m.version({recipe.package!r}))"
    version = subprocess.run([str(python), "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    return {"python": str(python)}, f"{recipe.package} {version}"


def drive(spec: TargetSpec, sandbox: SandboxChoice, fixture: Fixture, model: Complete) -> Compression:
    """Compress once."""
    with tempfile.TemporaryDirectory() as tree:
        here = Path(tree).resolve()
        resolved = resolve_paths(spec, TARGETS, TARGETS, here, "target")
        subject = ProcessSubject(resolved, here, sandbox, "bench-model", model, count, retries=0)
        return asyncio.run(subject.compress(fixture, run=0, seed=0))


def row(name: str, folder: Path, sandbox: SandboxChoice, fixture: Fixture) -> str:
    """Install and drive one target; return its line of the table."""
    recipe = RECIPES[name]
    link = f"[{name.replace('_', ' ')}]({name}.yml)"
    try:
        where, version = install(recipe, folder / name)
    except (subprocess.CalledProcessError, OSError) as exc:
        status = getattr(exc, "returncode", None) or exc
        return f"| {link} | {recipe.package} | {recipe.trigger} | not installed: {status} | | | | | |"
    spec = read_target(TARGETS / f"{name}.yml")
    assert isinstance(spec, TargetSpec)
    spec = spec.model_copy(update=where)
    try:
        done = drive(spec, sandbox, fixture, answering)
        others = [drive(spec, sandbox, fixture, model).outcome.value for model in (down, silent)]
    except UserError as exc:
        return f"| {link} | {version} | {recipe.trigger} | not started: {exc} | | | | | |"
    if spec.llm == "none":
        others = ["-", "-"]
    if done.detail:
        print(f"\n{name}: {done.detail}\n{done.output[-1500:]}\n", file=sys.stderr)
    why = f": {done.detail.replace('|', '/')[:120]}" if done.detail else ""
    sizes = "; ".join(f"{step.tokens_before:,} -> {step.tokens_after:,}" for step in done.steps)
    times = f"{done.cold_seconds:.1f} + " + ", ".join(f"{step.seconds:.1f}" for step in done.steps)
    return (
        f"| {link} | {version} | {recipe.trigger} | {done.outcome.value}{why} | {done.use.calls} | {len(done.state)} "
        f"| {sizes} | {times} | {others[0]} / {others[1]} |"
    )


def busy(load: float, processors: int) -> str:
    """Return a warning about the times, where other work ran beside the measurement."""
    if load <= processors:
        return ""
    return f" Other work kept the machine busy (a load of {load:.0f} on {processors} processors): times are too long."


def head(fixture: Fixture, sandbox: SandboxChoice) -> str:
    """Return the words above the table and its first lines."""
    today = datetime.datetime.now(datetime.UTC).date()
    told = busy(os.getloadavg()[0], os.cpu_count() or 1)
    return (
        f"Measured on {today} with Python {sys.version_info.major}.{sys.version_info.minor}, in the sandbox "
        f"({sandbox.level}), on `{fixture.name}`: {len(fixture.messages)} messages, about "
        f"{count(fixture.messages):,} tokens, {len(fixture.cuts)} compressions in a row.{told}\n\n"
        "| target | version | compaction is set off by; protocol | outcome | calls | messages left | tokens, each step "
        "| seconds: start + steps | model down / empty |\n|---|---|---|---|---|---|---|---|---|"
    )


def write_table(page: str, table: str) -> str:
    """Return the page with the table in its place."""
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise UserError(f"{PAGE.name}: the marks of the table are missing: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(RECIPES), help="comma-separated names")
    parser.add_argument("--fixture", type=Path)
    parser.add_argument("--write", action="store_true", help="put the table into docs/targets/README.md")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - RECIPES.keys():
        parser.error(f"--only: {', '.join(sorted(unknown))}: known are {', '.join(RECIPES)}")
    if options.write and set(names) != RECIPES.keys():
        parser.error("--write replaces the whole table, which has one date: leave out --only")
    largest = max((ROOT / "fixtures").glob("*.json"), key=lambda path: path.stat().st_size)
    fixture = load_fixture(options.fixture or largest)
    sandbox = detect()
    lines = [head(fixture, sandbox)]
    print(lines[0], flush=True)
    for name in names:
        lines.append(row(name, options.folder.resolve(), sandbox, fixture))
        print(lines[-1], flush=True)
    for name, (package, trigger, why) in UNDRIVEN.items():
        lines.append(f"| {name} | {package} | {trigger} | not driven: {why} | | | | | |")
        print(lines[-1], flush=True)
    if options.write:
        PAGE.write_text(write_table(PAGE.read_text(encoding="utf-8"), "\n".join(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
