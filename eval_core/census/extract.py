"""The typed values that one piece of a session holds, read off by form alone."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from typing import Literal, get_args

from eval_core.census.phrases import branches, counts, decisions, errors
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
_FORGE_NUMBER = re.compile(r"/(?:pull|pulls|issues|merge_requests)/\d+(?:[#/].*)?$")
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]*")
_LINE_NUMBER = re.compile(r":\d+(?::\d+)?$")
_DIFF_SIDE = re.compile(r"^[ab]/(?=[\w.-]+[/.])")
_PATH_FORM = re.compile(r"(?:[A-Za-z]:)?[\w.@~+/-]+")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,7}$")
_DOTFILE = re.compile(r"\.(?:env|gitignore|gitattributes|dockerignore|npmrc|nvmrc|editorconfig|bashrc|zshrc|profile)")
_ATTRIBUTE = re.compile(r"(?:self|cls|this|args|os|sys|np|pd|re|req|res|ctx|opts|threading|asyncio|event)\..*")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_SNAKE = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_CAMEL = re.compile(r"[A-Za-z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*-[A-Za-z]*\d[A-Za-z0-9]*")
_DULL_NAMES = frozenset(dir(builtins)) | {"utf-8", "tmp_path", "is_dir", "is_file", "exist_ok", "PosixPath"}
_VERSION = re.compile(r"v\d+\.\d+(?:\.\d+)*(?:-[0-9a-z.]+)?|\d+\.\d+\.\d+(?:-[0-9a-z.]+)?", re.I)
_DULL_PATHS = re.compile(
    r"/(?:dev|proc|sys)/.*|/(?:usr/)?s?bin(?:/.*)?|/usr/(?:lib|local/bin)(?:/.*)?|/tmp|n/a|and/or|s/.*|origin/.*"
    r"|.*/(?:site-packages|node_modules|pytest-of-\w+)/.*",
    re.I,
)
_HOME = re.compile(r"(?:~|[a-z]:|/(?:home|users)/[^/]+|/root|/tmp|/workspaces?|/private|/var/folders)/", re.I)
_LOOPBACK = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0)", re.I)
_PR = re.compile(
    r"(?:\b(?:PRs?|pull request|pull|issues?|MR|merge request)[ /]#?(\d{1,6})|(?<![\w&/#])#(\d{2,5}))(?![\w.]|,\d)",
    re.I,
)
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
    if len(token) > _MAX_TOKEN or len(token) < 4 or "://" in token or _PLAIN_WORD.fullmatch(token):
        return None
    if "@" in token[1:]:
        return None
    head, slash, _ = token.partition("/")
    if slash and is_host(head):
        return "url", token
    if not slash and is_host(token):
        return None if _LOOPBACK.fullmatch(token) else ("host", token)
    if _VERSION.fullmatch(token):
        return "version", token
    if infer_kind(token) == "hash":
        return ("hash", token.lower()) if len(token) <= 40 else None
    if _UUID.fullmatch(token):
        return "identifier", token.lower()
    path = _path(token)
    if path:
        return "path", path
    named = _SNAKE.fullmatch(token) or _CAMEL.fullmatch(token) or (_NAMED.fullmatch(token) and source != "output")
    return ("identifier", token) if named and token not in _DULL_NAMES else None


def extract(text: str, source: Source) -> Iterator[Found]:
    """Yield every typed value of one piece of text."""
    text = _DIFF_INDEX.sub("", text)
    diff = "+++ b/" in text or "diff --git" in text
    for match in _URL.finditer(text):
        url = match.group().rstrip(".:!?*/")
        # A forge's address of a pull request is counted by its number; a cut address is no fact.
        if not match.group().endswith("...") and "…" not in url and not _FORGE_NUMBER.search(url):
            yield "url", url
    for token in dict.fromkeys(_TOKEN.findall(text)):
        token = token.rstrip(".:!?/") if token.startswith((".", "~/")) else token.strip(".:!?#~-").rstrip("/\\")
        found = _word(_DIFF_SIDE.sub("", token) if diff else token, source)
        if found is not None:
            yield found
    for match in _PR.finditer(text):
        yield "pr", f"#{match.group(1) or match.group(2)}"
    for match in _CRON_LINE.finditer(text):
        value = " ".join(match.group().split())
        if CRON.fullmatch(value) and any(char.isdigit() for char in value):
            yield "cron", value
    for branch in branches(text):
        yield "branch", branch
    if source in ("output", "user"):
        for error in errors(text):
            yield "error", error
    if source != "arguments":
        for count in counts(text):
            yield "test_count", count
    if source in ("user", "assistant"):
        for decision in decisions(text, from_user=source == "user"):
            yield "decision", decision
