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
from dataclasses import dataclass, replace
from pathlib import Path

from eval_core.base.config import TaskConfig
from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages
from eval_core.domain.case import load_suite
from eval_core.domain.compression import Compression, RoundLog
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Measurement
from eval_core.domain.rollout import RolloutRecord, tokens_per_clean_task
from eval_core.reporting.metrics import tokens_per_task
from eval_core.sandbox.isolation import detect
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.tasks.check import from_states
from eval_core.tasks.task import Task, find_tasks
from tests import small

ROOT = Path(__file__).parents[1]
_FILE = re.compile(r"[\w/.-]+\.(py|sql|toml|md|db|csv|txt)\b")


@dataclass(frozen=True)
class _Edited(BuiltinSubject):
    """A reference compressor whose state loses the lines that something speaks of."""

    gone: Callable[[str, str], bool] = lambda session, line: False

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: RoundLog | None = None
    ) -> Compression:
        done = await super().compress(fixture, run=run, seed=seed, focus_topic=focus_topic, log=log)
        state = [self._shorter(fixture.name, message) for message in done.state]
        last = replace(done.steps[-1], messages=state, tokens_after=count_messages(state))
        return replace(done, steps=(*done.steps[:-1], last))

    def _shorter(self, session: str, message: Message) -> Message:
        text = message.get("content")
        if not isinstance(text, str) or not text:
            return message
        return {**message, "content": "\n".join(line for line in text.split("\n") if not self.gone(session, line))}


def _arms(tasks: Sequence[Task]) -> dict[str, BuiltinSubject]:
    """Return the compressors, and the reference one with something taken out."""
    anchors: dict[tuple[str, str], set[str]] = {}
    for task in tasks:
        for fact in task.file.facts:
            anchors.setdefault((task.fixture.name, fact.lost), set()).update(task.lines[fact.id].anchors)

    def about(lost: str) -> Callable[[str, str], bool]:
        return lambda session, line: any(anchor in line for anchor in anchors.get((session, lost), ()))

    return {
        "anchored": BuiltinSubject("anchored"),
        "anchored, lines with rules dropped": _Edited("anchored", gone=about("rule")),
        "anchored, lines with failed attempts dropped": _Edited("anchored", gone=about("repeat")),
        "anchored, list of files dropped": _Edited(
            "anchored", gone=lambda session, line: bool(_FILE.search(line)) and line.lstrip().startswith("-")
        ),
        "sliding window": BuiltinSubject("sliding-window"),
        "opaque": BuiltinSubject("opaque"),
    }


def _row(arm: str, rollouts: Sequence[RolloutRecord], measurement: Measurement | None) -> str:
    tokens = tokens_per_clean_task(rollouts, TaskConfig())
    saving = tokens_per_task(measurement) if measurement is not None else None
    cells = (
        arm,
        f"{sum(one.clean for one in rollouts)}/{len(rollouts)}",
        sum(len(one.failed("rule")) for one in rollouts),
        sum(len(one.failed("repeat", "redone")) for one in rollouts),
        "none" if tokens is None else f"{tokens:,.0f}",
        "" if saving is None else f"{saving.net:,.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print the table."""
    cases = load_suite(ROOT / "fixtures", ROOT / "probes")
    sessions = {case.fixture.name: case.fixture for case in cases}
    tasks = find_tasks(ROOT / "tasks", sessions, {case.fixture.name: case.ledger for case in cases})
    used = [case for case in cases if any(task.fixture.name == case.fixture.name for task in tasks)]
    with tempfile.TemporaryDirectory() as folder:
        measured = {
            arm: small.measure(used, Path(folder) / str(number), subject)
            for number, (arm, subject) in enumerate(_arms(tasks).items())
        }
    states = {
        "full transcript": {case.fixture.name: case.fixture.messages for case in used},
        **{arm: {name: runs[0].messages for name, runs in found.fixtures.items()} for arm, found in measured.items()},
        "the system message alone": {case.fixture.name: case.fixture.messages[:1] for case in used},
    }
    found = asyncio.run(from_states(tasks, detect(), states, lambda text: print(text, file=sys.stderr)))
    print(
        "| state | finished cleanly | rules broken | dead ends or finished work again | priced tokens per clean task | "
        "the formula: tokens saved |\n|---|---:|---:|---:|---:|---:|"
    )
    for arm, rollouts in found.items():
        print(_row(arm, rollouts, measured.get(arm)))


if __name__ == "__main__":
    main()
