"""What every view is made from: one object, so that comment, page, terminal and exit code cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_core.compare.finding import Kind, Verdict
from eval_core.measurement import Measurement
from eval_core.run.suite import Case

__all__ = ["OFFLINE_NOTE", "ReportData"]

OFFLINE_NOTE = "offline, deterministic: no model judged this"


@dataclass(frozen=True)
class ReportData:
    """A measurement, what it was compared with and what came of it."""

    candidate: Measurement
    """In memory its records hold the compressed messages; read back from `summary.json` they do not."""
    base: Measurement | None = None
    verdict: Verdict | None = None
    base_path: str | None = None
    cases: Mapping[str, Case] = field(default_factory=dict)
    """Fixtures and banks by name, where they are at hand; they hold the questions and the transcript."""
    history: Sequence[dict[str, Any]] = ()
    note: str | None = None
    """Why there is no comparison, if there is none."""

    @property
    def kind_is_comparable(self) -> bool:
        """Whether numbers of the two sides may stand beside each other at all."""
        return self.base is not None and self.verdict is not None and self.verdict.kind is not Kind.NOT_COMPARABLE
