"""The census: typed facts extracted from a session by rule, with the messages they come from, most telling first."""

from __future__ import annotations

import builtins
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, get_args

from eval_core.base.messages import Message, call_arguments, call_name, content_text, decoded, tool_calls
from eval_core.facts.fact_text import CRON, infer_kind, is_host, normalise

# Facts that take several words: errors, test counts, branches and decisions.

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


def subject_words(sentence: str, most: int = _MAX_SUBJECT) -> list[str]:
    """Return the words of a sentence that name something; prose around them may change freely."""
    marked: dict[str, None] = {}
    capital: dict[str, None] = {}
    for match in _SUBJECT.finditer(sentence):
        word = next(group for group in match.groups() if group)
        # A word in quotes is stressed or coined; what is quoted as a name is seldom a plain word.
        if _DULL_WORDS.fullmatch(word) or (match.group(2) and _is_plain(word) and word.islower()):
            continue
        if match.group(5) and _is_plain(word):
            if match.start() > 0 and word[0].isupper() and len(word) > 2:
                capital[word] = None
        else:
            marked[word] = None
    # Capitals alone are weak (a German noun has one): they count in pairs, where nothing better stands.
    words = list(marked) or (list(capital) if len(capital) > 1 else [])
    return words[:most]


def decisions(text: str, *, from_user: bool) -> Iterator[str]:
    """Yield what was decided or demanded, by the names it is about, joined with " | "."""
    cue = _DIRECTIVE if from_user else _CHOICE
    for sentence in _SENTENCE.split(text):
        if len(sentence) <= 400 and not sentence.rstrip().endswith("?") and cue.search(sentence):
            subject = " | ".join(subject_words(sentence))
            if len(subject) > 2:
                yield subject


# The typed values that one piece of a session holds, read off by form alone.

CensusKind = Literal[
    "path", "url", "host", "identifier", "hash", "version", "pr", "cron", "error", "test_count", "branch", "decision"
]
CENSUS_KINDS: tuple[str, ...] = get_args(CensusKind)
Source = Literal["user", "assistant", "arguments", "output", "system"]
Found = tuple[CensusKind, str]

_MAX_TOKEN = 160
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{},;|=*“”‘’«»，。；：、（）]+")
_URL = re.compile(r"\bhttps?://[^\s\"'<>()\[\]{}|`,;\\]{4,300}")
_FORGE_NUMBER = re.compile(r"/(?:pull|pulls|issues|merge_requests)/\d+(?:[#/].*)?$")
_PLAIN_WORD_extract = re.compile(r"[A-Za-z]?[a-z]*")
_LINE_NUMBER = re.compile(r":\d+(?::\d+)?$")
_DIFF_SIDE = re.compile(r"^[ab]/(?=[\w.-]+[/.])")
_PATH_FORM = re.compile(r"(?:[A-Za-z]:)?[\w.@~+/-]+")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,7}$")
_DOTFILE = re.compile(r"\.(?:env|gitignore|gitattributes|dockerignore|npmrc|nvmrc|editorconfig|bashrc|zshrc|profile)")
_ATTRIBUTE = re.compile(
    r"(?:self|cls|this|args|os|sys|np|pd|re|req|res|ctx|opts|threading|asyncio|event|console|process|math|import\.meta"
    r"|row|item|obj)\..*"
    r"|(?:node|next|vue|nuxt|three|express|react|ember|angular|backbone|chart|moment|discord|d3|ext|deno)\.js",
    re.I,
)
_WORD_LIST = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_SNAKE = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_CAMEL = re.compile(r"[A-Za-z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*-[A-Za-z]*\d[A-Za-z0-9]*")
# Standards, and what only counts things.
_DULL_NUMBERED = re.compile(
    r"(?:utf|sha|md|iso|x86|aes|rsa|covid|top|phase|step|part|option|level|tier|round|attempt|item|page|row|line|case"
    r"|section|chapter|stage|figure|table|q[1-4])-\d\w*",
    re.I,
)
_DULL_NAMES = frozenset(dir(builtins)) | {"utf-8", "tmp_path", "is_dir", "is_file", "exist_ok", "PosixPath"}
_VERSION = re.compile(r"v\d+\.\d+(?:\.\d+)*(?:-[0-9a-z.]+)?|\d+\.\d+\.\d+(?:-[0-9a-z.]+)?", re.I)
_DATE = re.compile(r"(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?:19|20)\d\d")
_DULL_PATHS = re.compile(
    r"/(?:dev|proc|sys)/.*|/(?:usr/)?s?bin(?:/.*)?|/usr/(?:lib|local/bin)(?:/.*)?|/tmp|n/a|and/or|s/.*|origin/.*"
    r"|.*/(?:site-packages|node_modules|pytest-of-\w+)/.*",
    re.I,
)
_HOME = re.compile(r"(?:~|[a-z]:|/(?:home|users)/[^/]+|/root|/tmp|/workspaces?|/private|/var/folders)/", re.I)
_LOOPBACK = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0)", re.I)
_NUMBERED = re.compile(r"([ /]#?|#)(\d{1,6})(?!\w|[.,]\d)")
_REFERENCE = re.compile(r"(?:.*\W)?(?:PRs?|pull request|(pull)|issues?|MR|merge request)", re.I | re.S)
_HOW_MANY = re.compile(r" (?:of|times)\b")
_FIELD = r"[\d*][\d*/,-]{0,20}"
_CRON_LINE = re.compile(
    rf"(?<![\w*/,-]){_FIELD}(?: {{1,2}}{_FIELD}){{3}} {{1,2}}(?:{_FIELD}|[a-z]{{3}}(?:-[a-z]{{3}})?)(?![\w*/,-])", re.I
)
_JSON_KEY = re.compile(r"^([A-Za-z_]\w{0,60}):(?=\s|$)", re.M)
_DIFF_INDEX = re.compile(r"^index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}.*$", re.M)


def json_keys(text: str) -> set[str]:
    """Return the field names of an unfolded JSON document: they are form, not fact."""
    return set(_JSON_KEY.findall(text))


def _path(token: str) -> str | None:
    if re.match(r"[A-Za-z]:\\", token):
        token = re.sub(r"\\+", "/", token)
    else:
        token = _LINE_NUMBER.sub("", token).rsplit(":", 1)[-1]
    if not _PATH_FORM.fullmatch(token) or token.count("/") > 14 or ".." in token or _DULL_PATHS.fullmatch(token):
        return None
    if _HOME.match(token):
        # Where a project lies on one machine is rarely told again; its last folders are.
        token = "/".join(token.rstrip("/").split("/")[-2:])
    token = token.removeprefix("./").rstrip("/")
    name = token.rsplit("/", 1)[-1]
    if not re.search(r"[A-Za-z]", name):
        return None
    extended = _EXTENSION.search(name) is not None
    if "/" in token:
        return token if extended or token.count("/") > 1 else None
    if token.startswith("."):
        known = infer_kind(token[1:]) == "path" and "." in token[1:]
        return token if known or _DOTFILE.fullmatch(token) else None
    usual = extended and not _ATTRIBUTE.fullmatch(token) and name.rsplit(".", 1)[-1].islower()
    return token if usual and infer_kind(token) == "path" else None


def _word(token: str, source: Source) -> Found | None:
    """Return what a single token is, if it is anything worth keeping."""
    if len(token) > _MAX_TOKEN or len(token) < 4 or "://" in token or _PLAIN_WORD_extract.fullmatch(token):
        return None
    if "@" in token[1:]:
        return None
    head, slash, _ = token.partition("/")
    if slash and is_host(head):
        return "url", token
    if not slash and is_host(token):
        return None if _LOOPBACK.fullmatch(token) else ("host", token)
    if _VERSION.fullmatch(token):
        return None if _DATE.fullmatch(token) else ("version", token)
    if infer_kind(token) == "hash":
        return ("hash", token.lower()) if len(token) <= 40 else None
    if _UUID.fullmatch(token):
        return "identifier", token.lower()
    path = _path(token)
    if path:
        # In prose a list of words may be joined by slashes: yes/no/maybe.
        listed = source in ("user", "assistant") and _WORD_LIST.fullmatch(token)
        return None if listed else ("path", path)
    if _DULL_NUMBERED.fullmatch(token):
        return None
    named = _SNAKE.fullmatch(token) or _CAMEL.fullmatch(token) or (_NAMED.fullmatch(token) and source != "output")
    return ("identifier", token) if named and token not in _DULL_NAMES else None


def _references(text: str) -> Iterator[str]:
    """Yield the numbers of pull requests and issues; "pull 300 rows" and "the issue 3 times" name none."""
    # The numbers are sought first: they are rare, and the words before them are not.
    for match in _NUMBERED.finditer(text):
        start = match.start()
        mark, number = match.groups()
        named = None if mark == "#" else _REFERENCE.fullmatch(text[max(0, start - 16) : start])
        if named and mark == " ":
            named = None if named.group(1) or _HOW_MANY.match(text, match.end()) else named
        alone = "#" in mark and 2 <= len(number) <= 5 and mark != "/#" and (mark == " #" or _stands_alone(text, start))
        if named or alone:
            yield number


def _stands_alone(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    return not before or not (before.isalnum() or before in "_&/#")


def extract(text: str, source: Source) -> Iterator[Found]:
    """Yield every typed value of one piece of text."""
    text = _DIFF_INDEX.sub("", text)
    yield from (("url", url) for url in _urls(text))
    yield from _words(text, source)
    yield from (("pr", f"#{number}") for number in _references(text))
    yield from (("cron", line) for line in _cron_lines(text))
    yield from (("branch", branch) for branch in branches(text))
    if source in ("output", "user"):
        yield from (("error", error) for error in errors(text))
    if source != "arguments":
        yield from (("test_count", count) for count in counts(text))
    if source in ("user", "assistant"):
        yield from (("decision", decision) for decision in decisions(text, from_user=source == "user"))


def _urls(text: str) -> Iterator[str]:
    for match in _URL.finditer(text):
        url = match.group().rstrip(".:!?*/")
        # A forge's address of a pull request is counted by its number; a cut address is no fact.
        if not match.group().endswith("...") and "…" not in url and not _FORGE_NUMBER.search(url):
            yield url


def _words(text: str, source: Source) -> Iterator[Found]:
    diff = "+++ b/" in text or "diff --git" in text
    for token in dict.fromkeys(_TOKEN.findall(text)):
        token = token.rstrip(".:!?/") if token.startswith((".", "~/")) else token.strip(".:!?#~-").rstrip("/\\")
        found = _word(_DIFF_SIDE.sub("", token) if diff else token, source)
        if found is not None:
            yield found


def _cron_lines(text: str) -> Iterator[str]:
    for match in _CRON_LINE.finditer(text):
        value = " ".join(match.group().split())
        if CRON.fullmatch(value) and any(char.isdigit() for char in value):
            yield value


# A census of what a session says: typed facts with the places where they stand, the telling ones first.

KIND_LIMITS: dict[CensusKind, int] = {
    "path": 60,
    "url": 20,
    "host": 15,
    "identifier": 60,
    "hash": 25,
    "version": 20,
    "pr": 20,
    "cron": 10,
    "error": 25,
    "test_count": 10,
    "branch": 12,
    "decision": 20,
}
MESSAGE_LIMIT = 16
_UBIQUITOUS = 0.4  # a value in this share of a long session's messages is found in any summary
_LONG_SESSION = 20
_SOURCES: dict[str, Source] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "output",
    "system": "system",
    "developer": "system",
}


@dataclass(frozen=True, slots=True)
class CensusFact:
    """One value that the session holds."""

    value: str
    kind: CensusKind
    messages: tuple[int, ...]
    salience: float


@dataclass(slots=True)
class _Sighting:
    value: str
    messages: list[int] = field(default_factory=list)
    sources: set[Source] = field(default_factory=set)


def _pieces(message: Message) -> Iterator[tuple[Source, str]]:
    text = decoded(content_text(message))
    if text:
        yield _SOURCES.get(str(message.get("role")), "output"), text
    for call in tool_calls(message):
        yield "arguments", decoded(call_arguments(call))


def _fold_paths(sightings: dict[tuple[CensusKind, str], _Sighting]) -> None:
    """Merge the spellings of one file: a longer path into the shorter one that is its end."""
    paths = {key for kind, key in sightings if kind == "path"}
    for key in sorted(paths, key=lambda key: (-key.count("/"), key)):
        parts = key.split("/")
        for start in range(len(parts) - 2, 0, -1):
            shorter = "/".join(parts[start:])
            if shorter in paths and shorter != key:
                longer = sightings.pop(("path", key))
                target = sightings[("path", shorter)]
                target.messages = sorted({*target.messages, *longer.messages})
                target.sources |= longer.sources
                paths.discard(key)
                break
    named = {key.rsplit("/", 1)[-1] for key in paths if "/" in key}
    for key in paths & named:
        # The bare name of a file whose path is known adds nothing of its own.
        del sightings[("path", key)]


def _fold_hashes(sightings: dict[tuple[CensusKind, str], _Sighting]) -> None:
    """Merge the abbreviated and the full form of one hash."""
    hashes = sorted(key for kind, key in sightings if kind == "hash")
    for shorter, longer in pairwise(hashes):
        if longer.startswith(shorter):
            target, other = sightings.pop(("hash", shorter)), sightings[("hash", longer)]
            other.messages = sorted({*target.messages, *other.messages})
            other.sources |= target.sources
            other.value = target.value


def _salience(kind: CensusKind, sighting: _Sighting) -> float:
    score = math.log2(1 + len(sighting.messages))
    score += 2.0 * ("arguments" in sighting.sources) + 2.5 * ("user" in sighting.sources)
    score += 1.0 * ("assistant" in sighting.sources)
    if sighting.messages[-1] - sighting.messages[0] > 2:
        score += 1.0  # referred to again after its own call and answer
    if kind in ("decision", "cron", "branch", "pr"):
        score += 1.0
    if kind == "identifier" and sighting.value.startswith("test_"):
        score -= 1.5  # a test's name is seldom what the work is about
    return round(score, 4)


def _sightings(messages: Sequence[Message]) -> dict[tuple[CensusKind, str], _Sighting]:
    found: dict[tuple[CensusKind, str], _Sighting] = {}
    form = {normalise(call_name(call)) for message in messages for call in tool_calls(message)}
    counts: dict[str, str] = {}
    for index, message in enumerate(messages):
        for source, text in _pieces(message):
            if source in ("arguments", "output"):
                form |= {key.lower() for key in json_keys(text)}
            for kind, value in extract(text, source):
                key = normalise(value).rpartition("://")[2] if kind == "url" else normalise(value)
                sighting = found.setdefault((kind, key), _Sighting(value))
                if not sighting.messages or sighting.messages[-1] != index:
                    sighting.messages.append(index)
                sighting.sources.add(source)
                if kind == "test_count":
                    counts[key.split()[-1]] = key
    for kind, key in list(found):
        single = len(found[kind, key].messages) == 1
        # A field's name, a name read once in some output, or an overtaken test count: not what the session is about.
        if (
            kind == "identifier" and (key in form or (single and found[kind, key].sources <= {"output", "system"}))
        ) or (kind == "test_count" and single and key not in counts.values()):
            del found[kind, key]
    _fold_paths(found)
    _fold_hashes(found)
    return found


def census(messages: Sequence[Message]) -> tuple[CensusFact, ...]:
    """Return the session's facts, most salient first, within the limits per kind and per message."""
    frequent = max(_LONG_SESSION * _UBIQUITOUS, len(messages) * _UBIQUITOUS)
    facts = [
        CensusFact(sighting.value, kind, tuple(sighting.messages), _salience(kind, sighting))
        for (kind, _), sighting in _sightings(messages).items()
        if len(sighting.messages) <= frequent
    ]
    facts.sort(key=lambda fact: (-fact.salience, fact.messages[0], fact.kind, fact.value))
    by_kind: Counter[str] = Counter()
    by_message: defaultdict[int, int] = defaultdict(int)
    chosen = []
    for fact in facts:
        if by_kind[fact.kind] < KIND_LIMITS[fact.kind] and by_message[fact.messages[0]] < MESSAGE_LIMIT:
            by_kind[fact.kind] += 1
            by_message[fact.messages[0]] += 1
            chosen.append(fact)
    return tuple(chosen)
