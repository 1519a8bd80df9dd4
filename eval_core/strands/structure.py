"""Damage that no fact can see: order, pairs, roles, the place and the tone of the summary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from eval_core.base.messages import ROLES, Message, content_text, render, tool_calls
from eval_core.base.numbers import (
    counted,
    listed,
    quoted,
)
from eval_core.facts.fact_text import normalise
from eval_core.facts.verbatim import Kept, message_key
from eval_core.statistics.arms import Arm
from eval_core.strands.findings import (
    Culprit,
    Finding,
    StrandState,
)

STRUCTURE_CHECKS: dict[str, str] = {
    "kept_messages_in_order": "Messages that are kept are in their original order.",
    "kept_messages_unchanged": "Messages that are kept are kept whole; none is shortened or rewritten in place.",
    "last_user_request_present": "The last request of the user is still there, word for word, in a user message.",
    "no_empty_messages": "No message that the compressor wrote is empty.",
    "no_orders_in_summary": 'The summary does not give its reader orders ("resume exactly", "do not ask").',
    "nothing_duplicated": "No message appears more often than before.",
    "one_summary": "Whatever was taken out is replaced by exactly one summary.",
    "roles_accepted": "Every role is one that providers know, and the conversation does not open with a tool result.",
    "summary_before_tail": "The summary is where the gap is, before the messages that follow it.",
    "system_prompt_first": "The system prompt is the first message and begins with its original text.",
    "tool_pairs_whole": "Every tool result follows its call, and every call is answered.",
}

STRUCTURE_FAILURES: dict[str, str] = {
    "kept_messages_in_order": "kept messages are out of order",
    "kept_messages_unchanged": "kept messages are shortened or rewritten",
    "last_user_request_present": "the user's last request is gone",
    "no_empty_messages": "the compressor writes an empty message",
    "no_orders_in_summary": "the summary gives its reader orders",
    "nothing_duplicated": "messages are duplicated",
    "one_summary": "what was taken out is not replaced by exactly one summary",
    "roles_accepted": "a message has a role that providers refuse",
    "summary_before_tail": "the summary comes after messages that should follow it",
    "system_prompt_first": "the system prompt is not the first message, or was changed",
    "tool_pairs_whole": "tool calls and their results are separated",
}
"""What a failed check means, in the words of a sentence."""

_PROMPT_ROLES = ("system", "developer")
_ORDERS = re.compile(
    r"(?:resume|continue|pick up|carry on) (?:exactly|immediately|directly|right (?:where|from|away))"
    r"|(?:do not|don't|never) (?:ask|wait for|seek) (?:the user|any|for|further|clarif\w+|questions?|confirm\w*)"
    r"|do not ask|(?:continue|proceed|go on|resume|act) without (?:asking|waiting|confirmation|further questions)"
    r"|(?:begin|start|proceed|act) (?:immediately|at once|right away|without delay)"
    r"|you must (?:now|immediately|continue|resume)"
)


def orders_reader(text: str) -> bool:
    return _ORDERS.search(normalise(text)) is not None


def _calls(message: Message) -> list[tuple[str, str]]:
    """Return the call ids that tie a message to the original session whatever its text."""
    if message.get("role") == "tool":
        return [("answer", str(message.get("tool_call_id")))]
    return [("call", str(call.get("id"))) for call in tool_calls(message)]


def _index_by_call(messages: Sequence[Message]) -> dict[tuple[str, str], int]:
    return {call: index for index, message in enumerate(messages) for call in _calls(message)}


def _changed_origin(message: Message, by_call: dict[tuple[str, str], int]) -> int | None:
    return next((by_call[call] for call in _calls(message) if call in by_call), None)


def _pairs_whole(messages: Sequence[Message]) -> bool:
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            call = str(message.get("tool_call_id"))
            if call not in waiting:
                return False
            waiting.remove(call)
            continue
        if waiting:
            return False
        waiting = {str(call.get("id")) for call in tool_calls(message)}
    return not waiting


def _roles_accepted(messages: Sequence[Message]) -> bool:
    if not messages or any(message.get("role") not in ROLES for message in messages):
        return False
    first = next((message for message in messages if message["role"] not in _PROMPT_ROLES), None)
    return first is not None and first["role"] != "tool"


def _system_first(original: Sequence[Message], compressed: Sequence[Message]) -> bool:
    if not original or original[0].get("role") not in _PROMPT_ROLES:
        return True
    if not compressed or compressed[0].get("role") != original[0]["role"]:
        return False
    return content_text(compressed[0]).startswith(content_text(original[0]).rstrip())


def _last_request(original: Sequence[Message], compressed: Sequence[Message]) -> bool:
    requests = [content_text(message).strip() for message in original if message.get("role") == "user"]
    requests = [request for request in requests if request]
    if not requests:
        return True
    return any(message.get("role") == "user" and requests[-1] in content_text(message) for message in compressed)


def _summaries(kept: Kept, others: set[int]) -> list[int]:
    """Return where the compressor's own text stands, a note after the system prompt aside."""
    prompt = 0 if kept.original and _system_first(kept.original, kept.compressed) else -1
    own = {*kept.alignment.written, *kept.alignment.carried} - others
    noted = own & {prompt} if kept.compressed and kept.compressed[0].get("role") in _PROMPT_ROLES else set()
    return sorted(own - noted or noted)


def changed_in_place(kept: Kept) -> dict[int, int]:
    """Return the compressed messages that are originals with another text, each with its original's index."""
    by_call = _index_by_call(kept.original)
    before = {message_key(message) for message in kept.original}
    # An original that stands out of order or twice has its equal, but no partner in the ordered pairing.
    return {
        at: origin
        for at in kept.alignment.written
        if message_key(kept.compressed[at]) not in before
        and (origin := _changed_origin(kept.compressed[at], by_call)) is not None
    }


def structure_checks(
    original: Sequence[Message], compressed: Sequence[Message], kept: Kept | None = None
) -> dict[str, bool]:
    """Return each named check as passed or failed for one compression."""
    kept = kept or Kept(original, compressed)
    before, after = Counter(map(message_key, original)), Counter(map(message_key, compressed))
    # An original that stands out of order or twice has its equal, but no partner in the ordered pairing.
    strays = {at for at in kept.alignment.written if message_key(compressed[at]) in before}
    duplicated = any(count > before[key] for key, count in after.items() if key in before)
    displaced = any(after[key] <= before[key] for key in (message_key(compressed[at]) for at in strays))
    changed = changed_in_place(kept)
    summaries = _summaries(kept, strays | changed.keys())
    present = {*kept.alignment.kept.values(), *kept.alignment.carried.values(), *changed.values()}
    gap = next((index for index in range(len(original)) if index not in present), None)
    places = kept.alignment.kept | changed
    misplaced = gap is not None and any(places[at] > gap for at in places if at < max(summaries, default=-1))
    orders = {match.group() for text in kept.own_texts for match in _ORDERS.finditer(normalise(text))}
    # What the session itself said may be told again.
    known = normalise(render(original)) if orders else ""
    return {
        "kept_messages_in_order": not displaced,
        "kept_messages_unchanged": not changed,
        "last_user_request_present": _last_request(original, compressed),
        "no_empty_messages": all(
            content_text(compressed[at]).strip() or tool_calls(compressed[at]) for at in summaries
        ),
        "no_orders_in_summary": all(order in known for order in orders),
        "nothing_duplicated": not duplicated,
        "one_summary": len(summaries) == (0 if gap is None else 1),
        "roles_accepted": _roles_accepted(compressed),
        "summary_before_tail": not misplaced,
        "system_prompt_first": _system_first(original, compressed),
        "tool_pairs_whole": _pairs_whole(compressed),
    }


# Which messages a compression kept word for word, and where. For most compressors this is code, not the work of a
# model: it comes out the same in every run, and a change in it is certain.


MAJORITY = 0.5
"""Broken needs more than this share of failing runs."""


@dataclass(frozen=True)
class StructureChange:
    """One check of one fixture that no longer behaves as in the baseline."""

    fixture: str
    check: str
    kind: Literal["broken", "repaired", "shaky"]
    base_passed: int
    base_runs: int
    candidate_passed: int
    candidate_runs: int

    @property
    def label(self) -> str:
        """How people read it."""
        return f"{self.fixture} / {self.check}"


def _classify(base: list[bool], candidate: list[bool]) -> Literal["broken", "repaired", "shaky"] | None:
    failed, failed_before = candidate.count(False) / len(candidate), base.count(False) / len(base)
    if not failed_before and failed > MAJORITY:
        return "broken"
    if not failed and failed_before > MAJORITY:
        return "repaired"
    return "shaky" if failed and not failed_before else None


def changes(base: Arm, candidate: Arm) -> tuple[StructureChange, ...]:
    """Return every check that changed, in the baseline's order of fixtures and checks."""
    found = []
    for name, arm in base.fixtures.items():
        other = candidate.fixtures.get(name)
        if other is None:
            continue
        for check in dict.fromkeys(key for run in arm.structure for key in run):
            before = [run[check] for run in arm.structure if check in run]
            now = [run[check] for run in other.structure if check in run]
            kind = _classify(before, now) if now else None
            if kind is not None:
                found.append(
                    StructureChange(name, check, kind, before.count(True), len(before), now.count(True), len(now))
                )
    return tuple(found)


def structure_culprits(structure: Iterable[StructureChange]) -> list[Culprit]:
    """Return the checks that broke or were repaired; one that fails only sometimes proves nothing yet."""
    return [
        Culprit(
            kind="structure",
            direction="worse" if item.kind == "broken" else "better",
            name=item.check,
            fixture=item.fixture,
            base=item.base_passed / item.base_runs,
            candidate=item.candidate_passed / item.candidate_runs,
            delta=item.candidate_passed / item.candidate_runs - item.base_passed / item.base_runs,
        )
        for item in structure
        if item.kind != "shaky"
    ]


def _by_check(changes: Sequence[StructureChange], kind: str) -> list[str]:
    found = Counter(item.check for item in changes if item.kind == kind)

    def words(check: str) -> str:
        failure = STRUCTURE_FAILURES.get(check, f"structure check {check} fails")
        return failure if kind == "broken" else quoted(failure)

    return [f"{words(check)} ({counted(number, 'fixture')})" for check, number in found.items()]


def _checks(arm: Arm) -> tuple[int, int]:
    """Count the checks that pass, and all: a check of a fixture passes if it passes in every run."""
    passed = [
        all(run[check] for run in fixture.structure if check in run)
        for fixture in arm.fixtures.values()
        for check in dict.fromkeys(name for run in fixture.structure for name in run)
    ]
    return sum(passed), len(passed)


def structure_strand(changes: Sequence[StructureChange], base: Arm, candidate: Arm) -> Finding:
    """Say which checks broke or were repaired."""
    broken, repaired = _by_check(changes, "broken"), _by_check(changes, "repaired")
    says = [listed(broken)] if broken else []
    says += [f"repaired: {listed(repaired)}"] if repaired else []
    counts = _checks(base), _checks(candidate)
    before, now = (f"{passed} of {every} checks" if every else "" for passed, every in counts)
    state = StrandState.WORSE if broken else StrandState.BETTER if repaired else StrandState.SAME
    return Finding(
        name="structure",
        state=state,
        base=before,
        candidate=now,
        says="; ".join(says),
        details=tuple(f"{item.kind}: {item.label}" for item in changes),
        loss=float(bool(broken)),
        gain=sum(item.kind == "repaired" for item in changes) / max(counts[1][1], 1),
    )
