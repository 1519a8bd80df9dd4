"""Proxies that the environment names: used for other machines, never for this one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from eval_core.models.openai_compatible import DirectConnections
from eval_core.models.settings import Endpoint
from eval_core.models.transport import Attempt
from tests.model_provider import LoopbackProvider

from .provider import call


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that notes what it is asked for and refuses it."""
    asked: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.decode().split(" ")[1])
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def send(url: str) -> Attempt:
    connections = DirectConnections()
    try:
        return await connections.send(call(), Endpoint("loop", url, url, direct=True), 5.0)
    finally:
        await connections.aclose()


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_another_machine_is_reached_through_the_proxy(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with proxy() as (address, asked):
            monkeypatch.setenv("http_proxy", f"{scheme}{address}")
            monkeypatch.setenv("no_proxy", "inside.invalid,fd00::1")
            sent = await send("http://models.invalid/v1")
            assert asked == ["http://models.invalid/v1/chat/completions"]
            assert sent.fault is not None
            assert sent.fault.message == "HTTP 403: no"
            for excepted in ("http://inside.invalid/v1", "http://[fd00::1]:9/v1"):
                assert (await send(excepted)).fault is not None
            assert len(asked) == 1

    asyncio.run(scene())


def test_this_machine_is_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with proxy() as (address, asked), LoopbackProvider() as provider:
            monkeypatch.setenv("http_proxy", address)
            for host in ("127.0.0.1", "localhost"):
                assert (await send(provider.base_url.replace("127.0.0.1", host))).fault is None
            assert asked == []

    asyncio.run(scene())


@pytest.mark.parametrize("named", ["socks5://127.0.0.1:9", "http://127.0.0.1:port"])
def test_a_proxy_that_cannot_be_used_is_named_and_costs_nothing(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", named)
    fault = asyncio.run(send("http://models.invalid/v1")).fault
    assert fault is not None
    assert (fault.kind, fault.charge) == ("connection", "no")
    assert "proxy" in fault.message
