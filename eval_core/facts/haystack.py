"""Is this fact in this text? And does an answer still state a value that has been replaced?"""

from __future__ import annotations

import re
from functools import lru_cache

from eval_core.domain.probe import Fact, FactKind
from eval_core.facts.fact_match import spans, stands
from eval_core.facts.fact_text import Haystack, infer_kind, normalise

# Is this fact in this text?


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def fact_key(value: str) -> str:
    """Return the normal form by which two contributors of one session name the same fact."""
    return normalise(value).rpartition("://")[2]


def value_in(value: str, kind: FactKind, haystack: Haystack) -> bool:
    """Tell whether a literal value of this kind stands in the text."""
    return stands(value, kind, haystack)


def holds(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether the text states the fact; for a superseded value, whether it is mentioned at all."""
    if fact.regex is not None:
        expression = _expression(fact.regex)
        # Authors write against what they see; the plain form is the fallback for dressed-up text.
        return bool(expression.search(haystack.source) or expression.search(haystack.text))
    found = (value_in(value, fact.kind or infer_kind(value), haystack) for value in fact.values)
    return all(found) if fact.all is not None else any(found)


def states_superseded(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether an answer states the superseded value as current; telling that it was replaced is fine."""
    if fact.not_ is None:
        return False
    return stated_as_current(fact.not_, fact.kind or infer_kind(fact.not_), haystack)


# Whether an answer still states a value that has been replaced, or only tells that it was.

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|[。！？；]|\n+")
_NEAR = 300  # characters around a value within which its sentence can say that it is past


def _before(cue: str, words: int, breaks: str) -> re.Pattern[str]:
    """Match a cue that stands at most so many words before the value, with none of the breaks between."""
    step = rf"(?:(?!(?:{breaks})(?![a-z]))[^\s]+ ){{0,{words}}}"
    return re.compile(rf"(?<![a-z])(?:{cue})(?![a-z]),? {step}[^\s\w]{{0,3}}$")


_TURN = r"but|now|currently|instead|later|then|afterwards|it|we|they|it's|today"
_TARGET = r"to|into|onto|with|by|->|=>|in|favor|favour"

_LEGITIMATE_BEFORE = (
    _before(r"no longer|never|nor|neither|cannot|\w+n't|not(?! (?:only|just))|without|avoid\w*", 7, _TURN),
    _before(r"instead of|rather than|as opposed to|in place of|in lieu of|in favou?r of not|versus|vs\.?", 5, _TURN),
    _before(
        r"replac(?:e|ed|es|ing)|supersed(?:e|ed|es|ing)|dropp?(?:ed|ing|s)?|remov(?:e|ed|es|ing)|abandon(?:ed|ing|s)?"
        r"|reject(?:ed|ing|s)?|retir(?:ed|es|ing)|deprecat(?:ed|es|ing)|discard(?:ed|ing|s)?|ditch(?:ed|ing)?"
        r"|ruled out|decided against|stopped using|got rid of|(?:away|off) from|mov(?:ed|ing|es?) (?:off|away from)"
        r"|revers(?:ed|ing)|overrul(?:ed|ing)|overrid(?:den|es|ing)|revok(?:ed|ing)|undid",
        5,
        f"{_TURN}|{_TARGET}",
    ),
    _before(
        r"old|former|formerly|previous|previously|earlier|original|originally|initial|initially|outdated|stale"
        r"|obsolete|superseded|deprecated|legacy|at first|used to|had been|before|in the past",
        5,
        f"{_TURN}|->|=>|final|finally",
    ),
    _before(
        r"(?:mov|migrat|switch|chang|went|convert|port|upgrad|downgrad|rais|lower|increas|reduc|bump|cut|rename"
        r"|renam|shift|transition|updat|go|goes|going|came|come)\w*\b.{0,60}? from",
        5,
        f"{_TURN}|{_TARGET}",
    ),
    _before(r"(?:cho|pick|prefer|select|favou?r|won|wins|use)\w*\b.{0,60}? over", 4, f"{_TURN}|{_TARGET}"),
    _before(r"first", 1, _TURN),
    re.compile(r"~~[^~]{0,40}$"),
    re.compile(r"(?:不再|不是|而非|并非|取代|替换|弃用|放弃|原来|之前|以前|原先|最初|代替|不要|没有|不用)[^,.]{0,8}$"),
    _before(
        r"nicht(?: mehr)?|kein\w*|statt|anstelle|anstatt|früher|zuvor|ursprünglich|ya no|en lugar de|en vez de"
        r"|au lieu de|plutôt que|n'est plus|não|em vez de|ao invés de",
        5,
        _TURN,
    ),
)
_COPULA = r"(?:(?:is|was|are|were|(?:has|have|had)(?: since| now| already)? been|got|gets|being|be|will be) )"
_GONE = (
    r"(?:replaced|superseded|dropped|removed|abandoned|rejected|retired|deprecated|discarded|ditched|ruled out|reversed"
    r"|overruled|overridden|obsolete|outdated|stale|the old|the previous|the former|the original|the initial|the first"
    r"|the earlier|gone|revoked|declined|reverted|undone|rolled back|withdrawn)"
)
_LEGITIMATE_AFTER = (
    re.compile(
        rf"^[\"')\]]?\s?[,:(-]?\s?(?:\S+ ){{0,2}}?{_COPULA}?(?:since |later |then |now |already )?{_GONE}(?![a-z])"
    ),
    re.compile(
        r"^[\"')\]]?\s?(?:\S+ ){0,2}?(?:is|was|are|were|does|do|did|should|must|can|will|would) (?:not|never|no longer)"
    ),
    re.compile(r"^[\"')\]]?\s?(?:\S+ ){0,2}?(?:isn't|wasn't|aren't|weren't|doesn't|didn't|won't|shouldn't|mustn't)"),
    re.compile(r"^[\"')\]]?\s?[,(-]?\s?no longer"),
    re.compile(r"^[\"')\]]?\s?\((?:the )?(?:old|(?:previous|former|original|initial)(?:ly)?|superseded|obsolete)"),
    re.compile(
        r"^[\"')\]]?\s?(?:was )?(?:originally|before|previously|at first|initially|earlier|formerly)\s*(?:[,.;)]|$)"
    ),
    re.compile(r"^[\"')\]]?\s?(?:->|=>|-->)"),
    re.compile(r"^[^\s\w]?\s?(?:\S+ ){0,4}?until\b"),
    re.compile(
        r"^[\"')\]]?\s?[,(]\s*(?:but |and )?(?:it's |it is |is )?(?:now|currently) (?:at |is |set to |using )?\S"
    ),
    re.compile(r"^~~"),
    re.compile(r"^.{0,6}(?:改为|改成|换成|迁移到|切换到|已弃用|被替换|被取代|已被)"),
)
_WAS = re.compile(
    r"(?<![a-z])(?:was|were|had|considered|tried|planned|proposed|started (?:with|at|on|as|out)|began (?:with|at|as))"
    r"(?![a-z]) (?:\S+ ){0,3}[^\s\w]{0,2}$"
)
_SINCE = re.compile(
    r"(?<![a-z])(?:now|currently|today|since|later|then|but|instead|went with|changed|raised|lowered|reduced|increased"
    r"|switched|moved|replaced|migrated|updated)(?![a-z])"
)


def _told_as_past(before: str, after: str, following: str) -> bool:
    if any(cue.search(before) for cue in _LEGITIMATE_BEFORE) or any(cue.search(after) for cue in _LEGITIMATE_AFTER):
        return True
    return bool(_WAS.search(before) and _SINCE.search(f"{after} {following}"))


def stated_as_current(value: str, kind: FactKind, haystack: Haystack) -> bool:
    """Tell whether any sentence states the value without saying that it has been replaced."""
    if next(spans(value, kind, haystack), None) is None:
        return False
    sentences = [Haystack.of(part) for part in _SENTENCE_END.split(haystack.source) if part.strip()]
    stated = seen = False
    for index, sentence in enumerate(sentences):
        following = sentences[index + 1].text if index + 1 < len(sentences) else ""
        for start, end in spans(value, kind, sentence):
            seen = True
            stated = stated or not _told_as_past(
                sentence.text[max(0, start - _NEAR) : start], sentence.text[end : end + _NEAR], following[:_NEAR]
            )
    # A value that stands only across a sentence break is stated, but has no sentence to judge it by.
    return stated or not seen
