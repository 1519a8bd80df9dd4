"""Invented and stale: what a compressed state says that the session does not, or no longer does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from eval_core.domain.probe import Fact, Probe
from eval_core.domain.record import InventedRecord, StaleRecord
from eval_core.facts.census import extract
from eval_core.facts.fact_text import Haystack, infer_kind, normalise
from eval_core.facts.haystack import holds, value_in

STRONG_KINDS = ("url", "hash", "pr", "cron", "path")
"""Kinds that an honest model copies and does not coin; identifiers, branches and counts it does."""
_PIECE = 6
_JOINT = 8  # characters between a folder and a name that are joined in code
_MOST = 40


def _known_path(value: str, session: Haystack) -> bool:
    """Tell whether a path is put together from what the session says: its end as a whole, and every part."""
    parts = [part for part in normalise(value).split("/") if part not in ("", ".", "~")]
    if not all(part in session.text for part in parts):
        return False
    return "/".join(parts[-2:]) in session.text or (len(parts) > 1 and _joined(parts[-2], parts[-1], session.text))


ABSOLUTE = "absolute path"
# In an address a slash follows a slash or a host; in `src/a.py` a word.
_ABSOLUTE = re.compile(r"(?<![\w.~/:\-\]})>])/(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,7}\b")


def _known_absolute(plain: str, session: Haystack) -> bool:
    """Tell whether the session says the whole path, or names its folder and, from there, the file."""
    if _stands(plain, session.text):
        return True
    cuts = [at for at, char in enumerate(plain) if char == "/" and at]
    return any(_stands(plain[:at], session.text) and _stands(plain[at + 1 :], session.text) for at in cuts)


def _stands(part: str, text: str) -> bool:
    """Tell whether a part of a path is in a text, not cut off from a longer name."""
    return re.search(rf"(?<![\w.-]){re.escape(part)}(?![\w-]|\.\w)", text) is not None


def _joined(folder: str, name: str, text: str) -> bool:
    """Tell whether the two are put together in code: Path(folder) / name."""
    at = text.find(name)
    while at >= 0:
        if folder in text[max(0, at - len(folder) - _JOINT) : at]:
            return True
        at = text.find(name, at + 1)
    return False


def _known_url(value: str, session: Haystack) -> bool:
    """Tell whether an address is one of the session's with a fragment, or only its host and port put together."""
    address, fragment, _ = value.partition("#")
    if fragment and value_in(address, "url", session):
        return True
    host, colon, port = address.rpartition("://")[2].rstrip("/").partition(":")
    if "/" in host or "/" in port:
        return False
    return value_in(host, "host", session) and (not colon or value_in(port, "number", session))


def _known(kind: str, value: str, session: Haystack) -> bool:
    plain = normalise(value)
    if len(plain) >= _PIECE and plain in session.text:
        return True
    if kind in ("url", "hash", "pr", "cron", "path") and value_in(value, kind, session):  # type: ignore[arg-type]
        return True
    return (kind == "path" and _known_path(value, session)) or (kind == "url" and _known_url(value, session))


def _stated(text: str) -> Iterator[tuple[str, str]]:
    """Yield the values of strong kinds, and the paths from the root: where a project lies is a claim of its own."""
    yield from ((kind, value) for kind, value in extract(text, "assistant") if kind in STRONG_KINDS)
    yield from ((ABSOLUTE, match.group()) for match in _ABSOLUTE.finditer(text))


def read_invented(texts: Sequence[str], session: Haystack) -> list[InventedRecord]:
    """Return the values of strong kinds in the compressor's own text that are nowhere in the session."""
    found: dict[tuple[str, str], InventedRecord] = {}
    seen: set[tuple[str, str]] = set()
    for kind, value in chain.from_iterable(map(_stated, texts)):
        key = (kind, value)
        if key in seen or (kind == "path" and "." not in value.rsplit("/", 1)[-1]):
            continue
        seen.add(key)
        if not (_known_absolute(normalise(value), session) if kind == ABSOLUTE else _known(kind, value, session)):
            found.setdefault(
                (kind, normalise(value)), InventedRecord(kind="path" if kind == ABSOLUTE else kind, value=value[:160])
            )
            if len(found) == _MOST:
                break
    return list(found.values())


def _kind(fact: Fact) -> str:
    return fact.kind or infer_kind(fact.values[0])


def read_stale(probes: Sequence[Probe], state: Haystack) -> list[StaleRecord]:
    """Return the superseded values that the state holds without any value that replaced them."""
    found: dict[str, StaleRecord] = {}
    for probe in probes:
        for old in probe.superseded:
            successors = [fact for fact in probe.required if _kind(fact) == _kind(old)] or probe.required
            if holds(old, state) and not any(holds(fact, state) for fact in successors):
                found.setdefault(old.values[0], StaleRecord(probe=probe.id, value=old.values[0]))
    return list(found.values())
