"""The record of a run's model calls, kept outside of the compressor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from eval_core.model.outcome import Completion, Failed, Usage
from eval_core.subject.outcome import ModelUse

__all__ = ["CallLog", "CallRecord", "CallStatus", "last_word", "use_of"]

CallStatus = Literal["unfinished", "ok", "empty", "truncated", "failed", "refused"]


@dataclass
class CallRecord:
    """One request to the gateway, from its arrival to its end."""

    started: int
    """Position on the log's own clock, which ticks at each start and each end."""
    requested_model: str = ""
    ended: int | None = None
    status: CallStatus = "unfinished"
    kind: str = ""
    """The failure's kind, or the reason of a refusal."""
    retryable: bool = True
    usage: Usage = field(default_factory=Usage)
    dropped: tuple[str, ...] = ()
    """Fields of the request that were not passed on."""


class CallLog:
    """All calls of one run, in order."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self._clock = itertools.count()

    def start(self) -> CallRecord:
        """Note that a request came in."""
        record = CallRecord(started=next(self._clock))
        self.records.append(record)
        return record

    def refuse(self, record: CallRecord, why: str) -> None:
        """Note that the gateway itself turned a request away."""
        record.ended, record.status, record.kind, record.retryable = next(self._clock), "refused", why, False

    def finish(self, record: CallRecord, result: Completion | Failed) -> None:
        """Note how a request ended."""
        record.ended, record.usage = next(self._clock), result.usage
        if isinstance(result, Completion):
            record.status = "ok" if result.text.strip() else "empty"
            record.kind = "" if record.status == "ok" else "empty"
            return
        record.kind, record.retryable = result.kind, result.retryable
        if result.kind == "truncated":
            record.status = "truncated"
        else:
            record.status = "empty" if result.kind in ("empty", "refusal") else "failed"


def last_word(records: Sequence[CallRecord]) -> list[CallRecord]:
    """Return the calls after which the compressor made no other: what it had in hand when it went on.

    For calls one after another this is the last one. For calls side by side it is all of the last
    batch, so that one failed part of many is not hidden by a neighbour that succeeded.
    """
    return [
        record
        for record in records
        if not any(record.ended is not None and later.started > record.ended for later in records)
    ]


def use_of(records: Sequence[CallRecord]) -> ModelUse:
    """Sum up what the calls came to."""
    costs = [record.usage.cost_usd for record in records]
    return ModelUse(
        calls=sum(record.status != "refused" for record in records),
        input_tokens=sum(record.usage.input_tokens for record in records),
        output_tokens=sum(record.usage.output_tokens for record in records),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        requested_models=tuple(dict.fromkeys(record.requested_model for record in records if record.requested_model)),
    )
