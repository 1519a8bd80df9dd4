"""Records of rollouts: an agent that goes on from a state, and what it left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from eval_core.base.config import TaskConfig
from eval_core.domain.compression import TokenUse
from eval_core.domain.record import Record

RolloutArm = Literal["base", "candidate", "full", "nothing"]
"""The two sides, and the controls: the full transcript, and nothing of it."""
Measure = Literal["unfinished", "rule broken"]
MEASURES: tuple[Measure, ...] = ("unfinished", "rule broken")


class CheckRecord(Record):
    """What one check found."""

    name: str
    kind: Literal["done", "rule", "repeat", "redone"]
    passed: bool
    says: str = ""


class ActionRecord(Record):
    """One call of the agent, as far as readers are shown it."""

    tool: str
    given: str
    result: str


class RolloutRecord(Record, TokenUse):
    """One rollout of one task."""

    task: str
    arm: RolloutArm
    number: int
    """Rollout r goes on from compression r."""
    stage: Literal[1, 2] = 1
    ended: str = "stopped"
    """Why it ended: the agent stopped, or a limit in a word or two."""
    says: str = ""
    checks: list[CheckRecord]
    actions: list[ActionRecord] = []
    turns: int = 0
    compressor_input_tokens: int = 0
    compressor_output_tokens: int = 0
    """What the state that it went on from cost to make."""
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether the job is done, whatever it broke."""
        return all(check.passed for check in self.checks if check.kind == "done")

    def failed(self, *kinds: str) -> list[str]:
        """Return the names of the checks of these kinds that did not pass."""
        return [check.name for check in self.checks if check.kind in kinds and not check.passed]

    @property
    def clean(self) -> bool:
        """Whether the job is done and no rule is broken."""
        return self.finished and not self.failed("rule")

    def fails(self, measure: Measure) -> bool:
        """Tell whether it counts as a failure by one measure."""
        return not self.finished if measure == "unfinished" else bool(self.failed("rule"))

    def priced(self, prices: TaskConfig) -> float:
        """Return its tokens, those of its compression too, in full-price input tokens."""
        anew = self.input_tokens - self.cached_tokens + self.compressor_input_tokens
        written = self.output_tokens + self.compressor_output_tokens
        return anew + self.cached_tokens * prices.cached_price + written * prices.output_price

    @property
    def looked_up(self) -> int:
        """How often it read a file or searched: what the state does not say has to be read again."""
        return sum(action.tool in ("read_file", "search_files") for action in self.actions)


class NextActions(Record):
    """The calls that a model would make next, from one state of a session."""

    session: str
    arm: RolloutArm
    calls: list[ActionRecord]


class TaskState(Record):
    """Whether a task counts, and for what model."""

    name: str
    admitted: bool
    why: str = ""
    """Why it does not count."""


class PlayedTasks(Record):
    """The rollouts of a run."""

    model: str = ""
    tasks: list[TaskState] = []
    rollouts: list[RolloutRecord] = []
    next_actions: list[NextActions] = []
    prices: TaskConfig = TaskConfig()
    not_measured: str = ""
    """Why no task could be measured, or why some rollouts are missing: an outage is never a failed task."""

    def of(self, arm: RolloutArm, task: str | None = None, stage: int | None = None) -> list[RolloutRecord]:
        """Return the rollouts of a side that count."""
        admitted = {item.name for item in self.tasks if item.admitted}
        return [
            rollout
            for rollout in self.rollouts
            if rollout.arm == arm
            and rollout.task in admitted
            and task in (None, rollout.task)
            and stage in (None, rollout.stage)
        ]


def tokens_per_clean_task(rollouts: Iterable[RolloutRecord], prices: TaskConfig) -> float | None:
    """Return everything that a side spent, by task that it finished cleanly; None where it finished none."""
    found = list(rollouts)
    clean = sum(rollout.clean for rollout in found)
    return sum(rollout.priced(prices) for rollout in found) / clean if clean else None
