"""The ticket: what the gate decided, as one line of JSON for later jobs; and the reason a failed job leaves."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.pull_request.event import LOGIN, REPO, EvaluationRequest, Mode, WorkflowRun
from eval_core.base.config import MOST_SHARDS, SuiteName
from eval_core.base.errors import UserError
from eval_core.domain.shard import Shard

if TYPE_CHECKING:
    from bot.pull_request.admission import Allowed

# The ticket: what the gate decided, handed on to the later jobs as one line of JSON.

_MOST_FILES = 40  # outputs of a job are limited; the comment shows no more anyway


def evaluation_artifact(sha: str) -> str:
    """Return the name of the artifact of an evaluated commit, by which a re-run finds it again."""
    return f"compression-eval-{sha}"


class Ticket(BaseModel):
    """One admitted evaluation. Later jobs take pull request and commits from here and from nowhere else."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: Annotated[str, Field(pattern=f"^{REPO}$")]
    mode: Mode
    pr: Annotated[int | None, Field(ge=1, le=9_999_999)]
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    base_sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    """The tip of the base branch: what judges comes from there."""
    base_ref: Annotated[str | None, Field(max_length=255)] = None
    """The base branch by its name."""
    merge_base: Annotated[str | None, Field(pattern=r"^[0-9a-f]{40}$")] = None
    """Where the pull request branched from it; None for a baseline."""
    behind: Annotated[int, Field(ge=0)] = 0
    """Commits of the base branch that the pull request lacks."""
    sender: Annotated[str, Field(pattern=f"^{LOGIN}$")]
    runs: Annotated[int | None, Field(ge=1, le=50)]
    fixtures: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]]
    looks: Annotated[int, Field(ge=1)]
    shards: Annotated[int, Field(ge=1, le=MOST_SHARDS)] = 1
    suite: SuiteName = "quick"
    """What is played beside the fixtures: for the label to say, and for the configuration."""
    tasks: bool = False
    """Whether an agent finishes the tasks too."""
    run_id: int
    run_attempt: int
    run_url: str
    ignored_files: list[str]
    ignored_more: int
    warnings: list[str]

    @classmethod
    def of(
        cls,
        request: EvaluationRequest,
        allowed: Allowed,
        shards: int = 1,
        suite: SuiteName = "quick",
        tasks: bool = False,
    ) -> Ticket:
        """Write down what was allowed; `shards` is what the configuration says, where nobody asked for a number."""
        files = [f"{file.path} ({file.kind})" for file in allowed.ignored_files]
        return cls(
            repo=request.repo,
            mode=request.mode,
            pr=allowed.pr,
            sha=allowed.sha,
            base_sha=allowed.base_sha,
            sender=request.sender,
            runs=request.runs,
            fixtures=list(request.fixtures),
            looks=allowed.looks,
            shards=1 if tasks else request.shards or shards,  # both sides' states have to be in one place
            suite=suite,
            tasks=tasks,
            run_id=request.run.id,
            run_attempt=request.run.attempt,
            run_url=request.run_url,
            # A path may hold half a character, which no JSON can carry.
            ignored_files=[path[:200].encode("utf-8", "replace").decode() for path in files[:_MOST_FILES]],
            ignored_more=max(len(files) - _MOST_FILES, 0),
            warnings=list(allowed.warnings),
        )

    def against(self, base_ref: str, merge_base: str, behind: int, warnings: list[str]) -> Ticket:
        """Return the ticket of a pull request that is measured against this commit, with what the reader is told."""
        told = [*self.warnings, *warnings]
        return self.model_copy(
            update={"base_ref": base_ref, "merge_base": merge_base, "behind": behind, "warnings": told}
        )

    @property
    def compared_sha(self) -> str:
        """The commit whose compressor is the base: what the pull request branched from, not what others did since."""
        return self.merge_base or self.base_sha

    @property
    def line(self) -> str:
        """The ticket as it is handed on: ASCII, so that nothing in a path can end the line."""
        return json.dumps(self.model_dump(mode="json"))

    @property
    def run(self) -> WorkflowRun:
        """The workflow run that this ticket belongs to."""
        return WorkflowRun(self.run_id, self.run_attempt)

    @property
    def label(self) -> str:
        """The name of the results folder."""
        return f"baseline-{self.base_sha[:12]}" if self.mode == "baseline" else f"pr-{self.pr}-{self.sha[:12]}"

    @property
    def artifact(self) -> str:
        """The name of the artifact that this run leaves."""
        baseline = self.mode == "baseline"
        return f"compression-eval-baseline-{self.base_sha}" if baseline else evaluation_artifact(self.sha)

    @property
    def parts(self) -> tuple[Shard, ...]:
        """The shards of this evaluation; none where one job does all of it."""
        return tuple(Shard(index, self.shards) for index in range(1, self.shards + 1)) if self.shards > 1 else ()

    @property
    def matrix(self) -> str:
        """The jobs that measure, for the workflow: which shard each is, and what its names end with."""
        jobs = [{"shard": str(shard), "suffix": shard.suffix} for shard in self.parts]
        return json.dumps(jobs or [{"shard": "1/1", "suffix": ""}])


def read_ticket(text: str) -> Ticket:
    """Read a ticket back, or say that the gate did not leave one."""
    try:
        return Ticket.model_validate_json(text)
    except ValidationError:
        raise UserError(
            "TICKET: not what `compression-eval bot gate` leaves as its output `ticket`; pass that output on as it is"
        ) from None


# Why an evaluation left no result: one sentence beside the results, from the job that failed to the one that tells.

_FILE = "error.txt"
_LARGEST = 8_000


def keep_error(results: Path, message: str) -> None:
    """Leave word of why the evaluation ended."""
    results.mkdir(parents=True, exist_ok=True)
    (results / _FILE).write_text(message[: _LARGEST // 4], encoding="utf-8")


def forget_error(results: Path) -> None:
    """Take the word back: there is a result."""
    (results / _FILE).unlink(missing_ok=True)


def read_error(results: Path) -> str | None:
    """Return the word that was left, if it is what we leave; whoever shows it makes it harmless."""
    path = results / _FILE
    return path.read_text(encoding="utf-8", errors="replace").strip() if is_small_file(path, _LARGEST) else None


def is_small_file(path: Path, limit: int) -> bool:
    """Tell whether there is a regular file, not a link or anything else, of at most so many bytes."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_size <= limit
