"""What makes a ledger say something that its session does not, or that nobody could tell apart."""

from __future__ import annotations

from collections.abc import Iterator

from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import LedgerLine, SessionLedger
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.suite.lint import LintFinding, Places, did_you_mean

_ROLES = {
    "user": ("user", "tool"),  # a tool hands on what a user said when denying its call
    "assistant": ("assistant",),
    "tool": ("tool",),
    "project_file": ("system", "user", "tool"),  # in the prompt, pasted, or read by a tool
}


def _error(line: LedgerLine, rule: str, message: str) -> LintFinding:
    return LintFinding("error", line.id, rule, message)


def _support(line: LedgerLine, places: Places) -> Iterator[LintFinding]:
    """Check that every message that is named says the line, and that the first is its speaker's."""
    wrong = [index for index in line.said if not holds(line.fact, places.haystacks[index])]
    for index in wrong:
        missing = [
            anchor
            for anchor in line.anchors
            if not holds(line.fact.model_copy(update={"all": [anchor]}), places.haystacks[index])
        ]
        near = did_you_mean(missing[0], [places.haystacks[index].source])
        advice = f"did you mean {near!r}?" if near else "quote the message, or correct said"
        yield _error(line, "unsupported", f"message {index} does not say {', '.join(map(repr, missing))}; {advice}")
    role = places.fixture.messages[line.said[0]].get("role")
    if role not in _ROLES[line.speaker]:
        message = f"speaker is {line.speaker!r}, but message {line.said[0]} has the role {role!r}; correct one of them"
        yield _error(line, "wrong-speaker", message)


def _own_words(line: LedgerLine, ledger: SessionLedger) -> Iterator[LintFinding]:
    """Check that the line's text holds its anchors, and no other line's does."""
    if not holds(line.fact, Haystack.of(line.text)):
        yield _error(line, "text-without-anchors", f"the text {line.text!r} does not hold all anchors; add them")
    for other in ledger.lines:
        if other.id != line.id and holds(line.fact, Haystack.of(other.text)):
            message = (
                f"its anchors ({', '.join(line.anchors)}) are all in the text of {other.id!r}, so that text fits two "
                "lines; add an anchor, or reword that text"
            )
            yield _error(line, "fits-two", message)


def _order(line: LedgerLine, ledger: SessionLedger) -> Iterator[LintFinding]:
    by_id = {other.id: other for other in ledger.lines}
    if line.superseded_by is not None and line.superseded_at is not None:
        first = by_id[line.superseded_by].said[0]
        if first > line.superseded_at:
            message = (
                f"superseded_at is {line.superseded_at}, but {line.superseded_by!r} is first said in message {first}; "
                "correct one of them"
            )
            yield _error(line, "superseded-order", message)
    before, waiting = set[str](), list(line.after)
    while waiting:
        name = waiting.pop()
        if name not in before:
            before.add(name)
            waiting += by_id[name].after
    if line.id in before:
        yield _error(line, "after-itself", "by the after fields this step comes before itself; remove one of them")


def lint_ledger(ledger: SessionLedger, fixture: Fixture) -> list[LintFinding]:
    """Return everything to be said of a ledger, in its order."""
    places = Places(fixture)
    findings: list[LintFinding] = []
    for line in ledger.lines:
        if line.draft:
            findings.append(_error(line, "draft", 'is a draft; read it, correct it and remove "draft"'))
        findings += [*_support(line, places), *_own_words(line, ledger), *_order(line, ledger)]
    return findings
