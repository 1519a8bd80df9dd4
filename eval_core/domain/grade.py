"""Answers and grades, and the reason where there is none: missing is never zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, field_validator

from eval_core.base.messages import Message
from eval_core.domain.call import Draw, FailureKind, OpaqueState
from eval_core.domain.compression import TokenUse
from eval_core.domain.obey_probe import ObeyProbe
from eval_core.domain.probe import Probe

DIMENSIONS = (
    "accuracy",
    "context_awareness",
    "artifact_trail",
    "completeness",
    "continuity",
    "instruction_following",
)
UnscoredCode = FailureKind | Literal["unreadable", "private"]
"""Why there is no score: how the model call failed, a state that only its provider can read, or withheld."""
PASS_SCORE = 3.0
"""A probe passes with this overall score; below it, it is listed as a miss."""


class Answer(TokenUse):
    """What the continuing agent said, seeing only the compressed state."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["answer"] = "answer"
    text: str


class Grade(TokenUse):
    """Six scores from 0 to 5, and why."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["grade"] = "grade"
    scores: dict[str, float] = Field(description="One score from 0 to 5 for each dimension.")
    reason: str = ""
    flags: list[str] = []
    """What a reader should doubt about this grade."""

    @field_validator("scores")
    @classmethod
    def _six(cls, scores: dict[str, float]) -> dict[str, float]:
        if set(scores) != set(DIMENSIONS) or not all(0 <= value <= 5 for value in scores.values()):
            raise ValueError(f"a grade is six scores from 0 to 5: {', '.join(DIMENSIONS)}")
        return scores

    @property
    def overall(self) -> float:
        """The mean of the six dimensions."""
        return sum(self.scores[name] for name in DIMENSIONS) / len(DIMENSIONS)


class Unscored(BaseModel):
    """No score, and the reason."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["unscored"] = "unscored"
    code: UnscoredCode | None = None
    """What failed, for code that has to decide; None in records of older versions and where only words are known."""
    missing: Literal["answer", "grade"] | None = None
    """What there is none of; None where the one who gave up does not say."""
    reason: str
    """The same for people; nothing is decided by its wording."""


class Answerer(Protocol):
    """Something that answers probes from a compressed state."""

    async def answer(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        """Answer one probe from the state alone."""


@runtime_checkable
class OpaqueAnswerer(Protocol):
    """An answerer that can ask the provider about a state that only the provider can read."""

    async def answer_opaque(self, state: OpaqueState, probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        """Answer one probe with the state in front."""


class Judge(Protocol):
    """Something that grades answers."""

    @property
    def identity(self) -> dict[str, str]:
        """What the fingerprint holds of it: model, sampling parameters, rubric digest."""

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        """Grade one answer on the six dimensions."""


class Obeyer(Protocol):
    """A model that chooses and acts from a compressed state."""

    @property
    def model(self) -> str:
        """Its name."""

    @property
    def identity(self) -> str:
        """What makes its replies comparable: parameters and prompts."""

    async def obey(
        self, state: list[Message] | OpaqueState, probe: ObeyProbe, tools: Mapping[str, list[str]], *, draw: Draw
    ) -> tuple[bool | None, Answer | Unscored]:
        """Ask for one choice or call, and tell whether it is the one demanded; None where there is none."""
