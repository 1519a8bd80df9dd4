"""The anchored summary: forced sections that are extended by each compression, never rewritten from nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from .decision import Decision, extend_blockers, extend_decisions, extend_values

EMPTY = "(none)"
"""Written where a section has nothing: a reader can tell "nothing happened" from "it was dropped"."""

SECTIONS: dict[str, str] = {
    "session_intent": "Session Intent",
    "files_modified": "Files Modified",
    "decisions_made": "Decisions Made",
    "current_state": "Current State",
    "blockers": "Blockers",
    "next_steps": "Next Steps",
}
_NOUNS = {
    "intent": "session_intent", "goal": "session_intent", "file": "files_modified", "decision": "decisions_made",
    "state": "current_state", "status": "current_state", "blocker": "blockers", "step": "next_steps",
}  # fmt: skip
_QUALIFIERS = {"session", "user", "modified", "changed", "edited", "created", "made", "new", "key", "main", "current",
               "open", "remaining", "next", "important", "and", "the"}  # fmt: skip
_COUNT = "Compression count"
_LEFT_OUT = "older entries were left out for room"
_HEADING = re.compile(r"^\s{0,3}(?:#{1,6}\s+|\*\*)(?P<title>[^#*\n]+?)\s*:?\s*(?:#+|\*\*:?)?\s*$")
_FILE = re.compile(r"^`?(?P<path>[^`\s]+?)`?\s*(?::|\s[-–—])\s+(?P<change>.+)$")
_ENTRY = re.compile(r"^\s*(?:[-*•]\s+|\d+[.)]\s+)")


def _section(title: str, wanted: dict[str, str]) -> str | None:
    """Return the section that a model's heading means: "Key decisions" are the decisions; "Files read" is another."""
    for name, own in wanted.items():
        if title.lower() == own.lower():
            return name
    words = {word for word in re.findall(r"[a-z]+", title.lower()) if word not in _QUALIFIERS}
    # "status" keeps its s, and plurals lose theirs.
    meant = _NOUNS.get(re.sub(r"(?<!u)s$", "", words.pop())) if len(words) == 1 else None
    return meant if meant in wanted else None


def _count_left_out(lines: list[str]) -> tuple[int, list[str]]:
    """Return how many lines an earlier compression left out, and the lines without its note."""
    earlier = re.fullmatch(rf"(\d+) {_LEFT_OUT}", lines[0]) if lines else None
    return (int(earlier[1]), lines[1:]) if earlier else (0, list(lines))


def _length(entry: str | Decision | tuple[str, list[str]]) -> int:
    if isinstance(entry, tuple):
        return len(entry[0]) + sum(len(change) + 2 for change in entry[1])
    return len(entry if isinstance(entry, str) else entry.line())


_Item = TypeVar("_Item", str, Decision)


def _joined(old: list[_Item], new: list[_Item]) -> list[_Item]:
    return list(dict.fromkeys(old + new))


def _newest(old: list[str], new: list[str]) -> list[str]:
    return new or old


def _now(old: list[str], new: list[str]) -> list[str]:
    return new


@dataclass(frozen=True)
class AnchoredSummary:
    """What an agent must know to go on, in sections that cannot be silently left out."""

    session_intent: list[str] = field(default_factory=list)
    files_modified: dict[str, list[str]] = field(default_factory=dict)
    decisions_made: list[Decision] = field(default_factory=list)
    current_state: list[str] = field(default_factory=list)
    blockers: list[str] = field(default_factory=list)
    next_steps: list[str] = field(default_factory=list)
    compression_count: int = 1

    def merge(
        self,
        newer: AnchoredSummary,
        *,
        decisions: Callable[[list[Decision], list[Decision]], list[Decision]] = _joined,
        state: Callable[[list[str], list[str]], list[str]] = _newest,
        blockers: Callable[[list[str], list[str]], list[str]] = _now,
    ) -> AnchoredSummary:
        """Extend by a summary of everything since: history accumulates, the current state is the newer one's."""
        files = {path: list(changes) for path, changes in self.files_modified.items()}
        for path, changes in newer.files_modified.items():
            files[path] = _joined(files.get(path, []), changes)
        return AnchoredSummary(
            session_intent=_joined(self.session_intent, newer.session_intent),
            files_modified=files,
            decisions_made=decisions(self.decisions_made, newer.decisions_made),
            current_state=state(self.current_state, newer.current_state),
            blockers=blockers(self.blockers, newer.blockers),
            next_steps=_newest(self.next_steps, newer.next_steps),
            compression_count=self.compression_count + 1,
        )

    def extend(self, news: AnchoredSummary) -> AnchoredSummary:
        """Extend by what is new: nothing goes but what the news replace or call resolved."""
        return self.merge(news, decisions=extend_decisions, state=extend_values, blockers=extend_blockers)

    def fitted(self, max_chars: int, sections: dict[str, str] | None = None) -> AnchoredSummary:
        """Leave out the oldest lines until the text fits, and say in it how many were.

        Lines of the current state go first, then changes of files, decisions and requests: what is hardest to find
        again stays longest. The newest line of each section stays.
        """
        over = len(self.to_markdown(sections)) - max_chars
        gone, state = _count_left_out(self.current_state)
        before = gone
        kept: dict[str, list[Any]] = {"current_state": state, "files_modified": list(self.files_modified.items())}
        kept |= {name: list(getattr(self, name)) for name in ("blockers", "decisions_made", "session_intent")}
        for lines in kept.values():
            while over > 0 and len(lines) > 1:
                over -= _length(lines.pop(0)) + 3
                gone += 1
        if gone == before:
            return self
        return replace(
            self,
            current_state=[f"{gone} {_LEFT_OUT}", *kept["current_state"]],
            files_modified=dict(kept["files_modified"]),
            blockers=kept["blockers"],
            decisions_made=kept["decisions_made"],
            session_intent=kept["session_intent"],
        )

    def to_markdown(self, sections: dict[str, str] | None = None) -> str:
        """Render the sections in their order; an empty one is written out as empty."""
        blocks = []
        for name, title in (sections or SECTIONS).items():
            lines = self._lines(name)
            blocks.append(f"## {title}\n" + ("\n".join(lines) if lines else EMPTY))
        blocks.append(f"{_COUNT}: {self.compression_count}")
        return "\n\n".join(blocks)

    def _lines(self, name: str) -> list[str]:
        if name == "files_modified":
            return [f"- `{path}`: {'; '.join(changes)}" for path, changes in self.files_modified.items()]
        if name == "decisions_made":
            return [f"- {decision.line()}" for decision in self.decisions_made]
        if name == "next_steps":
            return [f"{number}. {step}" for number, step in enumerate(self.next_steps, 1)]
        return [f"- {line}" for line in getattr(self, name)]

    @classmethod
    def from_markdown(cls, text: str, sections: dict[str, str] | None = None) -> AnchoredSummary:
        """Read a rendered summary back, for a process that only has the messages."""
        titles = {title: name for name, title in (sections or SECTIONS).items()}
        found: dict[str, list[str]] = {name: [] for name in SECTIONS}
        current: str | None = None
        count = 1
        for line in text.splitlines():
            if line.startswith("## "):
                current = titles.get(line[3:].strip())
            elif line.startswith(f"{_COUNT}:"):
                digits = line.partition(":")[2].strip()
                count = int(digits) if digits.isdigit() else 1
                current = None
            elif current and (entry := re.sub(r"^(?:- |\d+\. )", "", line)).strip() and entry != EMPTY:
                found[current].append(entry)
        files: dict[str, list[str]] = {}
        for entry in found["files_modified"]:
            path, _, changes = entry.partition("`: ")
            files[path.strip("`")] = changes.split("; ") if changes else []
        return cls.of(found, files, count)

    @classmethod
    def from_reply(cls, text: str, sections: dict[str, str] | None = None) -> AnchoredSummary:
        """Read what a model wrote: headings in any style, and nothing of it lost.

        A line under no heading, or under one that is not of the template, is kept as a line of the current state.
        """
        wanted = sections or SECTIONS
        spare = "current_state" if "current_state" in wanted else next(iter(wanted))
        blocks: dict[str, list[str]] = {name: [] for name in wanted}
        current, foreign = spare, ""
        for line in text.splitlines():
            if heading := _HEADING.match(line):
                title = heading["title"].strip()
                known = _section(title, wanted)
                # In brackets: behind a colon, the next line of that heading would replace this one as its newer value.
                current, foreign = known or spare, "" if known else f"[{title}] "
                continue
            entry = _ENTRY.sub("", line).strip()
            if entry.lower() in ("", EMPTY, "none", "n/a", "-") or entry.startswith(f"{_COUNT}:"):
                continue
            if current == "files_modified" and (file := _FILE.match(entry)):
                entry = f"`{file['path']}`: {file['change']}"
            blocks[current].append(foreign + entry)
        body = "\n\n".join(
            f"## {wanted[name]}\n" + "\n".join(f"- {entry}" for entry in entries) for name, entries in blocks.items()
        )
        return cls.from_markdown(body, wanted)

    @classmethod
    def of(cls, lines: dict[str, list[str]], files: dict[str, list[str]], count: int = 1) -> AnchoredSummary:
        """Build a summary from the lines of each section and the changes of each file."""
        return cls(
            session_intent=lines["session_intent"],
            files_modified=files,
            decisions_made=[Decision.parse(line) for line in lines["decisions_made"]],
            current_state=lines["current_state"],
            blockers=lines["blockers"],
            next_steps=lines["next_steps"],
            compression_count=count,
        )
