"""Failures of a compressor's model, and what the compressor does then."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, runtime_checkable

from eval_core.domain.fixture import Fixture


class ModelFailure(StrEnum):
    """A way in which a model fails."""

    DOWN = "down"
    BUSY_ONCE = "busy_once"
    EMPTY = "empty"
    CUT_OFF = "cut_off"
    TOOL_CALL = "tool_call"
    REFUSES = "refuses"

    @property
    def words(self) -> str:
        """The failure as a clause about the model."""
        return {
            ModelFailure.DOWN: "is down",
            ModelFailure.BUSY_ONCE: "is busy once (429)",
            ModelFailure.EMPTY: "answers with nothing",
            ModelFailure.CUT_OFF: "is cut off after a few words",
            ModelFailure.TOOL_CALL: "calls an offered tool instead of answering",
            ModelFailure.REFUSES: "refuses",
        }[self]


class FailureReaction(StrEnum):
    """What becomes of the session then."""

    RAISED = "raised"
    LEFT_ALONE = "left_alone"
    """The session came back as long as it was."""
    RECOVERED = "recovered"
    """It asked again, and got its summary."""
    FELL_BACK = "fell_back"
    """It shortened the session without its model, and says so."""
    DESTROYED = "destroyed"
    """It shortened the session though it got no summary, and says nothing."""
    HUNG = "hung"
    """It was ended after a time; a slow machine can be the reason."""

    @property
    def words(self) -> str:
        """The reaction as people read it."""
        return {
            FailureReaction.RAISED: "raised an error",
            FailureReaction.LEFT_ALONE: "left the session alone",
            FailureReaction.RECOVERED: "asked again and went on",
            FailureReaction.FELL_BACK: "fell back, and said so",
            FailureReaction.DESTROYED: "destroyed the session",
            FailureReaction.HUNG: "did not come to an end",
        }[self]


@runtime_checkable
class TriesFailures(Protocol):
    """A subject that can be put before failing models."""

    async def try_failures(self, fixture: Fixture) -> dict[ModelFailure, FailureReaction]:
        """Compress the beginning of a fixture once with each failing model; empty where it asks no model."""
