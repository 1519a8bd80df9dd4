"""A strand of evidence: its name, its force in the verdict, and how it is recorded and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import SessionLedger
from eval_core.facts.verbatim import Kept
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding


class Force(StrEnum):
    """What a finding may do to the verdict."""

    BREAKS = "breaks"
    """Worse: *broken*, whatever else was found."""
    CERTAIN = "certain"
    """Worse: *regressed*, whatever was gained."""
    WEIGHED = "weighed"
    """Losses and gains are compared as shares of their totals."""
    GATE = "gate"
    """Decides what a gain or a loss was bought with, and alone only where nothing else moved."""
    TOLD = "told"
    """Shown, and decides nothing by itself."""


@dataclass(frozen=True)
class SeenRun:
    """What a strand can read of one compression that ended with a state."""

    fixture: Fixture
    compression: Compression
    kept: Kept
    ledger: SessionLedger | None = None
    """What the session has established, where somebody wrote it down."""


@dataclass(frozen=True)
class Strand:
    """One kind of evidence. To add one: a module with these functions, and its line in the registry."""

    name: str
    title: str
    """As readers see it."""
    force: Force
    compare: Callable[[Evidence], Finding | None]
    """What a difference means, in words; None where nothing of it is at hand."""
    muted_by: tuple[Literal["everything", "facts", "scores"], ...] = ("everything",)
    """What must be comparable for it."""
    record: Callable[[SeenRun], Mapping[str, Any] | None] | None = None
    """What is kept of each run in its record, as JSON under the strand's name; None where there is nothing to read."""
    of_replies: bool = False
    """Whether it is read of what the model replied, which is nobody's word where a stand-in replied."""
    irreparable: bool = False
    """Whether no gain elsewhere, and no smaller size, makes up for what is lost here."""
