"""Compare published releases of agents and write what came out beside what was said of them: docs/releases.md.

    python -m bench.releases FOLDER [--only langchain,pi] [--kept] [--write]

Each pair is measured offline with `compression-eval releases`, on one of the shipped sessions, three compressions each.
The results are kept in FOLDER, so that a stopped run goes on and a changed rule is applied to what was measured; the
releases themselves are removed when the next agent's turn comes. Rows of the page that FOLDER lacks stay as they are.
`said` is what the project's own changelog or code, pull requests or users say of the later release. The second table,
of what agents do when their model fails, is read from the newest release of each agent among the pairs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bot.cli import root
from eval_core.base.errors import UserError
from eval_core.base.numbers import counted
from eval_core.comparing.compare import compare_measurements
from eval_core.domain.measurement import Measurement
from eval_core.domain.model_failure import FailureReaction, ModelFailure
from eval_core.sandbox.installs import prune
from eval_core.storage.results import read_measurement
from eval_core.strands.findings import Kind

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "releases.md"
FIXTURES = "constraints-and-reversals"
RUNS = 3
CALM = (Kind.NO_DETECTABLE_CHANGE,)
WORSE = (Kind.REGRESSED, Kind.BROKEN)
OPEN = (Kind.NOT_JUDGED, Kind.INCONCLUSIVE, Kind.NOT_COMPARABLE, Kind.INCOMPLETE)


class Known(StrEnum):
    """What is known of the later release."""

    REGRESSION = "regression"
    REPAIR = "repair"
    CHANGE = "change"
    """Compaction was changed on purpose, and nobody said for better or worse."""
    NEIGHBOUR = "harmless"


@dataclass(frozen=True)
class Pair:
    """Two releases, and what is known of the later one."""

    target: str
    old: str
    new: str
    known: Known
    said: str = "nothing about compaction"
    hidden: str = ""
    """Why it cannot be seen offline, through the shipped target."""

    @property
    def name(self) -> str:
        """The name of its results."""
        return f"{Path(self.target).stem}-{self.old}-{self.new}"

    def judged(self, kind: Kind) -> str:
        """Say whether a verdict agrees with what is known."""
        right: dict[Known, Sequence[Kind]] = {
            Known.REGRESSION: WORSE,
            Known.REPAIR: (Kind.IMPROVED,),
            Known.CHANGE: (Kind.NOT_JUDGED, Kind.TRADE, Kind.MIXED),
            Known.NEIGHBOUR: CALM,
        }
        if kind in right[self.known]:
            return "right"
        if kind in OPEN:
            return "not judged"
        return "not visible" if self.hidden and kind in CALM else "wrong"


OWN_AGENT = str(ROOT / "bench" / "strands_own_agent.yml")
OPUS = str(ROOT / "bench" / "claude_code_opus.yml")
_SUBSCRIBER = "only with a subscription, and this is an API key"
_PROVIDER = "happens at the provider, which is not asked"
_LATER = "what a model does later"
_PROXY = "the report is of its proxy, and the target calls the library"
_SAME = "both send the same requests through the server; the report is of the terminal, with a local model"
R, F, C, N = Known.REGRESSION, Known.REPAIR, Known.CHANGE, Known.NEIGHBOUR
PAIRS = (
    Pair(OPUS, "2.1.143", "2.1.144", R, "issue 60485: compacts again and again"),
    Pair("claude_code", "2.1.158", "2.1.159", R, "issue 64520: never compacts by itself", _SUBSCRIBER),
    Pair("claude_code", "2.1.91", "2.1.92", R, "issue 43989: compacts at 400k of 1M tokens", _SUBSCRIBER),
    Pair("claude_code", "2.1.138", "2.1.139", C, "changelog: the prompt asks to preserve sensitive instructions"),
    Pair("codex", "0.142.5", "0.143.0", R, "issue 31822: /compact is instant and loses the task", _PROVIDER),
    Pair("codex", "0.164.0", "0.165.0", N),
    Pair("pi", "0.84.3", "0.84.4", F, "issue 7048: a summary that was cut off is no longer kept"),
    Pair("pi", "0.84.2", "0.84.3", N, "changelog: issue 7048 too, but the code of 0.84.3 is without it"),
    Pair("pi", "0.78.1", "0.79.0", C, "issue 5401: the prompt says assistant, not coding assistant"),
    Pair("pi", "0.84.0", "0.84.1", N),
    Pair("langchain", "1.3.14", "1.3.15", F, "issue 38867: a failed summary replaced the history by the error"),
    Pair("langchain", "1.2.2", "1.2.4", C, "code: a cut among tool results moves back to their call, not past them"),
    Pair("langchain", "1.3.13", "1.3.14", N),
    Pair("strands", "1.11.0", "1.12.0", R, "pull request 1947: with the tool now offered, 15-25 % are empty"),
    Pair("strands", "1.61.0", "1.61.1", N),
    Pair(OWN_AGENT, "1.32.0", "1.33.0", F, "pull request 1947: a call of the offered tool ended in an empty summary"),
    Pair("opencode", "1.17.19", "1.18.3", R, "issue 37047: the summary tells of another project", _SAME),
    Pair("opencode", "1.18.14", "1.18.15", R, "issue 41268: nothing but a tool call for a summary"),
    Pair("gemini_cli", "0.16.0", "0.17.0", R, "issue 13568: /compress fails, the model is not found", _PROVIDER),
    Pair("gemini_cli", "0.60.0", "0.61.0", N),
    Pair("headroom", "0.27.0", "0.31.0", R, "issue 2248: no tokens are saved any more", _PROXY),
    Pair("headroom", "0.39.0", "0.39.1", N),
    Pair("hermes", "0.16.0", "0.17.0", R, "issue 50688: finished work is done again", _LATER),
    Pair("hermes", "0.18.1", "0.18.2", N),
    Pair("inspect_ai", "0.3.284", "0.3.285", N),
    Pair("aider", "0.86.1", "0.86.2", N),
    Pair("openhands", "1.29.3", "1.30.0", F, "issue 3902: the summary is no longer asked for as a stream"),
    Pair("openhands", "1.49.5", "1.49.6", N),
    Pair("opencode", "1.18.16", "1.18.17", F, "issue 37047, the maintainer: the prompt was corrected"),
    Pair("opencode", "1.18.31", "1.18.32", N),
)


@dataclass(frozen=True)
class Found:
    """What a pair came to."""

    pair: Pair
    sides: tuple[Measurement, ...] = ()
    code: str = ""
    seconds: float = 0.0
    problem: str = ""

    @property
    def line(self) -> str:
        """The pair's line of the table."""
        pair = self.pair
        if self.problem:
            verdict, judged = self.problem, "not measured"
        else:
            found = compare_measurements(*self.sides)[0]
            trigger = found.strand("sets_in")
            said = trigger is not None and trigger.says and trigger.says in found.headline
            verdict, judged = (
                found.headline,
                "told" if said and found.kind in (*CALM, Kind.INCONCLUSIVE) else pair.judged(found.kind),
            )
        why = f": {pair.hidden}" if judged == "not visible" else ""
        cells = (
            Path(pair.target).stem, f"{pair.old} → {pair.new}", pair.known, pair.said, self.code,
            verdict.replace("|", "/"), judged + why, f"{self.seconds:.0f}",
        )  # fmt: skip
        return "| " + " | ".join(cells) + " |"


def _words(pair: Pair, folder: Path) -> list[str]:
    words = ["releases", pair.target, pair.old, pair.new, "--fixtures", FIXTURES, "--set", f"compress_runs={RUNS}"]
    return [*words, "--runs", "1", "--results", str(folder / "results"), "--label", pair.name]


def measured(pair: Pair, folder: Path) -> Found:
    """Return what the pair came to, from the folder where it is there."""
    kept = folder / f"{pair.name}.json"
    if not kept.exists():
        began, said, problem = time.monotonic(), io.StringIO(), ""
        try:
            with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                root.main(args=_words(pair, folder), standalone_mode=False)
        except UserError as exc:
            problem = str(exc).partition("\n")[0]
        code = next((text for text in ("not the same", "the same") if f"is {text}." in said.getvalue()), "not named")
        about = {"code": code, "seconds": time.monotonic() - began, "problem": problem}
        kept.write_text(json.dumps(about, indent=1), encoding="utf-8")
    about = json.loads(kept.read_text(encoding="utf-8"))
    if about["problem"]:
        return Found(pair, **about)
    stem = Path(pair.target).stem
    sides = [folder / "results" / f"{pair.name}-{stem}-{version}" for version in (pair.old, pair.new)]
    return Found(pair, tuple(map(read_measurement, sides)), **about)


def failures(found: Sequence[Found]) -> list[str]:
    """Return the table of what each agent's newest release does when its model fails."""
    measured_ones = sorted((item for item in found if item.sides), key=lambda item: _numbers(item.pair.new))
    newest = {Path(item.pair.target).stem: item for item in measured_ones}
    lines = ["| agent | " + " | ".join(failure.words for failure in ModelFailure) + " |"]
    lines.append("|---" * (1 + len(ModelFailure)) + "|")
    for name, item in newest.items():
        runs = [run for runs in item.sides[-1].fixtures.values() for run in runs]
        tried: dict[str, str] = next((run.strands["failure"] for run in runs if "failure" in run.strands), {})
        untried = "offers no tool" if tried else "asks no model"
        done = [FailureReaction(tried[one]).words if one in tried else untried for one in ModelFailure]
        lines.append(f"| {name} {item.pair.new} | " + " | ".join(done) + " |")
    return lines


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def replaced(table: str, lines: Sequence[str]) -> None:
    """Put lines between the marks of a table."""
    begin, end = f"<!-- {table}: python -m bench.releases -->", f"<!-- end of {table} -->"
    page = PAGE.read_text(encoding="utf-8")
    if begin not in page or end not in page:
        sys.exit(f"{PAGE.name}: the marks of the table are missing: {begin} ... {end}")
    before, _, rest = page.partition(begin)
    PAGE.write_text(before + "\n".join([begin, *lines]) + f"\n{end}{rest.partition(end)[2]}", encoding="utf-8")


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table on the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"<!-- {table}: python -m bench.releases -->")[2]
    lines = text.partition(f"<!-- end of {table} -->")[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def write(pairs: Sequence[str], failing: Sequence[str]) -> None:
    """Write what was measured to the page; rows of others stay as they are, in the order of PAIRS."""
    order = [(Path(pair.target).stem, f"{pair.old} → {pair.new}") for pair in PAIRS]
    standing = {tuple(cells[:2]): f"| {' | '.join(cells)} |" for cells in rows("pairs")}
    standing |= {tuple(cell.strip() for cell in line.strip("|").split(" | ")[:2]): line for line in pairs[2:]}
    replaced("pairs", [*pairs[:2], *(standing[key] for key in order if key in standing)])
    tried = {cells[0].split()[0]: f"| {' | '.join(cells)} |" for cells in rows("failures")}
    tried |= {line.strip("| ").split()[0]: line for line in failing[2:]}
    replaced(
        "failures", [*failing[:2], *(tried[name] for name in dict.fromkeys(one for one, _ in order) if name in tried)]
    )
    replaced("counts", [counts(rows("pairs"))])


def counts(found: Sequence[Sequence[str]]) -> str:
    """Say in two sentences what the rows come to."""
    agents = {cells[0].removesuffix("_opus").removesuffix("_own_agent") for cells in found}
    parts = []
    for known in Known:
        judged = Counter(cells[6].partition(":")[0] for cells in found if cells[2] == known)
        if judged:
            said = ", ".join(f"{number} {words}" for words, number in judged.most_common())
            parts.append(f"{counted(judged.total(), _KINDS[known])}: {said}")
    return f"{len(found)} pairs of {len(agents)} agents. {'; '.join(parts)}."


_KINDS = {
    Known.REGRESSION: "reported regression",
    Known.REPAIR: "repair",
    Known.CHANGE: "intended change",
    Known.NEIGHBOUR: "harmless neighbour",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="comma-separated targets")
    parser.add_argument("--kept", action="store_true", help="only what FOLDER has; measure nothing")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/releases.md")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = options.only.split(",") if options.only else [pair.target for pair in PAIRS]
    wanted = [pair for pair in PAIRS if pair.target in names]
    wanted = [pair for pair in wanted if not options.kept or (folder / f"{pair.name}.json").exists()]
    lines = [
        "| agent | releases | known as | what was said of the later one | compaction code | our verdict | | seconds |",
        "|---" * 8 + "|",
    ]
    print("\n".join(lines), flush=True)
    found = []
    for pair, following in zip(wanted, [*wanted[1:], None], strict=True):
        found.append(measured(pair, folder))
        lines.append(found[-1].line)
        print(lines[-1], flush=True)
        if not options.kept and (following is None or following.target != pair.target):
            prune()
    trials = failures(found)
    print("\n".join(trials))
    if options.write:
        write(lines, trials)


if __name__ == "__main__":
    main()
