"""How long and how much memory a very long session takes, from its log to a report.

    python bench/large_session.py [TOKENS]

Writes the log of a session of about that many tokens (500,000 by default) to a temporary folder, runs the real
commands on it and prints the seconds and the peak memory of each process.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval_core.base.tokens import count_messages
from eval_core.domain.fixture import Fixture, dump_fixture
from eval_core.domain.probe import ProbeBank, dump_bank

NAME = "large-session"
WORDS = "queue worker shard replica cursor batch lease ledger token bucket window retry index".split()  # noqa: SIM905


def _call(number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _output(source: random.Random, number: int) -> str:
    lines = []
    for line in range(source.randrange(8, 60)):
        noun, other = source.choice(WORDS), source.choice(WORDS)
        lines.append(
            f"{line:>4} | src/{noun}/{other}_{number % 97}.py:{line} {noun}_{number} = {other}"
            f"({source.randrange(10**6)})  # {source.randrange(16**8):08x} took {source.random():.3f}s, "
            f"see #{number % 5000}"
        )
    return "\n".join(lines)


def turns(source: random.Random) -> Iterator[list[dict[str, Any]]]:
    """Yield turns without end: a call and its answer, now and then prose or a user's word."""
    number = 0
    while True:
        number += 1
        noun = source.choice(WORDS)
        yield [
            _call(number, "terminal", {"command": f"grep -rn {noun}_{number} src/{noun}"}),
            {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": json.dumps({"output": _output(source, number), "exit_code": int(number % 11 == 0)}),
            },
        ]
        if number % 5 == 0:
            yield [{"role": "assistant", "content": f"I decided to move {noun}_{number} because the {noun} is full."}]
        if number % 40 == 0:
            yield [{"role": "user", "content": f"Go on with the {noun}, but leave src/{noun}/keep_{number}.py alone."}]


def session(tokens: int) -> Fixture:
    """Build a session of about so many tokens."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You maintain a large code base."},
        {"role": "user", "content": "Find why release v7.3.2 answers 503 on /api/ledger and fix it."},
    ]
    total = 0
    for turn in turns(random.Random(7)):
        messages += turn
        total += count_messages(turn)
        if total >= tokens:
            return Fixture(name=NAME, messages=messages)
    raise AssertionError("turns never end")


def bank(fixture: Fixture) -> ProbeBank:
    """Ask about the beginning and about prose and calls spread over the session."""
    probes: list[dict[str, Any]] = [
        {
            "id": "recall-error",
            "type": "recall",
            "question": "Which release answers which error on the ledger?",
            "expected_facts": ["v7.3.2", "503"],
        }
    ]
    prose = [message["content"] for message in fixture.messages if str(message["content"]).startswith("I decided")]
    for at, text in enumerate(prose[:: max(len(prose) // 10, 1)][:10]):
        name = text.split()[4]
        question = {"id": f"decision-{at}", "type": "decision", "question": f"What was moved, number {at}, and why?"}
        probes.append({**question, "expected_facts": [name]})
    return ProbeBank.model_validate({"fixture": NAME, "probes": probes})


def steps(log: Path) -> Iterator[list[str]]:
    """Yield the commands that a long session goes through, from its log to a report."""
    yield ["fixture", "import", str(log), "--name", NAME, "--yes", "--keep-system", "--max-output", "0"]
    stored = next(Path("fixtures").glob(f"{NAME}.*"))
    yield ["fixture", "scrub", str(stored), "--yes", "--keep-system", "--max-output", "0"]
    yield ["fixture", "audit"]
    yield ["fixture", "show", NAME, "--census"]
    yield ["probe", "propose", NAME, "--output", "-"]
    yield ["probe", "lint", "--fill"]
    yield ["run", "--quiet", "--compare-to", "none"]
    yield ["report", "results/latest"]


def _measured(command: list[str]) -> tuple[int, float, float, float]:
    """Run one command and return its exit code, seconds, seconds of CPU and peak megabytes."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        os.execv(sys.executable, [sys.executable, "-c", "from bot.cli import main; main()", *command])
    _, status, use = os.wait4(child, 0)
    cpu = use.ru_utime + use.ru_stime
    return os.waitstatus_to_exitcode(status), time.monotonic() - began, cpu, use.ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    fixture = session(tokens)
    plain = len(dump_fixture(fixture).encode())
    print(f"{len(fixture.messages):,} messages, {count_messages(fixture.messages):,} tokens, {plain:,} bytes of JSON")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        log = Path("session.jsonl")
        log.write_text("".join(json.dumps(message) + "\n" for message in fixture.messages), encoding="utf-8")
        Path("probes").mkdir()
        Path("probes", f"{NAME}.probes.json").write_text(dump_bank(bank(fixture)), encoding="utf-8")
        print("| command | exit code | seconds | of CPU | peak MB |", "|---|---:|---:|---:|---:|", sep="\n")
        for command in steps(log):
            code, seconds, cpu, memory = _measured(command)
            print(f"| {' '.join(command[:2])} | {code} | {seconds:.1f} | {cpu:.1f} | {memory:.0f} |", flush=True)
        stored = next(Path("fixtures").glob(f"{NAME}.*"))
        page = Path("results", "latest", "report.html")
        print(f"{stored.name}: {stored.stat().st_size:,} bytes; report.html {page.stat().st_size / 1e6:.1f} MB")
        os.chdir("/")


if __name__ == "__main__":
    main()
