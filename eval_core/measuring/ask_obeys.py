"""Choices and actions: asked of each graded state, and of the full transcript, of nothing and of a rule restated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eval_core.base.errors import UserError
from eval_core.base.files import digest, pretty, read_json, write_atomic
from eval_core.base.messages import Message
from eval_core.base.threads import compute
from eval_core.base.tokens import count_messages
from eval_core.domain.call import Completion, Draw, ModelCall, OpaqueState
from eval_core.domain.case import Case
from eval_core.domain.compression import ModelUse
from eval_core.domain.grade import Answer, Obeyer, UnscoredCode
from eval_core.domain.measurement import Controls, ObeyControl
from eval_core.domain.obey_probe import ObeyProbe, session_tools
from eval_core.domain.record import RunRecord, reply_use
from eval_core.domain.session_text import SessionText
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.models.offline import OfflineModel
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.strands.obeys import OBEYS

OBEYED_RUNS = 6
"""Graded runs of a candidate from whose states models choose and act: against the ten of a baseline, more tell little.
"""
ORDERS = 2
"""Orders of the options in which nothing must be enough, before a choice counts as made without any context."""
_TEXT = 160


def _asked(probe: ObeyProbe, identity: str) -> str:
    """Return what must be equal for two answers to be compared."""
    return f"{probe.digest}.{identity}"


async def ask_obeys(
    case: Case, state: list[Message] | OpaqueState, obeyers: Sequence[Obeyer], draw: Draw
) -> tuple[dict[str, Any] | None, ModelUse]:
    """Ask every model every probe of a case about one state; return what is recorded, and what it took."""
    probes, tools = case.bank.obeys, session_tools(case.fixture.messages)
    if not probes or case.ledger is None:
        return None, ModelUse()
    pairs = [(obeyer, probe) for obeyer in obeyers for probe in probes]
    replies = await asyncio.gather(*(obeyer.obey(state, probe, tools, draw=draw) for obeyer, probe in pairs))
    use = ModelUse()
    models: dict[str, dict[str, dict[str, Any]]] = {}
    for (obeyer, probe), (right, reply) in zip(pairs, replies, strict=True):
        entry: dict[str, Any] = {"asked": _asked(probe, obeyer.identity), "right": right}
        if isinstance(reply, Answer):
            use += reply_use(reply)
            entry["said"] = reply.text
        else:
            entry["code"], entry["why"] = reply.code, reply.reason[:_TEXT]
        models.setdefault(obeyer.model, {})[probe.id] = entry
    about = await compute(_about, case, state)
    return {"probes": about, "models": models}, use


def _about(case: Case, state: list[Message] | OpaqueState) -> dict[str, dict[str, Any]]:
    """Return what a report says of each probe: its line, and whether the text of the state has the line's strings."""
    assert case.ledger is not None
    lines = {line.id: line for line in case.ledger.lines}
    text = None if isinstance(state, OpaqueState) else Haystack.of_messages(state)
    return {
        probe.id: {
            "line": line.id,
            "kind": line.kind,
            "text": line.text[:_TEXT],
            "anchors": line.anchors,
            "held": None if text is None else holds(line.fact, text),
        }
        for probe in case.bank.obeys
        for line in [lines[probe.line]]
    }


def answered_all(record: RunRecord, case: Case, obeyers: Sequence[Obeyer]) -> bool:
    """Tell whether a record holds an answer of every model to every probe."""
    models = record.strands.get(OBEYS, {}).get("models", {})
    return all(
        (entry := models.get(obeyer.model, {}).get(probe.id, {})).get("right") is not None
        and entry["asked"] == _asked(probe, obeyer.identity)
        for obeyer in obeyers
        for probe in case.bank.obeys
    )


def unanswered(record: RunRecord) -> set[UnscoredCode | None]:
    """Return why answers are missing in a record."""
    models = record.strands.get(OBEYS, {}).get("models", {})
    return {entry["code"] for found in models.values() for entry in found.values() if "code" in entry}


# Controls: what the answers can be measured by. They depend on no compressor, so they are asked once.


async def _plain_state(case: Case) -> list[Message]:
    """Return the state that the reference compressor makes by rules, which is the same everywhere."""
    model = OfflineModel(SessionText(case.fixture.messages))

    async def complete(call: ModelCall) -> Completion:
        return await model.complete(call)

    done = await BuiltinSubject("anchored", complete=complete, model="none").compress(case.fixture, run=0, seed=0)
    return done.state


def excerpt(case: Case, probe: ObeyProbe, room: int | None) -> list[Message]:
    """Return the full transcript or, where it does not fit, the messages that say the line and what is around them."""
    messages = case.fixture.messages
    if room is None or count_messages(messages) <= room or case.ledger is None:
        return messages
    said = next(line.said for line in case.ledger.lines if line.id == probe.line)
    return [message for at, message in enumerate(messages) if any(abs(at - place) <= 2 for place in said)]


async def _measure(
    case: Case, obeyers: Sequence[Obeyer], turns: asyncio.Semaphore, room: int | None
) -> dict[str, dict[str, ObeyControl]]:
    """Ask each probe with everything, with nothing, and with the rule in plain words behind a state."""
    if not case.bank.obeys or case.ledger is None or not obeyers:
        return {}
    tools, lines = session_tools(case.fixture.messages), {line.id: line.text for line in case.ledger.lines}
    state = await _plain_state(case)

    async def ask(obeyer: Obeyer, probe: ObeyProbe, given: list[Message], repeat: int = 0) -> bool | None:
        async with turns:
            return (await obeyer.obey(given, probe, tools, draw=Draw(control=True, repeat=repeat)))[0]

    async def control(obeyer: Obeyer, probe: ObeyProbe) -> ObeyControl:
        rule: Message = {"role": "user", "content": f"To remember: {lines[probe.line]}"}
        ceiling, restated, *floors = await asyncio.gather(
            ask(obeyer, probe, excerpt(case, probe, room)),
            ask(obeyer, probe, [*state, rule]),
            *(ask(obeyer, probe, [], repeat) for repeat in range(ORDERS)),
        )
        floor = None if None in floors else all(floors)
        return ObeyControl(asked=_asked(probe, obeyer.identity), ceiling=ceiling, floor=floor, restated=restated)

    found: dict[str, dict[str, ObeyControl]] = {}
    for obeyer in obeyers:
        controls = await asyncio.gather(*(control(obeyer, probe) for probe in case.bank.obeys))
        found[obeyer.model] = {probe.id: made for probe, made in zip(case.bank.obeys, controls, strict=True)}
    return found


def _covers(known: Mapping[str, Mapping[str, ObeyControl]], case: Case, who: Mapping[str, str]) -> bool:
    return all(
        (found := known.get(model, {}).get(probe.id)) is not None
        and found.whole
        and found.asked == _asked(probe, identity)
        for model, identity in who.items()
        for probe in case.bank.obeys
    )


def _path(results: Path, case: Case, who: Mapping[str, str]) -> Path:
    asked = {model: [_asked(probe, identity) for probe in case.bank.obeys] for model, identity in who.items()}
    return results / "controls" / f"obeys-{digest({'fixture': case.fixture.digest, 'asked': asked})}.json"


def find_obey_controls(
    case: Case, who: Mapping[str, str], results: Path | None, stored: Iterable[Controls | None] = ()
) -> dict[str, dict[str, ObeyControl]] | None:
    """Return controls that were paid for before, by a stored baseline or an earlier run; `who` says how models ask."""
    for known in stored:
        if known is not None and _covers(known.obeys, case, who):
            return known.obeys
    path = _path(results, case, who) if results is not None else None
    try:
        return Controls.model_validate(read_json(path)).obeys if path is not None and path.exists() else None
    except (UserError, ValidationError):
        return None


async def obey_controls(
    case: Case,
    obeyers: Sequence[Obeyer],
    known: Controls | None,
    results: Path | None,
    turns: asyncio.Semaphore,
    room: int | None,
) -> dict[str, dict[str, ObeyControl]]:
    """Return the controls of a case, and keep for later runs what had to be asked; what is missing is asked again."""
    who = {obeyer.model: obeyer.identity for obeyer in obeyers}
    found = find_obey_controls(case, who, results, [known])
    if found is not None:
        return found
    found = await _measure(case, obeyers, turns, room)
    if results is not None and found and _covers(found, case, who):
        write_atomic(_path(results, case, who), pretty(Controls(probes={}, obeys=found).model_dump(mode="json")))
    return found
