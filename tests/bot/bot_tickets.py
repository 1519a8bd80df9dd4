"""Requests, admissions and tickets for tests of the bot, and an evaluate job with its GitHub."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import adopted
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.pull_request.admission import Allowed, IgnoredFile
from bot.pull_request.event import EvaluationRequest, WorkflowRun
from bot.pull_request.ticket import Ticket
from bot.steps.evaluate import evaluate
from bot.steps.fetch import SUBJECT, fetch
from bot.steps.reuse import reuse_results
from eval_core.base.config import Config
from eval_core.domain.record import RunRecord
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.storage.results import ResultsFolder

SHA, BASE = "a" * 40, "b" * 40


def request(**changes: Any) -> EvaluationRequest:
    fields: dict[str, Any] = {
        "repo": "acme/agent",
        "pr": 7,
        "sha": SHA,
        "sender": "maintainer",
        "trigger": "label",
        "mode": "evaluate",
        "runs": None,
        "force": False,
        "label": "eval-compression",
        "run": WorkflowRun(12, 2),
        "run_url": "https://github.com/acme/agent/actions/runs/12/attempts/2",
    }
    return EvaluationRequest(**{**fields, **changes})


def allowed(*files: str, **changes: Any) -> Allowed:
    fields: dict[str, Any] = {
        "pr": 7,
        "sha": SHA,
        "base_sha": BASE,
        "looks": 1,
        "stale": False,
        "ignored_files": tuple(IgnoredFile(path, "fixture") for path in files),
        "warnings": ("The pull request is a draft.",),
    }
    return Allowed(**{**fields, **changes})


def ticket_for(github: LoopbackGitHub, **changes: object) -> Ticket:
    fields: dict[str, object] = {
        "repo": adopted.REPO,
        "mode": "evaluate",
        "pr": 1,
        "sha": github.state.pulls[1].head_sha,
        "base_sha": github.state.refs["heads/main"],
        "sender": "maintainer",
        "runs": None,
        "fixtures": [],
        "looks": 1,
        "run_id": 7,
        "run_attempt": 1,
        "run_url": "https://github.com/acme/agent/actions/runs/7/attempts/1",
        "ignored_files": [],
        "ignored_more": 0,
        "warnings": [],
    }
    return Ticket.model_validate({**fields, **changes})


@dataclasses.dataclass
class Bench:
    """A base branch on disk, a GitHub, and the evaluate job's steps."""

    github: LoopbackGitHub
    client: GitHub
    root: Path
    config: Config

    @property
    def work(self) -> Path:
        return self.root / ".compression-eval"

    def fetch(self, ticket: Ticket) -> None:
        fetch(self.client, ticket, self.work)

    def evaluate(self, ticket: Ticket) -> list[RunRecord]:
        """Evaluate, and return the runs in the order in which they were finished."""
        records: list[RunRecord] = []
        evaluate(
            ticket, self.config, root=self.root, work=self.work, on_start=lambda size: None, on_record=records.append
        )
        return records

    def options(self) -> RunOptions:
        return RunOptions(settings=self.config, root=self.root, tree=self.work / SUBJECT, resume=True)

    def leave_artifact(self, name: str, folder: Path, **changes: bytes) -> None:
        """Let a trusted run have left the files of a folder."""
        files = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
        run = self.github.run("compression-eval.yml", "b" * 40)
        self.github.artifact(run.id, name, {**files, **{key.replace("__", "."): v for key, v in changes.items()}})

    def reuse_results(self, ticket: Ticket) -> tuple[str | None, list[str]]:
        into = ResultsFolder(self.root / "taken")
        into.path.mkdir()
        note = reuse_results(ticket, make_plan(self.options()), self.work, into)
        return note, sorted(path.name for path in into.path.iterdir())
