"""Controls: the same probes on the full transcript and on nothing, so that a bad probe is not blamed on anybody."""

from __future__ import annotations

import asyncio

from eval_core.computing import compute
from eval_core.facts import Haystack, holds
from eval_core.judge.grade import Answer, Answerer, Grade, Judge
from eval_core.measurement import Controls, ProbeControl
from eval_core.messages import Message, render
from eval_core.probe.schema import Probe
from eval_core.run.suite import Case

__all__ = ["CONTROL_RUN", "measure_controls"]

CONTROL_RUN = -1
_CEILING_FAILS = 2.0
_FLOOR_PASSES = 2.5


async def _overall(
    state: list[Message], case: Case, probe: Probe, answerer: Answerer, judge: Judge, control: str
) -> float | None:
    name = f"{case.fixture.name}/{control}"
    answer = await answerer.answer(state, probe, fixture=name, run=CONTROL_RUN)
    if not isinstance(answer, Answer):
        return None
    grade = await judge.grade(probe, answer.text, fixture=name, run=CONTROL_RUN)
    return grade.overall if isinstance(grade, Grade) else None


def _share(probe: Probe, text: Haystack) -> float:
    return sum(holds(fact, text) for fact in probe.required) / len(probe.required)


async def measure_controls(case: Case, answerer: Answerer, judge: Judge) -> Controls:
    """Measure ceiling and floor of every probe of a case."""
    everything, nothing = case.fixture.messages, list[Message]()
    banks = case.bank.probes
    ceilings, floors = await asyncio.gather(
        asyncio.gather(*(_overall(everything, case, probe, answerer, judge, "full") for probe in banks)),
        asyncio.gather(*(_overall(nothing, case, probe, answerer, judge, "empty") for probe in banks)),
    )
    full, empty = await compute(Haystack.of, render(everything)), Haystack.of("")
    probes = {}
    for probe, ceiling, floor in zip(banks, ceilings, floors, strict=True):
        reason = None
        if ceiling is not None and ceiling < _CEILING_FAILS:
            reason = f"the full transcript scores only {ceiling:.1f}"
        elif floor is not None and floor > _FLOOR_PASSES:
            reason = f"no context at all scores {floor:.1f}"
        probes[probe.id] = ProbeControl(
            ceiling=ceiling,
            floor=floor,
            ceiling_facts=_share(probe, full),
            floor_facts=_share(probe, empty),
            quarantined=reason,
        )
    return Controls(probes=probes)
