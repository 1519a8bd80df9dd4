"""Form: the sections of what the compressor wrote.

Labels are read off the text, whatever style and language it uses: markdown headings, underlined titles, bold labels,
XML tags, JSON keys, titles in capitals or in brackets, numbered titles, `Label:` lines. There is no list of sections
that a summary should have: what counts is learned from the base's runs.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eval_core.base.tokens import count_text
from eval_core.domain.record import FormRecord, SectionRecord
from eval_core.facts.verbatim import Kept
from eval_core.strands.structure_record import changed_in_place

__all__ = ["WrittenSection", "label_key", "labels", "read_form", "sections", "written_texts"]

_FENCE = re.compile(r"^\s*(?:```|~~~)")
# Chinese and Japanese need no space after the hashes, and no model writes "#2147" there.
_HEADING = re.compile(r"^\s{0,3}(#{1,6})(?:\s+|(?=[^\x00-\x7f]))(\S.{0,100}?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^\s{0,3}(?:={3,}|-{3,})\s*$")
_BOLD = re.compile(r"^\s*(?:[-*]\s+)?\*\*([^*\n]{2,80}?)[:：]?\*\*(?::?(?=\s|$)|：)")
_TAG = re.compile(r"^\s*<([^\W\d][\w-]{1,60})>")
_NAMED_TAG = re.compile(
    r"^\s*<[^\W\d][\w-]{0,60}\s+(?:name|title|id|type|label)=[\"']([^\"'\n]{2,60})[\"'][^<>\n]{0,60}>"
)
_KEY = re.compile(r"^\s*\"([^\W\d][\w -]{1,60})\"\s*:")
_BRACKETS = re.compile(r"^\s*【([^】\n]{2,40})】[:：]?")
_NUMBER = r"(?:\d{1,2}[.)]\s+|\d{1,2}、\s*|[一二三四五六七八九十]{1,3}、\s*)"
_CAPITALS = re.compile(rf"^\s*{_NUMBER}?([^\W\d_][\w /&-]{{3,60}}):?\s*$")
_NUMBERED = re.compile(rf"^\s*{_NUMBER}([^\W\d_][\w /&'-]{{1,60}})[:：]?\s*$")
_LABEL = re.compile(r"^\s*([^\W\d_][\w /&'-]{1,40})(?::(?=\s|$)|：)")
# How deep a label lies: a section lasts until the next label that is no deeper.
_STYLES = (
    (_TAG, 7), (_NAMED_TAG, 7), (_KEY, 7), (_BOLD, 8), (_BRACKETS, 8), (_CAPITALS, 8), (_NUMBERED, 9), (_LABEL, 9),
)  # fmt: skip
_LONGEST = 6  # words of a label; more is a sentence
_NOT_WORDS = re.compile(r"[^\w ]+|_")
_NOTHING = re.compile(
    r"\W*(?:none|n/?a|nothing(?: \w+){0,3}|no \w+(?: \w+){0,2}|unknown|empty|null|tbd"
    r"|keine?[nmrs]?(?: \w+){0,2}|nichts|aucune?(?: \w+)?|rien|ning[uú]n[ao]?(?: \w+)?|nada"
    r"|нет|无|暂无|没有|なし|없음)?\W*",
    re.I,
)


@dataclass(frozen=True)
class WrittenSection:
    """One labelled part of a text."""

    label: str
    text: str

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return _NOTHING.fullmatch(self.text) is not None


def label_key(label: str) -> str:
    """Return the form in which labels are compared; empty for what is a sentence, not a label."""
    words = _NOT_WORDS.sub(" ", label).lower().split()
    while words and words[0].isdigit():
        words.pop(0)
    return " ".join(words) if 0 < len(words) <= _LONGEST else ""


def _label(line: str) -> tuple[str, int, str] | None:
    """Return the label that a line begins with, its depth, and what follows on the line."""
    if match := _HEADING.match(line):
        name = label_key(match[2])
        return (name, len(match[1]), "") if name else None
    for pattern, depth in _STYLES:
        if (match := pattern.match(line)) and _titled(pattern, match[1]):
            name = label_key(match[1])
            return (name, depth, line[match.end() :]) if name else None
    return None


def _titled(pattern: re.Pattern[str], name: str) -> bool:
    """Tell whether words are written as a title, where nothing but that tells them from a sentence."""
    if pattern is _CAPITALS:
        return name.isupper()
    if pattern in (_NUMBERED, _LABEL):
        # A script without capitals has none to show, and needs fewer letters.
        return len(name) > 2 and name[0].isupper() if name[0].lower() != name[0].upper() else True
    return True


def _lines(text: str) -> list[str]:
    """Return the lines of a text, with a line for each key where the text is JSON on a single line."""
    lines: list[str] = []
    for line in text.splitlines():
        # JSON that is most of the text is its form; any other is quoted in it.
        if line.lstrip().startswith("{") and len(line) * 2 > len(text):
            with contextlib.suppress(ValueError, RecursionError):
                line = json.dumps(json.loads(line), indent=1, ensure_ascii=False)
        lines += line.splitlines() or [""]
    return lines


def _underlined(lines: Sequence[str], number: int) -> bool:
    """Tell whether a line is a title with a line of dashes under it, after an empty one."""
    under = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
    alone = number == 0 or not lines[number - 1].strip()
    return under and alone and lines[number][:1].isalpha() and bool(label_key(lines[number]))


def sections(text: str) -> list[WrittenSection]:
    """Return the labelled parts of a text, in order; a part holds the deeper parts inside it."""
    lines = _lines(text)
    found: list[tuple[int, str, int, str]] = []
    fenced = False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (label := _label(line)) is not None:
            found.append((number, *label))
        elif not fenced and _underlined(lines, number):
            found.append((number, label_key(line), 1, ""))
    result = []
    later: dict[int, int] = {}
    # From the end, so that a text of a million headings is read once and not a million times.
    for number, name, depth, rest in reversed(found):
        end = min((line for level, line in later.items() if level <= depth), default=len(lines))
        later[depth] = number
        result.append(WrittenSection(name, "\n".join([rest, *lines[number + 1 : end]])))
    return result[::-1]


def labels(text: str, known_lines: Collection[str] = ()) -> list[str]:
    """Return the labels of a text, each once; those on lines that the session itself holds are not the text's own."""
    found = (_label(line) for line in text.splitlines() if line.strip() not in known_lines)
    return list(dict.fromkeys(label[0] for label in found if label is not None))


def written_texts(kept: Kept) -> list[str]:
    """Return what the compressor wrote itself, without the messages that it only shortened."""
    changed = changed_in_place(kept)
    own = [at for at in range(len(kept.compressed)) if at not in kept.alignment.kept]
    return [text for at, text in zip(own, kept.own_texts, strict=True) if at not in changed]


def read_form(texts: Sequence[str]) -> FormRecord:
    """Record the sections of what a compressor wrote."""
    found: dict[str, SectionRecord] = {}
    for text in texts:
        for section in sections(text):
            if section.label not in found or found[section.label].tokens == 0:
                tokens = 0 if section.empty else count_text(section.text)
                found[section.label] = SectionRecord(label=section.label, tokens=tokens)
    return FormRecord(sections=list(found.values()), tokens=sum(count_text(text) for text in texts))
