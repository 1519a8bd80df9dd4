"""What the bot's tests have in common: a repository's files, and a client's waits that take no time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from bot.steps.publish import publish as publish_step
from bot.steps.render_result import render_result

REPO = "acme/agent"
WORKFLOW = "compression-eval.yml"
FILES = {"README.md": b"An agent.\n", "src/compressor.py": b"def compress(messages):\n    return messages\n"}


@dataclass
class Waits:
    """Remembers how long the client would have waited."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


publish = partial(publish_step, write=render_result)
"""The publish step with everything in one process; `test_loaded_modules.py` has it as the workflow runs it."""
