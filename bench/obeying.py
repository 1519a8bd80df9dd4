"""A model that does as its prompt says, as a function and as a provider on loopback.

    python -m bench.obeying [--port 8099]

It writes the sections that a prompt asks for, keeps to the room and to the number of sentences that it names, and
leaves paths out unless it is told to keep them word for word. Everything else it copies from what it is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence

from eval_core.base.messages import Message, full_text
from tests.model_provider import LoopbackProvider

__all__ = ["obey"]

_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_SENTENCES = re.compile(r"\bin (?:at most )?(one|two|three|four|five|\d) sentences?\b", re.IGNORECASE)
_PATHS = re.compile(
    r"\bpaths?\b[^.\n]{0,40}\b(?:word for word|exact|verbatim|full)"
    r"|\b(?:exact|specific|include|list)\b[^.\n]{0,40}\bpaths?\b",
    re.IGNORECASE,
)
_ROOM = re.compile(r"[Aa]t most (\d[\d,]*) characters")
_HEADING = re.compile(r"^#{1,3} +(.+?) *$", re.MULTILINE)
_PATH = re.compile(r"(?:[\w.-]*/)+[\w.-]+")
_TELLING = re.compile(
    r"https?://\S+|#\d{2,6}\b|\b[0-9a-f]{7,40}\b|(?:[\w.-]+/)+[\w.-]+|\b\w+_\w+\b|\d{2,}|\w+\.\w{2,4}\b"
)
_WHERE_ASKED = 12_000
"""Characters at either end of a request in which instructions stand."""
_USUAL_ROOM = 9_000


def _lines(text: str) -> list[str]:
    lines = dict.fromkeys(" ".join(line.split())[:240] for line in text.replace("\\n", "\n").splitlines())
    ranked = (line for line in lines if len(line) > 8)
    return sorted(ranked, key=lambda line: (-len(_TELLING.findall(line)) * 40 / (len(line) + 40), line))


def obey(messages: Sequence[Message]) -> str:
    """Answer a summariser's prompt by doing what it says."""
    text = "\n".join(map(full_text, messages))
    asked = text[:_WHERE_ASKED] + "\n" + text[-_WHERE_ASKED:]
    lines = _lines(text)
    if not _PATHS.search(asked):
        lines = [_PATH.sub("a file", line) for line in lines]
    if few := _SENTENCES.search(asked):
        number = _NUMBERS.get(few[1].lower()) or int(few[1])
        return " ".join(line.rstrip(".") + "." for line in lines[:number])
    limit = _ROOM.search(asked)
    room = int(limit[1].replace(",", "")) if limit else _USUAL_ROOM
    titles = list(dict.fromkeys(_HEADING.findall(text[:_WHERE_ASKED])))[:12] or ["Summary"]
    parts: dict[str, list[str]] = {title: [] for title in titles}
    for at, line in enumerate(lines):
        room -= len(line) + 3
        if room < 0:
            break
        parts[titles[at % len(titles)]].append(f"- {line}")
    return "\n\n".join(f"## {title}\n" + "\n".join(lines) for title, lines in parts.items())


async def _serve(port: int) -> None:
    server = LoopbackProvider(reply=obey)
    print(await server.start(port), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
