"""A fixture at a glance: who says how much, with which tools, and where the probes' evidence is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eval_core.base.gzip_files import PACKED_SUFFIX
from eval_core.base.messages import Message, call_arguments, call_name, content_text, full_text, tool_calls
from eval_core.base.tokens import count_messages
from eval_core.domain.fixture import Fixture, dump_fixture, load_fixture
from eval_core.domain.probe import ProbeBank
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds


@dataclass(frozen=True)
class MessageRow:
    """One message in numbers."""

    index: int
    role: str
    tokens: int
    characters: int
    tools: tuple[str, ...]
    probes: tuple[str, ...]


def evidence_map(fixture: Fixture, bank: ProbeBank) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return, for each probe and fact, the messages that state it."""
    stacks = [Haystack.of(full_text(message)) for message in fixture.messages]
    return {
        probe.id: {
            fact.label: tuple(fact.evidence)
            if fact.evidence is not None
            else tuple(index for index, stack in enumerate(stacks) if holds(fact, stack))
            for fact in probe.expected_facts
        }
        for probe in bank.probes
    }


def _characters(message: Message) -> int:
    return len(content_text(message)) + sum(len(call_arguments(call)) for call in tool_calls(message))


def message_rows(fixture: Fixture, bank: ProbeBank | None = None) -> list[MessageRow]:
    """Return the messages in numbers, with the probes whose evidence they hold."""
    places: dict[int, list[str]] = {}
    for probe, facts in (evidence_map(fixture, bank) if bank else {}).items():
        for index in sorted({index for indexes in facts.values() for index in indexes}):
            places.setdefault(index, []).append(probe)
    return [
        MessageRow(
            index,
            str(message["role"]),
            count_messages([message]),
            _characters(message),
            tuple(call_name(call) for call in tool_calls(message)),
            tuple(places.get(index, ())),
        )
        for index, message in enumerate(fixture.messages)
    ]


@dataclass(frozen=True)
class FixtureFile:
    """One fixture file in numbers."""

    name: str
    messages: int
    tokens: int
    bytes: int
    compressed: bool

    def __str__(self) -> str:
        form = " compressed" if self.compressed else ""
        return f"{self.name:<40} {self.messages:>6} messages {self.tokens:>9,} tokens {self.bytes:>9,} bytes{form}"


def fixture_file(path: Path) -> FixtureFile:
    fixture = load_fixture(path)
    tokens, packed = count_messages(fixture.messages), path.name.endswith(PACKED_SUFFIX)
    return FixtureFile(fixture.name, len(fixture.messages), tokens, path.stat().st_size, packed)


def describe(fixture: Fixture, bank: ProbeBank | None = None) -> Iterator[str]:
    """Yield the lines of the overview."""
    rows = message_rows(fixture, bank)
    tokens = sum(row.tokens for row in rows)
    yield f"{fixture.name}: {fixture.description}"
    yield (
        f"model {fixture.model}, context {fixture.context_length:,}; {len(rows)} messages, {tokens:,} tokens, "
        f"{len(dump_fixture(fixture).encode()):,} bytes"
    )
    if fixture.segments:
        yield f"compressed at message {', '.join(map(str, fixture.segments))} and at the end"
    if fixture.truncated_to is not None:
        yield f"cut from a longer session at message {fixture.truncated_to}"
    yield ""
    yield f"{'role':<10} {'messages':>8} {'tokens':>8} {'characters':>11}"
    for role in dict.fromkeys(row.role for row in rows):
        mine = [row for row in rows if row.role == role]
        said = sum(row.characters for row in mine)
        yield f"{role:<10} {len(mine):>8} {sum(row.tokens for row in mine):>8,} {said:>11,}"
    tools = Counter(name for row in rows for name in row.tools)
    if tools:
        yield "tools: " + ", ".join(f"{name} x{count}" for name, count in tools.most_common())
    yield ""
    yield f"{'#':>4} {'role':<10} {'tokens':>7} {'chars':>7}  tools / probes"
    for row in rows:
        notes = " ".join([*row.tools, *(f"<{probe}>" for probe in row.probes)])
        yield f"{row.index:>4} {row.role:<10} {row.tokens:>7,} {row.characters:>7,}  {notes}".rstrip()
    if bank is not None:
        yield ""
        yield "evidence"
        for probe, facts in evidence_map(fixture, bank).items():
            yield f"  {probe}"
            for label, indexes in facts.items():
                yield f"    {label}: " + (", ".join(map(str, indexes)) if indexes else "in no message")
