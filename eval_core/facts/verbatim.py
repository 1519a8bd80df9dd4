"""Which original messages a compression left as they were, and what it wrote itself."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_core.base.files import canonical
from eval_core.base.messages import Message, content_text, full_text, tool_calls
from eval_core.facts.fact_text import Haystack

_LONG = 40  # a shorter text inside another one may well be chance
_COPIES = 16  # equal messages looked at per message; more would make many "ok"s quadratic


def message_key(message: Message) -> bytes:
    """Return what makes two messages the same: role, content, calls and the call that is answered."""
    calls = [[call.get("id"), call.get("function")] for call in tool_calls(message)]
    parts = [message.get("role"), message.get("content") or "", calls, message.get("tool_call_id")]
    return hashlib.sha256(canonical(parts)).digest()


@dataclass(frozen=True)
class Alignment:
    """For each compressed message that stems from an original one, that one's index."""

    kept: dict[int, int]
    carried: dict[int, int]
    """Messages that hold an original's whole text and more (a summary put before it)."""
    written: tuple[int, ...]
    """Messages of the compressor's own, without an original."""


def _kept(original: Sequence[bytes], compressed: Sequence[bytes]) -> dict[int, int]:
    """Pair equal messages in order: the common tail and head first, since compressors keep those."""
    kept: dict[int, int] = {}
    end = 0
    while end < min(len(original), len(compressed)) and original[-1 - end] == compressed[-1 - end]:
        end += 1
        kept[len(compressed) - end] = len(original) - end
    tail, last = len(original) - end, len(compressed) - end
    head = 0
    while head < min(tail, last) and original[head] == compressed[head]:
        kept[head] = head
        head += 1
    kept.update(_longest_ordered(original, compressed, range(head, tail), range(head, last)))
    return kept


def _longest_ordered(
    original: Sequence[bytes], compressed: Sequence[bytes], among: range, wanted: range
) -> dict[int, int]:
    """Pair as many equal messages as can be paired in one order (longest increasing subsequence)."""
    places: dict[bytes, list[int]] = {}
    for index in among:
        places.setdefault(original[index], []).append(index)
    ends: list[int] = []  # the smallest original index that ends a run of each length
    nodes: list[tuple[int, int, int]] = []  # compressed index, original index, previous node
    at_end: list[int] = []
    for at in wanted:
        for index in reversed(places.get(compressed[at], [])[:_COPIES]):
            length = bisect_left(ends, index)
            nodes.append((at, index, at_end[length - 1] if length else -1))
            if length == len(ends):
                ends.append(index)
                at_end.append(len(nodes) - 1)
            else:
                ends[length] = index
                at_end[length] = len(nodes) - 1
    pairs: dict[int, int] = {}
    node = at_end[-1] if at_end else -1
    while node >= 0:
        at, index, node = nodes[node]
        pairs[at] = index
    return pairs


def _carries(message: Message, original: Message) -> bool:
    if message.get("role") != original.get("role") or list(tool_calls(message)) != list(tool_calls(original)):
        return False
    text, wanted = content_text(message).strip(), content_text(original).strip()
    if not wanted or len(text) <= len(wanted):
        return False
    if text.endswith(f"\n{wanted}") or text.startswith(f"{wanted}\n"):
        return True
    return len(wanted) >= _LONG and f"\n{wanted}\n" in text


def align(original: Sequence[Message], compressed: Sequence[Message]) -> Alignment:
    """Pair the messages of a compressed list with the originals they are."""
    kept = _kept([message_key(message) for message in original], [message_key(message) for message in compressed])
    used = set(kept.values())
    # A carried text begins or ends on a line of its own; looking its edges up keeps this linear.
    by_edge: dict[str, list[int]] = {}
    for index in range(len(original) - 1, -1, -1):
        lines = content_text(original[index]).strip().splitlines() if index not in used else []
        for line in {lines[0], lines[-1]} if lines else ():
            known = by_edge.setdefault(line, [])
            if len(known) < _COPIES:
                known.append(index)
    carried: dict[int, int] = {}
    for at, message in enumerate(compressed):
        if at in kept:
            continue
        for line in dict.fromkeys(reversed(content_text(message).strip().splitlines())):
            found = next((i for i in by_edge.get(line, ()) if i not in used and _carries(message, original[i])), None)
            if found is not None:
                carried[at] = found
                used.add(found)
                break
    written = tuple(at for at in range(len(compressed)) if at not in kept and at not in carried)
    return Alignment(kept, carried, written)


def verbatim_indexes(original: Sequence[Message], compressed: Sequence[Message]) -> frozenset[int]:
    """Return the indexes of the original messages whose text stands unchanged in the compressed list."""
    alignment = align(original, compressed)
    return frozenset(alignment.kept.values()) | frozenset(alignment.carried.values())


@dataclass(frozen=True)
class Kept:
    """One compression seen from the facts: what it left verbatim and what it wrote anew."""

    original: Sequence[Message]
    compressed: Sequence[Message]

    @cached_property
    def alignment(self) -> Alignment:
        """How the two lists correspond."""
        return align(self.original, self.compressed)

    @cached_property
    def indexes(self) -> frozenset[int]:
        """The original messages left verbatim."""
        return frozenset(self.alignment.kept.values()) | frozenset(self.alignment.carried.values())

    @cached_property
    def haystack(self) -> Haystack:
        """The text left verbatim."""
        return Haystack.of_messages(self.original[index] for index in sorted(self.indexes))

    @cached_property
    def own_texts(self) -> tuple[str, ...]:
        """What the compressor wrote or changed, message by message; a carried text is taken out."""
        texts = []
        for at, message in enumerate(self.compressed):
            if at in self.alignment.kept:
                continue
            text = full_text(message)
            if at in self.alignment.carried:
                text = text.replace(full_text(self.original[self.alignment.carried[at]]).strip(), "", 1)
            texts.append(text)
        return tuple(texts)

    @cached_property
    def own(self) -> Haystack:
        """Everything the compressor wrote or changed."""
        return Haystack.of_all(self.own_texts)

    def untested(self, evidence: Iterable[int]) -> bool:
        """Tell whether all the evidence was left verbatim: such a fact measures nothing."""
        indexes = list(evidence)
        return bool(indexes) and all(index in self.indexes for index in indexes)
