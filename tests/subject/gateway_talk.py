"""A gateway to talk to, and what its model answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from eval_core.domain.call import Completion, Draw, Failed, ModelCall, ReplyCall, Usage
from eval_core.sandbox.child.bridge import open_bridge
from eval_core.sandbox.gateway import Gateway, GatewayLimits

FINE = Completion("fine", Usage(70, 0, 30, 0.5), "provider/real", 0.1)


CALLS = Completion(
    "", Usage(7, 0, 3, 0.5), "provider/real", 0.1, calls=(ReplyCall("c-1", "read_file", '{"path": "a.py"}'),)
)


SERVER = Failed("server", True, "secret words of the provider")


PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}


TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Reads.", "parameters": PARAMETERS}}]


Talk = Callable[[str, str], Awaitable[Any]]


def serve(talk: Talk, answer: Completion | Failed = FINE, limits: GatewayLimits | None = None):
    """Run a client against a gateway; return what it got, the calls that reached the model, and the records."""
    calls: list[ModelCall] = []

    async def complete(call: ModelCall) -> Completion | Failed:
        calls.append(call)
        return answer

    async def main(folder: Path) -> Any:
        gateway = Gateway(model="served", complete=complete, draw=Draw(4), limits=limits)
        async with gateway.serve(folder) as socket:
            root = f"http://127.0.0.1:{open_bridge(str(socket))}"
            return await talk(root, gateway.token), calls, gateway.log.records

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(main(Path(folder)))
