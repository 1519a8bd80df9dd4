"""Facts that take several words: errors, test counts, branches and decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["branches", "counts", "decisions", "errors", "subject_words", "telling_words"]

_LINE = 160
# An output's first line follows the name of its JSON field; pytest sets an E before the line.
_NAMED_ERROR = re.compile(
    r"^(?:E[ \t]{1,6}|[a-z_]{2,20}: )?(?:[A-Za-z_]\w{0,60}\.){0,5}"
    rf"([A-Z]\w{{0,60}}(?:Error|Exception)): ([^\n]{{3,{_LINE}}})",
    re.M,
)
_TOOL_ERROR = re.compile(rf"^(?:error(?:\[([A-Z]+\d+)\])?|fatal|panic|npm ERR!)[:!]? ([^\n]{{6,{_LINE}}})", re.M)
_REASONS = "Unauthorized|Forbidden|Not Found|Conflict|Too Many|Internal Server|Bad Request|Bad Gateway"
_STATUS = re.compile(
    rf"\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?:[_ ]code)?)[ :=]{{1,3}}([45]\d\d)\b|\b([45]\d\d) (?:{_REASONS})", re.I
)
_ERRNO = re.compile(
    r"\bE(?:CONN(?:REFUSED|RESET|ABORTED)|NOENT|ACCES|ADDRINUSE|PIPE|TIMEDOUT|HOSTUNREACH|EXIST|PERM|MFILE|NOSPC)\b"
)
_EXIT = re.compile(r"\bexit(?:ed)?(?:[_ ](?:code|status|with))*[ :=]{1,3}(\d{2,3})\b", re.I)
_COUNT = re.compile(
    r"(?<![\w.])([1-9]\d{0,5})(?: (?:tests?|specs?|checks?))? (passed|failed|passing|failing|errors?|xfailed)\b", re.I
)
_OUTCOME = {"passing": "passed", "failing": "failed", "errors": "error"}
_TELLING = re.compile(r"'([^'\n]{2,60})'|\"([^\"\n]{2,60})\"|([\w./-]*[_/.\d][\w./-]*\w)")

_GIT_BRANCH = re.compile(
    r"(?:git (?:checkout -[bB]|switch -c|worktree add -b|push (?:-u |--set-upstream |--force-with-lease )*origin)"
    r"|On branch|HEAD ->|\[new branch\]\s{1,9}) ?[\"'`]?([A-Za-z0-9][\w./-]{2,90})"
)
_NAMED_BRANCH = re.compile(r"\bbranch(?: named| called)?:? [\"'`]?([A-Za-z0-9][\w./-]{2,90})", re.I)
_USUAL_BRANCH = re.compile(r"(?:main|master|head|develop|dev|origin|tags)", re.I)

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|[。！？\n]+")
_DIRECTIVE = re.compile(
    r"\b(?:never|nobody|don't|do not|nothing|no|not|only|must|always|instead|rather|keep|leave|drop|use|make it|take"
    r"|stays?|becomes?|moves? to|unless|until|rule|switch|rename|revert|first|later|wants?|decided?|agreed|go with"
    r"|niemals|nicht|kein\w*|nur|statt|bitte|jamais|nunca)\b|不要|必须|不得|禁止",
    re.I,
)
_CHOICE = re.compile(
    r"\b(?:decided (?:to|on|against)|decision:|(?:we|I)(?:'ll| will) (?:use|keep|go with|switch to|stick with|drop)"
    r"|going with|sticking with|chose|opted for|switched to|instead of|rather than)\b",
    re.I,
)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_SUBJECT = re.compile(
    rf"`([^`\n]{{2,60}})`|\"([^\"\n]{{2,40}})\"|(#[\w-]+\w)|(\d{{1,2}} {_MONTH})"
    r"|(\.?[^\W\d_][\w./-]*\w)|(\d[\w.,:%-]*\w)"
)
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_DULL_WORDS = re.compile(r"(?:PRs?|CI|OK|README|TODO|API|I)")
_MAX_SUBJECT = 3


def telling_words(text: str) -> list[str]:
    """Return the words of an error line that name something: quoted, with a digit, a dot, a slash."""
    return [match.group(1) or match.group(2) or match.group(3) for match in _TELLING.finditer(text)]


def errors(text: str) -> Iterator[str]:
    """Yield the errors that an output reports; a field "error: null" is none."""
    for match in _NAMED_ERROR.finditer(text):
        yield f"{match.group(1)}: {match.group(2).strip()[:100]}"
    for match in _TOOL_ERROR.finditer(text):
        if match.group(1):
            yield match.group(1)
        elif telling_words(match.group(2)):
            yield match.group(2).strip()[:100]
    for match in _STATUS.finditer(text):
        yield f"HTTP {match.group(1) or match.group(2)}"
    for match in _ERRNO.finditer(text):
        yield match.group()
    for match in _EXIT.finditer(text):
        if match.group(1).strip("0"):
            yield f"exit code {int(match.group(1))}"


def counts(text: str) -> Iterator[str]:
    """Yield test counts as "47 passed"."""
    for match in _COUNT.finditer(text):
        outcome = match.group(2).lower()
        yield f"{match.group(1)} {_OUTCOME.get(outcome, outcome)}"


def branches(text: str) -> Iterator[str]:
    """Yield the names of branches other than the usual ones."""
    for match in _GIT_BRANCH.finditer(text):
        name = match.group(1).rstrip("./").removeprefix("origin/")
        if not _USUAL_BRANCH.fullmatch(name):
            yield name
    for match in _NAMED_BRANCH.finditer(text):
        name = match.group(1).rstrip("./").removeprefix("origin/")
        # In prose "branch" is followed by any word; a name shows itself by its form.
        if not _PLAIN_WORD.fullmatch(name) and not name.isdigit():
            yield name


def _is_plain(word: str) -> bool:
    """Tell a word of prose ("copy-paste") from a name ("vantrello-hiring", "JPY")."""
    if not _PLAIN_WORD.fullmatch(word):
        return False
    return not (word.isupper() and len(word) > 2) and not ("-" in word and len(word) >= 12)


def subject_words(sentence: str) -> list[str]:
    """Return the words of a sentence that name something; prose around them may change freely."""
    marked: dict[str, None] = {}
    capital: dict[str, None] = {}
    for match in _SUBJECT.finditer(sentence):
        word = next(group for group in match.groups() if group)
        if _DULL_WORDS.fullmatch(word):
            continue
        if match.group(5) and _is_plain(word):
            if match.start() > 0 and word[0].isupper() and len(word) > 2:
                capital[word] = None
        else:
            marked[word] = None
    # Capitals alone are weak (a German noun has one): they count in pairs, where nothing better stands.
    words = list(marked) or (list(capital) if len(capital) > 1 else [])
    return words[:_MAX_SUBJECT]


def decisions(text: str, *, from_user: bool) -> Iterator[str]:
    """Yield what was decided or demanded, by the names it is about, joined with " | "."""
    cue = _DIRECTIVE if from_user else _CHOICE
    for sentence in _SENTENCE.split(text):
        if len(sentence) <= 400 and not sentence.rstrip().endswith("?") and cue.search(sentence):
            subject = " | ".join(subject_words(sentence))
            if len(subject) > 2:
                yield subject
