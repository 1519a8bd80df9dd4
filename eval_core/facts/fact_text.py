"""Normalised text for fact matching, and the kind of a fact: path, number, version, hash, identifier."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import unescape
from itertools import islice

from eval_core.base.messages import Message, full_text
from eval_core.domain.probe import FactKind
from eval_core.facts.status_codes import CODES_BEFORE, NOT_COUNTED, NOT_MEASURED

# The one form of text in which facts are looked up: what the eye reads as the same becomes the same.

_INVISIBLE_RANGES = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x180B, 0x180F), (0x200B, 0x200F),
    (0x202A, 0x202E), (0x2060, 0x206F), (0x2122, 0x2122), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xE0000, 0xE01EF),
)  # fmt: skip
_UNSEEN: dict[int, str | None] = {
    **dict.fromkeys(code for first, last in _INVISIBLE_RANGES for code in range(first, last + 1)),
    0x2116: "no. ",
}
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−⁃", "-"),
        **dict.fromkeys("→⇒⟶➜➔", "->"),
        **dict.fromkeys("•◦▪", " "),
        "⁄": "/",
        "、": ",",
    }
)
# NFKC would make 106 of 10⁶.
_SUPERSCRIPT = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
# Between words an em dash is a pause; between digits it is a range like any other dash.
_PAUSE = re.compile(r"(?<=\w)[—―](?=[^\W\d])|(?<=[^\W\d])[—―](?=\d)")
_NARROW_GROUP = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_BACKSLASH = re.compile(r"\\+/|(\\)(?=\s)|\\\\+|\\([_*`#\"'\[\]~|<>$&nrt])|\\")
_DOUBLE_SLASH = re.compile(r"(?<=[\w.-])//+(?=[\w.])")
_STARS = re.compile(r"\*{2,}")
# Words alone: "*.py *.ts", "* * *" and "_id_hash_" are what they are.
_EMPHASIS = re.compile(
    r"(?<![\w*/.])(?:\*([^\W_](?:[^\W_]|[\s',;:!-]){0,60}[^\W_])\*|_([^\W_](?:[^\W_]|[\s'-]){0,60}[^\W_])_)"
    r"(?![\w*/]|\.\w)"
)
_UNDERLINED = re.compile(r"(?<![\w/.])__(?=[^\W_]|[`\[])((?:[^_]|_(?!_)){1,120}+)__(?![\w/(]|\.\w)")
# "__init__" and "__FILE__" are names.
_EMPHATIC = re.compile(r"\s|[A-Z][a-z]|^(?i:not|never|no|must|only|always)$")
_LINK = re.compile(r"!?(?<![\w)\]])\[([^\[\]\n]{1,200}+)\]\(([^\s()<>\[\]]{1,400}+)(?: \"[^\"\n]{0,100}\")?\)")
_QUOTED_LINE = re.compile(r"\n[ \t]{0,3}(?:>[ \t]?)++(?=[^\s\d=>])")
# Only while case can still be told: "5m" may be five minutes.
_MILLIONS = re.compile(r"(?<![\w.,])(?<![A-Za-z]-)(\d[\d,]*+(?:\.\d++)?)M(?![\w-])")
_COMMA_GROUPS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_CODES_BEFORE = re.compile(CODES_BEFORE)
_CODES_AFTER = re.compile(r" (?:errors|responses|status|codes)")
_NOT_COUNTED = re.compile(NOT_MEASURED + NOT_COUNTED)
_SPACED_GROUPS = re.compile(r"(?<![\w.,-])(\d{1,3})((?: \d{3})*) 000(?![\w,]|\.\d)")
_OTHER_GROUPS = re.compile(r"(?<![\w.'])\d{1,3}(?:[_']\d{3})+(?![\w'])")
_SPACE = re.compile(r"\s+")
_ENTITY = re.compile(r"&(?:#\d{2,6}|#x[0-9a-f]{2,5}|[a-z]{2,8}\d{0,2});", re.I)
_COLOUR = re.compile(r"(?:\x1b|\\u001b|\\x1b|\\033|\\e)\[[0-9;?]{0,20}[a-z]")
# "src/{app,main}.py" is two files; "{1,3}" of a regular expression is none.
_BRACES = re.compile(r"\{([\w.@+/*-]{0,80}(?:(?:, ?| [=-]> )[\w.@+/*-]{0,80}){1,20})\}([\w.@+/*-]{0,80})")
_BRACE_ITEMS = re.compile(r", ?| [=-]> ")
_PATH_RUN = re.compile(r"[\w.@~+/*-]{0,200}")
_MOST_BRACES = 200
_HEX_TOKEN = re.compile(
    r"(?:(?<![0-9a-z_])|(?<=-g))(?<![0-9a-f]{4}-[0-9a-f]{4}-)[0-9a-f]{7,64}(?![0-9a-z_]|-[0-9a-f]{4}-[0-9a-f]{4}-)"
)
"""A hexadecimal word that is no part of a UUID."""
HASH_PREFIX = 7


def _slash(match: re.Match[str]) -> str:
    continued, escaped = match.groups()
    if continued:
        return ""
    if escaped is None:
        return "/"
    # A file name may begin with n, r or t after a Windows separator; only broken JSON leaves these escapes behind.
    return f"/{escaped}" if escaped in "nrt" else escaped


def _unescape(match: re.Match[str]) -> str:
    escaped = match.group(2)
    return " " if escaped is not None and escaped in "nrt" else _slash(match)


def _ungroup(match: re.Match[str]) -> str:
    groups = match.group().split(",")
    # "Codes 401,403" are two; "120,500 rows" are one number.
    if all(len(group) == 3 and "100" <= group <= "599" for group in groups) and _lists_codes(match):
        return match.group()
    return "".join(groups)


def _lists_codes(match: re.Match[str]) -> bool:
    text, start, end = match.string, match.start(), match.end()
    before, after = (_SPACE.sub(" ", part) for part in (text[max(0, start - 60) : start], text[end : end + 60]))
    if _CODES_AFTER.match(after):
        return True
    return bool(_CODES_BEFORE.search(before) and _NOT_COUNTED.match(after))


def _unbold(match: re.Match[str]) -> str:
    """Take pairs of stars away where they open or close; "2**10" stays, and so does a cron field's own star."""
    text, run = match.string, match.group()
    before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
    odd = len(run) % 2 == 1
    opens = not _is_word(before) and (odd or bool(after.strip()))
    closes = not _is_word(after) and (odd or bool(before.strip()))
    return run[: len(run) % 2] if opens or closes else run


def _expanded(text: str) -> str:
    """Write out the paths that braces stand for."""
    parts: list[str] = []
    done = 0
    for match in islice(_BRACES.finditer(text), _MOST_BRACES):
        items, end = _BRACE_ITEMS.split(match.group(1)), match.group(2)
        run = _PATH_RUN.match(text[max(done, match.start() - 200) : match.start()][::-1])
        start = match.start() - (run.end() if run else 0)
        head = text[start : match.start()]
        files = "/" in head or "/" in end or (end.startswith(".") and " " not in match.group(1))
        if files and not all(item.isdigit() for item in items):
            parts += (text[done:start], " ".join(f"{head}{item}{end}" for item in items))
            done = match.end()
    return "".join((*parts, text[done:]))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _shown(match: re.Match[str]) -> str:
    return match[1] if _is_target(match[2]) else match.group()


def _is_target(target: str) -> bool:
    """Tell whether the text in the brackets of a link is an address; "handlers[i](x)" is a call."""
    return any(char in target for char in "/.#:")


def _unlinked(line: str) -> str:
    """Write the words of a line's links where they are read, and their addresses at its end."""
    for _ in range(2):  # a picture may be the words of a link
        targets = [match[2] for match in _LINK.finditer(line) if _is_target(match[2])]
        line = " ".join((_LINK.sub(_shown, line), *(f"({target})" for target in targets)))
    return line


def _layout(text: str) -> str:
    """Take away the marks that show only while lines and capitals are still there: links, quotes, underlines."""
    if "M" in text:
        text = _MILLIONS.sub(r"\1 million", text)
    if "__" in text:
        text = _UNDERLINED.sub(lambda match: match[1] if _EMPHATIC.search(match[1]) else match.group(), text)
    if "](" in text:
        text = "\n".join(_unlinked(line) if "](" in line else line for line in text.split("\n"))
    if ">" in text:
        text = _QUOTED_LINE.sub("\n", text)
    return text


def _marks(text: str) -> str:
    """Take away the marks that only dress a text: colours, escapes, backticks, bold, grouping of digits."""
    if "[" in text and ("\x1b" in text or "\\" in text):
        text = _COLOUR.sub("", text)
    if "\\" in text:
        json_like = '": ' in text or '":"' in text or '\\"' in text
        text = _BACKSLASH.sub(_unescape if json_like else _slash, text)
    # Only now: how JSON is told depends on its quotes, and what follows on there being one kind of them.
    text = text.replace('"', "'")
    if "`" in text:
        text = text.replace("`", "")
    if "**" in text:
        text = _STARS.sub(_unbold, text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\1\2", text)
    if "{" in text:
        text = _expanded(text)
    if "//" in text:
        text = _DOUBLE_SLASH.sub("/", text)
    return _ungrouped(text)


def _ungrouped(text: str) -> str:
    if "," in text:
        text = _COMMA_GROUPS.sub(_ungroup, text)
    if " 000" in text:
        text = _SPACED_GROUPS.sub(lambda match: match.group().replace(" ", ""), text)
    if "_" in text or "'" in text:
        text = _OTHER_GROUPS.sub(lambda match: match.group().replace("_", "").replace("'", ""), text)
    return text


def normalise(text: str) -> str:
    """Return the comparable form: NFKC, plain quotes and dashes, no invisible marks or markdown, lower case."""
    if "&" in text and ";" in text:
        text = _ENTITY.sub(lambda match: unescape(match.group()), text)
    if "%2" in text:
        text = text.replace("%20", " ").replace("%2F", "/").replace("%2f", "/")
    plain = text.isascii()
    if not plain:
        text = _SUPERSCRIPT.sub(r"^\g<0>", _NARROW_GROUP.sub("", text.translate(_UNSEEN)))
        text = unicodedata.normalize("NFKC", _PAUSE.sub(" - ", text)).translate(_LOOKALIKES)
    text = _SPACE.sub(" ", _marks(_layout(text).lower())).strip()
    # Taking marks away may bring a letter and its accent together.
    return text if plain else unicodedata.normalize("NFKC", text)


@dataclass(frozen=True)
class Haystack:
    """A text prepared once for many lookups."""

    source: str = field(repr=False)
    text: str

    @classmethod
    def of(cls, text: str) -> Haystack:
        return cls(source=text, text=normalise(text))

    @classmethod
    def of_all(cls, texts: Iterable[str]) -> Haystack:
        """Prepare several texts as one in which no value is found across two of them."""
        parts = list(texts)
        return cls(source="\n\n".join(parts), text=" \0 ".join(map(normalise, parts)))

    @classmethod
    def of_messages(cls, messages: Iterable[Message]) -> Haystack:
        """Prepare what the messages say. Each is read by itself: how one is written never hides what another says."""
        return cls.of_all(map(full_text, messages))

    @cached_property
    def hashes(self) -> dict[str, tuple[str, ...]]:
        """The hexadecimal words of the text by their first seven digits."""
        found: dict[str, dict[str, None]] = {}
        for match in _HEX_TOKEN.finditer(self.text):
            found.setdefault(match.group()[:HASH_PREFIX], {})[match.group()] = None
        return {prefix: tuple(words) for prefix, words in found.items()}


# What sort of value a fact is, read off its form.

PR_FORM = re.compile(
    r"(?:(?:[\w.-]+/[\w.-]+[#!])"
    r"|(?:pr|pull request|issue|mr|merge request|gh)[\s#:-]{0,3}|(?:pulls?|issues|merge_requests)/|[#!])(\d{1,7})",
    re.IGNORECASE,
)
_CRON_FIELD = r"(?:\*|\d+|[a-z]{3})(?:[-/,](?:\*|\d+|[a-z]{3}))*"
CRON = re.compile(
    rf"(?=.*(?:^|\s)\*){_CRON_FIELD}(?:\s+{_CRON_FIELD}){{4,5}}|@(?:daily|hourly|weekly|monthly|reboot)", re.I
)
_NUMBER = re.compile(
    r"[-+]?[$€£]?\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d\d?|\s?"
    r"(?:[%$€£]|[a-zµμ]{1,3}|percent|(?:milli|micro|nano)?seconds?|m?secs?|mins|minutes?|hours?|days?|weeks?|months?|years?"
    r"|(?:kilo|mega|giga|tera)bytes?|dollars?|euros?|pounds?)?)",
    re.I,
)
_VERSION = re.compile(r"v\d+(?:\.\d+)*(?:[-+.][0-9a-z.]+)?|\d+\.\d+\.\d+(?:[-+.]?[0-9a-z.]+)*", re.I)
_HEX = re.compile(r"[0-9a-f]{7,64}", re.I)
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+([a-z]{2,14})(?::\d{1,5})?", re.I)
_LOCAL = re.compile(r"localhost(?::\d{1,5})?", re.I)
_DOMAIN = re.compile(
    r"com|net|org|io|dev|ai|co|uk|de|fr|eu|cn|jp|ru|br|invalid|localhost|lan|corp|tech|xyz|edu|gov|mil|tv|"
    r"gg"
)
# After a single label these are more often an attribute than a domain (logger.info, self.app).
_DEEP_DOMAIN = re.compile(r"info|test|me|in|us|app|site|local|internal|example|online|cloud")
_EXTENSION = re.compile(
    r"py|pyi|pyc|js|jsx|mjs|cjs|ts|tsx|go|rs|rb|java|kt|kts|c|h|cc|cpp|hpp|cs|swift|scala|php|pl|lua|sh|"
    r"bash|zsh|fish|ps1|bat|sql|db|sqlite|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|xml|html|htm|css|scss|"
    r"md|rst|txt|log|csv|tsv|parquet|lock|mod|sum|proto|tf|tfvars|gradle|ipynb|png|jpg|svg|gif|pdf|zip|gz|"
    r"tar|tgz|whl|diff|patch|service|timer|pem|crt|key|plist|vue|svelte|ex|exs|erl|hs|ml|r|jl|dart|nix|j2|"
    r"tmpl|tpl|bak"
)
_FILE = re.compile(r"[\w@.+-]*\.([a-z0-9]{1,8})", re.I)
_BARE_FILE = re.compile(r"makefile|dockerfile|jenkinsfile|procfile|vagrantfile|gemfile|justfile|codeowners")
_DOTFILE = re.compile(r"\.[a-z][\w.-]+", re.I)
_ERROR_CODE = re.compile(r"E[A-Z]{3,}|[A-Z]{1,4}\d{3,6}|ORA-\d+|SIG[A-Z]{2,6}|[A-Z]+_ERR(?:OR)?_[A-Z_]+|ERR_[A-Z_]+")
_ERROR_PHRASE = re.compile(
    r"(?:http|status|error|errno|exit|rc|exited|returned)(?:\s+(?:status|code|error|with|code))*[\s:=#]*\d{1,6}", re.I
)
_ERROR_LINE = re.compile(r"[\w.]*(?:Error|Exception|Warning|Panic)\b\s*[:(].*", re.S)
_IDENTIFIER = re.compile(r"[@$-]{0,2}[A-Za-z_][\w$]*(?:(?:[.-]|::|->)[\w$]+)*(?:\(\))?")
_KEBAB = re.compile(r"[A-Za-z]?[a-z]+(?:-[a-z]+)+")
_MARKED = re.compile(r"[_\d.$:@-]|\(\)|[a-z][A-Z]|[A-Z]{2}[a-z]")


def is_host(value: str) -> bool:
    """Tell whether a value is a host name or address, with or without a port."""
    if _LOCAL.fullmatch(value):
        return True
    if _IPV4.fullmatch(value):
        return all(int(part) < 256 for part in value.split(":")[0].split("."))
    match = _HOST.fullmatch(value)
    if match is None:
        return False
    domain = match.group(1).lower()
    return bool(_DOMAIN.fullmatch(domain)) or (
        _DEEP_DOMAIN.fullmatch(domain) is not None and (value.count(".") > 1 or ":" in value or "-" in value)
    )


def _is_file_name(value: str) -> bool:
    file = _FILE.fullmatch(value)
    if file is not None and _EXTENSION.fullmatch(file.group(1).lower()):
        return True
    return _BARE_FILE.fullmatch(value.lower()) is not None or _DOTFILE.fullmatch(value) is not None


def _is_path(value: str) -> bool:
    if any(char.isspace() for char in value):
        return False
    if "/" in value or "\\" in value:
        return bool(re.search(r"[A-Za-z_~]", value))
    return _is_file_name(value)


def _is_hash(value: str) -> bool:
    if not _HEX.fullmatch(value):
        return False
    mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
    return mixed or len(value) in (40, 64)


_FORMS: tuple[tuple[FactKind, Callable[[str], object]], ...] = (
    ("cron", CRON.fullmatch),
    ("pr", PR_FORM.fullmatch),
    ("host", is_host),
    ("hash", _is_hash),
    ("error", _ERROR_CODE.fullmatch),
    ("error", _ERROR_PHRASE.fullmatch),
    ("error", _ERROR_LINE.fullmatch),
    ("number", _NUMBER.fullmatch),
    ("version", _VERSION.fullmatch),
)


@lru_cache(maxsize=65536)
def infer_kind(value: str) -> FactKind:
    """Return how a value is best matched, judging by its form alone."""
    value = value.strip().strip("`\"'")
    if "://" in value and not any(char.isspace() for char in value):
        return "url"
    for kind, fits in _FORMS:
        if fits(value):
            return kind
    if _is_path(value):
        head, slash, _ = value.partition("/")
        return "url" if slash and is_host(head) else "path"
    if _IDENTIFIER.fullmatch(value) and _MARKED.search(value) and not _KEBAB.fullmatch(value):
        return "identifier"
    return "text"
