"""From what was seen of one step to its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_core.subject.calls import CallRecord, last_word
from eval_core.subject.outcome import Outcome

__all__ = ["KEPT_AT_MOST", "Evidence", "Verdict", "classify"]

KEPT_AT_MOST = 0.9
"""The share of the tokens beyond which nothing was compressed."""


@dataclass(frozen=True)
class Evidence:
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
class Verdict:
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


def _of_calls(calls: Sequence[CallRecord]) -> Verdict | None:
    last = last_word(calls)
    for call in last:
        # A prompt that is too long for the model is the compressor's own doing.
        if call.status == "unfinished" or (call.status == "failed" and call.kind != "context_length"):
            return Verdict(Outcome.INFRA, _failure(call), retry=call.status == "unfinished" or call.retryable)
    for call in last:
        if call.status in ("empty", "truncated"):
            what = {"refusal": "refused to answer", "truncated": "was cut off"}.get(call.kind, "answered with nothing")
            return Verdict(Outcome.BAD_COMPLETION, f"the compressor's model {what}", retry=True)
    return None


def _own_fault(seen: Evidence) -> str | None:
    reasons = [seen.error] if seen.error else []
    for call in last_word(seen.calls):
        if call.status == "refused":
            reasons.append(f"its last model request was turned away: {call.kind}")
        elif call.status == "failed" and call.kind == "context_length":
            reasons.append("its last model request was longer than the model's context window")
    return "; ".join(reasons) or None


def classify(seen: Evidence) -> Verdict:
    """Name the outcome; the order keeps an outage from being blamed on the compressor, and the reverse."""
    if seen.setup_error is not None:
        return Verdict(Outcome.SETUP_ERROR, seen.setup_error)
    if (verdict := _of_calls(seen.calls)) is not None:
        return verdict
    if (fault := _own_fault(seen)) is not None:
        return Verdict(Outcome.TARGET_ERROR, fault)
    if seen.needs_model and not seen.calls:
        hint = " and returned the list it was given" if seen.same_object else ""
        return Verdict(Outcome.NOT_EXERCISED, f"the compressor called no model{hint}; the target says llm: required")
    if seen.degraded:
        reason = f": {seen.degraded_reason}" if seen.degraded_reason else ""
        return Verdict(Outcome.DEGRADED, f"the compressor says that it fell back{reason}")
    if seen.tokens_after > KEPT_AT_MOST * seen.tokens_before:
        kept = f"{seen.tokens_after:,} of {seen.tokens_before:,} tokens are still there"
        hint = "; it returned the list it was given" if seen.same_object else ""
        return Verdict(Outcome.NOT_COMPRESSED, kept + hint)
    return Verdict(Outcome.OK)
