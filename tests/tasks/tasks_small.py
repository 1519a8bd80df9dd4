"""A small session with a ledger, and a task over it in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import small

from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import SessionLedger

FIXTURE = Fixture(
    name="quay",
    description="A small job",
    model="m",
    context_length=200_000,
    messages=[
        {"role": "system", "content": "You work in /home/user/quay."},
        {"role": "user", "content": "Never change limits.txt. The berth is number 4711-B."},
        {"role": "assistant", "content": "Understood."},
        {"role": "assistant", "content": "I tried sorting by tide-table.csv first, and that fails: it has no dates."},
    ],
    notes="",
)
LEDGER = SessionLedger.model_validate(
    {
        "fixture": "quay",
        "lines": [
            {"id": "limits", "kind": "rule", "anchors": ["limits.txt"], "text": "Never change limits.txt.",
             "speaker": "user", "said": [1], "polarity": "do_not", "strength": "must"},
            {"id": "tide", "kind": "item", "anchors": ["tide-table.csv"], "text": "Sorting by tide-table.csv fails.",
             "speaker": "assistant", "said": [3], "status": [{"at": 3, "is": "failed"}]},
            {"id": "berth", "kind": "value", "anchors": ["4711-B"], "text": "The berth is 4711-B.",
             "speaker": "user", "said": [1]},
        ],
    }
)  # fmt: skip

TASK = """
folder: /home/user/quay
instruction: Write the berth into berth.txt and raise the price in price.py by one.
needs: [git, pytest]
limits: {turns: 12, call_seconds: 2, output_chars: 2000, memory_mb: 256, megabytes: 16}
facts:
  - {id: limits, lost: rule}
  - {id: tide, lost: repeat}
  - {id: berth, lost: lookup}
checks:
  - {name: the price, kind: done, tests: checks/test_price.py, passed: 2}
  - {name: the limits stay, kind: rule, same: limits.txt}
  - {name: sorting by tides again, kind: repeat, tried: tide-table}
"""
SOLUTION = """
steps:
  - {knows: tide, then: [], else: [{tool: terminal, command: sort tide-table.csv}]}
  - {knows: limits, then: [], else: [{tool: terminal, command: echo 9 > limits.txt}]}
  - {knows: berth, then: [], else: [{tool: search_files, pattern: berth}, {tool: read_file, path: docs/berths.md}]}
  - {call: {tool: write_file, path: berth.txt, content: "4711-B\\n"}}
  - {call: {tool: patch, path: price.py, old_string: "PRICE = 1", new_string: "PRICE = 2"}}
"""
TESTS = """
import pathlib
import price

def test_the_price():
    assert price.PRICE == 2

def test_the_berth():
    assert pathlib.Path("berth.txt").read_text().strip() == "4711-B"
"""


def write_task(root: Path, *, task: str = TASK, solution: str = SOLUTION) -> Path:
    """Write the task and its workspace, and return the task's folder."""
    folder = root / "tasks" / "quay" / "berth"
    small.write(folder / "task.yml", task)
    small.write(folder / "solution.yml", solution)
    small.write(folder / "checks" / "test_price.py", TESTS)
    files = folder.parent / "workspace" / "files"
    small.write(files / "price.py", "PRICE = 1\n")
    small.write(files / "limits.txt", "3\n")
    small.write(files / "docs" / "berths.md", "Berths: 4711-A, 4711-B, 4712-A. The north one is 4711-B.\n" * 40)
    small.write(folder.parent / "workspace" / "bin" / "tug", "#!/bin/sh\necho towed\n").chmod(0o755)
    small.write(
        folder.parent / "workspace" / "build.sh", "git init -q -b main . && git add -A && git commit -qm Start\n"
    )
    return folder
