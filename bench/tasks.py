"""Tasks from states with something missing, by a scripted agent, beside the formula. `python -m bench.tasks`.

The agent knows those facts of a task that the state still holds, as facts are matched everywhere, and goes on as the
solution says. No model is asked: this shows what tasks can see, and nothing about a model. It never enters a verdict.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from eval_core.base.config import TaskConfig
from eval_core.base.messages import Message, render
from eval_core.domain.case import load_suite
from eval_core.domain.measurement import Measurement
from eval_core.domain.rollout import RolloutRecord, tokens_per_clean_task
from eval_core.reporting.metrics import tokens_per_task
from eval_core.sandbox.isolation import detect
from eval_core.tasks.check import known_in, scripted
from eval_core.tasks.task import Task, find_tasks
from eval_core.tasks.task_workspace import Built, build
from tests import small

ROOT = Path(__file__).parents[1]
_FILE = re.compile(r"[\w/.-]+\.(py|sql|toml|md|db|csv|txt)\b")


def _without(state: Sequence[Message], gone: Callable[[str], bool]) -> list[Message]:
    """Drop the lines of a state that say something."""
    kept = []
    for message in state:
        text = message.get("content")
        lines = text.split("\n") if isinstance(text, str) else []
        kept.append({**message, "content": "\n".join(line for line in lines if not gone(line))} if lines else message)
    return kept


def _dropped(task: Task, lost: str) -> Callable[[str], bool]:
    """Return what tells a line that holds a fact whose loss does this."""
    anchors = [a for fact in task.file.facts if fact.lost == lost for a in task.lines[fact.id].anchors]
    return lambda line: any(anchor in line for anchor in anchors)


def _states(task: Task, measured: dict[str, Measurement]) -> dict[str, list[Message]]:
    def state(strategy: str) -> list[Message]:
        return measured[strategy].fixtures[task.fixture.name][0].messages

    anchored = state("anchored")
    return {
        "full transcript": task.fixture.messages,
        "anchored": anchored,
        "rules dropped": _without(anchored, _dropped(task, "rule")),
        "failed attempts dropped": _without(anchored, _dropped(task, "repeat")),
        "file list dropped": _without(
            anchored, lambda line: bool(_FILE.search(line)) and line.lstrip().startswith("-")
        ),
        "sliding window": state("sliding-window"),
        "opaque": state("opaque"),
        "nothing": task.fixture.messages[:1],
    }


async def _play(tasks: Sequence[Task], measured: dict[str, Measurement]) -> dict[str, list[RolloutRecord]]:
    sandbox, found = detect(), dict[str, list[RolloutRecord]]()
    for task in tasks:
        built: Built = await build(task, sandbox)
        for arm, state in _states(task, measured).items():
            found.setdefault(arm, []).append(await scripted(built, known_in(task, render(state)), state=state))
            print(f"{task.full_name}: {arm}", file=sys.stderr)
    return found


def main() -> None:
    """Print the table."""
    cases = load_suite(ROOT / "fixtures", ROOT / "probes")
    sessions = {case.fixture.name: case.fixture for case in cases}
    tasks = find_tasks(ROOT / "tasks", sessions, {case.fixture.name: case.ledger for case in cases})
    used = [case for case in cases if any(task.fixture.name == case.fixture.name for task in tasks)]
    with tempfile.TemporaryDirectory() as folder:
        names = ("anchored", "sliding-window", "opaque")
        measured = {name: small.measure(used, Path(folder) / name, name) for name in names}
    found = asyncio.run(_play(tasks, measured))
    print("| arm | finished cleanly | rules broken | dead ends or finished work again | priced tokens per clean task |")
    print("|---|---:|---:|---:|---:|")
    for arm, rollouts in found.items():
        tokens = tokens_per_clean_task(rollouts, TaskConfig())
        cells = (
            f"{sum(one.clean for one in rollouts)}/{len(rollouts)}",
            sum(len(one.failed("rule")) for one in rollouts),
            sum(len(one.failed("repeat", "redone")) for one in rollouts),
            "none" if tokens is None else f"{tokens:,.0f}",
        )
        print(f"| {arm} | {' | '.join(map(str, cells))} |")
    print()
    for name, measurement in measured.items():
        saving = tokens_per_task(measurement)
        print(f"the formula says of {name}: {saving.net if saving else float('nan'):,.0f} tokens saved a task")


if __name__ == "__main__":
    main()
