"""The whole scrub of one fixture: reasoning, secrets, personal data, long outputs, and a report of the changes."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_core.base.files import ForeignRecord, parse
from eval_core.base.messages import Message, call_arguments, content_text, tool_calls
from eval_core.base.numbers import counted
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Fact, ProbeBank
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.suite.importers.imported import flatten_parts, mend_pairs
from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.identities import Identities, harvest
from eval_core.suite.scrub.replace import Replacer, leaves, opens_like_json, rewrite

# The model's private notes: taken out of assistant messages, with every field a provider would not accept.

_TAG = r"(?:think|thinking|thought|reasoning|reasoning_scratchpad|scratchpad|inner_monologue|antml:thinking)"
_CLOSED = re.compile(rf"<({_TAG})\b[^>]*>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_UNOPENED = re.compile(rf"\A(?:(?!<{_TAG}).)*?</{_TAG}>\s*", re.DOTALL | re.IGNORECASE)
_UNCLOSED = re.compile(rf"<{_TAG}\b[^>]*>.*\Z", re.DOTALL | re.IGNORECASE)
_FIELDS = ("role", "content", "tool_calls", "tool_call_id")


def strip_reasoning(message: Message) -> Message:
    """Return the message with nothing but its public fields and words."""
    given = {field: message[field] for field in _FIELDS if message.get(field) is not None}
    kept: Message = {"role": message.get("role"), "content": None} | given
    if message.get("role") == "assistant" and isinstance(kept.get("content"), str):
        text = _CLOSED.sub("", kept["content"])
        # Only a text that begins with the notes may lose its beginning: code that prints a closing tag is no note.
        if text.count("</") and not text.lstrip().startswith("<") and _UNOPENED.match(text) and "```" not in text:
            text = _UNOPENED.sub("", text)
        kept["content"] = _UNCLOSED.sub("", text).strip("\n") if "<" in text else text
    return kept


# Long tool outputs, shortened inside the JSON leaf, head and tail kept, evidence never cut.

NOTE = re.compile(r"\[\.\.\. [\d,]+ of [\d,]+ characters left out \.\.\.\]")
_AROUND = 160
_SMALLEST_GAP = 240
_HEAD_SHARE = 0.6


def _line_edge(text: str, at: int, reach: int = 120) -> int:
    """Move a cut to the next line break if one is near."""
    found = text.find("\n", at, at + reach)
    return at if found < 0 else found + 1


def _kept_ranges(text: str, limit: int, values: Sequence[str]) -> list[tuple[int, int]]:
    head = _line_edge(text, int(limit * _HEAD_SHARE))
    tail = _line_edge(text, len(text) - int(limit * (1 - _HEAD_SHARE)))
    ranges = [(0, head), (max(head, tail), len(text))]
    lowered = text.lower()
    for value in values:
        at = lowered.find(value.lower())
        for _ in range(3):  # a value that stands everywhere does not need every place
            if at < 0:
                break
            ranges.append((max(0, at - _AROUND), min(len(text), at + len(value) + _AROUND)))
            at = lowered.find(value.lower(), at + len(value))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start - merged[-1][1] < _SMALLEST_GAP:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _shorten(text: str, limit: int, facts: Sequence[Fact]) -> str:
    if len(text) <= limit + _SMALLEST_GAP or NOTE.search(text):
        return text
    evidence = [fact for fact in facts if holds(fact, Haystack.of(text))]
    ranges = _kept_ranges(text, limit, [value for fact in evidence if not fact.regex for value in fact.values])
    out, at = [], 0
    for start, end in ranges:
        if start > at:
            out.append(f"\n[... {start - at:,} of {len(text):,} characters left out ...]\n")
        out.append(text[start:end])
        at = end
    short = "".join(out)
    shown = Haystack.of(short)
    # A fact that is matched across a cut (a pattern, words far apart) keeps its whole output.
    return short if all(holds(fact, shown) for fact in evidence) else text


def shorten_output(content: str, limit: int, facts: Sequence[Fact] = ()) -> str:
    """Shorten every long leaf of a tool output; JSON stays JSON."""
    if len(content) <= limit:
        return content
    return rewrite(content, lambda text, _key: _shorten(text, limit, facts))


# What a scrub changed, told without telling what stood there.


@dataclass(frozen=True)
class Change:
    """One rule's replacements by one placeholder."""

    rule: str
    placeholder: str
    count: int
    messages: tuple[int, ...]
    """Message indexes; -1 stands for the fields beside the messages."""


@dataclass
class ScrubReport:
    """All changes, gathered while a session is scrubbed."""

    actions: list[str] = field(default_factory=list)
    """Changes that are no replacement: reasoning removed, outputs shortened."""
    _counts: defaultdict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, rule: str, placeholder: str, message: int) -> None:
        """Count one replacement."""
        self._counts[rule, placeholder].append(message)

    @property
    def changes(self) -> list[Change]:
        """Every rule and placeholder, in the order of the rules' names."""
        return [
            Change(rule, placeholder, len(places), tuple(sorted(set(places))))
            for (rule, placeholder), places in sorted(self._counts.items())
        ]

    @property
    def total(self) -> int:
        """How many stretches were replaced."""
        return sum(len(places) for places in self._counts.values())

    def lines(self) -> list[str]:
        """Return the report as text lines."""
        rules = len({change.rule for change in self.changes})
        lines = [f"{counted(self.total, 'replacement')} by {counted(rules, 'rule')}"]
        for change in self.changes:
            places = [("header" if index < 0 else str(index)) for index in change.messages]
            shown = ", ".join(places[:8]) + (f", and {len(places) - 8} more" if len(places) > 8 else "")
            lines.append(f"  {change.rule:<20} {change.placeholder:<34} x{change.count:<4} in message {shown}")
        return lines + [f"  {action}" for action in self.actions]


# The whole scrub of one fixture, pass after pass.

SYSTEM_PROMPT = "You are a helpful assistant with access to tools. (The recorded system prompt was left out.)"
MAX_OUTPUT = 4_000
_LOOKS = 3  # what was taken out is evidence for what stands beside it


@dataclass(frozen=True)
class ScrubOptions:
    """What the user decides about a scrub."""

    identities: Identities = field(default_factory=Identities)
    first_user: str | None = None
    keep_system: bool = False
    max_output: int | None = MAX_OUTPUT


@dataclass(frozen=True)
class Scrubbed:
    """A fixture fit to be shared, its probes in the same words, and what was changed."""

    fixture: Fixture
    bank: ProbeBank | None
    report: ScrubReport


def message_texts(message: Message) -> Iterator[str]:
    """Yield the texts of one message: its content and its calls' arguments."""
    yield content_text(message)
    for call in tool_calls(message):
        yield call_arguments(call)


def session_texts(fixture: Fixture) -> Iterator[str]:
    """Yield every text of a fixture that a scrub looks at."""
    yield from (fixture.description, fixture.notes, fixture.model, *_unknown_texts(fixture))
    for message in fixture.messages:
        yield from message_texts(message)


def _answered(messages: list[Message]) -> Iterator[tuple[str, str]]:
    """Yield every short text of a tool call with every short text of its answer."""
    asked: dict[str, list[str]] = {}
    for message in messages:
        for call in tool_calls(message):
            asked[str(call.get("id"))] = [piece for piece, _ in leaves(call_arguments(call)) if len(piece) <= 300]
        commands = asked.get(str(message.get("tool_call_id")), []) if message["role"] == "tool" else []
        if commands:
            text = content_text(message)
            for output, key in leaves(text):
                if key is not None or not opens_like_json(text):  # the keys of a document answer nothing
                    yield from ((command, output) for command in commands)


def _public_messages(fixture: Fixture, options: ScrubOptions, report: ScrubReport) -> tuple[list[Message], list[int]]:
    """Take out reasoning, the system prompt and what has lost its other half."""
    kept: list[Message] = []
    cuts: list[int] = []
    stripped = 0
    pending = False
    for index, message in enumerate(fixture.messages):
        pending = pending or index in fixture.segments
        fresh = strip_reasoning(message)
        fresh["content"] = flatten_parts(fresh["content"])
        stripped += fresh["content"] != flatten_parts(message.get("content")) or len(fresh) < len(message)
        if fresh["role"] in ("system", "developer") and not options.keep_system and fresh["content"] != SYSTEM_PROMPT:
            fresh["content"] = SYSTEM_PROMPT
            report.actions.append(f"the system prompt (message {index}) was replaced")
        if fresh["role"] == "assistant" and not fresh["content"].strip() and not fresh.get("tool_calls"):
            report.actions.append(f"message {index} held nothing but reasoning and was dropped")
            continue
        if pending:
            cuts.append(len(kept))
            pending = False
        # A letter and its accent become one character, or a name would end between the two.
        kept.append(fresh | {"content": unicodedata.normalize("NFC", fresh["content"])})
    if stripped:
        report.actions.append(f"reasoning or private fields were taken out of {counted(stripped, 'message')}")
    if options.first_user is not None:
        for message in kept:
            if message["role"] == "user":
                message["content"] = options.first_user
                report.actions.append("the first user turn was replaced by the text given")
                break
    mended = mend_pairs(kept, [cut for cut in cuts if cut])
    report.actions += mended.notes
    return mended.messages, mended.segments


def _rewrite_message(message: Message, index: int, replacer: Replacer, report: ScrubReport) -> Message:
    def note(hit: Hit, placeholder: str) -> None:
        report.add(hit.rule, placeholder, index)

    fresh = {**message, "content": replacer.text(content_text(message), note)}
    if tool_calls(message):
        calls = []
        for call in tool_calls(message):
            function: dict[str, Any] = dict(call["function"])
            function["arguments"] = replacer.text(call_arguments(call), note)
            calls.append({**call, "function": function})
        fresh["tool_calls"] = calls
    return fresh


def _rewrite_bank(bank: ProbeBank, replacer: Replacer) -> ProbeBank:
    body = bank.model_dump(mode="json", by_alias=True, exclude_none=True)
    body |= _rewrite_unknown(bank.unknown, replacer.text)
    for probe, record in zip(body["probes"], bank.probes, strict=True):
        probe |= _rewrite_unknown(record.unknown, replacer.text)
        for fact, stated in zip(probe["expected_facts"], record.expected_facts, strict=True):
            fact |= _rewrite_unknown(stated.unknown, replacer.text)
        probe["question"] = replacer.text(probe["question"])
        for fact in probe["expected_facts"]:
            for form in ("fact", "regex", "not"):
                if form in fact:
                    fact[form] = replacer.fact(fact[form])
            for form in ("any", "all"):
                if form in fact:
                    fact[form] = [replacer.fact(value) for value in fact[form]]
    return parse(ProbeBank, body, f"probes of {bank.fixture} after scrubbing")


def _shorten_pipeline(messages: list[Message], facts: list[Fact], limit: int) -> list[Message]:
    return [
        {**message, "content": shorten_output(message["content"], limit, facts)}
        if message["role"] == "tool"
        else message
        for message in messages
    ]


def _rewrite_unknown(value: Any, rewrite: Callable[[str], str]) -> Any:
    """Rewrite every text of a field that another program wrote; its meaning is unknown, so none is spared."""
    if isinstance(value, str):
        return rewrite(value)
    if isinstance(value, dict):
        return {key: _rewrite_unknown(item, rewrite) for key, item in value.items()}
    if isinstance(value, list):
        return [_rewrite_unknown(item, rewrite) for item in value]
    return value


def _unknown_texts(record: ForeignRecord) -> list[str]:
    found: list[str] = []

    def gather(text: str) -> str:
        found.append(text)
        return text

    _rewrite_unknown(record.unknown, gather)
    return found


def _build(fixture: Fixture, messages: list[Message], segments: list[int], header: dict[str, Any]) -> Fixture:
    body = {**fixture.model_dump(mode="json"), **header, "messages": messages, "segments": segments}
    return parse(Fixture, body, f"fixture {fixture.name} after scrubbing")


def scrub_fixture(fixture: Fixture, options: ScrubOptions | None = None, bank: ProbeBank | None = None) -> Scrubbed:
    """Return the fixture (and its probes) without secrets and personal data."""
    options = options or ScrubOptions()
    report = ScrubReport()
    messages, segments = _public_messages(fixture, options, report)
    replacer = Replacer(options.identities)
    texts = [fixture.description, fixture.notes, fixture.model, *_unknown_texts(fixture)]
    texts += [text for message in messages for text in message_texts(message)]
    replacer.pseudonyms.reserve(texts)
    _, links = harvest(piece for text in texts for piece in leaves(text))
    for aliases in links:
        replacer.pseudonyms.link(*aliases)
    replacer.learn_calls(_answered(messages))
    replacer.learn(texts)

    def note(hit: Hit, placeholder: str) -> None:
        report.add(hit.rule, placeholder, -1)

    messages = [_rewrite_message(message, index, replacer, report) for index, message in enumerate(messages)]
    for _ in range(_LOOKS):
        if not replacer.learn_numbers([text for message in messages for text in message_texts(message)]):
            break
        messages = [_rewrite_message(message, index, replacer, report) for index, message in enumerate(messages)]
    header = {name: getattr(fixture, name) for name in ("description", "notes", "model")} | fixture.unknown
    header = _rewrite_unknown(header, lambda text: replacer.text(text, note))
    fresh_bank = _rewrite_bank(bank, replacer) if bank is not None else None
    facts = [fact for probe in fresh_bank.probes for fact in probe.expected_facts] if fresh_bank else []
    scrubbed = _build(fixture, messages, segments, header)
    if options.max_output is not None:
        limit = options.max_output
        scrubbed = _build(fixture, _shorten_pipeline(messages, facts, limit), segments, header)
        changed = sum(
            1 for one, two in zip(messages, scrubbed.messages, strict=True) if one["content"] != two["content"]
        )
        if changed:
            report.actions.append(f"{counted(changed, 'tool output')} shortened to about {limit:,} characters a text")
    return Scrubbed(scrubbed, fresh_bank, report)
