"""Shipped adapters of agents in other languages: what they read from the agents' own files."""

from __future__ import annotations

import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

TARGETS = Path(__file__).parents[2] / "docs" / "targets"


def _adapter(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run an adapter without a session, as its process would start, and return what it defines."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return runpy.run_path(str(TARGETS / f"{name}_adapter.py"))


def test_what_codex_adds_in_the_user_s_role_is_no_user_s_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    items = [
        said("user", "<environment_context>\n<cwd>/work</cwd>\n</environment_context>"),
        said("user", "# AGENTS.md instructions for /work\n\nBe brief."),
        said("user", "Why is there an <environment_context> in the log?"),
        said("assistant", "<environment_context> is added by the agent."),
    ]
    kept = _adapter("codex", monkeypatch)["to_messages"](items)
    assert [message["content"] for message in kept] == [
        "Why is there an <environment_context> in the log?",
        "<environment_context> is added by the agent.",
    ]


@pytest.mark.parametrize(
    ("name", "kind", "method"), [("codex", "Codex", "compacted"), ("claude_code", "ClaudeCode", "entries")]
)
def test_a_line_separator_in_a_text_does_not_end_a_line(
    name: str, kind: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"type": "compacted", "payload": {"message": "one\u2028two"}}
    file = tmp_path / "session.jsonl"
    file.write_text(json.dumps(entry, ensure_ascii=False) + "\n", encoding="utf-8")
    found = _adapter(name, monkeypatch)
    agent = object.__new__(found[kind])
    agent.rollout = agent.transcript = file
    assert getattr(agent, method)() in (entry["payload"], [entry])


def _claude_code(role: str, text: str, uuid: str, **more: Any) -> dict[str, Any]:
    return {"type": role, "uuid": uuid, "message": {"role": role, "content": text}, **more}


@pytest.mark.parametrize(
    ("preserved", "sent"),
    [
        # As 2.1.144 writes it, which preserves nothing, and as 2.1.158 does.
        ({}, ["The summary."]),
        ({"headUuid": "2", "tailUuid": "3", "anchorUuid": "5"}, ["The summary.", "Look.", "The last answer."]),
    ],
)
def test_claude_code_sends_what_it_preserved_on_behind_the_summary(
    preserved: dict[str, str], sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"trigger": "manual", "preTokens": 0} | ({"preservedSegment": preserved} if preserved else {})
    entries = [
        _claude_code("user", "The task.", "1"),
        _claude_code("assistant", "Look.", "2"),
        _claude_code("assistant", "The last answer.", "3"),
        {"type": "queue-operation", "operation": "enqueue", "content": "/compact"},
        {"type": "system", "subtype": "compact_boundary", "uuid": "4", "compactMetadata": about},
        _claude_code("user", "The summary.", "5"),
        _claude_code("user", "<local-command-caveat>Caveat: not for you.</local-command-caveat>", "6", isMeta=True),
        _claude_code("user", "<command-name>/compact</command-name>", "7"),
        _claude_code("user", "<local-command-stdout>Compacted </local-command-stdout>", "8"),
        {"type": "last-prompt", "leafUuid": "8"},
    ]
    found = _adapter("claude_code", monkeypatch)["sent_on"](entries, 4)
    assert [entry["message"]["content"] for entry in found] == sent
