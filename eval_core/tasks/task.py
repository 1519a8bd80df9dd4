"""Tasks: the job that a session left unfinished, what it needs to know, and how its result is checked."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eval_core.base.errors import UserError
from eval_core.base.files import digest, parse
from eval_core.base.strict_yaml import read_yaml
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import LedgerLine, SessionLedger

Tool = Literal["terminal", "read_file", "write_file", "patch", "search_files"]
TOOLS: tuple[str, ...] = get_args(Tool)
CheckKind = Literal["done", "rule", "repeat", "redone"]
Loss = Literal["rule", "repeat", "lookup"]
MOST_BYTES = 300_000
"""Of a workspace: it lies in a repository, and goes into a sandbox for each rollout."""
_FEWEST_FACTS = 2
_METHODS = ("tests", "same", "run", "tried")
_TAKEN = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/tmp", "/usr")  # noqa: S108
WORKSPACE = "workspace"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Limits(_Strict):
    """What one rollout may use."""

    turns: Annotated[int, Field(ge=1, le=200, description="Replies of the model.")] = 30
    seconds: Annotated[int, Field(ge=1, le=7200, description="All commands together.")] = 600
    call_seconds: Annotated[int, Field(ge=1, le=600, description="One call: what failed before often hangs.")] = 30
    output_chars: Annotated[int, Field(ge=200, le=100_000, description="What the agent sees of one call.")] = 6000
    tokens: Annotated[int, Field(ge=1000, description="Sent to and written by the model, all turns together.")] = (
        300_000
    )
    megabytes: Annotated[int, Field(ge=1, le=512, description="What the workspace may hold.")] = 64
    memory_mb: Annotated[int, Field(ge=64, le=8192, description="Of one call with all its processes.")] = 512


class TaskFact(_Strict):
    """A ledger line that the job needs, and what losing it does."""

    id: str
    lost: Annotated[
        Loss,
        Field(description="rule: it is broken. repeat: a dead end is tried again. lookup: it has to be found again."),
    ]


class TaskCheck(_Strict):
    """One thing that is looked at when the agent is done."""

    name: Annotated[str, Field(min_length=3, max_length=80)]
    kind: CheckKind
    tests: Annotated[str | None, Field(description="A test file below the task's folder, run against the result.")] = (
        None
    )
    passed: Annotated[int | None, Field(ge=1, description="How many of its tests have to pass; none may fail.")] = None
    same: Annotated[str | None, Field(description="A file or folder that has to be as it was.")] = None
    run: Annotated[str | None, Field(description="A shell command that succeeds where all is well.")] = None
    tried: Annotated[str | None, Field(min_length=4, description="A text that no call may hold.")] = None

    @model_validator(mode="after")
    def _one_way(self) -> TaskCheck:
        given = [name for name in _METHODS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(_METHODS)}, not {' and '.join(given) or 'none of them'}")
        if (self.tests is None) != (self.passed is None):
            raise ValueError("passed: belongs to tests, and tests need it: how many of them have to pass")
        if self.tried is not None and self.kind not in ("repeat", "redone"):
            raise ValueError(f"tried: a text in a command does not show that {self.kind} holds; look at the result")
        return self


class TaskFile(_Strict):
    """`task.yml`."""

    at: Annotated[
        Literal["end"] | Annotated[int, Field(ge=1)],
        Field(description="Where the session stops: its end, or the number of the segment at whose end it does."),
    ] = "end"
    folder: Annotated[str, Field(description="The workspace, as the transcript calls it.")]
    instruction: Annotated[str, Field(min_length=10, description="What the user says next.")]
    tools: Annotated[list[Tool], Field(min_length=1)] = list(get_args(Tool))
    needs: Annotated[list[str], Field(description="Programs, looked for before anything is paid.")] = []
    limits: Limits = Limits()
    facts: Annotated[list[TaskFact], Field(min_length=_FEWEST_FACTS)]
    checks: Annotated[list[TaskCheck], Field(min_length=1)]

    @model_validator(mode="after")
    def _whole(self) -> TaskFile:
        if problems := list(self._problems()):
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        folder = self.folder
        if not folder.startswith("/") or posixpath.normpath(folder) != folder or folder.count("/") < 2:
            yield f"folder: {folder!r} is not an absolute path with two or more parts"
        elif any(f"{folder}/".startswith(f"{taken}/") for taken in _TAKEN):
            yield f"folder: {folder!r} lies where the sandbox keeps its own"
        if not any(check.kind == "done" for check in self.checks):
            yield "checks: none is of kind done; nobody could tell whether the job was finished"
        for what, names in (("facts", [f.id for f in self.facts]), ("checks", [c.name for c in self.checks])):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                yield f"{what}: {twice[0]!r} is there twice"


class ToolCall(_Strict):
    """One call: the tool and what it is given."""

    model_config = ConfigDict(extra="allow", frozen=True)
    tool: Tool

    @property
    def arguments(self) -> dict[str, Any]:
        """What the tool is given."""
        return dict(self.model_extra or {})


class SolutionStep(_Strict):
    """What a good continuation does next; with a guard, what it does where it knows a fact, and where it does not."""

    call: ToolCall | None = None
    knows: str | None = None
    then: list[ToolCall] = []
    otherwise: Annotated[list[ToolCall], Field(alias="else")] = []

    @model_validator(mode="after")
    def _one_of_two(self) -> SolutionStep:
        if (self.call is None) == (self.knows is None) or (self.call is not None and (self.then or self.otherwise)):
            raise ValueError("a step is either a call, or knows: with then: and else:")
        return self

    def calls(self, known: frozenset[str]) -> list[ToolCall]:
        """Return what is done by somebody who knows these facts."""
        if self.call is not None:
            return [self.call]
        return self.then if self.knows in known else self.otherwise


class Solution(_Strict):
    """`solution.yml`: how somebody who remembers the session goes on."""

    steps: Annotated[list[SolutionStep], Field(min_length=1)]
    says: Annotated[str, Field(description="The agent's last words.")] = "Done."


@dataclass(frozen=True)
class Task:
    """One task with its session, as loaded."""

    name: str
    fixture: Fixture
    path: Path
    file: TaskFile
    solution: Solution
    lines: Mapping[str, LedgerLine]
    """The ledger lines of its facts."""

    @property
    def full_name(self) -> str:
        """How reports call it."""
        return f"{self.fixture.name}/{self.name}"

    @property
    def workspace(self) -> Path:
        """The folder that the workspace is built from; tasks of a session share it."""
        return self.path.parent / WORKSPACE

    @property
    def end(self) -> int:
        """The message before which the session stops."""
        at = self.file.at
        return len(self.fixture.messages) if at == "end" else self.fixture.cuts[at - 1]

    @property
    def compressions(self) -> int:
        """After how many compressions of a run the state is that of the task."""
        return len(self.fixture.cuts) if self.file.at == "end" else self.file.at

    @property
    def digest(self) -> str:
        """What identifies the task: every file of it and of its workspace."""
        files = sorted(p for root in (self.path, self.workspace) for p in root.rglob("*") if p.is_file())
        return digest({str(p.relative_to(self.path.parent)): p.read_bytes().hex() for p in files})


def load_task(path: Path, fixture: Fixture, ledger: SessionLedger | None) -> Task:
    """Read a task's folder and check it against its session."""
    where = path / "task.yml"
    file = parse(TaskFile, read_yaml(where), str(where))
    solution = parse(Solution, read_yaml(path / "solution.yml"), str(path / "solution.yml"))
    if isinstance(file.at, int) and file.at > len(fixture.cuts):
        raise UserError(
            f"{where}: at: {file.at}: {fixture.name} has {len(fixture.cuts)} segments; use end for the last"
        )
    if ledger is None:
        raise UserError(f"{where}: {fixture.name} has no ledger; write probes/{fixture.name}.ledger.json first")
    lines = {line.id: line for line in ledger.lines}
    task = Task(path.name, fixture, path, file, solution, {f.id: lines[f.id] for f in file.facts if f.id in lines})
    for problem in _mistakes(task):
        raise UserError(f"{where}: {problem}")
    return task


def _mistakes(task: Task) -> Iterator[str]:
    for fact in task.file.facts:
        line = task.lines.get(fact.id)
        if line is None:
            yield f"facts: {fact.id!r} is no line of the ledger of {task.fixture.name}; use the id of one"
        elif not line.live(task.end):
            yield f"facts: {fact.id!r} does not hold at message {task.end}; the task could not need it"
    guarded = {step.knows for step in task.solution.steps if step.knows is not None}
    ids = {fact.id for fact in task.file.facts}
    if wrong := sorted(guarded ^ ids):
        why = (
            "has no guard in solution.yml" if wrong[0] in ids else "is guarded in solution.yml and no fact of the task"
        )
        yield f"facts: {wrong[0]!r} {why}"
    for check in task.file.checks:
        if check.tests is not None and not (task.path / check.tests).is_file():
            yield f"checks: {check.name}: there is no {check.tests}"
    if not task.workspace.is_dir():
        yield f"there is no {task.workspace}, which the workspace is built from"
        return
    size = sum(p.stat().st_size for p in task.workspace.rglob("*") if p.is_file())
    if size > MOST_BYTES:
        yield f"{task.workspace} has {size:,} bytes; more than {MOST_BYTES:,} do not belong into a repository"


def find_tasks(
    root: Path, fixtures: Mapping[str, Fixture], ledgers: Mapping[str, SessionLedger | None], names: Sequence[str] = ()
) -> list[Task]:
    """Load the tasks of these sessions; names are of tasks or of sessions, none means all."""
    found = []
    for path in sorted(root.glob("*/*/task.yml")):
        session, task = path.parent.parent.name, path.parent
        if session in fixtures and (not names or session in names or f"{session}/{task.name}" in names):
            found.append(load_task(task, fixtures[session], ledgers.get(session)))
    known = {item.full_name for item in found} | {item.fixture.name for item in found}
    if wrong := [name for name in names if name not in known]:
        raise UserError(f"{root}: there is no task {wrong[0]!r}; a task is named FIXTURE/NAME")
    return found
