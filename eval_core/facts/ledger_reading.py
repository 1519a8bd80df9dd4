"""What a text says of a ledger's lines: the same, the opposite, less strongly, another status; or it cannot be told.

Only a sentence in the line's own words, or a status named by a closed class, is read. To guess would flag honest text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from eval_core.base.messages import Message, content_text, full_text
from eval_core.domain.session_ledger import LedgerLine, SessionLedger
from eval_core.facts.clauses import Clause, approval_word, is_planned, status_word
from eval_core.facts.fact_text import Haystack, infer_kind, normalise
from eval_core.facts.haystack import value_in
from eval_core.facts.language import language
from eval_core.facts.passages import Statement, passages


class LineState(StrEnum):
    """What a summary makes of a line."""

    SAME = "same"
    CONSENT = "consent that no message gives"
    INVENTED = "an order that no message gives"
    NOT_LOST = 'lost its "not"'
    NOT_ADDED = 'gained a "not"'
    STATUS = "another status"
    SUGGESTED = "only suggested"
    STRICTER = "more strictly"
    SPEAKER = "not the user's order"
    ORDER = "step out of order"
    REQUEST = "older request as the active one"
    LANGUAGE = "another language"
    UNCLEAR = "cannot tell"
    ABSENT = "absent"


BAD = frozenset(LineState) - {LineState.SAME, LineState.UNCLEAR, LineState.ABSENT}
BESIDE = frozenset({LineState.CONSENT, LineState.INVENTED, LineState.LANGUAGE})
"""States that need no line: what is read so is named by its own words, at most so many characters of them."""
LONGEST_NAME = 60
_READ = frozenset({"rule", "item", "approval", "request", "decision"})
"""Kinds of lines that say something; values, paths and errors are strings, which the facts follow."""
_SHARE = 0.6  # of a line's words that must be there to call it the same sentence
_NEAR_START = 48  # characters within which an item under a heading names what it is about
_UNFINISHED = frozenset({"open", "failed", "blocked"})
_ACTIVE = re.compile(
    r"\b(?:active|current) (?:task|request|goal)\b|\btask snapshot\b|\bin force\b|\baktuelle\w* aufgabe", re.IGNORECASE
)
_OF_THE_USER = re.compile(
    r"\bthe user (?:(?:has|have|had|already|explicitly|also|later) ){0,3}(?:approved|authori[sz]ed|consented to"
    r"|agreed to|permitted|granted|signed off(?: on)?|gave (?:\w+ ){0,2}(?:approval|permission|consent) (?:to|for)"
    r"|(?P<order>ordered|instructed|forb(?:ids|ade)|requires?d?|demand(?:s|ed)|insist(?:s|ed)(?: on)?))"
    r"(?P<of>(?:[^.;\n]|\.(?=\S)){3,160})"
    r"|\bder nutzer hat (?P<was>[^.;\n]{3,120}?) (?:genehmigt|erlaubt|freigegeben|zugestimmt)\b",
    re.IGNORECASE,
)
_LIST = re.compile(r"[,;.]\s")
_AS_RULES = re.compile(
    r"\b(?:users?|nutzer|constraints?|preferences?|rules?|requirements?|instructions?|regeln|vorgaben)\b", re.IGNORECASE
)
_ENOUGH = 200  # characters that tell the language of a summary
_STEM = 5  # letters that tell a word from others
_RELATIVE = re.compile(r"\b(?:after|before|once|until|nach|bevor|vor|erst)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """What became of one line, and the sentence that says so."""

    state: LineState
    quote: str = ""


def _speaks_of(anchors: Sequence[str], text: str | Haystack) -> bool:
    """Tell whether a text holds all anchors; unlike a fact's, their denial is what is read here."""
    haystack = Haystack.of(text) if isinstance(text, str) else text
    return all(
        re.search(rf"(?<!\w){re.escape(normalise(anchor))}(?!\w)", haystack.text) is not None
        if " " in anchor
        else value_in(anchor, infer_kind(anchor), haystack)
        for anchor in anchors
    )


def _alike(said: Clause, told: Clause) -> bool:
    """Tell whether a clause has nothing but the words of another, and most of them."""
    return bool(told.content) and told.content <= said.content and len(told.content) >= _SHARE * len(said.content)


def _turned(said: Statement, told: Statement) -> LineState | None:
    """Tell whether a denial is gone or new in words that are otherwise the same."""
    before, now = said.whole.denials, told.whole.denials
    if said.whole.turns != told.whole.turns:
        return None
    if _alike(said.whole, told.whole) and (before > 0) != (now > 0):
        return LineState.NOT_LOST if before else LineState.NOT_ADDED
    pairs = [(a.denials, b.denials) for a in said.clauses for b in told.clauses if _alike(a, b)]
    lost, gained = any(had and not has for had, has in pairs), any(has and not had for had, has in pairs)
    if lost and (now < before or (now == before and gained)):  # another clause may have kept its denial, or taken it
        return LineState.NOT_LOST
    return LineState.NOT_ADDED if gained and not before else None


def _rule(line: LedgerLine, said: Sequence[Statement], told: Statement) -> LineState:
    """Read one sentence against the sentences that state the rule."""
    states = set[LineState]()
    for one in said:
        if turned := _turned(one, told):
            states.add(turned)
        elif not _alike(one.whole, told.whole) and not any(_alike(a, b) for a in one.clauses for b in told.clauses):
            continue
        elif told.whole.weak and not any(other.whole.weak for other in said) and line.strength == "must":
            states.add(LineState.SUGGESTED)
        elif told.whole.strong and line.strength == "may" and not any(other.whole.strong for other in said):
            states.add(LineState.STRICTER)
        elif one.whole.denials == told.whole.denials and one.whole.turns == told.whole.turns:
            return LineState.SAME
    return next((state for state in LineState if state in states), LineState.UNCLEAR)


def _held(line: LedgerLine, found: str | None, allowed: Set[str]) -> LineState:
    """Hold the status that a text names against those that an item of work or an approval may have."""
    if found is None:
        return LineState.UNCLEAR
    if line.kind == "approval" and found == "given" and "given" not in allowed:
        return LineState.CONSENT
    if line.kind == "approval":
        return LineState.STATUS if found == "refused" and allowed == {"given"} else LineState.SAME
    unfinished = found in _UNFINISHED and bool(allowed & _UNFINISHED)
    # What failed on the way to being done, or was given up, did fail.
    past = found == "failed" or (found == "blocked" and allowed != {"done"})
    return LineState.SAME if found in allowed or unfinished or past else LineState.STATUS


def _status(line: LedgerLine, allowed: Set[str], told: Statement) -> LineState:
    """Read which status a sentence gives to an item of work or an approval."""
    at = next((at for at, clause in enumerate(told.clauses) if _speaks_of(line.anchors, clause.text)), None)
    if at is None:
        return LineState.UNCLEAR
    read = approval_word if line.kind == "approval" else status_word
    beside = [clause.text for clause in told.clauses[at + 1 : at + 2] if len(clause.text.split()) <= 3]
    label, colon, rest = told.text.partition(":")
    if at and colon and label == told.clauses[0].text and not _LIST.search(rest[: rest.find(told.clauses[at].text)]):
        beside.append(label)  # "Done: ..."
    found = next(filter(None, map(read, [told.clauses[at].text, *beside])), None)
    if found is None and line.kind == "item" and allowed == {"done"} and is_planned(told.heading):
        # A heading such as "Planned" speaks of the items that begin with what they are about.
        found = "open" if line.anchors[0] in told.text[: _NEAR_START + len(line.anchors[0])] else None
    return _held(line, found, allowed)


@dataclass(frozen=True)
class LedgerReader:
    """A ledger with its session, ready to be looked for in what a compressor wrote."""

    ledger: SessionLedger
    messages: Sequence[Message]

    @cached_property
    def _said(self) -> dict[str, list[Statement]]:
        """The sentences of messages that state each rule."""
        return {
            line.id: [part for part in passages(texts) if _speaks_of(line.anchors, part.text)]
            for line in self.ledger.lines
            if line.kind == "rule"
            for texts in ["\n".join(content_text(self.messages[at]) for at in line.said)]
        }

    @cached_property
    def _session(self) -> str:
        return "\n".join(map(full_text, self.messages)).lower()

    @cached_property
    def _answered(self) -> list[frozenset[str]]:
        """The words of each message of the user or the prompt, with those of what it answers."""
        users = [at for at, message in enumerate(self.messages) if message.get("role") in ("user", "system")]
        return [Clause(" ".join(map(full_text, self.messages[max(0, at - 1) : at + 1]))).content for at in users]

    def read(self, texts: Sequence[str], kept_from: int) -> dict[str, Reading]:
        """Read every line; `kept_from` is where the messages begin that were kept verbatim at the end."""
        told = [(passage, Haystack.of(passage.text)) for text in texts for passage in passages(text)]
        found: dict[str, Reading] = {}
        for line in self.ledger.lines:
            if line.kind not in _READ:
                continue
            about = [passage for passage, haystack in told if _speaks_of(line.anchors, haystack)]
            found[line.id] = self._line(line, about, kept_from) if about else Reading(LineState.ABSENT)
        flagged = {reading.quote for reading in found.values() if reading.state is LineState.CONSENT}
        for passage, _ in told:
            found |= dict(self._order(passage))
            found |= {} if passage.text in flagged else dict(self._invented(passage.text))
        whole, expected = "\n".join(texts), self.ledger.language
        spoken = language(whole) if len(whole) >= _ENOUGH else None
        other = "" if spoken is None or expected in (None, spoken) else spoken
        return found | ({"language": Reading(LineState.LANGUAGE, other)} if other else {})

    def _line(self, line: LedgerLine, about: Sequence[Statement], kept_from: int) -> Reading:
        over = line.superseded_at is not None and line.superseded_at <= kept_from
        if line.kind == "request":
            active = next((passage.text for passage in about if _ACTIVE.search(passage.heading)), None)
            if active is not None:
                return Reading(LineState.REQUEST if over else LineState.SAME, active)
        if over:
            return Reading(LineState.UNCLEAR)
        read = [Reading(self._state(line, passage, kept_from), passage.text) for passage in about]
        # Where one sentence has it right, another may speak of the past.
        return next(item for state in LineState for item in read if item.state is state)

    def _state(self, line: LedgerLine, told: Statement, kept_from: int) -> LineState:
        if line.speaker in ("assistant", "tool"):
            ordered = any(match["order"] for match in _OF_THE_USER.finditer(told.text))
            if ordered or self._as_rule(line, told):
                return LineState.SPEAKER
        if line.kind == "rule" and line.speaker != "tool":
            return _rule(line, [Statement(line.text), *self._said[line.id]], told)
        if line.kind in ("item", "approval"):
            # What a summary of the middle says may hold until the messages that were kept.
            then = line.status_at(kept_from)
            later = [entry.is_ for entry in line.status if entry.at >= kept_from]
            return _status(line, {*later, *([then] if then else [])}, told)
        return LineState.UNCLEAR

    def _as_rule(self, line: LedgerLine, told: Statement) -> bool:
        """Tell whether the words of a tool stand among the user's rules, and no other word that says whose they are."""
        words = told.whole.content
        return (
            (line.kind, line.speaker) == ("rule", "tool")
            and _AS_RULES.search(told.heading) is not None
            and not told.whole.denials
            and any(words <= said.whole.content for said in self._said[line.id])
        )

    def _order(self, told: Statement) -> Iterator[tuple[str, Reading]]:
        """Find steps that one sentence names in another order, without a word such as "after"."""
        text = normalise(told.text)
        by_id = {line.id: text.find(normalise(line.anchors[0])) for line in self.ledger.lines}
        for line in self.ledger.lines:
            for first in line.after:
                if -1 < by_id[line.id] < by_id[first] and not _RELATIVE.search(text):
                    yield line.id, Reading(LineState.ORDER, told.text)

    def _invented(self, text: str) -> Iterator[tuple[str, Reading]]:
        """Find consent and orders of which no message of the user, and nothing that it answers, speaks."""
        for match in _OF_THE_USER.finditer(text):
            what = (match["of"] or match["was"]).strip(" :")
            words = Clause(what).content
            telling = [word[:_STEM] for word in words if len(word) >= _STEM]
            unheard = bool(telling) and not any(stem in self._session for stem in telling)
            if match["order"]:  # orders are often told in other words than the user's
                state, found = LineState.INVENTED, unheard and len(telling) >= 3
            elif self.ledger.language is None:  # what is approved may have been said in another language
                state, found = LineState.CONSENT, unheard
            else:
                said = any(len(words & known) * 2 >= len(words) for known in self._answered)
                foreign = language(text) not in (None, self.ledger.language)
                state, found = LineState.CONSENT, bool(words) and not said and not foreign
            if found:
                yield what[:LONGEST_NAME], Reading(state, text)
