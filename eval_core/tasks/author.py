"""`task new`: a workspace from a repository at a commit, with the session's own writes and patches over it."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import write_atomic
from eval_core.base.messages import call_arguments, content_text, render, tool_calls
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import SessionLedger
from eval_core.tasks.task import MOST_BYTES, WORKSPACE
from eval_core.tasks.task_workspace import COMMITTED

_LOST = {"rule": "rule", "item": "repeat"}
_BRANCH = "task-start"
_MOST_FACTS = 6
_NUMBERED = re.compile(r"\s*\d+[|\t\u2192](.*)")


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
    left_out: str = ""
    """What of the repository the workspace does not hold."""


def _json(text: str) -> dict[str, Any]:
    try:
        found = parse_json(text)
    except BadJson:
        return {}
    return found if isinstance(found, dict) else {}


def _results(session: Fixture) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield each tool call in order: message of its result, arguments, result."""
    asked: dict[str, dict[str, Any]] = {}
    for index, message in enumerate(session.messages):
        for call in tool_calls(message):
            asked[str(call.get("id"))] = _json(call_arguments(call))
        name = str(message.get("tool_call_id"))
        if message.get("role") == "tool" and name in asked:
            yield index, asked[name], content_text(message)


def _plain(content: str) -> str:
    """Return a file as it is behind its line numbers; nothing where it has none."""
    lines = [_NUMBERED.fullmatch(line) for line in content.split("\n")]
    return "".join(f"{line[1]}\n" for line in lines if line)


def replay(session: Fixture, folder: str, files: dict[str, str]) -> Replayed:
    """Do again what the session wrote and patched, over these files, and compare with what it read.

    A call is known by what it is given: agents name their tools differently.
    """
    found = Replayed(dict(files))
    for index, given, result in _results(session):
        asked = given.get("path") or given.get("file_path")
        shown = _json(result)
        if shown.get("error") or not isinstance(asked, str):
            continue
        name = posixpath.relpath(posixpath.normpath(posixpath.join(folder, asked)), folder)
        text, old, new = (given.get(key) for key in ("content", "old_string", "new_string"))
        if name.startswith(".."):
            continue
        if isinstance(text, str):
            found.files[name] = text
            found.written.add(name)
        elif isinstance(old, str) and isinstance(new, str):
            if old and old in found.files.get(name, ""):
                found.files[name] = found.files[name].replace(old, new, -1 if given.get("replace_all") else 1)
                found.written.add(name)
        elif not shown.get("truncated") and not given.get("offset") and not given.get("limit"):
            text = _plain(str(shown.get("content", result)))
            if text:
                _compare(found, name, text, index)
    return found


def _compare(found: Replayed, name: str, text: str, index: int) -> None:
    known = found.files.get(name)
    if known is not None and known.rstrip("\n") == text.rstrip("\n"):
        found.same.add(name)
        return
    if known is not None:
        found.differ[name] = index
    found.files[name] = text  # what the session saw is what it went on from


def _git(repo: Path, *words: str, **env: str) -> str:
    done = subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=False, env={**os.environ, **env})
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"{repo}: git {words[0]} failed: {said[-1] if said else 'no reason given'}")
    return done.stdout.decode("utf-8", "replace")


def _committed(repo: Path, commit: str, session: Fixture) -> dict[str, str]:
    """Return the files of a commit that the session may speak of."""
    said = render(session.messages)
    listed = (line.partition("\t") for line in _git(repo, "ls-tree", "-r", "-z", commit).split("\0"))
    names = [name for kind, _, name in listed if kind.startswith("100") and posixpath.basename(name) in said]
    return {name: _git(repo, "show", f"{commit}:{name}") for name in names}


def _bundle(repo: Path, commit: str, target: Path) -> str:
    """Bundle a commit with its history where there is room for it; return what was left out, in words.

    Refs are written beside the repository, which is not touched.
    """
    with tempfile.TemporaryDirectory() as name:
        beside = Path(name)
        _git(beside, "init", "-q", "--bare")
        objects = repo.absolute() / _git(repo, "rev-parse", "--git-path", "objects").strip()
        write_atomic(beside / "objects" / "info" / "alternates", f"{objects}\n")
        shallow = _git(repo, "rev-parse", "--is-shallow-repository").strip() == "true"
        sha = _git(repo, "rev-parse", f"{commit}^{{commit}}").strip()
        for lone in (False, True):
            if lone:
                subject = _git(repo, "show", "-s", "--format=%s", sha).strip()
                sha = _git(beside, "commit-tree", f"{sha}^{{tree}}", "-m", subject, **COMMITTED).strip()
            elif shallow:
                continue
            _git(beside, "update-ref", f"refs/heads/{_BRANCH}", sha)
            _git(beside, "bundle", "create", str(beside / "bundle"), _BRANCH)
            if (size := (beside / "bundle").stat().st_size) < MOST_BYTES:
                write_atomic(target, (beside / "bundle").read_bytes())
                return "without the history before the commit, for which there is no room" if lone else ""
    raise UserError(
        f"{repo}: the files of {commit} take {size:,} bytes, and a workspace has at most {MOST_BYTES:,}; leave --repo "
        "out to take the files that the transcript shows, or give a commit without large files"
    )


def new_task(
    root: Path, name: str, session: Fixture, ledger: SessionLedger, folder: str, repo: Path | None, commit: str
) -> tuple[Path, Replayed]:
    """Write a workspace, unless there is one, and a draft of a task beside it."""
    path, workspace = root / session.name / name, root / session.name / WORKSPACE
    if path.exists():
        raise UserError(f"{path}: exists already; give the task another --name")
    found = replay(session, folder, {} if repo is None else _committed(repo, commit, session))
    if not workspace.exists():
        _write_workspace(workspace, found, repo, commit)
    lines = [line for line in ledger.lines if line.live(len(session.messages))]
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
    if repo is not None:
        found.left_out = _bundle(repo, commit, workspace / "repo.bundle")
    names = sorted(found.files if repo is None else found.written)
    for name in names:
        write_atomic(workspace / "files" / name, found.files[name])
    if repo is None:
        return
    write_atomic(
        workspace / "build.sh",
        f'git init -q -b main . && git fetch -q "$SOURCE/repo.bundle" {_BRANCH}\n'
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
        *([f"the repository is there {found.left_out}"] if found.left_out else []),
    ]  # fmt: skip
