"""Sessions to scrub and to audit: small ones, and whole ones with what must go from them."""

from __future__ import annotations

import gzip
import json
import random
import string
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eval_core.domain.fixture import Fixture

ALNUM = string.ascii_letters + string.digits


def draw(rng: random.Random, alphabet: str, length: int) -> str:
    """Draw characters; letters and digits are alphanumeric at both ends, as issuers' tokens are."""
    inner = "".join(rng.choice(alphabet) for _ in range(length))
    ends = [char for char in alphabet if char.isalnum()]
    return rng.choice(ends) + inner[1:-1] + rng.choice(ends) if length > 2 else inner


@dataclass(frozen=True)
class WholeSession:
    """A session written from beginning to end, with what must go from it and what must stay."""

    set: str
    name: str
    messages: list[dict[str, Any]]
    values: dict[str, list[str]]
    """Strings by sort: `secrets` and `personal` must go, `keep` (look-alikes) and `facts` must stay."""
    known: list[tuple[str, ...]]
    """The names that the session's owner would list."""


@cache
def whole_sessions() -> tuple[WholeSession, ...]:
    """Return the whole sessions; they are packed, so that no scanner takes what is planted in them for a leak."""
    packed = Path(__file__).resolve().with_name("whole_sessions.json.gz").read_bytes()
    return tuple(
        WholeSession(
            one["set"],
            one["name"],
            one["messages"],
            {sort: one["truth"][sort] for sort in ("secrets", "personal", "keep", "facts")},
            [tuple(group) for group in one["truth"]["list"]],
        )
        for one in json.loads(gzip.decompress(packed))
    )


def session(*outputs: str, first: str = "Please fix it.", **fields: Any) -> Fixture:
    """Return a session whose tool calls answer with these texts."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be good."}, {"role": "user", "content": first}]
    for number, output in enumerate(outputs):
        function = {"name": "terminal", "arguments": '{"command": "run"}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": output})
    messages.append({"role": "assistant", "content": "Done."})
    return Fixture(name="sample", messages=messages, **fields)
