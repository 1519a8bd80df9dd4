"""The compressors that `bench/mutants.py` damages, run for real, with models that behave like models.

Neither model is one: both copy telling lines of what they are shown, follow the template they are given, forget lines
and leave headings out with a small chance. So every run differs, and nothing is written that was not shown.
"""

from __future__ import annotations

import importlib
import json
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from eval_core.base.tokens import count_messages
from eval_core.domain.compression import Compression, ModelRequest, Outcome, Step
from eval_core.domain.fixture import Fixture

FORGETS = 0.06
OMITS = 0.04
REFERENCE, HERMES, JAVASCRIPT = "reference", "hermes-like", "javascript"
_TELLING = re.compile(
    r"https?://\S+|#\d{2,6}\b|\b[0-9a-f]{7,40}\b|(?:[\w.-]+/)+[\w.-]+|\b\w+_\w+\b|\d{2,}|\w+\.\w{2,4}\b"
)


class Forgetful:
    """A summariser that loses each line with a small chance."""

    def __init__(self, inner: Any, seed: str) -> None:
        self._inner, self._random = inner, random.Random(seed)

    def __call__(self, request: Any) -> str:
        lines = self._inner(request).splitlines()
        return "\n".join(line for line in lines if not line.startswith("- ") or self._random.random() > FORGETS)


class TemplateModel:
    """A model that follows a template: under each heading asked for it copies telling lines of what it was shown.

    Lines are spread over the headings until the room is used up. Some are forgotten, and some headings left out.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.requests: list[ModelRequest] = []
        self.step = 0

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        reply = self._reply(messages)
        self.requests.append(ModelRequest(tuple(messages), self.step, reply))
        return reply

    def _reply(self, messages: list[dict[str, Any]]) -> str:
        prompt = str(messages[-1]["content"])
        asked, _, shown = prompt.partition("TURNS:\n")
        titles = [line[3:] for line in asked.partition("PREVIOUS SUMMARY")[0].splitlines() if line.startswith("## ")]
        room = int(re.search(r"At most (\d+)", prompt)[1])  # type: ignore[index]
        older = asked.partition("PREVIOUS SUMMARY:\n")[2]
        source = [line for line in older.splitlines() if line.startswith("- ")]
        source += shown.replace("\\n", "\n").splitlines()
        lines = {line.removeprefix("- ").strip()[:240] for line in source}
        ranked = sorted(lines, key=lambda line: (-len(_TELLING.findall(line)) * 40 / (len(line) + 40), line))
        chosen: list[str] = []
        for line in ranked:
            if len(line) > 8 and room - len(line) > 0 and self._random.random() > FORGETS:
                chosen.append(line)
                room -= len(line) + 3
        parts: dict[str, list[str]] = {title: [] for title in titles}
        for line in chosen:
            parts[titles[sum(map(ord, line)) % len(titles)]].append(line)
        written = [title for title in titles if self._random.random() > OMITS]
        return "\n\n".join(f"## {title}\n" + "\n".join(f"- {line}" for line in parts[title]) for title in written)


class Compress(Protocol):
    """What compresses, whatever it is written in."""

    def __call__(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]: ...


class NodeCompressor:
    """A compressor in JavaScript, in a process of its own; its model is asked on this side."""

    def __init__(self, source: Path, model: TemplateModel) -> None:
        self._model = model
        process = subprocess.Popen(
            ["node", str(source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("node was started without pipes")
        self._process, self._to, self._from = process, process.stdin, process.stdout

    def _exchange(self, value: dict[str, Any]) -> dict[str, Any]:
        self._to.write(json.dumps(value) + "\n")
        self._to.flush()
        answer: dict[str, Any] = json.loads(self._from.readline())
        return answer

    def compress(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answer = self._exchange({"messages": messages})
        while "ask" in answer:
            answer = self._exchange({"reply": self._model(answer["ask"])})
        if "error" in answer:
            raise ValueError(answer["error"])
        compressed: list[dict[str, Any]] = answer["messages"]
        return compressed

    def close(self) -> None:
        self._to.close()
        self._process.wait(timeout=30)
        self._from.close()


@dataclass(frozen=True)
class MutantSubject:
    """A mutated compressor as a subject; its source is a package that can be imported, or the folder's script."""

    folder: Path
    name: str
    compressor: str

    @contextmanager
    def _build(self, model: TemplateModel, seed: str, topic: str | None) -> Iterator[Compress]:
        if self.compressor == JAVASCRIPT:
            node = NodeCompressor(self.folder / "compaction.mjs", model)
            try:
                yield node.compress
            finally:
                node.close()
        elif self.compressor == HERMES:
            yield importlib.import_module(f"{self.folder.name}.hermes_like").HermesLike(model).compress
        else:
            compressor = importlib.import_module(f"{self.folder.name}.context_compressor")
            rules = importlib.import_module(f"{self.folder.name}.rule_based")
            ours = compressor.ContextCompressor(summariser=Forgetful(rules.RuleBasedSummariser(), seed))
            yield partial(ours.compress, focus_topic=topic)

    async def compress(self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None) -> Compression:
        """Compress a fixture, step by step where it has several cuts."""
        model = TemplateModel(f"{self.name}/{fixture.name}/{seed}")
        state: list[dict[str, Any]] = []
        steps, start = [], 0
        with self._build(model, f"{self.name}/{fixture.name}/{seed}", focus_topic) as compress:
            for model.step, cut in enumerate(fixture.cuts):
                state = [*state, *fixture.messages[start:cut]]
                before = count_messages(state)
                try:
                    state = compress(state)
                except ValueError as exc:
                    return Compression(Outcome.TARGET_ERROR, repr(exc))
                steps.append(Step(state, before, count_messages(state), 0.0))
                start = cut
        return Compression(Outcome.OK, steps=tuple(steps), requests=tuple(model.requests))
