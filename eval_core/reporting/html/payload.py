"""The data that the page draws on demand: JSON, every text once, compressed into the page."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from eval_core.reporting.html.text import visible

_LONG = 40
"""Texts from this length on are stored once and referred to by their number."""


class _Texts:
    """Every long text once, in the order of its first use."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        if text not in self._places:
            self._places[text] = len(self.texts)
            self.texts.append(text)
        return self._places[text]


def _plain(value: object, texts: _Texts) -> Any:
    """Return a value as JSON has it: texts made visible, long ones by number as {"t": 3}."""
    if isinstance(value, str):
        shown = visible(value)
        return {"t": texts.place(shown)} if len(shown) >= _LONG else shown
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name), texts) for item in fields(value)}
    if isinstance(value, Mapping):
        return {visible(str(key)): _plain(inner, texts) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_plain(inner, texts) for inner in value]
    raise TypeError(f"{type(value).__name__} has no place in a page")


def pack(value: Mapping[str, object]) -> str:
    """Return the data as base64 of zlib-compressed JSON: no character of it means anything to HTML."""
    texts = _Texts()
    body = {"page": _plain(value, texts), "texts": texts.texts}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(packed: str) -> dict[str, Any]:
    """Read the data back, with every text in its place."""
    body = json.loads(zlib.decompress(base64.b64decode(packed)))
    texts = body["texts"]

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"t"}:
                return texts[value["t"]]
            return {name: whole(inner) for name, inner in value.items()}
        return [whole(inner) for inner in value] if isinstance(value, list) else value

    found: dict[str, Any] = whole(body["page"])
    return found
