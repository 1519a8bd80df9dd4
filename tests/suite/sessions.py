"""Small sessions to scrub and to audit."""

from __future__ import annotations

from typing import Any

from eval_core.domain.fixture import Fixture


def session(*outputs: str, first: str = "Please fix it.", **fields: Any) -> Fixture:
    """Return a session whose tool calls answer with these texts."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be good."}, {"role": "user", "content": first}]
    for number, output in enumerate(outputs):
        function = {"name": "terminal", "arguments": '{"command": "run"}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": output})
    messages.append({"role": "assistant", "content": "Done."})
    return Fixture(name="sample", messages=messages, **fields)
