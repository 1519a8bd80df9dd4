"""What a session did, read from its tool calls: changed files, scheduled jobs, failures and blockers."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_core.base.messages import Message, call_arguments, call_name, content_text, decoded, tool_calls
from eval_core.facts.census import errors, subject_words, telling_words

_WRITES = re.compile(r"write|create|edit|patch|replace|insert|append|save", re.I)
_PATH_FIELDS = ("path", "file_path", "filename", "file", "target_file", "notebook_path")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update) File|Move to): (\S{1,200})|^\+\+\+ b/(\S{1,200})", re.M)
_PATCH_START = "*** Begin Patch"
_PATCH_FIELDS = ("patch", "diff", "input")
_EXIT_FIELDS = ("exit_code", "exitCode", "returncode", "return_code")
_EXIT_TEXT = re.compile(r"\b(?:exit code|exited with(?: code)?|exit status|exit=)[ :]{0,2}(\d{1,3})\b", re.I)


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """One tool call and its answer."""

    called: int
    answered: int
    name: str
    arguments: dict[str, Any]
    """The decoded arguments; empty where they are not a JSON object."""
    answer: str
    """The answer with JSON unfolded."""
    reply: dict[str, Any]
    """The answer's JSON object, empty where it is none."""

    @property
    def command(self) -> str:
        """The shell command that was run, or an empty text."""
        value = self.arguments.get("command") or self.arguments.get("cmd") or ""
        return value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else ""


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def exchanges(messages: Sequence[Message]) -> Iterator[ToolExchange]:
    """Yield every answered tool call in the order of the answers."""
    calls: dict[str, tuple[int, str, str]] = {}
    for index, message in enumerate(messages):
        for call in tool_calls(message):
            calls[str(call.get("id"))] = (index, call_name(call), call_arguments(call))
        known = calls.pop(str(message.get("tool_call_id")), None) if message.get("role") == "tool" else None
        if known is not None:
            called, name, arguments = known
            text = content_text(message)
            yield ToolExchange(called, index, name, _object(arguments), decoded(text), _object(text))


def exit_code(exchange: ToolExchange) -> int | None:
    """Return the status that the tool reports, or None where it reports none."""
    metadata = exchange.reply.get("metadata")
    for reply in (exchange.reply, metadata if isinstance(metadata, dict) else {}):
        for name in _EXIT_FIELDS:
            value = reply.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    match = _EXIT_TEXT.search(exchange.answer)
    return int(match.group(1)) if match else None


def refused(exchange: ToolExchange) -> bool:
    """Tell whether the tool itself says that it did not do what was asked."""
    return exchange.reply.get("success") is False or bool(exchange.reply.get("error"))


def changed_files(exchange: ToolExchange) -> list[str]:
    """Return the files that the call wrote, as the call names them."""
    patch = patch_text(exchange)
    if refused(exchange) or (patch and exit_code(exchange)) or not (patch or _WRITES.search(exchange.name)):
        return []
    named = [exchange.arguments[field] for field in _PATH_FIELDS if isinstance(exchange.arguments.get(field), str)]
    named += [added or changed for added, changed in _PATCHED.findall(patch)]
    return list(dict.fromkeys(named))


def patch_text(exchange: ToolExchange) -> str:
    """Return the patch that a call applies, be it a field of its own, its free input or a shell's here-document."""
    for name in _PATCH_FIELDS:
        text = exchange.arguments.get(name)
        if isinstance(text, str) and (name != "input" or _PATCHED.search(text)):
            return text
    return exchange.command if _PATCH_START in exchange.command else ""


def added_text(exchange: ToolExchange) -> str:
    """Return what a call writes into files, as far as the call itself shows it."""
    fields = [str(exchange.arguments.get(field) or "") for field in ("content", "new_string")]
    lines = [line[1:] for line in patch_text(exchange).splitlines() if line.startswith("+") and line[:3] != "+++"]
    return "\n".join([*filter(None, fields), *lines])


# The scheduled jobs that a session created, as they stand at its end.

_SCHEDULES = ("schedule", "cron", "cron_expression", "crontab")
_NAMES = ("name", "title", "job_name", "label")
_IDS = ("job_id", "task_id", "schedule_id", "id")
_ENDS = re.compile(r"delete|remove|cancel", re.I)


@dataclass
class ScheduledJob:
    """One job with its present name and schedule, and the schedules it had before."""

    identifier: str
    name: str
    schedule: str
    former: list[str] = field(default_factory=list)


def _first(mapping: Mapping[str, Any], fields: Iterable[str]) -> str | None:
    return next((value for name in fields if isinstance(value := mapping.get(name), str) and value.strip()), None)


def jobs(traffic: Iterable[ToolExchange]) -> list[ScheduledJob]:
    """Return the jobs that were created and not removed, later changes applied."""
    known: dict[str, ScheduledJob] = {}
    for exchange in traffic:
        if refused(exchange):
            continue
        asked = exchange.arguments
        schedule, name = _first(asked, _SCHEDULES), _first(asked, _NAMES)
        wanted = _first(asked, _IDS)
        if wanted in known:
            job = known[wanted]
            if _ENDS.search(f"{exchange.name} {asked.get('action', '')}"):
                del known[wanted]
                continue
            job.name = name or job.name
            if schedule and schedule != job.schedule:
                job.former.append(job.schedule)
                job.schedule = schedule
        elif schedule and name:
            inner = exchange.reply.get("job")
            identifier = _first(inner if isinstance(inner, dict) else exchange.reply, _IDS)
            if identifier:
                known[identifier] = ScheduledJob(identifier, name, schedule)
    return list(known.values())


# What stopped the work: failures that tools report, and blockers that people state.


_MOST = 3
_FAILED_TEST = re.compile(
    # An output's first line follows the name of its JSON field.
    r"^(?:[a-z_]{2,20}: )?(?:(?:FAILED|ERROR) \S*?::(?P<pytest>[\w\[\]-]{4,80})|\s*--- FAIL: (?P<go>\w{4,80})"
    r"|test (?P<rust>[\w:]{4,80}) \.\.\. FAILED|\s*(?:✕|✗|×|not ok \d+ -) (?P<js>[^\n(]{6,80}))",
    re.M,
)
_REFUSED_BY_SYSTEM = re.compile(
    r"(?P<command>[\w./-]{2,60}): (?:command )?not found\b|(?P<denied>[\w./~-]{4,120}): [Pp]ermission denied"
    r"|(?P<absent>[\w./~-]{4,120}): No such file or directory"
    r"|[Cc]onnection refused\)?:? ?(?P<refused>[\w.-]+:\d{2,5})|(?P<timeout>timed out after [\d.]+ ?\w+)"
)
# Reading code or a log shows many errors that this session never met.
_READS = re.compile(r"^\s*(?:cat|head|tail|less|more|grep|rg|ag|sed -n|git (?:log|show|diff|grep|blame)|jq|awk|find)\b")
_READERS = re.compile(r"read|search|grep|view|fetch|extract|open", re.I)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)|^\s*thread '.*' panicked at|^Caused by:", re.M)
_OBSTACLE = re.compile(
    r"\b(?:blocked (?:by|on|until)|waiting (?:for|on)|waits? (?:for|on)|still (?:fails?|failing|red|broken|missing)"
    r"|can(?:not|'t) \w+[^.]{0,60} (?:until|because|without)|depends on|on hold|stuck (?:on|at)|denied|refused|rejected"
    r"|out of quota|needs? (?:approval|access|permission|a review|sign-off)|rate.limited"
    r"|is down|unreachable|expired|missing)\b",
    re.I,
)


def _met(exchange: ToolExchange) -> bool:
    """Tell whether the call itself failed, be it told by a status or by a trace of its own."""
    if refused(exchange) or exit_code(exchange):
        return True
    if exit_code(exchange) == 0 or _READS.search(exchange.command) or _READERS.search(exchange.name):
        return False
    return bool(_TRACEBACK.search(exchange.answer) or _FAILED_TEST.search(exchange.answer))


def _first_group(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).strip()


def reported(exchange: ToolExchange) -> list[str]:
    """Return what names the errors that a failed call reports."""
    if not _met(exchange):
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
    for pattern in (_FAILED_TEST, _REFUSED_BY_SYSTEM):
        named.update(dict.fromkeys(_first_group(match) for match in pattern.finditer(text)))
    return list(named)[:_MOST]


def stated_blockers(sentence: str) -> list[str]:
    """Return what a sentence names as holding the work up, if it says that something does."""
    if len(sentence) > 400 or sentence.rstrip().endswith("?") or not _OBSTACLE.search(sentence):
        return []
    return [word for word in subject_words(sentence) if not (word.isalpha() and word.istitle())]
