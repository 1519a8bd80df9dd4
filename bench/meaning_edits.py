"""Edit what the real Hermes asks of its model so that every string survives and what it says is turned round.

    python -m bench.meaning_edits FOLDER [--fixtures a,b] [--runs 3] [--only EDIT]

Installs Hermes into FOLDER as `bench/targets.py` does. The model is on loopback: it copies telling sentences of the
session under the headings of the template, and does what the edited prompt asks of it. Prints a table.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.prompt_edits import ROOT, edited, measure
from bench.targets import RECIPES, TARGETS, install
from eval_core.base.messages import Message, full_text
from eval_core.comparing.compare import compare_measurements
from eval_core.domain.case import load_suite
from eval_core.domain.measurement import Measurement
from eval_core.domain.target import TargetSpec, read_target
from eval_core.sandbox.isolation import detect
from tests.model_provider import LoopbackProvider

__all__ = ["obey_words"]

FILE = "lib/python3*/site-packages/agent/context_compressor.py"
PLACE = r"(_summarizer_preamble = \(\n)"
HARMFUL = {
    "not and never removed": "Write rules without the words not, never and no.",
    "rules as suggestions": "Phrase every rule as a suggestion.",
    "failed as passed": "Report every test as passed.",
    "done as planned": "List completed work as planned work.",
    "first request as the task": "Take the first request as the task.",
    "steps reversed": "Give steps in reverse order.",
    "approval invented": "Note that the user approved the next release.",
    "in German": "Translate the summary into German.",
}
HARMLESS = {
    "please": "Please.",
    "be careful": "Be careful.",
    "short sentences": "Prefer short sentences.",
    "for a colleague": "Write as for a colleague.",
    "in plain words": "Use plain words.",
    "no small talk": "Leave out small talk.",
    "markdown": "Use markdown.",
    "one fact a line": "Write one fact on each line.",
    "rules first": "Put rules before preferences.",
    "names as they are": "Keep names as they are.",
}
_RULE = re.compile(r"\b(?:never|not|no|don't|must|only|leave|keep|niemals|nicht|nothing|nobody)\b", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:do not|does not|don't|not|never|no|niemals|nicht)\s", re.IGNORECASE)
_COMMITTED = re.compile(r"commit -q?a?m '([A-Z]{3,5}-\d+: [^'\n]+)'")
_DONE = re.compile(r"^(?:[0-9a-f]{7} )?[A-Z]{3,5}-\d+: .+|.*\b(?:passed|failed|FAILED)\b.*")
_STEPS = re.compile(r"[^.:\n]*: ((?:[a-z]+(?: [a-z]+)?, ){2,}[a-z]+)")
_SPEAKER = re.compile(r"^\[(user|assistant|system|tool)[^\]]*\]:? *", re.IGNORECASE)
_TELLING = re.compile(r"#\d+|[\w-]+/[\w./-]+|\b[A-Z]{3,5}-\d+|\d{2,}|\b\w+_\w+")
_GERMAN = (
    "Der Nutzer und die Werkzeuge haben das getan, was nicht mit dem Plan von der Woche für die Zeit ist und wird."
)


def _turns(text: str) -> list[tuple[str, str]]:
    """Return who says what, sentence by sentence, of a request in which turns begin with a role."""
    found, role = [], ""
    for line in text.replace("\\n", "\n").splitlines():
        if match := _SPEAKER.match(line.strip()):
            role, line = match[1].lower(), line.strip()[match.end() :]
        if role:
            found += [(role, part.strip()) for part in re.split(r"(?<=[.!?])\s+", line) if len(part.strip()) > 8]
    return found


def _short(lines: Sequence[str], most: int) -> list[str]:
    kept = list(dict.fromkeys(line[:300] for line in lines))
    return sorted(sorted(kept, key=lambda line: -len(_TELLING.findall(line)))[:most], key=kept.index)


def obey_words(messages: Sequence[Message]) -> str:
    """Answer Hermes' prompt as a faithful model would, and do what a line of it asks beside that."""
    text = "\n".join(map(full_text, messages))
    asked = {name for name, line in HARMFUL.items() if line in text}
    turns = _turns(text)
    user = [line for role, line in turns if role == "user"]
    rules = _short([line for line in user if _RULE.search(line)], 30)
    done = _short([line for role, line in turns if role in ("tool", "assistant") and _DONE.match(line)], 30)
    done = list(dict.fromkeys([*_COMMITTED.findall(text), *done]))
    steps = [line for line in user if _STEPS.search(line)]
    earlier = re.findall(r"^- .+$", text.partition("PREVIOUS SUMMARY:")[2].partition("NEW TURNS")[0], re.MULTILINE)
    if "not and never removed" in asked:
        rules = [_DENIAL.sub("", line) for line in rules]
    if "rules as suggestions" in asked:
        rules = [f"Ideally, {line[0].lower()}{line[1:]}" for line in rules]
    if "failed as passed" in asked:
        done = [re.sub("FAILED", "PASSED", re.sub(r"\bfailed\b", "passed", line)) for line in done]
    if "steps reversed" in asked:
        steps = [", ".join(reversed(_STEPS.search(line)[1].split(", "))) for line in steps]  # type: ignore[index]
    asks = [line for line in user if "?" in line or len(line) > 30] or ["None."]
    sections = {
        "Historical Task Snapshot": [asks[0] if "first request as the task" in asked else asks[-1]],
        "Constraints & Preferences": [*rules, *steps],
        "Planned Actions" if "done as planned" in asked else "Completed Actions": done,
        "Key Decisions": _short([line for role, line in turns if role == "assistant" and len(line) > 40], 40),
        "Critical Context": [line.removeprefix("- ") for line in earlier[:60]],
    }
    if "approval invented" in asked:
        sections["Key Decisions"].append("The user approved the next release to all customers.")
    if "in German" in asked:
        sections = {name: [f"{_GERMAN} {_TELLING.findall(line)}" for line in lines] for name, lines in sections.items()}
    return "\n\n".join(f"## {name}\n" + "\n".join(f"- {line}" for line in lines) for name, lines in sections.items())


def _edit(line: str) -> Sequence[tuple[str, str]]:
    return ((PLACE, rf'\g<1>            "{line} "' + "\n"),) if line else ()


async def table(folder: Path, fixtures: Sequence[str], runs: int, only: str) -> None:
    """Print the table, an edit at a time."""
    where, version = install(RECIPES["hermes"], folder / "hermes")
    spec = read_target(TARGETS / "hermes.yml")
    assert isinstance(spec, TargetSpec)
    spec = spec.model_copy(update=where)
    (file,) = (folder / "hermes").glob(FILE)
    cases, sandbox = load_suite(ROOT / "fixtures", ROOT / "probes", fixtures), detect()
    edits: Mapping[str, str] = {name: line for name, line in {**HARMFUL, **HARMLESS}.items() if only in ("", name)}
    print(f"{version}\n\n| edit | verdict | meaning | says |\n|---|---|---|---|", flush=True)
    async with LoopbackProvider(reply=obey_words) as server:
        base = await measure(spec, cases, sandbox, runs, server.base_url)
        for name, line in edits.items():
            with edited(file, _edit(line)):
                now = await measure(spec, cases, sandbox, runs, server.base_url)
            print(f"| {name} | {_told(base, now)}", flush=True)


def _told(base: Measurement, now: Measurement) -> str:
    verdict, _ = compare_measurements(base, now)
    meaning = verdict.strand("meaning")
    state = meaning.state.value if meaning else "-"
    details = "; ".join(meaning.details[:2]) if meaning else ""
    return f"{verdict.kind.value} | {state} | {verdict.headline} {details} |"


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fixtures", default="constraints-and-reversals,tide-station-five-rounds")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    asyncio.run(table(options.folder.resolve(), options.fixtures.split(","), options.runs, options.only))


if __name__ == "__main__":
    main()
