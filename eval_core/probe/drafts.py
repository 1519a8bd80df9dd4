"""Questions that a session's tool traffic and its users' words suggest, with the facts that answer them."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eval_core.census.phrases import counts, decisions, errors, subject_words, telling_words
from eval_core.fact_kind import infer_kind
from eval_core.messages import Message, content_text
from eval_core.probe.jobs import jobs
from eval_core.probe.schema import Fact, FactKind, ProbeType
from eval_core.probe.traffic import Exchange, changed_files, exchanges, exit_code, refused

__all__ = ["Draft", "drafts"]

_DEFINES = re.compile(r"^\s{0,8}(?:def|class|func|function|fn|interface|struct|type) (\w{4,60})", re.M)
_DULL_NAMES = re.compile(r"main|path|setup|teardown|run|test|init|__\w+__", re.I)
_COMMITTED = re.compile(r"^\[([\w./-]{1,80})(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.{4,120})$", re.M)
_LOGGED = re.compile(r"^([0-9a-f]{7,40}) (.{6,120})$", re.M)
_OPENED = re.compile(r"https?://\S{4,150}/(?:pull|pulls|merge_requests|issues)/(\d{1,7})\b")
_OPENS = re.compile(r"\b(pr|issue|mr)\b.{0,20}\bcreate\b|create_(?:pull_request|issue|merge_request)", re.I)
_CONDITION = re.compile(
    r"\b(?:until|before|after|unless|once|waits?|earliest|later|next|on hold|pending|still (?:open|missing|red)"
    r"|remaining|bevor|erst wenn|bis)\b",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


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


def _files(traffic: list[Exchange]) -> Iterator[Draft]:
    changed: dict[str, int] = {}
    for exchange in traffic:
        for path in changed_files(exchange):
            name = _project_path(path)
            changed[name] = changed.get(name, 0) + 1
            body = str(exchange.arguments.get("content") or exchange.arguments.get("new_string") or "")
            defined = next((found for found in _DEFINES.findall(body) if not _DULL_NAMES.fullmatch(found)), None)
            if defined:
                question = f"Which file was written or changed to hold `{defined}`?"
                yield Draft("artifact", f"file-{defined}", question, (_fact(name, "path"),), 2.0)
    for start in range(0, min(len(changed), 12), 4):
        names = list(changed)[start : start + 4]
        when = "first" if start == 0 else "later"
        question = f"Which files did this session create or change? Name the {when} ones with their paths."
        yield Draft("artifact", f"files-{when}-{start}", question, tuple(_fact(name, "path") for name in names), 1.8)


def _jobs(traffic: list[Exchange]) -> Iterator[Draft]:
    for job in jobs(traffic):
        facts = [_fact(job.schedule), _fact(job.identifier)]
        facts += [Fact.model_validate({"not": former, "kind": infer_kind(former)}) for former in job.former]
        question = f"On which schedule does the job `{job.name}` run, and under which id is it stored?"
        yield Draft("artifact", f"job-{job.name}", question, tuple(facts), 3.0 + len(job.former))


def _repository(traffic: list[Exchange]) -> Iterator[Draft]:
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
                yield Draft("artifact", f"opened-{number}", question, (_fact(f"#{number}", "pr"),), 3.5)


def _reported(exchange: Exchange) -> list[str]:
    """Return what names the errors that a failed call reports."""
    if not refused(exchange) and not exit_code(exchange):
        return []
    said = exchange.reply.get("error")
    text = f"error: {said}\n{exchange.answer}" if isinstance(said, str) else exchange.answer
    named: dict[str, None] = {}
    for error in errors(text):
        name, colon, detail = error.partition(": ")
        # An exception's class alone is too common; what it complains about is telling.
        telling = [word for word in telling_words(detail if colon else error) if len(word) > 3 and "\\" not in word]
        own_name = [name] if colon and " " not in name and not hasattr(builtins, name) else []
        named.update(dict.fromkeys(own_name + telling[:1]))
    return list(named)[:3]


def _runs(traffic: list[Exchange]) -> Iterator[Draft]:
    last: tuple[list[str], Exchange] | None = None
    for exchange in traffic:
        found = list(dict.fromkeys(counts(exchange.answer)))
        if found:
            last = (found, exchange)
        reported = _reported(exchange)
        if reported:
            command = _short(exchange.command or f"{exchange.name} {exchange.arguments.get('name', '')}".strip(), 60)
            question = f"What went wrong when `{command}` was called?"
            fallback = "Which error did a command of this session end with?"
            yield Draft("recall", f"blocker-{exchange.answered}", question, tuple(map(_fact, reported)), 2.0, fallback)
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
    for index, message in enumerate(messages):
        text = content_text(message)
        if message.get("role") == "assistant" and text.strip():
            before = text
        elif message.get("role") == "user" and before:
            yield from _demands(index, text, before)


def _demands(index: int, text: str, before: str) -> Iterator[Draft]:
    for number, sentence in enumerate(_SENTENCE.split(text)):
        named = [word for subject in decisions(sentence, from_user=True) for word in subject.split(" | ")]
        facts = tuple(_fact(word) for word in named if not (word.isalpha() and word.istitle()))
        if not facts:
            continue
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


def _todo(traffic: list[Exchange]) -> Iterator[Draft]:
    """Ask for what the last to-do list leaves open."""
    lists = [todos for exchange in traffic if isinstance(todos := exchange.arguments.get("todos"), list)]
    for number, item in enumerate(lists[-1] if lists else []):
        if not isinstance(item, dict) or item.get("status") not in ("pending", "in_progress", "todo", "open"):
            continue
        words = subject_words(str(item.get("content", "")))
        if words:
            question = "What is on the list of things still to be done, and what does each of them depend on?"
            fallback = "Which step of the work is next?" if number == 0 else ""
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
