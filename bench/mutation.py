"""Mutation testing of what decides, records, admits and confines: small faults are put in, and the tests must notice.

    python -m bench.mutation --limit 60 --seed 1      # a sample, about ten seconds for each mutant that is killed
    python -m bench.mutation --area journal           # of one area
    python -m bench.mutation --named                  # faults that once went unnoticed

A nightly command and not part of CI. It works on a copy of the tree, with low priority, and draws no more mutants after
`--minutes`. It first runs the tests without a fault: where these fail, every mutant would count as killed. The exit
code is 1 where a named fault survives.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_LONGEST = 180
"""Seconds after which the tests are taken to hang."""

AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "compare": (
        ("eval_core/comparing/verdict.py", "eval_core/comparing/rule.py", "eval_core/strands/outcome.py"),
        (
            "tests/comparing/test_rule.py",
            "tests/comparing/test_outcome.py",
            "tests/comparing",
            "tests/facts/test_evidence.py",
        ),
    ),
    "journal": (
        ("eval_core/models/journal.py", "eval_core/models/budget.py"),
        (
            "tests/models/test_journal.py",
            "tests/models/test_budget.py",
            "tests/models/test_kill.py",
            "tests/models/test_secret.py",
            "tests/models/test_client.py",
            "tests/models_e2e/test_batches.py",
        ),
    ),
    "gate": (
        ("bot/pull_request/admission.py", "bot/steps/gate.py"),
        ("tests/bot/test_gate.py", "tests/bot/test_admission.py", "tests/bot/test_facts_gathering.py"),
    ),
    "sandbox": (
        ("eval_core/sandbox/isolation.py",),
        ("tests/sandbox/test_sandbox_bombs.py", "tests/sandbox/test_sandbox_choice.py"),
    ),
}
"""Area to its source files and the tests that should notice a fault in them, the fastest first."""

NAMED = (
    ("compare", "eval_core/comparing/verdict.py", "all(row.verdict in _CALM", "any(row.verdict in _CALM"),
    ("journal", "eval_core/models/journal.py", "self._unsure_usd += usd", "self._unsure_usd += 0"),
    ("journal", "eval_core/models/journal.py", "os.fsync, self._file)", "lambda file: None, self._file)"),
    ("sandbox", "eval_core/sandbox/isolation.py", '"--new-session", ', ""),
)
"""Faults that went unnoticed when they were put in by hand: area, file, text, and what replaces it."""

_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True)
class Mutant:
    """One fault: a file with one piece of its text replaced."""

    area: str
    file: str
    line: int
    was: str
    text: str

    def __str__(self) -> str:
        """Name the place and the piece."""
        return f"{self.area}: {self.file}:{self.line}: {' '.join(self.was.split())[:90]}"


def _pieces(node: ast.AST, source: str) -> Iterator[str]:
    """Yield what a node could be replaced with."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = (ast.get_source_segment(source, side) for side in (node.left, node.comparators[0]))
        yield f"{left} {_COMPARED[type(node.ops[0])]} {right}"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield word.join(f"({ast.get_source_segment(source, value)})" for value in node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.get_source_segment(source, node.operand)})"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("all", "any"):
        swapped = "any" if node.func.id == "all" else "all"
        yield swapped + str(ast.get_source_segment(source, node))[3:]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "pass"


def mutants_of(area: str, file: str, source: str) -> Iterator[Mutant]:
    """Yield every fault that the rules above make of a module."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    raw = source.encode()
    module = ast.parse(source)
    # A dataclass that is no longer frozen behaves as before.
    skipped = {
        part
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
    }
    for node in ast.walk(module):
        if node in skipped or not isinstance(node, ast.expr | ast.stmt):
            continue
        if node.end_lineno is None or node.end_col_offset is None:
            continue
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[node.end_lineno - 1] + node.end_col_offset
        for piece in _pieces(node, source):
            text = (raw[:first] + piece.encode() + raw[last:]).decode()
            yield Mutant(area, file, node.lineno, raw[first:last].decode(), text)


def named_mutants() -> list[Mutant]:
    """Return the faults that once went unnoticed; each must still be possible."""
    found = []
    for area, file, was, becomes in NAMED:
        source = (ROOT / file).read_text(encoding="utf-8")
        if was not in source:
            raise SystemExit(f"{file}: {was!r} is no longer there; change NAMED in bench/mutation.py")
        line = source[: source.index(was)].count("\n") + 1
        found.append(Mutant(area, file, line, was, source.replace(was, becomes)))
    return found


def sample(limit: int, seed: int, areas: Sequence[str] = tuple(AREAS)) -> list[Mutant]:
    """Return a sample that takes the areas in turn."""
    chance = random.Random(seed)
    drawn = []
    for area in areas:
        files = AREAS[area][0]
        found = [item for file in files for item in mutants_of(area, file, (ROOT / file).read_text(encoding="utf-8"))]
        drawn.append(chance.sample(found, min(len(found), -(-limit // len(areas)))))
    return [item for turn in zip_longest(*drawn) for item in turn if item is not None][:limit]


def _copy(into: Path) -> Path:
    into.chmod(0o755)  # tests of the sandbox read it as another user, and would fail with any fault or none
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, into / name)
    return into


def tests_pass(tree: Path, area: str) -> bool:
    """Tell whether the tests of an area pass on the tree as it is; tests that hang do not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, *AREAS[area][1]],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(_LONGEST) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        # What the tests started must not outlive them either.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def notices(tree: Path, mutant: Mutant) -> bool:
    """Tell whether a test fails, or hangs, with the fault in place."""
    path = tree / mutant.file
    path.write_text(mutant.text, encoding="utf-8")
    try:
        return not tests_pass(tree, mutant.area)
    finally:
        shutil.copy(ROOT / mutant.file, path)


def main() -> None:
    """Run the tests against the faults and print the rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=40, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", choices=AREAS, action="append", help="only this area; may be given again")
    parser.add_argument("--minutes", type=float, default=60, help="no mutant is begun after this time")
    parser.add_argument("--named", action="store_true", help="only the faults that once went unnoticed")
    options = parser.parse_args()
    areas = options.area or list(AREAS)
    mutants = named_mutants() if options.named else sample(options.limit, options.seed, areas)
    mutants = [mutant for mutant in mutants if mutant.area in areas]
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the tests under way end too
    until = time.monotonic() + 60 * options.minutes
    killed: dict[str, list[bool]] = {}
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        tree = _copy(Path(name))
        for area in dict.fromkeys(mutant.area for mutant in mutants):
            if not tests_pass(tree, area):
                raise SystemExit(f"{area}: its tests fail without a fault; run pytest {' '.join(AREAS[area][1])}")
        for number, mutant in enumerate(mutants):
            if time.monotonic() > until:
                print(f"{options.minutes:g} minutes are over: {len(mutants) - number} mutants were not tried")
                break
            seen = notices(tree, mutant)
            killed.setdefault(mutant.area, []).append(seen)
            print(f"{'killed  ' if seen else 'SURVIVED'} {mutant}", flush=True)
    for area, results in killed.items():
        print(f"{area}: {sum(results)} of {len(results)} killed")
    everything = [item for results in killed.values() for item in results]
    print(f"all: {sum(everything)} of {len(everything)} killed ({sum(everything) / max(1, len(everything)):.0%})")
    sys.exit(1 if options.named and not all(everything) else 0)


if __name__ == "__main__":
    main()
