"""Workflow runs, their jobs and their artifacts."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.shapes import node_id, repository, stamp, user
from loopback.state import Account, StoredArtifact, StoredJob, StoredRun

__all__ = ["ROUTES"]

KEPT = timedelta(days=90)


def _run(ex: Exchange, run: StoredRun) -> Json:
    here = f"{ex.url}/repos/{ex.state.repo}/actions"
    mine, workflow = f"{here}/runs/{run.id}", ex.state.workflows[run.workflow]
    commit = ex.state.history.commits.get(run.head_sha)
    person = {"name": "somebody", "email": "somebody@users.invalid"}
    head = {
        "id": run.head_sha,
        "tree_id": commit.tree_sha if commit else run.head_sha,
        "message": commit.message if commit else "",
        "timestamp": stamp(run.created),
        "author": person,
        "committer": person,
    }
    repo = repository(ex.state, ex.url)
    return {
        "id": run.id,
        "name": "compression-eval",
        "node_id": node_id("WFR", run.id),
        "head_branch": ex.state.default_branch,
        "head_sha": run.head_sha,
        "path": f".github/workflows/{run.workflow}",
        "display_title": run.title,
        "run_number": run.id,
        "run_attempt": run.attempt,
        "event": run.event,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": workflow,
        "check_suite_id": 1,
        "url": mine,
        "html_url": f"{ex.url}/{ex.state.repo}/actions/runs/{run.id}",
        "pull_requests": [],
        "created_at": stamp(run.created),
        "updated_at": stamp(run.created),
        "run_started_at": stamp(run.created),
        **{f"{name}_url": f"{mine}/{name}" for name in ("jobs", "logs", "artifacts", "cancel", "rerun")},
        "check_suite_url": f"{ex.url}/repos/{ex.state.repo}/check-suites/1",
        "previous_attempt_url": None,
        "workflow_url": f"{here}/workflows/{workflow}",
        "head_commit": head,
        "repository": repo,
        "head_repository": repo,
    }


async def runs(ex: Exchange) -> web.Response:
    """List the runs of a workflow, newest first."""
    ex.needs("actions", level="read", role="read")
    workflow, query = ex.part("workflow"), ex.request.query
    if workflow not in ex.state.workflows:
        raise Problem(404, "Not Found")
    since = _since(query.get("created", ""))
    found = [
        run
        for run in sorted(ex.state.runs.values(), key=lambda run: (run.created, run.id), reverse=True)
        if run.workflow == workflow
        and (since is None or run.created >= since)
        and query.get("head_sha", run.head_sha) == run.head_sha
        and query.get("event", run.event) == run.event
        and query.get("status", run.status) in (run.status, run.conclusion)
    ]
    return ex.page([_run(ex, run) for run in found], key="workflow_runs")


async def show(ex: Exchange) -> web.Response:
    """Show one run."""
    ex.needs("actions", level="read", role="read")
    return answer(_run(ex, _find(ex)))


async def jobs(ex: Exchange) -> web.Response:
    """List a run's jobs, of the latest attempt or of all."""
    ex.needs("actions", level="read", role="read")
    run = _find(ex)
    everything = ex.request.query.get("filter", "latest") == "all"
    here = f"{ex.url}/repos/{ex.state.repo}"

    def entry(job: StoredJob) -> Json:
        return {
            "id": job.id,
            "run_id": run.id,
            "run_url": f"{here}/actions/runs/{run.id}",
            "run_attempt": job.attempt,
            "node_id": node_id("J", job.id),
            "head_sha": run.head_sha,
            "url": f"{here}/actions/jobs/{job.id}",
            "html_url": f"{ex.url}/{ex.state.repo}/actions/runs/{run.id}/job/{job.id}",
            "status": job.status,
            "conclusion": job.conclusion,
            "created_at": stamp(run.created),
            "started_at": stamp(run.created),
            "completed_at": stamp(run.created) if job.status == "completed" else None,
            "name": job.name,
            "steps": [],
            "check_run_url": f"{here}/check-runs/{job.id}",
            "labels": ["ubuntu-24.04"],
            "runner_id": None,
            "runner_name": None,
            "runner_group_id": None,
            "runner_group_name": None,
            "workflow_name": "compression-eval",
            "head_branch": ex.state.default_branch,
        }

    return ex.page([entry(job) for job in run.jobs if everything or job.attempt == run.attempt], key="jobs")


async def run_artifacts(ex: Exchange) -> web.Response:
    """List a run's artifacts."""
    run = _find(ex)
    return _artifacts(ex, [a for a in ex.state.artifacts.values() if a.run_id == run.id])


async def artifacts(ex: Exchange) -> web.Response:
    """List the repository's artifacts."""
    return _artifacts(ex, list(ex.state.artifacts.values()))


async def download(ex: Exchange) -> web.Response:
    """Redirect to an artifact's zip; an expired one is gone."""
    # Even of a public repository, artifacts are for those who are logged in.
    if ex.token is None:
        raise Problem(401, "Requires authentication")
    ex.needs("actions", level="read", role="read")
    artifact = ex.state.artifacts.get(ex.number("artifact"))
    if artifact is None:
        raise Problem(404, "Not Found")
    if artifact.expired:
        raise Problem(410, "Artifact has expired")
    key = secrets.token_hex(8)
    ex.state.signed[key] = ("application/zip", artifact.archive)
    storage = ex.url.replace("//localhost:", "//127.0.0.1:")
    return web.Response(status=302, headers={"Location": f"{storage}/_storage/{key}"})


async def approvals(ex: Exchange) -> web.Response:
    """List who approved or rejected a run's deployments."""
    ex.needs("actions", level="read", role="read")
    run = _find(ex)

    def entry(environment: str, state: str, login: str, comment: str) -> Json:
        reviewer = ex.state.account(login) or Account("ghost", 10_137)
        shown = {key: value for key, value in _environment(ex, environment).items() if key != "protection_rules"}
        return {"environments": [shown], "state": state, "user": user(reviewer, ex.url), "comment": comment}

    return answer([entry(*review) for review in run.reviews])


async def environment(ex: Exchange) -> web.Response:
    """Show an environment with its rules; it exists once it was made or used."""
    ex.needs("actions", level="read", role="read")
    name = ex.part("environment")
    if name not in ex.state.reviewers:
        raise Problem(404, "Not Found")
    return answer(_environment(ex, name))


def _environment(ex: Exchange, name: str) -> Json:
    here, made = f"{ex.url}/repos/{ex.state.repo}/environments/{name}", "2024-01-01T00:00:00Z"
    accounts = [ex.state.account(login) or Account("ghost", 10_137) for login in ex.state.reviewers.get(name, [])]
    reviewers = [{"type": "User", "reviewer": user(account, ex.url)} for account in accounts]
    rule = {"id": 1, "node_id": node_id("GA", 1), "type": "required_reviewers", "reviewers": reviewers}
    return {
        "id": 1,
        "node_id": node_id("EN", 1),
        "name": name,
        "url": here,
        "html_url": f"{ex.url}/{ex.state.repo}/deployments/activity_log?environments_filter={name}",
        "created_at": made,
        "updated_at": made,
        "protection_rules": [{**rule, "prevent_self_review": False}] if reviewers else [],
        "deployment_branch_policy": (
            {"protected_branches": False, "custom_branch_policies": True} if name in ex.state.branch_policies else None
        ),
    }


async def branch_policies(ex: Exchange) -> web.Response:
    """List the branches that an environment is bound to."""
    ex.needs("actions", level="read", role="read")
    names = ex.state.branch_policies.get(ex.part("environment"))
    if names is None:
        raise Problem(404, "Not Found")
    policies = [
        {"id": at, "node_id": node_id("GE", at), "name": name, "type": "branch"} for at, name in enumerate(names, 1)
    ]
    return ex.page(policies, "branch_policies")


def _artifacts(ex: Exchange, found: list[StoredArtifact]) -> web.Response:
    ex.needs("actions", level="read", role="read")
    name = ex.request.query.get("name")
    here = f"{ex.url}/repos/{ex.state.repo}/actions/artifacts"

    def entry(artifact: StoredArtifact) -> Json:
        run = ex.state.runs[artifact.run_id]
        return {
            "id": artifact.id,
            "node_id": node_id("AF", artifact.id),
            "name": artifact.name,
            "size_in_bytes": len(artifact.archive),
            "url": f"{here}/{artifact.id}",
            "archive_download_url": f"{here}/{artifact.id}/zip",
            "expired": artifact.expired,
            "digest": f"sha256:{hashlib.sha256(artifact.archive).hexdigest()}",
            "created_at": stamp(artifact.created),
            "updated_at": stamp(artifact.created),
            "expires_at": stamp(artifact.created + KEPT),
            "workflow_run": {
                "id": run.id,
                "repository_id": 1,
                "head_repository_id": 1,
                "head_branch": ex.state.default_branch,
                "head_sha": run.head_sha,
            },
        }

    newest = sorted(found, key=lambda artifact: -artifact.id)
    return ex.page([entry(a) for a in newest if name is None or a.name == name], key="artifacts")


def _find(ex: Exchange) -> StoredRun:
    run = ex.state.runs.get(ex.number("run"))
    if run is None:
        raise Problem(404, "Not Found")
    return run


def _since(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text.removeprefix(">="))
    except ValueError:
        raise Problem.invalid("WorkflowRun", "created") from None


ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/actions/workflows/{workflow}/runs", runs),
    ("GET", "/actions/runs/{run}", show),
    ("GET", "/actions/runs/{run}/jobs", jobs),
    ("GET", "/actions/runs/{run}/artifacts", run_artifacts),
    ("GET", "/actions/runs/{run}/approvals", approvals),
    ("GET", "/environments/{environment}", environment),
    ("GET", "/environments/{environment}/deployment-branch-policies", branch_policies),
    ("GET", "/actions/artifacts", artifacts),
    ("GET", "/actions/artifacts/{artifact}/zip", download),
]
