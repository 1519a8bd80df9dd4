"""Runs of the evaluation's workflow and the artifacts that they left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bot.api_error import ApiError, NotFound
from bot.resources import Artifact, WorkflowRun
from bot.transport import Transport
from eval_core.errors import UserError

__all__ = ["TRUSTED_EVENTS", "WORKFLOW", "WorkflowRuns"]

WORKFLOW = "compression-eval.yml"
"""The file name of the workflow that evaluates."""

TRUSTED_EVENTS = frozenset({"pull_request_target", "workflow_dispatch"})
"""Events whose workflow file comes from this repository; a fork can run its own file of the same name on others."""

ARTIFACT_LIMIT = 200 << 20


class WorkflowRuns:
    """What the workflows of one repository did."""

    def __init__(self, transport: Transport, repo: str) -> None:
        self._transport = transport
        self._base = f"/repos/{quote(repo)}/actions"

    def of(self, workflow: str, *, since: datetime | None = None, head_sha: str | None = None) -> Iterator[WorkflowRun]:
        """Yield the trusted runs of a workflow file (its name, without the folder), newest first."""
        query: dict[str, Any] = {}
        if since is not None:
            query["created"] = f">={since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        if head_sha is not None:
            query["head_sha"] = head_sha
        path = f"{self._base}/workflows/{quote(workflow, safe='')}/runs"
        try:
            for item in self._transport.pages(path, f"runs of {workflow}", query, key="workflow_runs"):
                if item["event"] in TRUSTED_EVENTS:
                    yield _run(item)
        except NotFound as exc:
            raise NotFound(
                f"runs of {workflow}: GitHub knows no such workflow; it must be on the default branch", 404, exc.reason
            ) from None

    def times_run(self, run_id: int, job: str, *, finished: bool = False) -> int:
        """Count how often a job of a run was really executed, over all attempts of that run."""
        path = f"{self._base}/runs/{run_id}/jobs"
        jobs = self._transport.pages(path, f"jobs of run {run_id}", {"filter": "all"}, key="jobs")
        return sum(
            item["name"] == job
            and item.get("conclusion") != "skipped"
            and (item["status"] == "completed" or not finished)
            for item in jobs
        )

    def find_artifact(self, workflow: str, name: str, *, head_sha: str | None = None) -> Artifact | None:
        """Return the newest artifact of that name that a trusted run of the workflow left and that can be had."""
        items = self._transport.pages(f"{self._base}/artifacts", f"artifacts {name}", {"name": name}, key="artifacts")
        usable = (artifact for artifact in map(_artifact, items) if not artifact.expired and artifact.run_id)
        # By its name and not run by run: a repository may have thousands of runs.
        for artifact in sorted(usable, key=lambda artifact: -artifact.id):
            try:
                run = _run(self._transport.get(f"{self._base}/runs/{artifact.run_id}", f"run {artifact.run_id}"))
            except NotFound:
                continue
            ours = run.path.partition("@")[0] == f".github/workflows/{workflow}" and run.event in TRUSTED_EVENTS
            if ours and head_sha in (None, run.head_sha):
                return artifact
        return None

    def download(self, artifact: Artifact, into: Path, limit: int = ARTIFACT_LIMIT) -> int:
        """Save an artifact's zip and return its size."""
        what = f"artifact {artifact.name} ({artifact.id})"
        if artifact.size > limit:
            raise UserError(f"{what}: {artifact.size:,} bytes, more than the {limit:,} allowed; refused")
        try:
            return self._transport.download(f"{self._base}/artifacts/{artifact.id}/zip", what, into, limit)
        except ApiError as exc:
            if exc.status not in (404, 410):
                raise
            raise NotFound(f"{what}: expired or deleted; run the evaluation again", exc.status, exc.reason) from None


def _run(data: Mapping[str, Any]) -> WorkflowRun:
    return WorkflowRun(
        id=int(data["id"]),
        attempt=int(data.get("run_attempt") or 1),
        title=str(data["display_title"]),
        event=str(data["event"]),
        path=str(data["path"]),
        head_sha=str(data["head_sha"]),
        status=str(data.get("status") or ""),
        conclusion=data.get("conclusion"),
        created=datetime.fromisoformat(data["created_at"]),
        html_url=str(data["html_url"]),
    )


def _artifact(data: Mapping[str, Any]) -> Artifact:
    run = data.get("workflow_run") or {}
    return Artifact(
        id=int(data["id"]),
        name=str(data["name"]),
        size=int(data["size_in_bytes"]),
        expired=bool(data["expired"]),
        run_id=run.get("id"),
        head_sha=run.get("head_sha"),
    )
