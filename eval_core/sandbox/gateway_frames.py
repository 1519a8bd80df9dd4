"""Frames between the evaluator and the gateway's process: length-prefixed JSON over a private socket pair.

Both sides check what they read, though both are ours: the gateway's process is the one that reads a stranger's bytes.
Standard library only.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

from eval_core.base.strict_json import BadJson, parse_json

_SIZE = struct.Struct(">I")
FRAME_OVERHEAD = 64 * 1024
"""Room in a frame beside the text that it carries."""
# Deeper than a request may be: the request is a part of its frame.
_DEPTH = 72


class BadGatewayFrame(Exception):
    """The other side sent something that is no frame."""


def frame_of(value: dict[str, Any]) -> bytes:
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return _SIZE.pack(len(body)) + body


async def read_gateway_frame(reader: asyncio.StreamReader, most: int) -> dict[str, Any] | None:
    """Wait for the next frame; None when the other side has ended."""
    try:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
        if size > most:
            raise BadGatewayFrame(f"a frame of {size:,} bytes was announced, {most:,} are the most")
        value = parse_json(await reader.readexactly(size), depth=_DEPTH)
    except (asyncio.IncompleteReadError, OSError):
        return None
    except BadJson as exc:
        raise BadGatewayFrame(f"a frame is not JSON: {exc}") from None
    if not isinstance(value, dict):
        raise BadGatewayFrame("a frame is not an object")
    return value
