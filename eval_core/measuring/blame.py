"""Whose doing it is that the compressor's model wrote no summary: the model's, or that of what it was asked.

A compressor can ask for a refusal, an empty reply or an endless one. So the evaluator asks the same model plainly for a
summary of the same session, lets the compressor try once more, and asks again. Only a model that answers the evaluator
on both sides of a try that failed has answered everybody but the compressor. One that refuses the plain request too, or
stopped answering in between, is to blame itself, and so is a session that it will not summarise for anybody.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval_core.compressors.summariser import Request, Section, prompt
from eval_core.domain.call import ArmName, Completion, Draw, ModelCall
from eval_core.domain.case import Case
from eval_core.domain.compression import Outcome
from eval_core.domain.record import RunRecord
from eval_core.models.refusals import said_instead

if TYPE_CHECKING:
    from eval_core.models.client import ModelClient

_SECTIONS = (Section("state", "State", "what was asked, done and decided, and what comes next"),)
_ROOM = 4_000
_TRIES = 2
"""Fixture-runs of one session that are tried once more; where both go well, the fault has passed."""
_KEPT_OF_A_REFUSAL = (
    "fixture", "run", "graded", "notes", "tokens_before", "tokens_after", "seconds", "messages", "use", "refused",
    "answered_plainly",
)  # fmt: skip


@dataclass(frozen=True)
class PlainRequests:
    """Asks the compressor's model for summaries in the evaluator's own words."""

    client: ModelClient

    async def answered(self, case: Case) -> bool:
        """Tell whether the model summarises this session now: what it did earlier says nothing about today."""
        models = self.client.models
        messages = tuple(prompt(Request(case.fixture.messages, None, _SECTIONS, _ROOM)))
        call = ModelCall(
            role="compressor",
            model=models.compressor,
            messages=messages,
            max_tokens=models.compressor_max_tokens,
            draw=Draw(control=True, repeat=time.time_ns() // 1_000),
            shared=len(messages),  # it is asked again a minute later
        )
        outcome = await self.client.complete(call)
        return isinstance(outcome, Completion) and not said_instead(outcome.text, outcome.refusal)


def suspects(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return, by fixture, the runs for which the model wrote nothing: empty ones, and refusals where all are refused.

    Where it refused in some runs only, the compressor has a prompt that is refused at times, and keeps the result.
    """
    fixtures: dict[str, list[RunRecord]] = {}
    for record in records:
        fixtures.setdefault(record.fixture, []).append(record)
    found = {}
    for name, runs in fixtures.items():
        made = [run for run in runs if run.ok]
        refused = made if made and all(run.refused for run in made) else []
        if unwritten := [*refused, *(run for run in runs if run.outcome is Outcome.BAD_COMPLETION)]:
            found[name] = unwritten
    return found


async def examine(
    unwritten: Sequence[RunRecord],
    case: Case,
    plain: PlainRequests,
    again: Callable[[RunRecord], Awaitable[RunRecord]],
    arm: ArmName,
) -> tuple[list[RunRecord], bool]:
    """Try runs of one fixture once more between two plain requests; tell whether the compressor alone is not answered.

    The runs are returned as they are now: one that goes well the second time is measured.
    """
    tried = list(unwritten)
    for at in range(min(_TRIES, len(tried))):
        if not await plain.answered(case):
            return tried, False
        with plain.client.asking_afresh(arm):
            tried[at] = await again(tried[at])
        failed = tried[at].outcome is Outcome.BAD_COMPLETION or (tried[at].ok and bool(tried[at].refused))
        if failed and await plain.answered(case):
            return tried, True
    return tried, False


def own_doing(record: RunRecord) -> RunRecord:
    """Say of a run that its compressor asked for what it got; a refusal in words is decided with all other runs."""
    if record.outcome is not Outcome.BAD_COMPLETION:
        return record.model_copy(update={"answered_plainly": True})
    return record.model_copy(update={"outcome": Outcome.REFUSED, "detail": _told(record), "answered_plainly": True})


def _told(record: RunRecord) -> str:
    what = f"the model refuses what this compressor asks for: {record.refused}" if record.refused else record.detail
    return f"{what}; asked plainly before and after, the same model summarised this session"


def attribute_refusals(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Name the outcome of fixtures in which the compressor's model refused every time: there is nothing to measure."""
    void = {
        name: any(run.answered_plainly for run in runs)
        for name, runs in suspects(records).items()
        if any(run.ok for run in runs)
    }
    attributed = []
    for record in records:
        if record.ok and record.fixture in void:
            own = void[record.fixture]
            record = RunRecord(
                **{name: getattr(record, name) for name in _KEPT_OF_A_REFUSAL},
                outcome=Outcome.REFUSED if own else Outcome.BAD_COMPLETION,
                detail=_told(record) if own else f"the compressor's model refused in every run: {record.refused}",
            )
        attributed.append(record)
    return attributed
