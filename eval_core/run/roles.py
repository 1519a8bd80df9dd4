"""Who does what in a run: the subject, the answerer and the judge, and what the fingerprint holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eval_core.compare.fingerprint import Fingerprint
from eval_core.instrument import instrument
from eval_core.judge.grade import Answerer, Judge
from eval_core.measurement import SCHEMA_VERSION
from eval_core.run.suite import Case
from eval_core.subject.outcome import Subject
from eval_core.tokens import TOKENIZER

__all__ = ["Roles", "make_fingerprint"]


@dataclass(frozen=True)
class Roles:
    """Everything that takes part in a run."""

    subject: Subject
    answerer: Answerer
    judge: Judge
    offline: bool
    compressor: dict[str, str] = field(default_factory=lambda: {"model": "offline:rules"})
    """Identity of the model that the compressor calls."""
    sandbox: str = "not needed: own code"

    @property
    def models(self) -> dict[str, str]:
        """Role to model name, for people."""
        return {
            "compressor": self.compressor["model"],
            "answer": self.answerer.identity["model"],
            "judge": self.judge.identity["model"],
        }


def make_fingerprint(cases: Sequence[Case], roles: Roles, focus_topic: str | None) -> Fingerprint:
    """Return what must be equal for two measurements to be compared."""
    answer, judge = dict(roles.answerer.identity), dict(roles.judge.identity)
    return Fingerprint(
        schema_version=SCHEMA_VERSION,
        fixtures={case.fixture.name: case.fixture.digest for case in cases},
        probes={case.fixture.name: case.bank.digest for case in cases},
        rubric=judge.pop("rubric", "none"),
        answer_template=answer.pop("template", "none"),
        compressor_model=roles.compressor,
        answer_model=answer,
        judge_model=judge,
        focus_topic=focus_topic,
        tokenizer=TOKENIZER,
        instrument=instrument(),
    )
