"""`task new`: what a session wrote, done again over a commit."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
from pathlib import Path

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.case import ledger_of
from eval_core.domain.fixture import Fixture, load_fixture
from eval_core.domain.session_ledger import SessionLedger
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.tasks.author import new_task, replay, summary
from eval_core.tasks.task import load_task
from eval_core.tasks.task_workspace import build


def session(*calls: tuple[str, dict[str, object], dict[str, object] | str]) -> Fixture:
    messages: list[dict[str, object]] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    for number, (tool, given, result) in enumerate(calls):
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
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


def test_tools_of_other_agents_are_known_by_what_they_are_given() -> None:
    wrote = ("Write", {"file_path": "/home/u/p/a.txt", "content": "one one\n"}, {})
    edited = ("Edit", {"file_path": "/home/u/p/a.txt", "old_string": "one", "new_string": "2", "replace_all": True}, {})
    read = ("Read", {"file_path": "/home/u/p/a.txt"}, "     1\u21922 2\n")
    found = replay(session(wrote, edited, read), "/home/u/p", {})
    assert found.files == {"a.txt": "2 2\n"}
    assert (found.written, found.same, found.differ) == ({"a.txt"}, {"a.txt"}, {})


def git(repo: Path, *words: str) -> str:
    own = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose own branches are called what ours could be."""
    found = tmp_path / "repo"
    small.write(found / "b.txt", "b\n")
    (found / "link").symlink_to("b.txt")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Start"], ["branch", "task-start"]):
        git(found, *words)
    return found


@pytest.fixture
def fixture() -> Fixture:
    return load_fixture(small.REPOSITORY / "fixtures" / "constraints-and-reversals.json")


@pytest.fixture
def ledger(fixture: Fixture) -> SessionLedger:
    found = ledger_of(small.REPOSITORY / "probes", fixture)
    assert found is not None
    return found


def test_a_repository_has_to_fit_and_is_not_touched(
    tmp_path: Path, repo: Path, fixture: Fixture, ledger: SessionLedger, sandbox: SandboxChoice
) -> None:
    large = random.Random(1).randbytes(400_000)
    (repo / "large").write_bytes(large)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "Large")
    git(repo, "checkout", "-qb", "later")
    git(repo, "rm", "-q", "large")
    git(repo, "commit", "-qm", "Small again")
    refs = git(repo, "for-each-ref")
    folder = "/home/user/relay-queue"
    with pytest.raises(UserError, match="and a workspace has at most 300,000"):
        new_task(tmp_path / "tasks", "first", fixture, ledger, folder, repo, "main")
    assert not (tmp_path / "tasks").exists()
    path, found = new_task(tmp_path / "tasks", "first", fixture, ledger, folder, repo, "later")
    assert git(repo, "for-each-ref") == refs
    assert "without the history before the commit" in summary(found)[-1]

    async def look() -> str:
        async with (await build(load_task(path, fixture, ledger), sandbox)).open() as workspace:
            return str((await workspace.run("git log --format=%s; cat link"))["output"])

    assert asyncio.run(look()) == "Small again\nb"


def test_a_repository_becomes_a_workspace_that_builds(
    tmp_path: Path, repo: Path, fixture: Fixture, ledger: SessionLedger, sandbox: SandboxChoice
) -> None:
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


def test_a_session_without_a_ledger_has_no_facts_for_a_task(tmp_path: Path, cli: small.Cli) -> None:
    options = ["--fixtures-dir", str(small.REPOSITORY / "fixtures"), "--probes-dir", str(tmp_path)]
    ran = cli("task", "new", "constraints-and-reversals", "--folder", "/home/user/relay-queue", *options)
    assert ran.code == 2
    assert "has no ledger, and the facts that a task needs are lines of it" in ran.err
