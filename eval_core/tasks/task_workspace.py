"""Workspaces in the sandbox: built once, given to each rollout, and looked at by checks in a second sandbox."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.domain.rollout import CheckRecord
from eval_core.sandbox.isolation import CHILD, LAUNCHER, SandboxChoice, SandboxView, interpreter_mounts, run_folder
from eval_core.sandbox.process import Child, ChildGone
from eval_core.sandbox.subject import CANARY_VARIABLE, SandboxBreach, canaries
from eval_core.sandbox.validate import MAX_FRAME, BadFrame
from eval_core.tasks.task import Limits, Task, TaskCheck

WHO = "the agent's workspace"
_SOURCE, _CHECKS, _STAND_INS = "/source", "/checks", "/stand-ins"
_GRACE_S = 20.0
"""What the server may take on top of a call's own time."""
_OVERHEAD_MB = 256
_BUILD_SECONDS = _CHECK_SECONDS = 120
"""Ours, so not the agent's limit: a busy machine must not look like a failure."""
_LONGEST_S = 24 * 3600.0
COMMITTED = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Dev One"), ("EMAIL", "dev1@example.com"), ("DATE", "2026-01-01T12:00:00+0000"))
}
"""Of commits made while a workspace is built, so that it is the same each time."""
_PERSON = {name: value for name, value in COMMITTED.items() if not name.endswith("DATE")}


class WorkspaceLost(Exception):
    """The workspace ended before the rollout did; the text says why."""


@dataclass(frozen=True)
class Tree:
    """What a workspace holds, as it came out of the sandbox: it is not unpacked on the host."""

    data: str
    digest: str


class Workspace:
    """A workspace that runs."""

    def __init__(self, child: Child, limits: Limits) -> None:
        """Take a child that is ready."""
        self._child, self._limits = child, limits

    async def _ask(self, command: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        most = self._limits.call_seconds if seconds is None else seconds
        caps = {"seconds": most, "memory": self._limits.memory_mb * 2**20, "chars": self._limits.output_chars}
        try:
            answer = await self._child.ask({**caps, **command}, most + _GRACE_S, "a call")
        except (ChildGone, BadFrame) as exc:
            raise WorkspaceLost(str(exc)) from None
        return answer

    async def _result(self, command: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        result = (await self._ask(command, seconds)).get("result")
        return result if isinstance(result, dict) else {"error": f"{WHO} gave no answer"}

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool; its result is JSON, as the agent sees it."""
        found = await self._result({"do": "tool", "name": tool, "arguments": arguments})
        return json.dumps(found, ensure_ascii=False)

    async def run(self, command: str, seconds: float | None = None) -> dict[str, Any]:
        return await self._result({"do": "run", "command": command}, seconds)

    async def tests(self, file: str) -> dict[str, Any]:
        """Run a file of tests and count."""
        return await self._result({"do": "tests", "file": file}, _CHECK_SECONDS)

    async def sums(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what each file or folder holds, as digests."""
        return await self._result({"do": "sums", "names": list(names)}, _CHECK_SECONDS)

    async def unpack(self, tree: Tree) -> None:
        """Put a tree in place."""
        await self._ask({"do": "unpack", "tree": tree.data})

    async def pack(self) -> Tree:
        """Take the tree out."""
        found = await self._result({"do": "pack"}, _CHECK_SECONDS)
        if not isinstance(found.get("tree"), str):
            raise WorkspaceLost(f"{WHO} could not be taken out: {found.get('error') or 'no reason given'}")
        return Tree(found["tree"], str(found.get("digest")))


def _readable(source: Path, target: Path) -> str:
    """Copy a folder so that any uid can read it, and return where."""

    def copy(one: str, other: str) -> None:
        shutil.copyfile(one, other)
        Path(other).chmod(0o755 if Path(one).stat().st_mode & 0o111 else 0o644)

    shutil.copytree(source, target, copy_function=copy)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return str(target)


@asynccontextmanager
async def _running(
    task: Task, sandbox: SandboxChoice, mounts: dict[str, Path], env: dict[str, str]
) -> AsyncIterator[Workspace]:
    """Start a child behind its self-test, with an empty home of its own size, and end it with the block."""
    if not sandbox.confined:
        raise UserError("tasks run commands that a model chose, and are not run without a sandbox; leave out --sandbox")
    limits, folder_inside = task.file.limits, task.file.folder
    python, home = Path(sys.executable), str(Path(folder_inside).parent)
    memory = limits.memory_mb + limits.megabytes + _OVERHEAD_MB
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(run_folder())
        binds = [*interpreter_mounts(python), (str(CHILD), LAUNCHER)]
        binds += [(_readable(source, folder / inside[1:]), inside) for inside, source in mounts.items()]
        view = SandboxView(
            python=str(python), binds=tuple(binds), tree=LAUNCHER, home=home, scratch=limits.megabytes * 2**20
        )
        canary = stack.enter_context(canaries(folder, (LAUNCHER, *mounts)))
        group = stack.enter_context(sandbox.limit_memory(memory * 2**20))
        child = await Child.start(
            sandbox.command(view, folder, _LONGEST_S, memory, "workspace"),
            sandbox,
            name=folder.name,
            memory=group,
            environment={CANARY_VARIABLE: canary.value},
            who=WHO,
        )
        stack.push_async_callback(child.close)
        hello = {
            "nonce": child.nonce,
            "max_frame": MAX_FRAME,
            "limits": sandbox.resource_limits(memory * 2**20, _LONGEST_S, address_space=False),
            "canary": canary.as_frame(),
        }
        path = f"{_STAND_INS}:{python.parent}:/usr/local/bin:/usr/bin:/bin"
        job = {
            "home": home,
            "folder": folder_inside,
            "megabytes": limits.megabytes,
            "env": {"PATH": path, "TERM": "dumb", **env},
        }
        try:
            answer = await child.ask(hello, 60, "starting the sandbox")
            if answer.get("hits") != []:
                raise SandboxBreach(f"the sandbox ({sandbox.level}) does not hold: {answer.get('hits')}")
            await child.ask(job, 60, "opening the workspace")
        except (ChildGone, BadFrame) as exc:
            raise UserError(f"{WHO} could not be started: {exc}. It said: {child.output.strip()[:500]}") from None
        yield Workspace(child, limits)


@dataclass(frozen=True)
class Built:
    """The workspace as each rollout gets it."""

    task: Task
    sandbox: SandboxChoice
    tree: Tree
    sums: dict[str, str]
    """What the files hold that have to stay as they are."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Workspace]:
        """Give a rollout its workspace."""
        stand_ins = self.task.workspace / "bin"
        mounts = {_STAND_INS: stand_ins} if stand_ins.is_dir() else {}
        async with _running(self.task, self.sandbox, mounts, _PERSON) as workspace:
            await workspace.unpack(self.tree)
            yield workspace


def _build_command(task: Task) -> str:
    folder, source = task.file.folder, _SOURCE
    script = f"sh -e {source}/build.sh" if (task.workspace / "build.sh").is_file() else "true"
    copy = f"cp -R {source}/files/. {folder}/ &&" if (task.workspace / "files").is_dir() else ""
    return f"mkdir -p {folder} && {copy} cd {folder} && {script}"


async def build(task: Task, sandbox: SandboxChoice) -> Built:
    """Build a task's workspace, once, from the files and the script beside it."""
    mounts = {_SOURCE: task.workspace}
    async with _running(task, sandbox, mounts, {**COMMITTED, "SOURCE": _SOURCE}) as workspace:
        try:
            done = await workspace.run(_build_command(task), _BUILD_SECONDS)
            if done.get("exit_code") != 0:
                said = str(done.get("error") or done.get("output"))[-600:]
                raise UserError(f"{task.workspace}: the workspace does not build: {said}")
            kept = [check.same for check in task.file.checks if check.same is not None]
            sums = await workspace.sums(kept) if kept else {}
            if gone := [name for name in kept if sums.get(name) == "gone"]:
                raise UserError(
                    f"{task.path}/task.yml: checks: the workspace has no {gone[0]} that could stay the same"
                )
            return Built(task, sandbox, await workspace.pack(), sums)
        except WorkspaceLost as exc:
            raise UserError(f"{task.workspace}: the workspace does not build: {exc}") from None


async def missing(task: Task, sandbox: SandboxChoice) -> list[str]:
    """Return the programs that the task needs and the sandbox does not have."""
    async with _running(task, sandbox, {}, {}) as workspace:
        lacking = []
        for name in task.file.needs:
            found = await workspace.run(f"command -v {name} || python -c 'import {name}'", _CHECK_SECONDS)
            lacking += [name] if found.get("exit_code") != 0 else []
        return lacking


Calls = Sequence[tuple[str, dict[str, Any]]]


def _tried(check: TaskCheck, calls: Calls) -> int:
    assert check.tried is not None
    looking = ("read_file", "search_files")
    return sum(check.tried in json.dumps(given, ensure_ascii=False) for tool, given in calls if tool not in looking)


def _record(check: TaskCheck, passed: bool, says: str) -> CheckRecord:
    return CheckRecord(name=check.name, kind=check.kind, passed=passed, says="" if passed else says)


async def _checked(check: TaskCheck, workspace: Workspace, built: Built) -> CheckRecord:
    if check.tests is not None:
        found = await workspace.tests(f"{_CHECKS}/{Path(check.tests).relative_to('checks')}")
        passed, failed = int(found.get("passed") or 0), int(found.get("failed") or 0)
        says = found.get("why") or f"{passed} of {check.passed} tests passed, {failed} failed"
        return _record(check, passed == check.passed and not failed, says)
    if check.same is not None:
        sums = await workspace.sums([check.same])
        return _record(check, sums.get(check.same) == built.sums[check.same], f"{check.same} was changed")
    done = await workspace.run(str(check.run), _CHECK_SECONDS)
    return _record(
        check, done.get("exit_code") == 0, str(done.get("error") or done.get("output") or "it failed")[-300:]
    )


async def run_checks(built: Built, tree: Tree, calls: Calls) -> list[CheckRecord]:
    """Look at what a rollout left, in a sandbox of its own: the agent never sees what is looked at.

    A check of the kinds repeat and redone is a count, so it also holds where the workspace is lost.
    """
    task, found = built.task, []
    async with _running(task, built.sandbox, {_CHECKS: task.path / "checks"}, {}) as workspace:
        await workspace.unpack(tree)
        for check in task.file.checks:
            if check.tried is not None:
                times = _tried(check, calls)
                found.append(_record(check, not times, f"tried in {times} calls"))
                continue
            try:
                found.append(await _checked(check, workspace, built))
            except WorkspaceLost as exc:
                found.append(_record(check, False, str(exc)))
                break
    seen = {result.name for result in found}
    rest = [check for check in task.file.checks if check.name not in seen]
    return [*found, *(_record(check, False, "the workspace was lost before") for check in rest)]
