"""`task new`: what a session wrote, done again over a commit."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.case import ledger_of
from eval_core.domain.fixture import Fixture, load_fixture
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.tasks.author import new_task, replay, summary
from eval_core.tasks.task import load_task
from eval_core.tasks.task_workspace import build


def session(*calls: tuple[str, dict[str, object], dict[str, object]]) -> Fixture:
    messages: list[dict[str, object]] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    for number, (tool, given, result) in enumerate(calls):
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(result)})
    return Fixture(name="s", description="d", model="m", context_length=1000, messages=messages, notes="")


WROTE = ("write_file", {"path": "a.txt", "content": "one\n"}, {"bytes_written": 4})
PATCHED = ("patch", {"path": "a.txt", "old_string": "one", "new_string": "two"}, {"success": True})
READ = ("read_file", {"path": "/home/u/p/a.txt"}, {"content": "1|two", "total_lines": 1, "truncated": False})


def test_writes_and_patches_are_done_again_and_compared() -> None:
    found = replay(session(WROTE, PATCHED, READ), "/home/u/p", {"b.txt": "b\n"})
    assert found.files == {"a.txt": "two\n", "b.txt": "b\n"}
    assert (found.written, found.same, found.differ) == ({"a.txt"}, {"a.txt"}, {})


def test_what_a_command_changed_is_taken_from_where_it_was_read() -> None:
    found = replay(session(WROTE, READ), "/home/u/p", {})
    assert found.files == {"a.txt": "two\n"}
    assert found.differ == {"a.txt": 5}
    assert any("a.txt: not as message 5 read it" in line for line in summary(found))


def test_a_failed_write_and_files_elsewhere_are_left_out() -> None:
    failed = ("write_file", {"path": "a.txt", "content": "x"}, {"error": "denied"})
    outside = ("write_file", {"path": "../c.txt", "content": "x"}, {"bytes_written": 1})
    assert replay(session(failed, outside), "/home/u/p", {}).files == {}


def test_a_repository_becomes_a_workspace_that_builds(tmp_path: Path, sandbox: SandboxChoice) -> None:
    repo = tmp_path / "repo"
    small.write(repo / "b.txt", "b\n")
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Start"]):
        subprocess.run([*git, *words], check=True)
    fixture = load_fixture(small.REPOSITORY / "fixtures" / "constraints-and-reversals.json")
    ledger = ledger_of(small.REPOSITORY / "probes", fixture)
    path, _ = new_task(tmp_path / "tasks", "first", fixture, ledger, "/home/user/relay-queue", repo, "HEAD")
    task = load_task(path, fixture, ledger)
    built = asyncio.run(build(task, sandbox))

    async def look() -> str:
        async with built.open() as workspace:
            return str((await workspace.run("cat b.txt; git log --format=%s; git status --short | head -3"))["output"])

    told = asyncio.run(look())
    assert told.splitlines()[:2] == ["b", "Start"]
    assert "relay_queue/" in told, "what the session wrote is there, and not committed"
    with pytest.raises(UserError, match="exists already; give the task another --name"):
        new_task(tmp_path / "tasks", "first", fixture, ledger, "/home/user/relay-queue", None, "")
