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
