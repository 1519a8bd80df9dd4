"""The ticket: what the gate decided, handed on to the later jobs as one line of JSON."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.event import Mode, Request, Run
from bot.gate import Allowed
from eval_core.errors import UserError

__all__ = ["Ticket", "evaluation_artifact", "read_ticket"]

_MOST_FILES = 40  # outputs of a job are limited; the comment shows no more anyway


def evaluation_artifact(sha: str) -> str:
    """Return the name of the artifact of an evaluated commit, by which a re-run finds it again."""
    return f"compression-eval-{sha}"


class Ticket(BaseModel):
    """One admitted evaluation. Later jobs take pull request and commits from here and from nowhere else."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9._-]{1,100}$")]
    mode: Mode
    pr: Annotated[int | None, Field(ge=1, le=9_999_999)]
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    base_sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    runs: Annotated[int | None, Field(ge=1, le=50)]
    looks: Annotated[int, Field(ge=1)]
    run_id: int
    run_attempt: int
    run_url: str
    ignored_files: list[str]
    ignored_more: int
    warnings: list[str]

    @classmethod
    def of(cls, request: Request, allowed: Allowed) -> Ticket:
        """Write down what was allowed."""
        files = [f"{file.path} ({file.kind})" for file in allowed.ignored_files]
        return cls(
            repo=request.repo,
            mode=request.mode,
            pr=allowed.pr,
            sha=allowed.sha,
            base_sha=allowed.base_sha,
            runs=request.runs,
            looks=allowed.looks,
            run_id=request.run.id,
            run_attempt=request.run.attempt,
            run_url=request.run_url,
            # A path may hold half a character, which no JSON can carry.
            ignored_files=[path[:200].encode("utf-8", "replace").decode() for path in files[:_MOST_FILES]],
            ignored_more=max(len(files) - _MOST_FILES, 0),
            warnings=list(allowed.warnings),
        )

    @property
    def line(self) -> str:
        """The ticket as it is handed on: ASCII, so that nothing in a path can end the line."""
        return json.dumps(self.model_dump(mode="json"))

    @property
    def run(self) -> Run:
        """The workflow run that this ticket belongs to."""
        return Run(self.run_id, self.run_attempt)

    @property
    def label(self) -> str:
        """The name of the results folder."""
        return f"baseline-{self.base_sha[:12]}" if self.mode == "baseline" else f"pr-{self.pr}-{self.sha[:12]}"

    @property
    def artifact(self) -> str:
        """The name of the artifact that this run leaves."""
        baseline = self.mode == "baseline"
        return f"compression-eval-baseline-{self.base_sha}" if baseline else evaluation_artifact(self.sha)


def read_ticket(text: str) -> Ticket:
    """Read a ticket back, or say that the gate did not leave one."""
    try:
        return Ticket.model_validate_json(text)
    except ValidationError:
        raise UserError(
            "TICKET: not what `compression-eval bot gate` leaves as its output `ticket`; pass that output on as it is"
        ) from None
