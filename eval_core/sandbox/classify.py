"""The outcome of a compression step, classified from the recorded model calls and what the child did."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from eval_core.base.files import canonical
from eval_core.base.messages import Message, content_text
from eval_core.domain.call import Completion, Failed, Usage
from eval_core.domain.compression import ModelRequest, ModelUse, Outcome
from eval_core.models.refusals import said_instead

NO_USE = frozenset({"empty", "refusal", "truncated", "malformed"})
"""Kinds of replies that are of no use: a prompt can ask for them, so they are not yet the provider's fault."""

# The record of a run's model calls, kept outside of the compressor.

CallStatus = Literal["arriving", "unfinished", "ok", "empty", "truncated", "failed", "refused"]


@dataclass
class CallRecord:
    """One request to the gateway, from its arrival to its end."""

    started: int
    """Position on the log's own clock, which ticks at each start and each end."""
    step: int = 0
    """The compression step it was made in, from 0."""
    asked_for: tuple[str, ...] = ()
    """The model's name, if it is another than the one that answers, and how hard it should think."""
    ended: int | None = None
    status: CallStatus = "arriving"
    """What the provider did with it; `arriving` and `refused` never reached the provider."""
    forwarded: bool = False
    forwarded_at: float = 0.0
    """Seconds on the monotonic clock at which it went to the model client, where it may have to wait for its turn."""
    out_since: float | None = None
    """When the request left that is with the provider now."""
    held_since: float | None = None
    """When the request left by which the provider has held it up: with it now, or with failures of its own since."""
    exchanges: list[tuple[float, float]] = field(default_factory=list)
    """When each request left and returned."""
    left: bool = False
    """The compressor closed the connection before the answer."""
    kind: str = ""
    """The failure's kind, or the reason of a refusal."""
    retryable: bool = True
    usage: Usage = field(default_factory=Usage)
    messages: tuple[Message, ...] = ()
    """What the model was shown."""
    settings: tuple[str, ...] = ()
    """What else was asked for, one `name: value` each."""
    reply: str = ""
    refusal: str = ""
    """The beginning of a reply that is a refusal in plain text."""
    stub: str = ""
    """A reply of so few characters that it is no summary."""
    queued_seconds: float = 0.0
    """How much longer the answer took than the model itself: our own queue, and retries."""
    dropped: tuple[str, ...] = ()
    """Fields of the request that were not passed on."""
    own_limit: bool = False
    """The compressor itself said how long the reply may be."""
    own_stop: bool = False
    """The compressor itself said at which words the reply ends."""
    cut_off: bool = False
    """The reply ended where the compressor wanted it to: it got what it had asked for."""


class CallLog:
    """All calls of one run, in order."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self.step = 0
        """The step that is under way."""
        self._clock = itertools.count()

    def start(self) -> CallRecord:
        """Note that a request came in."""
        record = CallRecord(started=next(self._clock), step=self.step)
        self.records.append(record)
        return record

    def forward(self, record: CallRecord) -> None:
        """Note that a request was complete and in order, and is with the model client from now on."""
        record.status, record.forwarded, record.forwarded_at = "unfinished", True, time.monotonic()

    def refuse(self, record: CallRecord, why: str) -> None:
        """Note that the gateway itself turned a request away."""
        record.ended, record.status, record.kind, record.retryable = next(self._clock), "refused", why, False
        record.forwarded, record.messages = False, ()

    def finish(self, record: CallRecord, result: Completion | Failed) -> None:
        """Note how a request ended."""
        record.ended, record.usage = next(self._clock), result.usage
        calls = result.calls if isinstance(result, Completion) else ()
        record.reply = "\n".join([result.text, *(call.arguments for call in calls)])
        empty = result.kind == "empty" if isinstance(result, Failed) else not (result.text.strip() or result.calls)
        truncated = isinstance(result, Failed) and result.kind == "truncated"
        if (truncated and record.own_limit) or (empty and record.own_stop):
            record.status, record.cut_off = "ok", True
            return
        if isinstance(result, Completion):
            record.status = "empty" if empty else "ok"
            record.refusal = result.refusal
            record.stub = result.text.strip() if said_instead(result.text, "") else ""
            record.kind = "" if record.status == "ok" else "empty"
            return
        record.kind, record.retryable = result.kind, result.retryable
        if result.kind == "refusal":
            # The model was asked no more after several refusals, or its provider refused for it.
            record.refusal = result.message
        if result.kind == "truncated":
            record.status = "truncated"
        else:
            record.status = "empty" if result.kind in NO_USE else "failed"


def last_word(records: Sequence[CallRecord]) -> list[CallRecord]:
    """Return the calls after which the compressor made no other: what it had in hand when it went on.

    For calls one after another this is the last one. For calls side by side it is all of the last
    batch, so that one failed part of many is not hidden by a neighbour that succeeded.
    """
    latest = max((record.started for record in records), default=0)
    return [record for record in records if record.ended is None or record.ended > latest]


def no_summary(records: Sequence[CallRecord], written: Sequence[Message]) -> str:
    """Return what the model said in place of a summary, or nothing.

    A few characters are no summary where the compressor put them into its text, and may be all that it asked for
    where it did not: a model can be asked which messages to keep.
    """
    last = last_word(records)
    if refusal := next((record.refusal for record in last if record.refusal), ""):
        return refusal
    texts = [content_text(message) for message in written]
    used = (record.stub for record in last if record.stub and any(record.stub in text for text in texts))
    return next((said_instead(stub, "") for stub in used), "")


def requests_of(records: Sequence[CallRecord]) -> tuple[ModelRequest, ...]:
    """Return what the model was shown and answered, each request of a step once: a retry repeats itself."""
    unique: dict[tuple[int, bytes], ModelRequest] = {}
    for record in records:
        if record.status == "ok":
            asked_for = record.asked_for
            request = ModelRequest(record.messages, record.step, record.reply, record.settings, asked_for)
            unique[record.step, canonical([list(record.messages), record.settings])] = request
    return tuple(sorted(unique.values(), key=lambda request: request.step))


def use_of(records: Sequence[CallRecord]) -> ModelUse:
    """Sum up what the calls came to."""
    costs = [record.usage.cost_usd for record in records]
    return ModelUse(
        calls=sum(record.forwarded for record in records),
        fruitless=sum(record.forwarded and record.status in ("failed", "truncated", "empty") for record in records),
        input_tokens=sum(record.usage.input_tokens for record in records),
        output_tokens=sum(record.usage.output_tokens for record in records),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


# From what was seen of one step to its outcome.

KEPT_AT_MOST = 0.9
"""The share of the tokens beyond which nothing was compressed."""
GROWN, GROWN_BY = 2, 20_000
"""A state that grew by more than this is not measured: reading megabytes of nonsense takes the evaluator minutes."""


@dataclass(frozen=True)
class StepEvidence:
    """All that is known of one step, or of a setup that never came to one."""

    needs_model: bool
    setup_error: str | None = None
    error: str | None = None
    """What the compressor did wrong: raised, died, ran out of time, returned no message list."""
    calls: Sequence[CallRecord] = ()
    """The gateway's records of this step."""
    gateway: str = ""
    """What the compressor's requests did to the gateway, where it did not withstand them."""
    provider_stalled: bool = False
    """A call that never ended was held up, by the provider or by other runs, for most of the time of the step.

    Measured when the compressor ended: one that raises, exits or is killed earlier did not wait for the call."""
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
    redraw: bool = False
    """Another try has to ask anew: the model did answer, and the same call would be replayed."""


# What the provider says of a request, not of itself.
_REQUEST_FAULTS = {
    "context_length": "its last model request was longer than the model's context window",
    "bad_request": "the model's provider refused its last request as a bad one",
}


_SAID = {
    "refusal": "refused to answer",
    "truncated": "was cut off",
    "malformed": "gave a reply that cannot be read",
}


def _failure(call: CallRecord) -> str:
    if call.kind == "budget":
        return "the budget was used up before the compressor's model call"
    return f"the compressor's last model call failed: {call.kind.replace('_', ' ')}"


def _of_calls(seen: StepEvidence) -> StepVerdict | None:
    """Say what the provider did, where that decides: a call that never reached it, or was dropped, does not."""
    last = last_word(seen.calls)
    for call in last:
        if call.status == "failed" and call.kind not in ("timeout", *_REQUEST_FAULTS):
            return StepVerdict(Outcome.INFRA, _failure(call), retry=call.retryable)
    if any(call.kind == "timeout" or (call.status == "unfinished" and seen.provider_stalled) for call in last):
        # A compressor can leave a call open, or ask for a reply without end: `blame` finds out whose doing it is.
        what = "the provider did not answer a model call within the time of the step"
        return StepVerdict(Outcome.BAD_COMPLETION, what, retry=True)
    for call in last:
        if call.status in ("empty", "truncated"):
            what = _SAID.get(call.kind, "answered with nothing")
            return StepVerdict(Outcome.BAD_COMPLETION, f"the compressor's model {what}", retry=True, redraw=True)
    return None


def _request_fault(call: CallRecord) -> str | None:
    """Return what the compressor did wrong with one call, if anything."""
    if call.status == "refused":
        return f"its last model request was turned away: {call.kind}"
    if call.status == "arriving":
        return "its last model request was never complete"
    if call.status == "failed":
        return _REQUEST_FAULTS.get(call.kind)
    if call.status == "unfinished":
        return "it did not wait for the answer to its last model call"
    return "it closed the connection before its last model call was answered" if call.left else None


def _own_fault(seen: StepEvidence) -> str | None:
    faults = [seen.error, seen.gateway, *(_request_fault(call) for call in last_word(seen.calls))]
    return "; ".join(dict.fromkeys(fault for fault in faults if fault)) or None


def classify(seen: StepEvidence) -> StepVerdict:
    """Name the outcome; the order keeps an outage from being blamed on the compressor, and the reverse."""
    if (verdict := _of_calls(seen)) is not None:
        return verdict
    if seen.setup_error is not None:
        return StepVerdict(Outcome.SETUP_ERROR, seen.setup_error)
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
    if seen.tokens_after > GROWN * seen.tokens_before + GROWN_BY:
        grown = f"it returned {seen.tokens_after:,} tokens for the {seen.tokens_before:,} that it was given"
        return StepVerdict(Outcome.TARGET_ERROR, f"{grown}; that much is not read")
    if seen.tokens_after > KEPT_AT_MOST * seen.tokens_before:
        kept = f"{seen.tokens_after:,} of {seen.tokens_before:,} tokens are still there"
        hint = "; it returned the list it was given" if seen.same_object else ""
        return StepVerdict(Outcome.NOT_COMPRESSED, kept + hint)
    return StepVerdict(Outcome.OK)
