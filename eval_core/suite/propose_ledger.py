"""Proposed ledgers: drafts of lines from the user's words, the to-do lists and the calls that were denied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.messages import content_text
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import LedgerLine, SessionLedger
from eval_core.facts.census import decisions, subject_words
from eval_core.facts.language import language
from eval_core.facts.passages import Statement, passages
from eval_core.suite.ledger_lint import lint_ledger
from eval_core.suite.propose import rejected_words
from eval_core.suite.tool_calls import exchanges

_LONGEST = 240
_TODO = {"pending": "open", "in_progress": "open", "completed": "done", "cancelled": "abandoned"}
_DENIED = re.compile(r"\bdenied\b", re.IGNORECASE)
_SHOULD = re.compile(r"\b(?:should|sollte[nt]?)\b", re.IGNORECASE)
_STEPS = re.compile(
    r"\b(?:order|steps?|sequence|Reihenfolge|Schritte)\b[^:]*: "
    r"((?:[^\W\d]+(?: [^\W\d]+)?, ){2,}[^\W\d]+(?: [^\W\d]+)?)\.?$"
)

Raw = dict[str, Any]


def _line(kind: str, at: int, speaker: str, text: str, anchors: Sequence[str], **more: Any) -> Raw:
    name = re.sub(r"[^a-z0-9]+", "-", " ".join(anchors).lower()).strip("-")[:40]
    line = {"id": f"{kind}-{at}-{name}".rstrip("-"), "kind": kind, "anchors": list(anchors), "text": text.strip()}
    return {**line, "speaker": speaker, "said": [at], **more, "draft": True}


def _rule(told: Statement, at: int, speaker: str) -> Iterator[Raw]:
    """Draft a rule from a sentence that denies or demands."""
    clause = told.whole
    anchors = subject_words(told.text)[:2]
    if not anchors or told.text.rstrip().endswith("?") or len(told.text) > _LONGEST:
        return
    if rejected_words(told.text):
        return  # "400, not 90" is about a value
    if clause.denials or clause.strong:
        strength = "may" if clause.weak and not clause.denials else "should" if _SHOULD.search(told.text) else "must"
        polarity = "do_not" if clause.denials else "do"
        yield _line("rule", at, speaker, told.text, anchors, polarity=polarity, strength=strength)
    elif speaker == "user":
        yield from (
            _line("decision", at, speaker, told.text, anchors) for _ in [*decisions(told.text, from_user=True)][:1]
        )


def _values(told: Statement, at: int) -> Iterator[Raw]:
    """Draft the values that a sentence replaces; who reviews them names what holds instead."""
    for word in rejected_words(told.text):
        yield _line("value", at, "user", f"It was {word}.", [word], superseded_at=at + 1)


def _steps(told: Statement, at: int) -> Iterator[Raw]:
    """Draft the steps that a sentence lists in order."""
    if match := _STEPS.search(told.text):
        before: list[str] = []
        for step in match[1].split(", "):
            line = _line("item", at, "user", f"Step: {step}.", [step], status=[{"at": at, "is": "open"}], after=before)
            before = [line["id"]]
            yield line


def _words(fixture: Fixture) -> Iterator[Raw]:
    roles = {"user": "user", "system": "project_file"}
    for at, message in enumerate(fixture.messages):
        for told in passages(content_text(message)) if message.get("role") in roles else ():
            yield from _rule(told, at, roles[message["role"]])
            if message["role"] == "user":
                yield from _values(told, at)
                yield from _steps(told, at)


def _todo(fixture: Fixture) -> Iterator[Raw]:
    """Draft an item for each entry of the to-do lists, with its status over time."""
    found: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    for exchange in exchanges(fixture.messages):
        todos = exchange.arguments.get("todos")
        for entry in todos if isinstance(todos, list) else ():
            status = _TODO.get(str(entry.get("status"))) if isinstance(entry, dict) else None
            if status is not None and entry.get("content"):
                _, steps = found.setdefault(str(entry["content"]), (exchange.called, []))
                if not steps or steps[-1]["is"] != status:
                    steps.append({"at": exchange.called, "is": status})
    for text, (at, steps) in found.items():
        if anchors := subject_words(text)[:2]:
            yield _line("item", at, "assistant", text[:_LONGEST], anchors, status=steps)


def _denied(fixture: Fixture) -> Iterator[Raw]:
    """Draft an approval that was refused for each call that the user denied."""
    for exchange in exchanges(fixture.messages):
        anchors = subject_words(exchange.command)[:2]
        if anchors and _DENIED.search(exchange.answer):
            status = [{"at": exchange.called, "is": "asked"}, {"at": exchange.answered, "is": "refused"}]
            yield _line(
                "approval", exchange.called, "assistant", f"Run {exchange.command}"[:_LONGEST], anchors, status=status
            )


def _request(fixture: Fixture) -> Iterator[Raw]:
    """Draft the first request, and the last, which is in force at the end."""
    asked = [
        (at, content_text(message)) for at, message in enumerate(fixture.messages) if message.get("role") == "user"
    ]
    for number in sorted({0, len(asked) - 1} if asked else ()):
        at, text = asked[number]
        over = {"superseded_at": asked[1][0]} if number == 0 and len(asked) > 1 else {}
        named = [(part.text, anchors) for part in passages(text) if (anchors := subject_words(part.text)[:2])]
        yield from (_line("request", at, "user", said[:_LONGEST], anchors, **over) for said, anchors in named[:1])


def propose_ledger(fixture: Fixture) -> SessionLedger:
    """Return a ledger of drafts; those that the lint would refuse for more than being drafts are left out."""
    spoken = language("\n".join(content_text(m) for m in fixture.messages if m.get("role") == "user"))
    drafts = [*_words(fixture), *_todo(fixture), *_denied(fixture), *_request(fixture)]
    by_id = {line["id"]: LedgerLine.model_validate({**line, "after": []}) for line in drafts}
    order = {line["id"]: line.get("after", []) for line in drafts}
    lines = [*by_id.values()]
    while lines:
        ledger = SessionLedger(fixture=fixture.name, language=spoken, lines=lines)
        refused = [finding.probe for finding in lint_ledger(ledger, fixture) if finding.rule != "draft"]
        if not refused:
            kept = {line.id for line in lines}
            ordered = [line.model_copy(update={"after": [x for x in order[line.id] if x in kept]}) for line in lines]
            return ledger.model_copy(update={"lines": ordered})
        # Of two lines that fit each other's text one goes, and the other may then be sound.
        lines = [line for line in lines if line.id != refused[-1]]
    raise UserError(f"fixture {fixture.name}: nothing to propose for a ledger: no rule, to-do list or denial found")
