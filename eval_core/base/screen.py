"""Text on a terminal: what others wrote is shown there, and steers nothing."""

from __future__ import annotations

import re
from typing import Any, TextIO

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that a terminal obeys, or that change how others are read."""


class Inert:
    """A stream of text that steers no terminal; a console, which has to, writes to the `stream` behind it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with a sign in the place of each character that would steer."""
        return self.stream.write(STEERING.sub("\ufffd", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
