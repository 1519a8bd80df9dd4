"""Claude Code logs: one content block a row, tool results inside user rows."""

from __future__ import annotations

from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.suite.importers.imported import ImportedSession, argument_text, flatten_parts

_HIDDEN_BLOCKS = ("thinking", "redacted_thinking")


_LEFT_OUT = {"isMeta": "meta row", "isSidechain": "sidechain row", "isApiErrorMessage": "API error row"}
"""Rows that were not said in the session, by their mark."""


class ClaudeCode:
    """Gather rows into messages; rows of one model answer share `message.id`."""

    def __init__(self, session: ImportedSession) -> None:
        self._session = session
        self._answers: dict[str, Message] = {}  # message.id -> the message its rows are merged into
        self._calls: set[str] = set()
        self._rows: set[str] = set()

    def add(self, row: dict[str, Any], where: str) -> None:
        session, kind = self._session, row.get("type")
        if kind == "system" and row.get("subtype") == "compact_boundary":
            session.cut()
            return
        if reason := self._left_out(row):
            session.dropped[reason] += 1
            return
        message = row["message"]
        content = message.get("content")
        if not isinstance(content, str | list):
            raise UserError(
                f"{where}: message.content is {type(content).__name__}; text or a list of blocks is expected"
            )
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not all(isinstance(block, dict) for block in blocks):
            raise UserError(f"{where}: message.content holds a block that is no object")
        if row.get("isCompactSummary") is True and session.take_out_summary():
            return
        if kind == "user":
            self._user(blocks)
        else:
            self._assistant(message, blocks, where)

    def _left_out(self, row: dict[str, Any]) -> str | None:
        """Return why a row is not part of what was said."""
        kind, identity = row.get("type"), row.get("uuid")
        if kind not in ("user", "assistant"):
            return f"{kind} row"
        for mark, reason in _LEFT_OUT.items():
            if row.get(mark) is True:
                return reason
        # A resumed session repeats rows that it has already written.
        if isinstance(identity, str):
            if identity in self._rows:
                return "repeated row"
            self._rows.add(identity)
        return None

    def _user(self, blocks: list[dict[str, Any]]) -> None:
        said = []
        for block in blocks:
            if block.get("type") == "tool_result":
                answer = {"role": "tool", "tool_call_id": str(block.get("tool_use_id"))}
                self._session.messages.append({**answer, "content": flatten_parts(block.get("content"))})
            else:
                said.append(block)
        if text := flatten_parts(said):
            self._session.messages.append({"role": "user", "content": text})

    def _assistant(self, message: dict[str, Any], blocks: list[dict[str, Any]], where: str) -> None:
        model = message.get("model")
        if isinstance(model, str) and model and not model.startswith("<"):
            self._session.model = model
        calls, said = [], []
        for block in blocks:
            if block.get("type") == "tool_use":
                if not isinstance(block.get("id"), str):
                    raise UserError(f"{where}: a tool_use block has no id")
                if block["id"] in self._calls:
                    continue
                self._calls.add(block["id"])
                function = {"name": str(block.get("name", "")), "arguments": argument_text(block.get("input", {}))}
                calls.append({"id": block["id"], "type": "function", "function": function})
            elif block.get("type") not in _HIDDEN_BLOCKS:
                said.append(block)
        text = flatten_parts(said)
        if not text and not calls:
            self._session.dropped["row with nothing but hidden reasoning"] += 1
            return
        known = self._answer(message.get("id"))
        known["content"] = "\n".join(part for part in (known["content"], text) if part)
        if calls:
            known.setdefault("tool_calls", []).extend(calls)

    def _answer(self, identity: Any) -> Message:
        """Return the message that an answer's rows are merged into; a row without an identity is one by itself."""
        if isinstance(identity, str) and identity in self._answers:
            return self._answers[identity]
        answer: Message = {"role": "assistant", "content": ""}
        self._session.messages.append(answer)
        if isinstance(identity, str):
            self._answers[identity] = answer
        return answer
