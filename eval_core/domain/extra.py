"""Metadata of a measurement: how it was compared, what else was measured with it, which shard of a run it is."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import SerializerFunctionWrapHandler, ValidationError, field_validator, model_serializer, model_validator

from eval_core.domain.judge_record import JudgeRecord
from eval_core.domain.record import Record, RoundsRecord, RunRecord, TriggerRecord
from eval_core.domain.rollout import PlayedTasks

Unexercised = Literal["focus", "model", "trigger", "chain", "judge"]
"""What a measurement may leave out: a focus topic, a compressor model, the trigger, chained compressions, a judge."""


_REMOVED = frozenset({"grouping", "drift", "regraded"})
"""Notes of older versions, which nothing reads any more."""


class Look(NamedTuple):
    """What had been measured when a verdict was given."""

    graded: int
    compressed: int
    """Runs of each fixture."""


class ControlRuns(Record):
    """Runs of the base that were measured beside a candidate."""

    fixtures: dict[str, list[RunRecord]]
    source_sha: str | None = None


class PlayedRounds(Record):
    """Sessions that were compressed again and again: the runs of both sides, as far as they were played."""

    candidate: list[RoundsRecord]
    base: list[RoundsRecord] = []
    failed: list[str] = []
    """Runs that the compressor did not bring to an end, and why."""
    base_failed: list[str] = []
    triggered: list[TriggerRecord] = []
    """Sessions that were compressed when it was due, once on each side."""
    base_triggered: list[TriggerRecord] = []


class MergedShards(Record):
    """The shards that a result was merged from."""

    of: int
    journal_bytes: int
    """Size of the merged journal: a larger one holds calls that were paid for since."""


class Extra(Record):
    """Notes of a run. Only those that were made are written to a file."""

    calibration: JudgeRecord | None = None
    """What is known of the judge."""
    control: ControlRuns | None = None
    """A few runs of the base, measured beside the candidate."""
    looks: tuple[Look, ...] = ()
    """What had been measured at earlier verdicts about the same candidate."""
    base: Literal["rerun"] | None = None
    """The folder `base` below the result holds the base, measured in this run."""
    branch: str | None = None
    """The branch that this was measured of, where it is the base of another measurement."""
    stale: bool = False
    """The base branch has moved on since the stored baseline was measured."""
    compared: bool = False
    """It was compared with a baseline, so accepting it as one selects for luck."""
    served: dict[str, dict[str, int]] = {}
    """Which models answered for which, and how often."""
    broken_lines: int = 0
    """Lines of the journal that could not be read: what they say was paid is unknown, and may be paid again."""
    touched: tuple[Unexercised, ...] = ()
    """What the watched files that differ from the base's speak of, whether or not it was exercised."""
    shard: str | None = None
    """Which part of a run it is."""
    shards: MergedShards | None = None
    rounds: PlayedRounds | None = None
    """Long sessions that were played beside the suite."""
    tasks: PlayedTasks | None = None
    """Rollouts of tasks, where they were asked for."""
    promoted: str | None = None
    """Which runs of a pull request were taken over into this baseline."""

    @model_validator(mode="before")
    @classmethod
    def _without_removed(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        # A base whose answers were graded again is a copy of the stored one, which it is compared with now.
        left_out = _REMOVED | ({"base"} if value.get("base") == "regraded" else set())
        return {name: item for name, item in value.items() if name not in left_out}

    @field_validator("calibration", mode="before")
    @classmethod
    def _of_this_version(cls, value: object) -> object:
        """Take a record of another version for none: the judge is measured again."""
        try:
            return None if value is None else JudgeRecord.model_validate(value)
        except ValidationError:
            return None

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        body: dict[str, Any] = handler(self)
        fields = type(self).model_fields
        return {name: value for name, value in body.items() if getattr(self, name) != fields[name].default}
