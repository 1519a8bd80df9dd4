"""Edit the prompts of published compressors and see what is said: offline, and with a model that does as it is told.

    python -m bench.prompt_edits FOLDER [--only langchain,pi] [--fixture NAME] [--runs 3]

Installs each agent into FOLDER as `bench/targets.py` does, measures it as it is, replaces its template by one sentence,
then takes out what it says of paths, and restores it. The model is `bench/obeying.py` on loopback. Prints a table.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.obeying import obey
from bench.targets import RECIPES, TARGETS, install
from eval_core.base.tokens import count_messages
from eval_core.comparing.compare import compare_measurements
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.case import Case, load_suite
from eval_core.domain.measurement import Measurement
from eval_core.domain.target import TargetSpec, read_target
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths
from eval_core.storage.results import ResultsFolder
from tests.model_provider import LoopbackProvider

ROOT = Path(__file__).resolve().parents[1]
TWO = "Summarise the conversation in two sentences."


@dataclass(frozen=True)
class Prompt:
    """Where an agent keeps its prompt, and how it is edited: patterns and what takes their place."""

    file: str
    rewritten: tuple[tuple[str, str], ...]
    paths: tuple[tuple[str, str], ...]


PROMPTS = {
    "langchain": Prompt(
        "lib/python3*/site-packages/langchain/agents/middleware/summarization.py",
        ((r'(DEFAULT_SUMMARY_PROMPT = """).*?(""")', rf"\g<1>{TWO}\n\n{{messages}}\g<2>"),),
        ((r"\n[^\n]*(?:file )?paths?[^\n]*(?=\n(?:[^\n]*\n){0,60}[^\n]*\{messages\})", ""),),
    ),
    "hermes": Prompt(
        "lib/python3*/site-packages/agent/context_compressor.py",
        ((r'(_template_sections = f""").*?(""")', rf"\g<1>{TWO}\g<2>"),),
        (
            (r"Be CONCRETE [^\n]*include file paths,[^\n]*", "Be brief."),
            (r"(?:exact[^\n]{0,40}|specific with file )paths?", "what matters"),
        ),
    ),
    "pi": Prompt(
        "node_modules/@earendil-works/pi-coding-agent/dist/bundle/chunks/*.js",
        ((r"(`)(?:The messages above are|Update the existing structured)[^`]*(`)", rf"\g<1>{TWO}\g<2>"),),
        ((r"(?i)(?:- )?preserve exact file paths, function names, and error messages\.?", ""),),
    ),
}


@contextmanager
def edited(path: Path, edits: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Edit a file of an installed package for the time of the block."""
    original = path.read_text(encoding="utf-8")
    text = original
    for pattern, new in edits:
        text, found = re.subn(pattern, new, text, flags=re.DOTALL)
        if not found:
            raise SystemExit(f"{path}: the pattern {pattern!r} is not there; this version says it in other words")
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")


async def measure(spec: TargetSpec, cases: Sequence[Case], sandbox: SandboxChoice, runs: int, url: str) -> Measurement:
    """Measure an installed agent, with the stand-in or, where a URL is given, with the model that is served there."""

    async def complete(call: ModelCall) -> Completion:
        body = {"model": call.model, "messages": list(call.messages), "max_tokens": call.max_tokens}
        async with aiohttp.ClientSession() as session, session.post(f"{url}/chat/completions", json=body) as reply:
            text = (await reply.json())["choices"][0]["message"]["content"]
        return Completion(text, Usage(1, 0, 1, 0.0), call.model, 0.0)

    with tempfile.TemporaryDirectory() as name:
        tree = Path(name).resolve()
        resolved = resolve_paths(spec, TARGETS, TARGETS, tree, "target")
        model = "loopback/obeying" if url else "offline:rules"
        subject = ProcessSubject(resolved, tree, sandbox, model, complete if url else None, count_messages)
        roles = Roles(subject, ExtractiveAnswerer(), FactJudge(), offline=not url)
        folder = ResultsFolder(tree / "results")
        # Without its name the loopback model would pass for the stand-in, which follows no prompt.
        print_ = make_fingerprint(cases, None).model_copy(update={"compressor_model": {"model": model}})
        return await MeasuringSession(cases, roles, print_, folder, "edits", runs, runs, concurrency=2).measure()


async def rows(name: str, home: Path, case: Case, runs: int, url: str) -> list[str]:
    """Measure an agent as it is and with each edit; return the lines of the table."""
    where, version = install(RECIPES[name], home)
    spec = read_target(TARGETS / f"{name}.yml")
    assert isinstance(spec, TargetSpec)
    spec = spec.model_copy(update=where)
    prompt, sandbox = PROMPTS[name], detect()
    (file,) = (
        path for path in home.glob(prompt.file) if re.search(prompt.paths[0][0], path.read_text(encoding="utf-8"))
    )
    edits = {"none": (), "again": (), "two sentences": prompt.rewritten, "no word of paths": prompt.paths}
    found: dict[tuple[str, str], Measurement] = {}
    for edit, patterns in edits.items():
        with edited(file, patterns):
            for served in ("", url):
                found[edit, served] = await measure(spec, [case], sandbox, runs, served)
    lines = []
    for edit in ("two sentences", "no word of paths"):
        offline, model = (compare_measurements(found["none", at], found[edit, at])[0] for at in ("", url))
        asks = offline.strand("asks")
        says = asks.says.partition("(")[2].rstrip(")") if asks else "-"
        lines.append(f"| {version} | {edit} | {offline.kind.value} | {says} | {model.kind.value} | {model.headline} |")
        for detail in (asks.details if asks else ())[:4]:
            print(f"{name}, {edit}: {detail[:200]}", file=sys.stderr)
    again = compare_measurements(found["none", ""], found["again", ""])[0]
    lines.append(f"| {version} | none | {again.kind.value} | - | - | - |")
    return lines


async def table(folder: Path, names: Sequence[str], case: Case, runs: int) -> None:
    """Print the table, a target at a time."""
    print("| agent | edit | offline | instructions | with a model | headline |\n|---|---|---|---|---|---|", flush=True)
    async with LoopbackProvider(reply=obey) as server:
        for name in names:
            print("\n".join(await rows(name, folder / name, case, runs, server.base_url)), flush=True)


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(PROMPTS))
    parser.add_argument("--fixture", default="iterative-merge-migration")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    (case,) = load_suite(ROOT / "fixtures", ROOT / "probes", (options.fixture,))
    asyncio.run(table(options.folder.resolve(), options.only.split(","), case, options.runs))


if __name__ == "__main__":
    main()
