"""The deterministic judge: six scores from the facts an answer holds. No model is involved.

With r = share of the expected facts found, s = share of the superseded values stated as current,
a = share of the artifact facts found (paths, identifiers, hashes, URLs, PR numbers; r where there are none),
p = share of the question's parts the answer touches, f = 1 for an answer in a usable form:

    accuracy               5 r (1 - s/2)
    context_awareness      5 r (1 - s)
    artifact_trail         5 a
    completeness           5 r (0.8 + 0.2 p)
    continuity             5 r^2          (half of the facts is far less than half of what going on needs)
    instruction_following  5 f (0.4 + 0.6 r)

Every score rises with r and a and falls with s. An answer without any fact gets 0, but for at most 2 points
of form. A measured run is graded by what its compressed state holds, with s = 0, p = 1, and f = 1 from the first fact
on: a state that holds more never scores less.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from eval_core.domain.call import Draw
from eval_core.domain.grade import Grade, Unscored
from eval_core.domain.probe import Fact, Probe
from eval_core.facts.fact_text import Haystack, infer_kind, normalise
from eval_core.facts.haystack import holds, states_superseded
from eval_core.judging.extractive import NOT_IN_CONTEXT

_ARTIFACTS = frozenset({"path", "url", "host", "identifier", "hash", "pr", "cron"})
_PARTS = re.compile(r"\?|,|;|\band\b|\bor\b", re.IGNORECASE)
_CONTENT_WORD = re.compile(r"[^\W\d_]{4,}")
_LONGEST = 6_000


def _is_artifact(fact: Fact) -> bool:
    return (fact.kind or infer_kind(fact.values[0])) in _ARTIFACTS


def _share(found: int, total: int, otherwise: float) -> float:
    return found / total if total else otherwise


def _parts_touched(question: str, answer: Haystack, superseded: list[Fact]) -> float:
    text, asked = answer.text, normalise(question)
    for value in (normalise(fact.values[0]) for fact in superseded):
        # A value that is wrong answers no part of a question, not even of one that names it.
        text, asked = text.replace(value, " "), asked.replace(value, " ")
    parts = [words for part in _PARTS.split(asked) if (words := _CONTENT_WORD.findall(part))]
    touched = sum(1 for words in parts if any(word[:6] in text for word in words))
    return _share(touched, len(parts), 1.0)


class FactJudge:
    """Grades by facts alone: the same answer always gets the same grade."""

    deterministic = True

    @property
    def identity(self) -> dict[str, str]:
        """What makes grades comparable; how facts become scores is part of the instrument version."""
        return {"model": "offline:facts"}

    def grade_state(self, probe: Probe, state: Haystack) -> Grade:
        """Grade by the facts that a compressed state holds: whatever is added to it, no score falls."""
        return self.grade_kept(probe, {fact.name for fact in probe.required if holds(fact, state)})

    def grade_kept(self, probe: Probe, kept: Collection[str]) -> Grade:
        """Grade by the facts that are known to have been kept, named by their labels."""
        found = [fact for fact in probe.required if fact.name in kept]
        return self._graded(probe, found, parts=1.0, form=float(bool(found)), stale=())

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        """Grade one answer by the documented mapping."""
        text = Haystack.of(answer)
        required, superseded = probe.required, probe.superseded
        found = [fact for fact in required if holds(fact, text)]
        stale = [fact for fact in superseded if states_superseded(fact, text)]
        form = 0.0 if not answer.strip() or answer.strip() == NOT_IN_CONTEXT or len(answer) > _LONGEST else 1.0
        parts = _parts_touched(probe.question, text, superseded)
        return self._graded(probe, found, parts=parts, form=form, stale=stale)

    @staticmethod
    def _graded(probe: Probe, found: Sequence[Fact], *, parts: float, form: float, stale: Sequence[Fact]) -> Grade:
        required = probe.required
        artifacts = [fact for fact in required if _is_artifact(fact)]
        r = _share(len(found), len(required), 0.0)
        s = _share(len(stale), len(probe.superseded), 0.0)
        a = _share(sum(1 for fact in artifacts if fact in found), len(artifacts), r)
        scores = {
            "accuracy": 5 * r * (1 - s / 2),
            "context_awareness": 5 * r * (1 - s),
            "artifact_trail": 5 * a,
            "completeness": 5 * r * (0.8 + 0.2 * parts),
            "continuity": 5 * r * r,
            "instruction_following": 5 * form * (0.4 + 0.6 * r),
        }
        missing = [fact.name for fact in required if fact not in found]
        reason = f"{len(found)} of {len(required)} facts"
        if missing:
            reason += f"; missing: {', '.join(missing)}"
        if stale:
            reason += f"; stated though superseded: {', '.join(fact.values[0] for fact in stale)}"
        return Grade(scores={name: round(score, 4) for name, score in scores.items()}, reason=reason)
