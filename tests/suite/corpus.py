"""Sessions with planted secrets, personal data and look-alikes, all drawn at run time."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eval_core.domain.fixture import Fixture

__all__ = ["ALNUM", "B64", "DIGITS", "HEX", "LOWER", "UPPER", "URLSAFE", "Kind", "Plant", "Planted", "draw", "sessions"]

DIGITS = string.digits
LOWER = string.ascii_lowercase + DIGITS
UPPER = string.ascii_uppercase + DIGITS
ALNUM = string.ascii_letters + DIGITS
URLSAFE = ALNUM + "_-"
B64 = ALNUM + "+/"
HEX = "0123456789abcdef"


def draw(rng: random.Random, alphabet: str, length: int) -> str:
    """Draw characters; letters and digits are alphanumeric at both ends, as issuers' tokens are."""
    inner = "".join(rng.choice(alphabet) for _ in range(length))
    ends = [char for char in alphabet if char.isalnum()]
    return rng.choice(ends) + inner[1:-1] + rng.choice(ends) if length > 2 else inner


@dataclass(frozen=True)
class Planted:
    """A text with something in it, the stretches that must go, and the names a user would list."""

    text: str
    values: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    command: str = ""
    """The command whose output the text is, if only the call tells what it says."""
    either: tuple[str, ...] = ()
    """What was drawn but may stay or go."""


@dataclass(frozen=True)
class Kind:
    """One kind of planted data."""

    name: str
    group: str  # secret, personal or negative
    make: Callable[[random.Random], Planted]
    held_out: bool = False


@dataclass(frozen=True)
class Plant:
    """Where one planted thing stands in a session."""

    kind: Kind
    planted: Planted
    carrier: str
    message: int


_FILLER = (
    "Ran 214 tests in 3.2 s, 2 failed: tests/test_queue.py::test_retry and tests/test_queue.py::test_drain",
    "diff --git a/src/relay/pool.py b/src/relay/pool.py\nindex 3f2a91c..b07d6e4 100644\n@@ -41,7 +41,9 @@",
    "On branch fix/double-delivery\nChanges not staged for commit:\n\tmodified:   src/relay/ledger.py",
    "PR #2147 is merged as 9c1e4f7a2b, release v2.14.3 is out; next is issue #2190",
    "WARNING: LeaseExpired after 30 s (worker_pool_v2, queue depth 118)",
)
CARRIERS = ("raw", "json", "nested", "arguments")


def _carry(text: str, carrier: str, rng: random.Random, *, alone: bool = False) -> str:
    body = text if alone else f"{rng.choice(_FILLER)}\n{text}\n{rng.choice(_FILLER)}"
    if carrier == "raw":
        return body
    if carrier == "nested":
        return json.dumps({"result": json.dumps({"stdout": body, "exit_code": 0}), "error": None})
    return json.dumps({"output": body, "exit_code": 0})


def sessions(kinds: Sequence[Kind], seed: int, rounds: int = 4, size: int = 24) -> list[tuple[Fixture, list[Plant]]]:
    """Return sessions in which every kind stands once for each round, in changing places."""
    rng = random.Random(seed)
    order = [
        (kind, CARRIERS[(index + turn) % len(CARRIERS)]) for turn in range(rounds) for index, kind in enumerate(kinds)
    ]
    rng.shuffle(order)
    built = []
    for start in range(0, len(order), size):
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are an agent with a terminal."},
            {"role": "user", "content": "Find out why jobs are delivered twice and fix it."},
        ]
        plants = []
        for number, (kind, carrier) in enumerate(order[start : start + size]):
            planted = kind.make(rng)
            if planted.command and carrier == "arguments":
                carrier = "json"
            call = f"call_{number}"
            text = _carry(planted.text, carrier, rng, alone=bool(planted.command))
            command = planted.command or "cat notes.txt"
            arguments = text if carrier == "arguments" else json.dumps({"command": command})
            output = rng.choice(_FILLER) if carrier == "arguments" else text
            function = {"name": "terminal", "arguments": arguments}
            messages.append(
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": call, "type": "function", "function": function}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": call, "content": output})
            plants.append(Plant(kind, planted, carrier, len(messages) - (2 if carrier == "arguments" else 1)))
        messages.append({"role": "user", "content": "continue"})
        built.append((Fixture(name=f"corpus-{seed}-{start}", messages=messages), plants))
    return built
