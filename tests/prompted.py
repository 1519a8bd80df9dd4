"""A compressor with a prompt, in the manner of Hermes'; a test edits its source and chooses its model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import small

from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages
from eval_core.domain.call import Draw, ModelCall
from eval_core.domain.case import Case, load_suite
from eval_core.domain.compression import Compression, ModelRequest, ModelUse, Outcome, Step
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Controls, Measurement
from eval_core.domain.session_text import SessionText
from eval_core.facts.session_facts import SessionFacts
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.models.offline import OfflineModel
from eval_core.storage.results import ResultsFolder

SOURCE = (small.REPOSITORY / "bench" / "hermes_like.py").read_text(encoding="utf-8")
FIXTURES = ("constraints-and-reversals", "debug-session-feishu-id-model", "iterative-merge-migration")
"""The last one is compressed three times."""
RULE = 'prompt = f"Summarise the turns below. At most {SUMMARY_CHARS} characters.\\n\\n{headings}\\n\\n"'
Edit = tuple[str, str]
REWRITTEN: Edit = (RULE, 'prompt = "Summarise the conversation in two sentences.\\n\\n"')
_CONTROLS: dict[str, Controls] = {}
_FACTS: dict[str, SessionFacts] = {}


@cache
def suite(names: tuple[str, ...] = FIXTURES) -> Sequence[Case]:
    return load_suite(small.REPOSITORY / "fixtures", small.REPOSITORY / "probes", names)


def edited(*edits: Edit) -> str:
    """Return the compressor's source with each text replaced, which must be there."""
    source = SOURCE
    for old, new in edits:
        assert old in source, old
        source = source.replace(old, new)
    return source


@dataclass(frozen=True)
class Prompted:
    """The edited compressor as a subject; every run may see another `RUN`."""

    source: str
    name: str = "prompted"
    model: Callable[[Fixture], Callable[[ModelCall], Any]] = lambda fixture: (
        OfflineModel(SessionText(fixture.messages)).complete
    )
    records: bool = True

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: object = None
    ) -> Compression:
        requests: list[ModelRequest] = []
        steps: list[Step] = []
        complete = self.model(fixture)

        def ask(messages: list[Message]) -> str:
            call = ModelCall(
                role="compressor", model="offline:rules", messages=tuple(messages), max_tokens=8_000, draw=Draw(run)
            )
            text: str = asyncio.run(complete(call)).text
            requests.append(ModelRequest(call.messages, len(steps), text, asked_for=module.get("ASKED_FOR", ())))
            return text

        module: dict[str, Any] = {"RUN": run, "FIXTURE": fixture.name, "STEP": lambda: len(steps)}
        exec(compile(self.source, "hermes_like.py", "exec"), module)
        compressor = module["HermesLike"](ask)
        state: list[Message] = []
        start = 0
        for cut in fixture.cuts:
            state = [*state, *fixture.messages[start:cut]]
            before, start = count_messages(state), cut
            state = await asyncio.to_thread(compressor.compress, state)
            steps.append(Step(state, before, count_messages(state), 0.1))
        return Compression(
            Outcome.OK,
            steps=tuple(steps),
            use=ModelUse(calls=len(requests)),
            requests=tuple(requests) if self.records else None,
        )


@cache
def measured(
    *edits: Edit, runs: int = 1, fixtures: tuple[str, ...] = FIXTURES, subject: Callable[[str], Any] = Prompted
) -> Measurement:
    """Measure the compressor with these edits of its source, offline."""
    with TemporaryDirectory() as folder:
        session = MeasuringSession(
            cases=suite(fixtures),
            roles=Roles(subject(edited(*edits)), ExtractiveAnswerer(), FactJudge(), offline=True),
            fingerprint=make_fingerprint(suite(fixtures), None),
            folder=ResultsFolder(Path(folder)),
            label="prompted",
            runs=runs,
            compress_runs=runs,
            known_controls=_CONTROLS,
            facts=_FACTS,
        )
        found = asyncio.run(session.measure())
    _CONTROLS.update(found.controls)
    return found
