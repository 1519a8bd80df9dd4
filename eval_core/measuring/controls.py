"""Controls: the same probes on the full transcript and on nothing, so that a bad probe is not blamed on anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from eval_core.base.errors import UserError
from eval_core.base.files import digest, pretty, read_json, write_atomic
from eval_core.base.messages import Message
from eval_core.base.threads import compute
from eval_core.base.tokens import count_messages
from eval_core.domain.call import Draw
from eval_core.domain.case import Case
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.grade import Answer, Answerer, Grade, Judge
from eval_core.domain.measurement import Controls, Measurement, ProbeControl
from eval_core.domain.probe import Probe
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.facts.retention import FixtureFacts, probe_in_session
from eval_core.judging.fact_judge import FactJudge

CONTROL = Draw(control=True)
_CEILING_FAILS = 2.0
_FLOOR_PASSES = 2.5
_WHO = ("answer_template", "rubric", "answer_model", "judge_model")


def control_path(results: Path, case: Case, fingerprint: Fingerprint) -> Path:
    """Return where the controls of a case are kept: by the session, its probes, and who answers and grades."""
    key = digest(
        {
            "fixture": case.fixture.digest,
            "probes": case.bank.digest,
            **({"private": [case.private.digest, sorted(case.probe_types)]} if case.private else {}),
            "answer": {**fingerprint.answer_model, "template": fingerprint.answer_template},
            "judge": {**fingerprint.judge_model, "rubric": fingerprint.rubric},
        }
    )
    return results / "controls" / f"{key}.json"


def _of_measurement(case: Case, fingerprint: Fingerprint, stored: Measurement) -> bool:
    """Tell whether a stored measurement asked the same probes of the same session, with the same models."""
    name, theirs = case.fixture.name, stored.fingerprint
    return (
        name in stored.controls
        and theirs.fixtures.get(name) == case.fixture.digest
        and theirs.probes.get(name) == case.bank.digest
        and (case.private is None or theirs.private.get(name) == case.private.digest)
        and all(getattr(theirs, field) == getattr(fingerprint, field) for field in _WHO)
    )


def find_controls(
    case: Case, fingerprint: Fingerprint, results: Path, measurements: Iterable[Measurement] = ()
) -> Controls | None:
    """Return controls that were paid for before: of a stored baseline or an earlier run."""
    for stored in measurements:
        if _of_measurement(case, fingerprint, stored):
            return stored.controls[case.fixture.name]
    path = control_path(results, case, fingerprint)
    try:
        return Controls.model_validate(read_json(path)) if path.exists() else None
    except (UserError, ValidationError):
        return None


def keep_controls(case: Case, fingerprint: Fingerprint, results: Path, controls: Controls) -> None:
    """Keep controls for later runs; where a grade is missing they are measured again."""
    if all(probe.ceiling is not None and probe.floor is not None for probe in controls.probes.values()):
        write_atomic(control_path(results, case, fingerprint), pretty(controls.model_dump(mode="json")))


async def _overall(
    state: list[Message], case: Case, probe: Probe, answerer: Answerer, judge: Judge, control: str
) -> float | None:
    name = f"{case.fixture.name}/{control}"
    answer = await answerer.answer(state, probe, fixture=name, draw=CONTROL)
    if not isinstance(answer, Answer):
        return None
    if isinstance(judge, FactJudge):
        held = probe_in_session(probe, FixtureFacts(case.fixture))
        return judge.grade_state(held, Haystack.of_messages(state)).overall
    grade = await judge.grade(probe, answer.text, fixture=name, draw=CONTROL)
    return grade.overall if isinstance(grade, Grade) else None


def _share(probe: Probe, text: Haystack) -> float:
    return sum(holds(fact, text) for fact in probe.required) / len(probe.required)


_NEIGHBOURS = 2
"""Messages on either side of a piece of evidence, without which it may not be understood."""


def ceiling_state(case: Case, probe: Probe, facts: FixtureFacts, room: int | None) -> list[Message]:
    """Return what a probe's ceiling is asked from: the session, or what of it the answering model can take.

    Of a session that does not fit, these are the messages with the probe's evidence and their neighbours, as many as
    fit, the last evidence first: it is the newest state.
    """
    messages = case.fixture.messages
    if room is None or count_messages(messages) <= room:
        return messages
    chosen: set[int] = set()
    for index in sorted({place for fact in probe.required for place in facts.of(fact)}, reverse=True):
        near = range(max(0, index - _NEIGHBOURS), min(len(messages), index + _NEIGHBOURS + 1))
        wider = sorted({*chosen, *near})
        if count_messages([messages[place] for place in wider]) <= room:
            chosen.update(wider)
    return [messages[place] for place in sorted(chosen)]


async def measure_controls(
    case: Case, answerer: Answerer, judge: Judge, turns: asyncio.Semaphore | None = None
) -> Controls:
    """Measure ceiling and floor of every probe of a case; `turns` limits how many are measured at the same time.

    Controls fill gaps, so no more prompts are written ahead than can fill them; those of the floor are short.
    """
    turns = turns or asyncio.Semaphore(16)
    banks = case.probes
    room, facts = getattr(answerer, "room", None), FixtureFacts(case.fixture)

    async def one(state: list[Message], probe: Probe, control: str) -> float | None:
        async with turns:
            return await _overall(state, case, probe, answerer, judge, control)

    floors, ceilings = await asyncio.gather(
        asyncio.gather(*(one([], probe, "empty") for probe in banks)),
        asyncio.gather(*(one(ceiling_state(case, probe, facts, room), probe, "full") for probe in banks)),
    )
    full, empty = await compute(Haystack.of_messages, case.fixture.messages), Haystack.of("")
    probes = {}
    for probe, ceiling, floor in zip(banks, ceilings, floors, strict=True):
        reason = None
        if not _share(probe, full):
            reason = "none of its facts is in the session"
        elif isinstance(judge, FactJudge):
            # Rules answer worse than a model would: that says nothing about the probe.
            pass
        elif ceiling is not None and ceiling < _CEILING_FAILS:
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
