"""The typed values that one piece of a session holds, read off by form alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args

from eval_core.fact_kind import CRON, infer_kind, is_host

__all__ = ["CENSUS_KINDS", "CensusKind", "Source", "extract", "json_keys"]

CensusKind = Literal[
    "path", "url", "host", "identifier", "hash", "version", "pr", "cron", "error", "test_count", "branch", "decision"
]
CENSUS_KINDS: tuple[str, ...] = get_args(CensusKind)
Source = Literal["user", "assistant", "arguments", "output", "system"]
Found = tuple[CensusKind, str]

_MAX_TOKEN = 160
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{},;|=*“”‘’«»，。；：、（）]+")
_URL = re.compile(r"\bhttps?://[^\s\"'<>()\[\]{}|`,;\\]{4,300}")
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]*")
_LINE_NUMBER = re.compile(r":\d+(?::\d+)?$")
_DIFF_SIDE = re.compile(r"^[ab]/(?=[\w.-]+[/.])")
_EXTENSION = re.compile(r"\.[A-Za-z][\w]{0,7}$")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_SNAKE = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_CAMEL = re.compile(r"[A-Za-z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*-[A-Za-z]*\d[A-Za-z0-9]*")
_VERSION = re.compile(r"v\d+\.\d+(?:\.\d+)*(?:-[0-9a-z.]+)?|\d+\.\d+\.\d+(?:-[0-9a-z.]+)?", re.I)
_COMMON_PATHS = re.compile(r"/(?:dev|proc|sys)/.*|/(?:usr/)?s?bin(?:/.*)?|/usr/(?:lib|local/bin)|/tmp|n/a|and/or", re.I)
_HOME = re.compile(r"^(?:~|[a-z]:|/(?:home|users)/[^/]+|/root|/tmp|/workspaces?|/private|/var/folders)/", re.I)

_PR = re.compile(
    r"(?:\b(?:PRs?|pull request|pull|issues?|MR|merge request)[ /]#?(\d{1,6})|(?<![\w&/#])#(\d{2,5}))(?![\w.]|,\d)",
    re.I,
)
_CRON_FIELD = r"[\d*](?:[\d*/,-]{0,20})"
_CRON_LINE = re.compile(
    rf"(?<![\w*/,-]){_CRON_FIELD}(?: {{1,2}}{_CRON_FIELD}){{3}} {{1,2}}(?:{_CRON_FIELD}|[a-z]{{3}}(?:-[a-z]{{3}})?)(?![\w*/,-])",
    re.I,
)
_ERROR_LINE = re.compile(
    r"^(?:E[ \t]{1,6})?((?:[A-Za-z_]\w{0,60}\.){0,5}[A-Z]\w{0,60}(?:Error|Exception)): ([^\n]{3,160})", re.M
)
_TOOL_ERROR = re.compile(r"^(?:error(?:\[(?P<code>[A-Z]+\d+)\])?|fatal|panic|npm ERR!)[:!]? ([^\n]{6,160})", re.M)
_STATUS = re.compile(
    r"\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?:[_ ]code)?)[ :=]{1,3}([45]\d\d)\b|\b([45]\d\d) (?:Unauthorized|Forbidden|Not Found|Conflict|Too Many|Internal Server|Bad (?:Request|Gateway)|Service Unavail|Unprocessable)",
    re.I,
)
_ERRNO = re.compile(
    r"\bE(?:CONN(?:REFUSED|RESET|ABORTED)|NOENT|ACCES|ADDRINUSE|PIPE|TIMEDOUT|HOSTUNREACH|EXIST|PERM|MFILE|NOSPC)\b"
)
_EXIT = re.compile(r"\bexit(?:ed)?(?:[_ ](?:code|status|with))*[ :=]{1,3}(\d{2,3})\b", re.I)
_TESTS = re.compile(
    r"(?<![\w.])(\d{1,6})(?: (?:tests?|specs?|checks?))? (passed|failed|passing|failing|errors?|skipped|xfailed)\b",
    re.I,
)
_BRANCH = re.compile(
    r"(?:git (?:checkout(?: -[bB])?|switch(?: -c)?|branch(?: -[mMd])?|worktree add -b)|On branch|HEAD ->|new branch\]\s{1,9}"
    r"|git push (?:-u |--set-upstream |--force-with-lease )*origin|branch(?:es)?(?: named| called)?:?) [\"'`]?"
    r"([A-Za-z0-9][\w.-]{0,60}(?:/[\w.-]{1,80}){0,4})"
)
_DULL_BRANCHES = re.compile(
    r"(?:main|master|head|develop|dev|origin|name|names|is|was|the|and|or|for|to|from|with|in|on|at|of|that|has|as|it"
    r"|protection|off|up|before|after|so|we|if|into|which|based|exists?|already|will|by|list|can|not|this|should|you)",
    re.I,
)
_DECISION = re.compile(
    r"\b(?:decided (?:to|on|against)|decision(?: is|:)|let's (?:go with|use|keep|drop|switch to|not)|(?:we|I|you)(?:'ll| will| should| must)"
    r" (?:use|keep|go with|switch to|stick with|drop|never|not)|go(?:ing)? with|stick(?:ing)? with|chose|choose|opted for"
    r"|switch(?:ed|ing)? to|instead of|rather than|(?:do not|don't|never|must not) (?:touch|use|change|modify|delete|edit|push|merge|deploy|restart))"
    r" ([^\n.;:!?]{3,90})",
    re.I,
)
_SUBJECT = re.compile(r"`([^`\n]{2,60})`|\"([^\"\n]{2,60})\"|([A-Za-z][\w./-]*[\w])|(\d[\w.,:%-]*)")
_JSON_KEY = re.compile(r"^([A-Za-z_]\w{0,60}):(?=\s|$)", re.M)
_DIFF_INDEX = re.compile(r"^index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}.*$", re.M)
_LISTED = {"passing": "passed", "failing": "failed", "errors": "error"}


def json_keys(text: str) -> set[str]:
    """Return the field names of an unfolded JSON document: they are form, not fact."""
    return set(_JSON_KEY.findall(text))


def _path(token: str) -> str | None:
    token = _LINE_NUMBER.sub("", token.replace("\\\\", "/").replace("\\", "/"))
    if token.count("/") > 14 or _COMMON_PATHS.fullmatch(token) or ".." in token or "$" in token:
        return None
    home = _HOME.match(token)
    if home:
        # Where a project lies on one machine is rarely told again; its last folders are.
        token = "/".join(token.rstrip("/").split("/")[-2:])
    token = token.removeprefix("./").rstrip("/")
    name = token.rsplit("/", 1)[-1]
    if not re.search(r"[A-Za-z]", name):
        return None
    extended = _EXTENSION.search(name) is not None
    if token.startswith("/"):
        return token if token.count("/") > 1 else None
    if "/" in token:
        return token if extended or token.count("/") > 1 else None
    return token if extended and infer_kind(token) == "path" else None


def _word(token: str, source: Source) -> Found | None:
    """Return what a single token is, if it is anything worth keeping."""
    if len(token) > _MAX_TOKEN or len(token) < 4 or _PLAIN_WORD.fullmatch(token) or "://" in token:
        return None
    if "/" in token or "\\" in token:
        path = _path(token)
        return ("path", path) if path else None
    if "@" in token[1:]:
        return None
    if is_host(token) and not token.lower().startswith(("localhost", "127.", "0.0.0.0")):
        return "host", token
    if is_host(token):
        return ("host", token) if ":" in token else None
    if _VERSION.fullmatch(token):
        return "version", token
    if infer_kind(token) == "hash":
        return ("hash", token.lower()) if len(token) <= 40 else None
    if _UUID.fullmatch(token):
        return "identifier", token.lower()
    path = _path(token)
    if path:
        return "path", path
    if _SNAKE.fullmatch(token) or _CAMEL.fullmatch(token) or (_NAMED.fullmatch(token) and source != "output"):
        return "identifier", token
    return None


def _subject(phrase: str) -> str | None:
    """Return the words of a decision that name something; prose around them may change freely."""
    words: list[str] = []
    for match in _SUBJECT.finditer(phrase):
        quoted = match.group(1) or match.group(2)
        word = quoted or match.group(3) or match.group(4)
        named = quoted or match.group(4) or not _PLAIN_WORD.fullmatch(word) or (match.start() and word[0].isupper())
        if named and word not in words:
            words.append(word)
    return " ".join(words[:2]) if words else None


def _prose(text: str) -> Iterator[Found]:
    for match in _DECISION.finditer(text):
        subject = _subject(match.group(1))
        if subject and len(subject) > 2:
            yield "decision", subject


def _errors(text: str) -> Iterator[Found]:
    for match in _ERROR_LINE.finditer(text):
        yield "error", f"{match.group(1).rsplit('.', 1)[-1]}: {match.group(2).strip()[:100]}"
    for match in _TOOL_ERROR.finditer(text):
        yield "error", match.group("code") or match.group(2).strip()[:100]
    for match in _STATUS.finditer(text):
        yield "error", f"HTTP {match.group(1) or match.group(2)}"
    for match in _ERRNO.finditer(text):
        yield "error", match.group()
    for match in _EXIT.finditer(text):
        if match.group(1).strip("0"):
            yield "error", f"exit code {int(match.group(1))}"


def extract(text: str, source: Source) -> Iterator[Found]:
    """Yield every typed value of one piece of text, repeated as often as it stands."""
    text = _DIFF_INDEX.sub("", text)
    diff = "+++ b/" in text or "diff --git" in text
    for match in _URL.finditer(text):
        yield "url", match.group().rstrip(".:!?*/")
    seen: set[str] = set()
    for token in _TOKEN.findall(text):
        token = token.strip(".:!?#~-").rstrip("/\\") if not token.startswith((".", "~/")) else token.rstrip(".:!?/")
        if token in seen:
            continue
        seen.add(token)
        found = _word(_DIFF_SIDE.sub("", token) if diff else token, source)
        if found is not None:
            yield found
    for match in _PR.finditer(text):
        yield "pr", f"#{match.group(1) or match.group(2)}"
    for match in _CRON_LINE.finditer(text):
        value = " ".join(match.group().split())
        if CRON.fullmatch(value) and re.search(r"\d", value):
            yield "cron", value
    for match in _BRANCH.finditer(text):
        branch = match.group(1).rstrip(".").removeprefix("origin/")
        if len(branch) > 3 and not _DULL_BRANCHES.fullmatch(branch) and not branch.isdigit():
            yield "branch", branch
    if source in ("output", "user"):
        yield from _errors(text)
    if source != "arguments":
        for match in _TESTS.finditer(text):
            word = match.group(2).lower()
            yield "test_count", f"{match.group(1)} {_LISTED.get(word, word)}"
    if source in ("user", "assistant"):
        yield from _prose(text)
