"""Proposed probes: drafts made from a session's tool traffic, scheduled jobs and the user's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from eval_core.base.errors import UserError
from eval_core.base.messages import Message, content_text
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import PROBE_TYPES, Fact, FactKind, Probe, ProbeBank, ProbeType
from eval_core.facts.census import counts, decisions, subject_words
from eval_core.facts.fact_text import Haystack, infer_kind, normalise
from eval_core.facts.haystack import holds
from eval_core.suite.lint import EDGE_HEAD, EDGE_TAIL, Places, common_reason, fill_evidence
from eval_core.suite.tool_calls import (
    ToolExchange,
    added_text,
    changed_files,
    exchanges,
    jobs,
    reported,
    stated_blockers,
)

# Questions that a session's tool traffic and its users' words suggest, with the facts that answer them.

_DEFINES = re.compile(r"^\s{0,8}(?:def|class|func|function|fn|interface|struct|type) (\w{4,60})", re.M)
_DULL_NAMES = re.compile(r"main|path|setup|teardown|run|test|init|__\w+__", re.I)
_COMMITTED = re.compile(r"^\[([\w./-]{1,80})(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.{4,120})$", re.M)
_LOGGED = re.compile(r"^([0-9a-f]{7,40}) (.{6,120})$", re.M)
_LEFT_OPEN = (
    "What is on the list of things still to be done, and what does each of them depend on?",
    "Which step of the work is next?",
)
_TITLE = re.compile(r"--title[ =](['\"])(.{1,300}?)\1")
_OPENED = re.compile(r"https?://\S{4,150}/(?:pull|pulls|merge_requests|issues)/(\d{1,7})\b")
_OPENS = re.compile(r"\b(pr|issue|mr)\b.{0,20}\bcreate\b|create_(?:pull_request|issue|merge_request)", re.I)
_CONDITION = re.compile(
    r"\b(?:until|before|after|unless|once|waits?|earliest|later|next|on hold|pending|still (?:open|missing|red)"
    r"|remaining|bevor|erst wenn|bis)\b",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_REJECTED = re.compile(
    r"(?:\b(?:not|instead of|rather than|no longer|nicht(?: mehr)?|(?:an)?statt|et non|au lieu de|y no|en lugar de)"
    r"|不是)\s*(?:(?:the|a|an|at|to|in|on|by|with|of|der|die|das|le|la|el)\s+)?[\"'`(#$]{0,2}$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its facts and how much it seems worth."""

    type: ProbeType
    topic: str
    question: str
    facts: tuple[Fact, ...]
    worth: float
    fallback: str = field(default="")
    """A question that names less, for when the first one gives its answer away."""


def _fact(value: str, kind: FactKind | None = None) -> Fact:
    return Fact(fact=value, kind=kind or infer_kind(value))


def _short(text: str, limit: int = 70) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3].rsplit(" ", 1)[0] + "..."


def _project_path(path: str) -> str:
    """Return a path without the folder that a project lies in on one machine."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    return "/".join(parts[-2:]) if path.startswith(("/", "~")) or ":" in path[:2] else "/".join(parts)


def _files(traffic: list[ToolExchange]) -> Iterator[Draft]:
    changed: dict[str, int] = {}
    for exchange in traffic:
        for path in changed_files(exchange):
            name = _project_path(path)
            changed[name] = changed.get(name, 0) + 1
            body = added_text(exchange)
            defined = next((found for found in _DEFINES.findall(body) if not _DULL_NAMES.fullmatch(found)), None)
            if defined:
                question = f"Which file was written or changed to hold `{defined}`?"
                yield Draft("artifact", f"file-{defined}", question, (_fact(name, "path"),), 2.0)
    for start in range(0, min(len(changed), 12), 4):
        names = list(changed)[start : start + 4]
        when = "first" if start == 0 else "later"
        question = f"Which files did this session create or change? Name the {when} ones with their paths."
        yield Draft("artifact", f"files-{when}-{start}", question, tuple(_fact(name, "path") for name in names), 1.8)


def _jobs(traffic: list[ToolExchange]) -> Iterator[Draft]:
    for job in jobs(traffic):
        facts = [_fact(job.schedule), _fact(job.identifier)]
        facts += [Fact.model_validate({"not": former, "kind": infer_kind(former)}) for former in job.former]
        question = f"On which schedule does the job `{job.name}` run, and under which id is it stored?"
        yield Draft("artifact", f"job-{job.name}", question, tuple(facts), 3.0 + len(job.former))


def _repository(traffic: list[ToolExchange]) -> Iterator[Draft]:
    for exchange in traffic:
        for branch, commit, subject in _COMMITTED.findall(exchange.answer):
            question = f'Under which hash was "{_short(subject)}" committed, and on which branch?'
            facts = (_fact(commit, "hash"),) + ((_fact(branch),) if branch not in ("main", "master") else ())
            yield Draft("artifact", f"commit-{commit}", question, facts, 2.5)
        if "git commit" in exchange.command:
            for commit, subject in _LOGGED.findall(exchange.answer):
                if subject in exchange.command:
                    question = f'Under which hash was "{_short(subject)}" committed?'
                    yield Draft("artifact", f"commit-{commit}", question, (_fact(commit, "hash"),), 2.5)
        if _OPENS.search(exchange.command) or _OPENS.search(exchange.name):
            for number in dict.fromkeys(_OPENED.findall(exchange.answer)):
                noun = "issue" if re.search(r"\bissue", exchange.command + exchange.name, re.I) else "pull request"
                question = f"Which number did the {noun} get that was opened in this session?"
                title = _TITLE.search(exchange.command)
                named = f'Which number did the {noun} "{_short(title[2])}" get?' if title else ""
                yield Draft("artifact", f"opened-{number}", question, (_fact(f"#{number}", "pr"),), 3.5, named)


def _runs(traffic: list[ToolExchange]) -> Iterator[Draft]:
    last: tuple[list[str], ToolExchange] | None = None
    for exchange in traffic:
        found = list(dict.fromkeys(counts(exchange.answer)))
        if found:
            last = (found, exchange)
        named = reported(exchange)
        if named:
            command = _short(exchange.command or f"{exchange.name} {exchange.arguments.get('name', '')}".strip(), 60)
            question = f"What went wrong when `{command}` was called?"
            fallback = "Which error did a command of this session end with?"
            yield Draft("recall", f"blocker-{exchange.answered}", question, tuple(map(_fact, named)), 2.0, fallback)
    if last is not None:
        facts = tuple(
            Fact(any=[f"{number} {word}", f"{number} tests {word}", f"{number} test {word}"], kind="text")
            for number, word in (count.split(" ", 1) for count in last[0][:2])
        )
        question = "How did the last run of the tests end: how many passed, how many failed?"
        yield Draft("recall", f"tests-{last[1].answered}", question, facts, 2.0)


def _opening(text: str) -> str:
    sentences = [sentence for sentence in _SENTENCE.split(text.strip()) if sentence]
    return _short(next((sentence for sentence in sentences if len(sentence) > 24), sentences[0]), 80)


def _words(messages: Sequence[Message]) -> Iterator[Draft]:
    before = ""
    corrections = {
        word.lower(): index
        for index, message in enumerate(messages)
        if message.get("role") == "user"
        for sentence in _SENTENCE.split(content_text(message))
        for word in rejected_words(sentence)
    }
    for index, message in enumerate(messages):
        text = content_text(message)
        if message.get("role") == "assistant" and text.strip():
            yield from _blocked(index, text, before)
            before = text
        elif message.get("role") == "user" and before:
            yield from _blocked(index, text, before)
            yield from _demands(index, text, before, corrections)


def rejected_words(sentence: str) -> list[str]:
    """Return the values that a sentence replaces by another: the 10000 of "5000, not 10000"."""
    named = subject_words(sentence, most=6)
    places = {word: re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", sentence) for word in named}
    rejected = [word for word, place in places.items() if place and _REJECTED.search(sentence[: place.start()])]
    return rejected if len(rejected) < len(named) else []


def _blocked(index: int, text: str, before: str) -> Iterator[Draft]:
    for number, sentence in enumerate(_SENTENCE.split(text)):
        words = stated_blockers(sentence)
        if words:
            question = "What keeps the work from going on, and on whom or what does it wait?"
            fallback = f'What was said to be in the way after "{_opening(before)}"?' if before else ""
            yield Draft("continuation", f"blocker-{index}-{number}", question, tuple(map(_fact, words)), 2.2, fallback)


def _demands(index: int, text: str, before: str, corrections: Mapping[str, int]) -> Iterator[Draft]:
    for number, sentence in enumerate(_SENTENCE.split(text)):
        replaced = rejected_words(sentence)
        named = [word for subject in decisions(sentence, from_user=True) for word in subject.split(" | ")]
        # What a later turn takes back is not what holds at the end.
        held = [word for word in named if word not in replaced and corrections.get(word.lower(), -1) <= index]
        facts = tuple(_fact(word) for word in held if not (word.isalpha() and word.istitle()))
        if not facts:
            continue
        facts += tuple(Fact.model_validate({"not": word, "kind": infer_kind(word)}) for word in replaced)
        if _CONDITION.search(sentence):
            question = (
                f'Which condition or date did the user set after "{_opening(before)}", for what is still to come?'
            )
            fallback = "What has the user said must happen, or wait, before the work can go on?"
            yield Draft("continuation", f"condition-{index}-{number}", question, facts, 2.0, fallback)
        else:
            question = f'What did the user decide or demand when the assistant had written "{_opening(before)}"?'
            fallback = "Which instruction did the user give in the course of the session that still holds?"
            yield Draft("decision", f"decision-{index}-{number}", question, facts, 2.5, fallback)


def _todo(traffic: list[ToolExchange]) -> Iterator[Draft]:
    """Ask for what the last to-do list leaves open."""
    lists = [todos for exchange in traffic if isinstance(todos := exchange.arguments.get("todos"), list)]
    for number, item in enumerate(lists[-1] if lists else []):
        if not isinstance(item, dict) or item.get("status") not in ("pending", "in_progress", "todo", "open"):
            continue
        words = subject_words(str(item.get("content", "")))
        if words:
            question, fallback = _LEFT_OPEN if number == 0 else ("", "")
            yield Draft("continuation", f"todo-{number}", question, tuple(map(_fact, words)), 3.0, fallback)


def drafts(messages: Sequence[Message]) -> Iterator[Draft]:
    """Yield every draft that the session gives ground for."""
    traffic = list(exchanges(messages))
    yield from _files(traffic)
    yield from _jobs(traffic)
    yield from _repository(traffic)
    yield from _runs(traffic)
    yield from _todo(traffic)
    yield from _words(messages)


# Drafts of probes for people to choose from; what a session did is the source, never a guess.

_MAX_FACTS = 4
_LONG = 120
"""Messages of a session from which on every part of it is asked about."""


def _usable(fact: Fact, places: Places) -> bool:
    found = places.of(fact)
    return bool(found) and common_reason(fact) is None and len(found) <= max(4, len(places.haystacks) // 2)


def _unsaid(facts: Sequence[Fact], question: str) -> list[Fact]:
    """Return the facts that the question does not give away."""
    asked = Haystack.of(question)
    return [fact for fact in facts if not holds(fact, asked)]


def _ranked(found: list[Draft], places: Places) -> list[Draft]:
    """Put the drafts in order of worth; those that no compression puts at risk go, if any other is left."""
    last = len(places.haystacks) - EDGE_TAIL

    def at_risk(draft: Draft) -> bool:
        return any(EDGE_HEAD <= index < last for fact in draft.facts for index in places.of(fact))

    telling = [draft for draft in found if at_risk(draft)]
    return sorted(telling or found, key=lambda draft: (-draft.worth, draft.topic))


def _by_thirds(probes: Sequence[Probe], places: Places) -> list[Probe]:
    """Take early, middle and late ones in turn, each part in order of worth; a short session is one part."""
    parts: list[list[Probe]] = [[], [], []]
    end = len(places.haystacks)
    for probe in probes:
        first = min(index for fact in probe.expected_facts if not fact.superseded for index in places.of(fact))
        parts[3 * first // end if end >= _LONG else 0].append(probe)
    return [probe for turn in zip_longest(*parts) for probe in turn if probe is not None]


def _mixed(probes: list[Probe], places: Places, limit: int) -> list[Probe]:
    """Take the types in turn, so that none crowds out the others."""
    waiting = {kind: _by_thirds([probe for probe in probes if probe.type == kind], places) for kind in PROBE_TYPES}
    taken: list[Probe] = []
    while len(taken) < limit and any(waiting.values()):
        for queue in waiting.values():
            if queue and len(taken) < limit:
                taken.append(queue.pop(0))
    return sorted(taken, key=lambda probe: (PROBE_TYPES.index(probe.type), probe.id))


def _name(draft: Draft, taken: set[str]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", draft.topic.lower()).strip("-")
    base = f"{draft.type}-{slug.removeprefix(f'{draft.type}-')}"[:60].rstrip("-")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def propose(fixture: Fixture, limit: int = 24) -> ProbeBank:
    """Return a bank of drafts from what the session's tools did and its user decided, evidence filled in."""
    places = Places(fixture)
    probes: list[Probe] = []
    used: set[str] = set()
    names: set[str] = set()
    found = list(drafts(fixture.messages))
    # A question that quotes nothing and fits several drafts does not say which of them it is about.
    asks = {
        (text, *(fact.label for fact in draft.facts)) for draft in found for text in (draft.question, draft.fallback)
    }
    often = Counter(text for text, *_ in asks if not re.search('["`]', text))
    asked = {text for text in often if often[text] > 1}
    for draft in _ranked(found, places):
        fresh = [fact for fact in draft.facts if normalise(fact.label) not in used and _usable(fact, places)]
        for question in filter(None, (draft.question, draft.fallback)):
            facts = _unsaid(fresh, question)[:_MAX_FACTS]
            if any(not fact.superseded for fact in facts) and question not in asked:
                asked.add(question)
                used.update(normalise(fact.label) for fact in facts)
                name = _name(draft, names)
                probes.append(Probe(id=name, type=draft.type, question=question, expected_facts=facts, draft=True))
                break
    chosen = _mixed(probes, places, limit)
    if not chosen:
        raise UserError(
            f"fixture {fixture.name}: nothing to propose: no files written, commits, test runs or decisions found; "
            "write the probes by hand"
        )
    return fill_evidence(ProbeBank(fixture=fixture.name, probes=chosen), fixture)
