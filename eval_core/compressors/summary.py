"""The anchored summary: forced sections that are extended by each compression, never rewritten from nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["EMPTY", "SECTIONS", "AnchoredSummary"]

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
_COUNT = "Compression count"


def _joined(old: list[str], new: list[str]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))


@dataclass(frozen=True)
class AnchoredSummary:
    """What an agent must know to go on, in sections that cannot be silently left out."""

    session_intent: list[str] = field(default_factory=list)
    files_modified: dict[str, list[str]] = field(default_factory=dict)
    decisions_made: list[str] = field(default_factory=list)
    current_state: list[str] = field(default_factory=list)
    blockers: list[str] = field(default_factory=list)
    next_steps: list[str] = field(default_factory=list)
    compression_count: int = 1

    def merge(self, newer: AnchoredSummary) -> AnchoredSummary:
        """Extend this summary: history accumulates, the current state is the newer one's."""
        files = {path: list(changes) for path, changes in self.files_modified.items()}
        for path, changes in newer.files_modified.items():
            files[path] = _joined(files.get(path, []), changes)
        return AnchoredSummary(
            session_intent=_joined(self.session_intent, newer.session_intent),
            files_modified=files,
            decisions_made=_joined(self.decisions_made, newer.decisions_made),
            current_state=newer.current_state or self.current_state,
            blockers=newer.blockers,
            next_steps=newer.next_steps or self.next_steps,
            compression_count=self.compression_count + 1,
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
    def of(cls, lines: dict[str, list[str]], files: dict[str, list[str]], count: int = 1) -> AnchoredSummary:
        """Build a summary from the lines of each section and the changes of each file."""
        return cls(
            session_intent=lines["session_intent"],
            files_modified=files,
            decisions_made=lines["decisions_made"],
            current_state=lines["current_state"],
            blockers=lines["blockers"],
            next_steps=lines["next_steps"],
            compression_count=count,
        )
