"""The run-time rule as a library: the page's own lines, and the gate that refuses a summary."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import small

from eval_core.base.messages import Message, render
from eval_core.compressors.context_compressor import SUMMARY_MARK, ContextCompressor
from eval_core.compressors.gate import ProbeGate
from eval_core.compressors.summariser import ModelSummariser

PAGE = Path(__file__).parents[2] / "docs" / "use-in-your-agent.md"


def _session() -> list[Message]:
    messages: list[Message] = [small.SYSTEM, small.user("Fix MIG-77 in app/orders.py for v2.4.1.")]
    for number in range(6):
        messages += [
            small.calls((f"c{number}", "write_file", {"path": f"app/part_{number}.py", "content": "x = 1"})),
            small.result(f"c{number}", "written"),
        ]
    messages += [
        small.calls(("t", "terminal", {"command": "pytest"})),
        small.result("t", "ChecksumMismatch in shard 7", exit_code=1),
        *[small.say("working on it " * 30)] * 8,
    ]
    return messages


NAMED = "MIG-77 app/orders.py v2.4.1 ChecksumMismatch " + " ".join(f"app/part_{n}.py" for n in range(6))


def test_the_lines_of_the_page_work_as_they_stand() -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    messages = [*_session(), small.say("long " * 200_000)]
    scope: dict[str, Any] = {"messages": messages, "ask_model": lambda asked: f"## Current State\n- {NAMED}"}
    exec(code, scope)
    assert len(scope["messages"]) < len(messages)
    assert any(str(message["content"]).startswith(SUMMARY_MARK) for message in scope["messages"])


def test_a_summary_that_fails_its_probes_is_asked_for_again_with_what_was_missing() -> None:
    asked: list[list[Message]] = []

    def complete(messages: list[Message]) -> str:
        asked.append(messages)
        return "## Current State\n- all is well" if len(asked) == 1 else f"## Current State\n- {NAMED}"

    compressor = ContextCompressor(summariser=ModelSummariser(complete), gate=ProbeGate())
    state = compressor.compress(_session())
    assert len(asked) == 2
    assert "must name each of these" in render(asked[1])
    assert "app/part_3.py" in str(asked[1][1]["content"]).rpartition("must name")[2]
    assert compressor.rejected is None
    assert "MIG-77" in render(state)


def test_a_summary_that_fails_twice_is_refused_and_the_session_stays() -> None:
    compressor = ContextCompressor(summariser=ModelSummariser(lambda messages: "Nothing to see."), gate=ProbeGate())
    session = _session()
    assert compressor.compress(session) == session
    assert compressor.rejected is not None
    assert {"MIG-77", "app/part_0.py", "ChecksumMismatch"} <= set(compressor.rejected.missing)
    assert compressor.rejected.asked == len(compressor.rejected.failed) == 10


def test_a_refused_summary_leaves_no_trace_in_the_next_one() -> None:
    replies = iter(["## Blockers\n- wrong", "## Blockers\n- wrong", f"## Current State\n- {NAMED}"])
    compressor = ContextCompressor(summariser=ModelSummariser(lambda messages: next(replies)), gate=ProbeGate())
    compressor.compress(_session())
    text = render(compressor.compress(_session()))
    assert "- wrong" not in text
    assert "Compression count: 1" in text
