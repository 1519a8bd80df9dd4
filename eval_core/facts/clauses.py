"""Clauses read by closed classes of words: is it denied, how strongly is it put, and in which state is it?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)


# The closed classes, English and German. What follows "not even" or "not only" is no second denial.
_DENIALS = _words(
    r"(?:not|never|no(?!,)|nothing|nobody|none|neither|nor|cannot|\w{1,8}n['’]t|nicht|nie|niemals|nichts|niemand"
    r"|niemanden|kein(?:e[nmrs]?)?)(?! (?:even|only|just|einmal|nur)\b)|(?:do|must|should|shall|may|can)not"
)
_NOT_EVEN = _words(r"(?:not|nicht) (?:even|only|just|einmal|nur)")
_WEAK = _words(
    r"(?:would|might|could) be (?:good|nice|better|best|wise) to|could|might|optional(?:ly)?"
    r"|preferabl[ey]|ideally|perhaps|maybe|(?:if|where|when(?:ever)?) possible"
    r"|consider|suggest(?:ed|ion)?|könnten?|vielleicht|möglichst|wenn möglich|eventuell"
)
_MAY = _words(r"may|can|kann|können|darf|dürfen")  # with a denial these forbid: nothing may
_STRONG = _words(r"must|always|required?|shall|ha(?:s|ve) to|muss|müssen|immer|zwingend")
_TURNS = _words(
    r"avoid\w*|refrain\w*|forb[ia]d\w*|prohibit\w*|refus\w*|without|unless|except|instead|only|off limits|ohne|außer"
    r"|statt|nur|verboten|vermeide\w*|untersagt|hands off"
)
"""Words that may turn a sentence round without being a denial: where they differ, nothing is certain."""
_EMPTY = _words(
    r"(?:every|any|some)(?:thing|body|one)?|about|you|your|the|and|all|also|its|ever|then|please|jede[rsnm]?|alles|alle|auch|bitte"
    r"|be|been|is|are|was|were|has|have|had|does|did|will|would|should|shall|wird|werden|wurde|ist|sind|soll(?:te)?"
)
_TOKEN = re.compile(r"[^\W_][\w./:#@+-]*\w|[^\W_]")
_ENDING = re.compile(r"(?<=\w{4})(?:ings?|ed|es|s|en|e)$")


@dataclass(frozen=True)
class Clause:
    """One clause, or a sentence as a whole, with what its closed classes say."""

    text: str

    @cached_property
    def denials(self) -> int:
        return len(_DENIALS.findall(self.text))

    @cached_property
    def weak(self) -> bool:
        return _WEAK.search(self.text) is not None or (not self.denials and _MAY.search(self.text) is not None)

    @cached_property
    def strong(self) -> bool:
        return _STRONG.search(self.text) is not None

    @cached_property
    def turns(self) -> frozenset[str]:
        return frozenset(word.lower() for word in _TURNS.findall(self.text))

    @cached_property
    def content(self) -> frozenset[str]:  # what it speaks of
        text = self.text
        for closed in (_NOT_EVEN, _DENIALS, _WEAK, _MAY, _STRONG, _TURNS, _EMPTY):
            text = closed.sub(" ", text)
        found = (token.lower() for token in _TOKEN.findall(text))
        return frozenset(_ENDING.sub("", word) for word in found if len(word) > 2 or word.isdigit())


# In which state an item of work is said to be, and whether something was approved.
_STATUS = {
    "open": _words(
        r"(?:is|are|still|remains?|left|status|ist|noch) open|todo|to[ -]do|pending|outstanding|planned|remaining"
        r"|unfinished|not (?:yet )?(?:done|started|finished|completed?|begun|resolved)|in progress"
        r"|offen|geplant|ausstehend|noch nicht|still (?:has|have|needs?|planned|to)"
    ),
    "done": _words(
        r"done|completed?|finished|resolved|pass(?:ed|es)|succeeded|green|erledigt|fertig|abgeschlossen|bestanden|grün"
    ),
    "failed": _words(r"fail(?:s|ed|ing|ures?)?|red|broken|fehlgeschlagen|gescheitert|rot"),
    "blocked": _words(r"blocked|on hold|wait(?:s|ing)|stalled|blockiert|wartet"),
    "abandoned": _words(
        r"abandoned|dropped|cancell?ed|discarded|reverted|removed|withdrawn|given up|verworfen|aufgegeben|abgebrochen"
    ),
}
_APPROVAL = {
    "given": _words(
        r"approved|agreed|allowed|accepted|authori[sz]ed|consented|permitted|confirmed|granted|genehmigt|zugestimmt|erlaubt"
        r"|freigegeben"
    ),
    "refused": _words(r"denied|refused|rejected|declined|forbade|forbidden|abgelehnt|verweigert|verboten"),
}
_DONE_HEADING = _words(r"completed?(?: actions| work| tasks)?|done|finished|resolved|erledigt")
_OPEN_HEADING = _words(r"pending|planned|to[ -]?do|remaining|next steps?|outstanding|in progress|open|offen|geplant")
_NEAR = 24


def _read(classes: dict[str, re.Pattern[str]], text: str) -> set[str]:
    found = set()
    for name, words in classes.items():
        for match in words.finditer(text):
            denied = name != "open" and _DENIALS.search(text[max(0, match.start() - _NEAR) : match.start()])
            found.add(f"not {name}" if denied else name)
    return found


def status_word(text: str) -> str | None:
    """Return the one status that a clause names; None where it names none or two."""
    found = _read(_STATUS, text)
    if "not done" in found:
        found = (found - {"not done"}) | {"open"}
    return found.pop() if len(found) == 1 else None


def approval_word(text: str) -> str | None:
    """Return "given" or "refused" where a clause says one of them; None where it does not, or denies it."""
    found = _read(_APPROVAL, text)
    return next((name for name in ("given", "refused") if found == {name}), None)


def is_planned(heading: str) -> bool:
    """Tell whether a heading says that what is under it is still to be done."""
    return _OPEN_HEADING.search(heading) is not None and _DONE_HEADING.search(heading) is None
