"""The audit before a fixture is stored: every detector runs again and must find nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from eval_core.base.files import parse, read_json
from eval_core.base.gzip_files import PACKED_SUFFIX, PLAIN_LIMIT
from eval_core.base.messages import call_arguments, content_text, message_problems, tool_calls
from eval_core.domain.fixture import Fixture, fixture_files, load_fixture
from eval_core.suite.scrub.detect import context_hits
from eval_core.suite.scrub.hits import without_overlaps
from eval_core.suite.scrub.identities import Identities
from eval_core.suite.scrub.pipeline import NOTE, ScrubOptions, scrub_fixture
from eval_core.suite.scrub.replace import is_json, leaves

# The findings that people have looked at and let stand, by hash and with a reason.

ALLOW_FILE = "allow.json"


def text_hash(text: str) -> str:
    """Return the sha256 by which a text is allow-listed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class AllowedFinding(BaseModel):
    """One text that may stand although a rule finds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="As the audit prints it.")]
    reason: Annotated[str, Field(min_length=8, description="Why it is harmless.")]


class AllowList(BaseModel):
    """The file `fixtures/allow.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: list[AllowedFinding] = []

    def reason(self, digest: str) -> str | None:
        """Return why a text may stand, or None."""
        return next((entry.reason for entry in self.allow if entry.sha256 == digest), None)


def load_allow(path: Path) -> AllowList:
    """Read the list; without the file nothing is allowed."""
    return parse(AllowList, read_json(path), str(path)) if path.exists() else AllowList()


# The gate: what is about to be stored is looked at again, by every detector and as a whole.

CANNOT_KNOW = (
    "The audit cannot know: names in running text that nothing marks as names, names that are ordinary words, "
    "nicknames, what an image or an attachment shows, and what only your company would recognise. "
    "Read a new fixture before you share it, and list the people in it with --identities."
)
TOTAL_LIMIT = 500_000
_SHORT_ALIAS = 4


@dataclass(frozen=True)
class AuditFinding:
    """One thing that should not be stored; the text itself is never shown, only its place and hash."""

    fixture: str
    rule: str
    where: str
    sha256: str
    allowed: str | None = None
    warning: bool = False
    """Whether this is advice, which stops nothing."""

    @property
    def open(self) -> bool:
        """Whether this keeps the fixture from being stored or shared."""
        return self.allowed is None and not self.warning

    def __str__(self) -> str:
        if self.warning:
            return f"{self.fixture}: warning: {self.where} [{self.rule}]"
        state = f"allowed: {self.allowed}" if self.allowed else f"sha256 {self.sha256}"
        return f"{self.fixture}: {self.where}: {self.rule} ({state})"


def _texts(fixture: Fixture) -> Iterator[tuple[str, str]]:
    for name in ("description", "notes", "model"):
        yield name, getattr(fixture, name)
    for name, value in fixture.unknown.items():
        yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    for index, message in enumerate(fixture.messages):
        yield f"messages[{index}].content", content_text(message)
        for number, call in enumerate(tool_calls(message)):
            yield f"messages[{index}].tool_calls[{number}].arguments", call_arguments(call)
        for extra in sorted(set(message) - {"role", "content", "tool_calls", "tool_call_id"}):
            yield f"messages[{index}].{extra}", str(message[extra])


def _detected(where: str, text: str, identities: Identities) -> Iterator[tuple[str, str, str]]:
    for number, (piece, key) in enumerate(leaves(text)):
        for hit in without_overlaps(identities.unspared(context_hits(piece, key), piece), piece):
            place = f"{where}, text {number + 1}" if number else where
            yield hit.rule, f"{place}, characters {hit.start}-{hit.end}", piece[hit.start : hit.end]


def _named(where: str, text: str, identities: Identities) -> Iterator[tuple[str, str, str]]:
    """Look for listed names in the raw text, inside words and in any case."""
    for alias in identities.aliases:
        body = re.escape(alias)
        as_name = alias[0].isupper() and alias.isalpha() and alias.isascii()
        short = len(alias) < _SHORT_ALIAS
        pattern = rf"(?<![A-Za-z0-9]){body}(?![A-Za-z0-9])" if short else body
        for match in re.finditer(pattern, text, 0 if as_name else re.IGNORECASE):
            start, end = match.span()
            # The whole word is hashed, so that letting one word pass does not let the name itself pass.
            while start and text[start - 1].isalnum():
                start -= 1
            while end < len(text) and text[end].isalnum():
                end += 1
            yield "identity", f"{where}, characters {match.start()}-{match.end()}", text[start:end]


def _shape(where: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Check that what should be JSON is JSON."""
    if where.endswith("arguments") and text.strip() and not is_json(text):
        yield "broken JSON", where, text
    elif text.startswith('{"') and not is_json(text) and NOTE.search(text):
        # Only our own shortening is judged: a log may hold outputs that its program had cut already.
        first = text.splitlines()[0]
        if not is_json(first):
            yield "broken JSON", where, text


def audit_fixture(fixture: Fixture, identities: Identities | None = None) -> list[AuditFinding]:
    """Return everything that speaks against storing a fixture."""
    return [
        AuditFinding(fixture.name, rule, where, text_hash(value))
        for rule, where, value in _found(fixture, identities or Identities())
    ]


REDACTED = "[redacted]"
_PASSES = 3
"""What is found only when another text is gone."""


def redact_findings(fixture: Fixture, identities: Identities, allow: AllowList) -> tuple[Fixture, list[AuditFinding]]:
    """Replace every text that the audit still finds and nobody allowed, wherever it stands; say what was replaced."""
    replaced: list[AuditFinding] = []
    for _ in range(_PASSES):
        found = [item for item in _found(fixture, identities) if allow.reason(text_hash(item[2])) is None]
        values = {value for rule, _, value in found if rule not in ("tool pairs", "not stable", "broken JSON")}
        if not values:
            break
        replaced += [AuditFinding(fixture.name, rule, where, text_hash(value)) for rule, where, value in found]
        # Longer ones first: one may hold another. Inside JSON, a text is written with escapes.
        forms = sorted({*values, *(json.dumps(value)[1:-1] for value in values)}, key=lambda form: (-len(form), form))
        pattern = re.compile("|".join(map(re.escape, forms)))
        fixture = fixture.model_copy(update={"messages": [_redacted(message, pattern) for message in fixture.messages]})
    return fixture, replaced


def _redacted(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(REDACTED, value)
    if isinstance(value, dict):
        return {name: _redacted(item, pattern) for name, item in value.items()}
    return [_redacted(item, pattern) for item in value] if isinstance(value, list) else value


def _found(fixture: Fixture, identities: Identities) -> list[tuple[str, str, str]]:
    """Return rule, place and text of every finding."""
    found: list[tuple[str, str, str]] = []
    for where, text in _texts(fixture):
        found += _detected(where, text, identities)
        found += _named(where, text, identities)
        found += _shape(where, text)
    found += (("tool pairs", problem, problem) for problem in message_problems(fixture.messages))
    if not found:
        options = ScrubOptions(identities=identities, keep_system=True, max_output=None)
        again = scrub_fixture(fixture, options).fixture
        for index, (before, after) in enumerate(zip(fixture.messages, again.messages, strict=False)):
            if content_text(before) != content_text(after) or tool_calls(before) != tool_calls(after):
                found.append(
                    ("not stable", f"messages[{index}]: scrubbing again changes it", f"{fixture.name}:{index}")
                )
        if len(again.messages) != len(fixture.messages):
            found.append(("not stable", "scrubbing again changes the number of messages", f"{fixture.name}:count"))
    return found


def fixture_paths(paths: Iterable[Path]) -> list[Path]:
    """Return the fixture files that paths name: files as they are, folders by the fixtures in them."""
    files: list[Path] = []
    for path in paths:
        files += fixture_files(path) if path.is_dir() else [path]
    return [file for file in files if file.name != ALLOW_FILE]


def _sizes(sizes: dict[Path, int]) -> Iterator[AuditFinding]:
    for path, size in sizes.items():
        if size >= PLAIN_LIMIT and not path.name.endswith(PACKED_SUFFIX):
            where = f"{size:,} bytes of plain JSON; `compression-eval fixture scrub {path}` stores it compressed"
            yield AuditFinding(path.stem, "size", where, text_hash(f"{path.stem}:size"), warning=True)
    total = sum(sizes.values())
    if total >= TOTAL_LIMIT:
        where = f"{total:,} bytes in {len(sizes)} files; more than {TOTAL_LIMIT:,} make a repository slow to clone"
        yield AuditFinding("all fixtures", "size", where, text_hash("all fixtures:size"), warning=True)


def audit_files(
    paths: Sequence[Path], identities: Identities | None = None, allow: AllowList | None = None
) -> list[AuditFinding]:
    """Audit fixture files, each and all together; allow-listed findings carry their reason."""
    allow = allow or AllowList()
    findings = [finding for path in paths for finding in audit_fixture(load_fixture(path), identities)]
    return judge([*findings, *_sizes({path: path.stat().st_size for path in paths})], allow)


def judge(findings: Iterable[AuditFinding], allow: AllowList) -> list[AuditFinding]:
    """Mark the findings that the allow list lets stand."""
    return [replace(finding, allowed=allow.reason(finding.sha256)) for finding in findings]
