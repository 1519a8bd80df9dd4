"""The outcome of a compression step, classified from the recorded model calls and what the child did."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from eval_core.domain.call import Completion, Failed, Usage
from eval_core.domain.compression import ModelUse, Outcome

__all__ = [
    "KEPT_AT_MOST",
    "CallLog",
    "CallRecord",
    "CallStatus",
    "StepEvidence",
    "StepVerdict",
    "classify",
    "last_word",
    "use_of",
]

# The record of a run's model calls, kept outside of the compressor.

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
    asked_at: float = 0.0
    """When the model client was asked, on the monotonic clock."""
    queued_seconds: float = 0.0
    """How much longer the answer took than the model itself: our own queue, and retries."""
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
            record.status = "ok" if result.text.strip() or result.calls else "empty"
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


# From what was seen of one step to its outcome.

KEPT_AT_MOST = 0.9
"""The share of the tokens beyond which nothing was compressed."""


@dataclass(frozen=True)
class StepEvidence:
    """All that is known of one step, or of a setup that never came to one."""

    needs_model: bool
    setup_error: str | None = None
    error: str | None = None
    """What the compressor did wrong: raised, died, ran out of time, returned no message list."""
    calls: Sequence[CallRecord] = ()
    """The gateway's records of this step."""
    degraded: bool = False
    degraded_reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    same_object: bool = False


@dataclass(frozen=True)
class StepVerdict:
    """An outcome, its reason for people, and whether another try may end otherwise."""

    outcome: Outcome
    detail: str = ""
    retry: bool = False


def _failure(call: CallRecord) -> str:
    if call.status == "unfinished":
        return "a model call had not ended when the compressor stopped"
    if call.kind == "budget":
        return "the budget was used up before the compressor's model call"
    return f"the compressor's last model call failed: {call.kind.replace('_', ' ')}"


def _of_calls(calls: Sequence[CallRecord]) -> StepVerdict | None:
    last = last_word(calls)
    for call in last:
        # A prompt that is too long for the model is the compressor's own doing.
        if call.status == "unfinished" or (call.status == "failed" and call.kind != "context_length"):
            return StepVerdict(Outcome.INFRA, _failure(call), retry=call.status == "unfinished" or call.retryable)
    for call in last:
        if call.status in ("empty", "truncated"):
            what = {"refusal": "refused to answer", "truncated": "was cut off"}.get(call.kind, "answered with nothing")
            return StepVerdict(Outcome.BAD_COMPLETION, f"the compressor's model {what}", retry=True)
    return None


def _own_fault(seen: StepEvidence) -> str | None:
    reasons = [seen.error] if seen.error else []
    for call in last_word(seen.calls):
        if call.status == "refused":
            reasons.append(f"its last model request was turned away: {call.kind}")
        elif call.status == "failed" and call.kind == "context_length":
            reasons.append("its last model request was longer than the model's context window")
    return "; ".join(reasons) or None


def classify(seen: StepEvidence) -> StepVerdict:
    """Name the outcome; the order keeps an outage from being blamed on the compressor, and the reverse."""
    if seen.setup_error is not None:
        return StepVerdict(Outcome.SETUP_ERROR, seen.setup_error)
    if (verdict := _of_calls(seen.calls)) is not None:
        return verdict
    if (fault := _own_fault(seen)) is not None:
        return StepVerdict(Outcome.TARGET_ERROR, fault)
    if seen.needs_model and not seen.calls:
        hint = " and returned the list it was given" if seen.same_object else ""
        return StepVerdict(
            Outcome.NOT_EXERCISED, f"the compressor called no model{hint}; the target says llm: required"
        )
    if seen.degraded:
        reason = f": {seen.degraded_reason}" if seen.degraded_reason else ""
        return StepVerdict(Outcome.DEGRADED, f"the compressor says that it fell back{reason}")
    if seen.tokens_after > KEPT_AT_MOST * seen.tokens_before:
        kept = f"{seen.tokens_after:,} of {seen.tokens_before:,} tokens are still there"
        hint = "; it returned the list it was given" if seen.same_object else ""
        return StepVerdict(Outcome.NOT_COMPRESSED, kept + hint)
    return StepVerdict(Outcome.OK)
