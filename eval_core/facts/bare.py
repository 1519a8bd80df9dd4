"""Bare text: what nobody could use, because no sentence carries it: comments, lists of loose words, a message aside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from eval_core.facts.fact_text import infer_kind
from eval_core.facts.verbatim import Kept

FEWEST_WORDS = 25
"""Fewer words without a sentence are a title, or a list of what the title says."""
COMMON_SHARE = 0.05
"""Of the words of a sentence more are words such as "the", in any language that is known here."""
ONE_KIND = 0.6
"""A list of which this share is of one kind, such as paths, says what it is by that."""
_PROMPTS = ("system", "developer")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_TITLE = re.compile(r"^\s{0,3}#{1,6}\s|^\s*\*\*[^*]+\*\*:?\s*$")
_LABEL = re.compile(r"^\s*(?:[-*]\s+)?[^\W\d][\w ]{0,30}:\s")
_STATEMENT = re.compile(r"[:=：→。！？]|->|[.!?;](?:\s|$)")
_WORD = re.compile(r"[^\s,;|]*\w[^\s,;|]*")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and of to is in for that with was not be der die und das ist nicht mit ein für den von wird le les des est"
        " une pour dans pas que du sont aux el los las por con para del se está como il che di per non sono gli della è"
        " os uma não com do da em foi dos ao het een van niet en voor met dat zijn op wordt de nie na się jest że przez"
        " oraz są dla jako ve bir için bu ile değil olarak olan çok gibi una",
    )
)


def _says_nothing(line: str) -> bool:
    """Tell whether a line has no sign of a statement and none of the words that every sentence has."""
    rest = _LABEL.sub("", line, count=1)
    words = _WORD.findall(rest.lower())
    return not _STATEMENT.search(rest) and sum(word in _COMMON for word in words) < COMMON_SHARE * len(words)


def _is_list(lines: list[str]) -> bool:
    words = _WORD.findall(" ".join(lines))
    kinds = Counter(kind for word in words if (kind := infer_kind(word)) != "text")
    return len(words) >= FEWEST_WORDS and max(kinds.values(), default=0) < ONE_KIND * len(words)


def _without_lists(text: str) -> Iterator[str]:
    loose: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip() and not _TITLE.match(line) and _says_nothing(line):
            loose.append(line)
            continue
        if not _is_list(loose):
            yield from loose
        loose = []
        yield line


def usable_texts(kept: Kept) -> tuple[str, ...]:
    """Return what the compressor wrote, without what no sentence carries."""
    own = [at for at in range(len(kept.compressed)) if at not in kept.alignment.kept]
    roles = [str(kept.compressed[at].get("role")) for at in own]
    # A summary may be a system message; what is written beside one is instructions to nobody.
    aside = set(_PROMPTS) if any(role not in _PROMPTS for role in roles) else set()
    return tuple(
        "\n".join(_without_lists(_COMMENT.sub("", text)))
        for role, text in zip(roles, kept.own_texts, strict=True)
        if role not in aside
    )
