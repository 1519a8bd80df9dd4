"""`task new`: a workspace from a repository at a commit, with the session's own writes and patches over it."""

from __future__ import annotations

import posixpath
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import write_atomic
from eval_core.base.messages import call_arguments, call_name, content_text, tool_calls
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import SessionLedger
from eval_core.tasks.task import WORKSPACE

_LOST = {"rule": "rule", "item": "repeat"}
_MOST_FACTS = 6


@dataclass
class Replayed:
    """The files of a session's folder as its own calls left them."""

    files: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    """Those that the session wrote or patched."""
    same: set[str] = field(default_factory=set)
    """Those that it read, and that were just so."""
    differ: dict[str, int] = field(default_factory=dict)
    """Those that it read and that were not so, with the message: changed by a command, which is not run again."""


def _json(text: str) -> dict[str, Any]:
    try:
        found = parse_json(text)
    except BadJson:
        return {}
    return found if isinstance(found, dict) else {}


def _results(session: Fixture) -> Iterator[tuple[int, str, dict[str, Any], dict[str, Any]]]:
    """Yield each tool call in order: message of its result, tool, arguments, result."""
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for index, message in enumerate(session.messages):
        for call in tool_calls(message):
            asked[str(call.get("id"))] = call_name(call), _json(call_arguments(call))
        name = str(message.get("tool_call_id"))
        if message.get("role") == "tool" and name in asked:
            yield index, *asked[name], _json(content_text(message))


def _plain(content: str) -> str:
    """Return a file as it is behind its line numbers."""
    lines = (line.partition("|") for line in content.split("\n"))
    return "".join(f"{rest}\n" for _, bar, rest in lines if bar)


def replay(session: Fixture, folder: str, files: dict[str, str], end: int | None = None) -> Replayed:
    """Do again what the session wrote and patched, over these files, and compare with what it read."""
    found = Replayed(dict(files))
    for index, tool, given, result in _results(session):
        if (end is not None and index >= end) or result.get("error"):
            continue
        path = posixpath.normpath(posixpath.join(folder, str(given.get("path", ""))))
        name = posixpath.relpath(path, folder)
        if name.startswith("..") or not given.get("path"):
            continue
        if tool == "write_file" and isinstance(given.get("content"), str):
            found.files[name] = given["content"]
            found.written.add(name)
        elif tool == "patch" and str(given.get("old_string") or "\0") in found.files.get(name, ""):
            found.files[name] = found.files[name].replace(given["old_string"], str(given.get("new_string")), 1)
            found.written.add(name)
        elif tool == "read_file" and isinstance(result.get("content"), str) and not result.get("truncated"):
            _compare(found, name, _plain(result["content"]), index)
    return found


def _compare(found: Replayed, name: str, text: str, index: int) -> None:
    known = found.files.get(name)
    if known is not None and known.rstrip("\n") == text.rstrip("\n"):
        found.same.add(name)
        return
    if known is not None:
        found.differ[name] = index
    found.files[name] = text  # what the session saw is what it went on from


def _git(repo: Path, *words: str) -> bytes:
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"{repo}: git {words[0]} failed: {said[-1] if said else 'no reason given'}")
    return done.stdout


def committed(repo: Path, commit: str) -> dict[str, str]:
    """Return the text files of a commit."""
    names = [name for name in _git(repo, "ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0") if name]
    return {name: _git(repo, "show", f"{commit}:{name}").decode("utf-8", "replace") for name in names}


def new_task(
    root: Path, name: str, session: Fixture, ledger: SessionLedger | None, folder: str, repo: Path | None, commit: str
) -> tuple[Path, Replayed]:
    """Write a workspace, unless there is one, and a draft of a task beside it."""
    path, workspace = root / session.name / name, root / session.name / WORKSPACE
    if path.exists():
        raise UserError(f"{path}: exists already; give the task another --name")
    found = replay(session, folder, {} if repo is None else committed(repo, commit))
    if not workspace.exists():
        _write_workspace(workspace, found, repo, commit)
    lines = [line for line in ledger.lines if line.live(len(session.messages))] if ledger else []
    facts = "".join(f"  - {{id: {line.id}, lost: {_LOST.get(line.kind, 'lookup')}}}\n" for line in lines[:_MOST_FACTS])
    guards = "".join(f"  - {{knows: {line.id}, then: [], else: []}}\n" for line in lines[:_MOST_FACTS])
    write_atomic(
        path / "task.yml",
        f"at: end\nfolder: {folder}\ninstruction: What the user says next.\nneeds: [git]\n"
        f"# Keep those that the job needs and the workspace does not hold.\nfacts:\n{facts}"
        "checks:\n  - {name: the job is done, kind: done, run: test -e done.txt}\n",
    )
    write_atomic(path / "solution.yml", f"steps:\n{guards}  - {{call: {{tool: terminal, command: touch done.txt}}}}\n")
    (path / "checks").mkdir()
    write_atomic(path / "checks" / "README", "Test files for the result; the agent never sees them.\n")
    return path, found


def _write_workspace(workspace: Path, found: Replayed, repo: Path | None, commit: str) -> None:
    names = sorted(found.files if repo is None else found.written)
    for name in names:
        write_atomic(workspace / "files" / name, found.files[name])
    if repo is None:
        return
    bundle = workspace / "repo.bundle"
    workspace.mkdir(parents=True, exist_ok=True)
    branch = "task-start"
    _git(repo, "branch", "-f", branch, commit)
    try:
        _git(repo, "bundle", "create", str(bundle.resolve()), branch)
    finally:
        _git(repo, "branch", "-D", branch)
    write_atomic(
        workspace / "build.sh",
        f'git init -q -b main . && git fetch -q "$SOURCE/repo.bundle" {branch}\n'
        "git reset -q FETCH_HEAD  # files that the session changed stay as they are\ngit ls-files -d -z "
        "| xargs -0r git checkout -q --\n",
    )


def summary(found: Replayed) -> list[str]:
    """Say how well the workspace is that of the session."""
    written, same = len(found.written), len(found.same)
    return [
        f"{len(found.files)} files: {written} that the session wrote or patched, {same} that are as it read them",
        *(f"{name}: not as message {at} read it; a command changed it, and it was taken from there"
          for name, at in sorted(found.differ.items())),
    ]  # fmt: skip
