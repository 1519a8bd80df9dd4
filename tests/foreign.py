"""Strategies for what strangers write: JSON that parsers choke on, and text that is almost JSON."""

from __future__ import annotations

import json

from hypothesis import strategies as st

KEYS = ["model", "messages", "role", "content", "max_tokens", "n", "stop", "stream", "key", "at", "usage", "accuracy"]


def _numbers():
    huge = st.sampled_from([10**400, -(10**400), 10**18, 2**63, 1e308])
    return st.integers() | st.floats() | huge


def json_values():
    """Return any value that `json.dumps` writes, NaN and integers of hundreds of digits included."""
    leaves = st.none() | st.booleans() | _numbers() | st.text(max_size=20) | st.sampled_from(["user", "tool", "stop"])
    keys = st.sampled_from(KEYS) | st.text(max_size=10)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=15,
    )


def damaged_json():
    """Return JSON text with a piece cut out, doubled or replaced."""

    @st.composite
    def damaged(draw):
        text = json.dumps(draw(json_values()))
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, len(text)))
        piece = draw(st.sampled_from(["", "[" * 2000, "9" * 400, "9" * 5000, "1e999", "NaN", "\x00", "\ud800", text]))
        return text[:start] + piece + text[end:]

    return damaged()
