"""The loopback GitHub answers as the real one: its shapes fit the API's description, its refusals its manners."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import requests
from bot_world import FILES, REPO, WORKFLOW
from loopback import LoopbackGitHub


class Web:
    """A bare client, so that the server is tested and not our client."""

    def __init__(self, gh: LoopbackGitHub, token: str | None) -> None:
        self._url = gh.url
        self._session = requests.Session()
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        url = f"{self._url}/repos/{REPO}{path}" if not path.startswith("//") else f"{self._url}{path[1:]}"
        return self._session.request(method, url, json=body, headers=headers, timeout=5, allow_redirects=False)


@pytest.fixture
def web(gh: LoopbackGitHub) -> Web:
    return Web(gh, gh.job_token())


def fits(model: str, value: Any) -> None:
    """Validate against the model generated from GitHub's own API description."""
    # Imported here: the models take a second to load.
    from githubkit_schemas.latest import models

    getattr(models, model).model_validate(value)


def test_every_main_answer_fits_the_api_description(gh: LoopbackGitHub, web: Web) -> None:
    gh.label(1, "eval-compression")
    gh.comment(1, "contributor", "hello")
    pull = gh.state.pulls[1]
    run = gh.run(WORKFLOW, pull.head_sha, jobs={"gate": "success", "evaluate": None})
    gh.artifact(run.id, "results", {"run.json": b"{}"})
    gh.push("side", FILES)
    check = {"name": "compression-eval", "head_sha": pull.head_sha, "output": {"title": "t", "summary": "s"}}
    content = {"message": "m", "content": base64.b64encode(b"new").decode(), "branch": "side"}
    head = {"title": "t", "head": "side", "base": "main"}
    fits("FullRepository", web("GET", "").json())
    fits("PublicUser", web("GET", "//users/contributor").json())
    fits("RateLimitOverview", web("GET", "//rate_limit").json())
    fits("RepositoryCollaboratorPermission", web("GET", "/collaborators/maintainer/permission").json())
    fits("PullRequest", web("GET", "/pulls/1").json())
    fits("PullRequestSimple", web("GET", "/pulls").json()[0])
    fits("DiffEntry", web("GET", "/pulls/1/files").json()[0])
    fits("IssueComment", web("GET", "/issues/1/comments").json()[0])
    fits("IssueComment", web("POST", "/issues/1/comments", {"body": "x"}).json())
    fits("Label", web("GET", "/issues/1/labels").json()[0])
    fits("Reaction", web("POST", "/issues/1/reactions", {"content": "eyes"}).json())
    fits("CheckRun", web("POST", "/check-runs", check).json())
    fits("CheckRun", web("GET", f"/commits/{pull.head_sha}/check-runs").json()["check_runs"][0])
    fits("Commit", web("GET", "/commits/main").json())
    fits("CommitComparison", web("GET", f"/compare/main...{pull.head_sha}").json())
    fits("GitRef", web("GET", "/git/ref/heads/main").json())
    fits("ContentFile", web("GET", "/contents/README.md").json())
    blob = web("GET", "/contents/README.md").json()["sha"]
    fits("Blob", web("GET", f"/git/blobs/{blob}").json())
    fits("FileCommit", web("PUT", "/contents/new.txt", content).json())
    fits("PullRequest", web("POST", "/pulls", head).json())
    fits("WorkflowRun", web("GET", f"/actions/workflows/{WORKFLOW}/runs").json()["workflow_runs"][0])
    fits("Job", web("GET", f"/actions/runs/{run.id}/jobs").json()["jobs"][0])
    fits("Artifact", web("GET", f"/actions/runs/{run.id}/artifacts").json()["artifacts"][0])
    gh.state.reviewers["compression-eval"] = ["maintainer"]
    run.reviews.append(("compression-eval", "rejected", "maintainer", "no"))
    fits("Environment", web("GET", "/environments/compression-eval").json())
    gh.state.branch_policies["compression-eval"] = ["main"]
    fits("Environment", web("GET", "/environments/compression-eval").json())
    (rule,) = web("GET", "/environments/compression-eval/deployment-branch-policies").json()["branch_policies"]
    fits("DeploymentBranchPolicy", rule)
    fits("EnvironmentApprovals", web("GET", f"/actions/runs/{run.id}/approvals").json()[0])
    assert web("POST", "//graphql", {"query": "query { viewer { login } }"}).json() == {
        "data": {"viewer": {"login": "github-actions[bot]"}}
    }
    fits("BasicError", web("GET", "/pulls/99").json())
    fits("ValidationError", web("POST", "/issues/1/comments", {"body": ""}).json())
    gh.delete_fork(1)
    gh.close(1)
    fits("PullRequest", web("GET", "/pulls/1").json())


def test_the_fit_is_a_real_one() -> None:
    with pytest.raises(ValueError, match="IssueComment"):
        fits("IssueComment", {"id": 1})


def test_pages_are_at_most_a_hundred_and_linked(gh: LoopbackGitHub, web: Web) -> None:
    for index in range(250):
        gh.comment(1, "contributor", str(index))
    first = web("GET", "/issues/1/comments?per_page=1000")
    assert len(first.json()) == 100
    assert set(first.links) == {"next", "last"}
    assert first.links["next"]["url"].startswith(f"{gh.url}/repos/{REPO}/issues/1/comments?")
    last = web("GET", "/issues/1/comments?per_page=100&page=3")
    assert len(last.json()) == 50
    assert set(last.links) == {"prev", "first"}
    assert len(web("GET", "/issues/1/comments").json()) == 30
    assert web("GET", "/issues/1/comments?page=99").json() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/issues/1/comments", {"body": "x" * 65_536}, 201),
        ("POST", "/issues/1/comments", {"body": "x" * 65_537}, 422),
        ("POST", "/issues/1/comments", {}, 422),
        ("POST", "/issues/1/comments", {"body": 7}, 422),
        ("POST", "/issues/1/comments", ["body"], 400),
        ("POST", "/issues/9/comments", {"body": "x"}, 404),
        ("PATCH", "/issues/comments/9", {"body": "x"}, 404),
        ("DELETE", "/issues/1/labels/absent", None, 404),
        ("POST", "/issues/1/reactions", {"content": "thumbs"}, 422),
        ("POST", "/check-runs", {"name": "x", "head_sha": "0" * 40}, 422),
        ("POST", "/check-runs", {"head_sha": "0" * 40}, 422),
        ("POST", "/git/refs", {"ref": "refs/heads/main", "sha": "MAIN"}, 422),
        ("POST", "/git/refs", {"ref": "main", "sha": "MAIN"}, 422),
        ("PATCH", "/git/refs/heads/absent", {"sha": "MAIN"}, 422),
        ("PUT", "/contents/README.md", {"message": "m", "content": "eA=="}, 422),
        ("PUT", "/contents/README.md", {"message": "m", "content": "eA==", "sha": "0" * 40}, 409),
        ("PUT", "/contents/x", {"message": "m", "content": "not base64"}, 422),
        ("PUT", "/contents/x", {"message": "m", "content": "eA==", "branch": "absent"}, 404),
        ("POST", "/pulls", {"title": "t", "head": "main", "base": "main"}, 422),
        ("POST", "/pulls", {"title": "t", "head": "absent", "base": "main"}, 422),
        ("GET", "/contents/absent", None, 404),
        ("GET", "/tarball/" + "0" * 40, None, 404),
        ("GET", "/commits/" + "0" * 40, None, 422),
        ("GET", "/compare/main..." + "0" * 40, None, 404),
        ("GET", "/actions/workflows/absent.yml/runs", None, 404),
        ("GET", "/nothing/here", None, 404),
        ("GET", "/pulls/1%20or%201", None, 404),
    ],
)
def test_bad_requests_are_refused_as_github_does(
    gh: LoopbackGitHub, web: Web, method: str, path: str, body: Any, status: int
) -> None:
    if isinstance(body, dict) and body.get("sha") == "MAIN":
        body = {**body, "sha": gh.state.refs["heads/main"]}
    answer = web(method, path, body)
    assert answer.status_code == status
    if status >= 400:
        assert answer.json()["message"]


# What GitHub's reference names for each request that the bot makes; one of them is enough. Every token reads metadata,
# which is all that the repository itself and the permission of an account ask for.
PERMISSIONS: dict[tuple[str, str], tuple[str, ...]] = {
    ("GET", "/pulls/1"): ("pull_requests:read",),
    ("GET", "/pulls/1/files"): ("pull_requests:read",),
    ("GET", "/pulls"): ("pull_requests:read",),
    ("POST", "/pulls"): ("pull_requests:write",),
    ("GET", "/issues/1/comments"): ("issues:read", "pull_requests:read"),
    ("POST", "/issues/1/comments"): ("issues:write", "pull_requests:write"),
    ("PATCH", "/issues/comments/9"): ("issues:write", "pull_requests:write"),
    ("DELETE", "/issues/comments/9"): ("issues:write", "pull_requests:write"),
    ("DELETE", "/issues/1/labels/absent"): ("issues:write", "pull_requests:write"),
    ("POST", "/issues/1/reactions"): ("issues:write", "pull_requests:write"),
    ("GET", "/commits/main"): ("contents:read",),
    ("GET", "/compare/main...main"): ("contents:read",),
    ("GET", "/contents/README.md"): ("contents:read",),
    ("PUT", "/contents/new.txt"): ("contents:write",),
    ("GET", "/git/ref/heads/main"): ("contents:read",),
    ("POST", "/git/refs"): ("contents:write",),
    ("PATCH", "/git/refs/heads/absent"): ("contents:write",),
    ("DELETE", "/git/refs/heads/absent"): ("contents:write",),
    ("GET", "/tarball/main"): ("contents:read",),
    ("GET", "/commits/main/check-runs"): ("checks:read",),
    ("POST", "/check-runs"): ("checks:write",),
    ("PATCH", "/check-runs/9"): ("checks:write",),
    ("GET", f"/actions/workflows/{WORKFLOW}/runs"): ("actions:read",),
    ("GET", "/actions/artifacts"): ("actions:read",),
    ("GET", "/actions/runs/9"): ("actions:read",),
    ("GET", "/actions/runs/9/jobs"): ("actions:read",),
    ("GET", "/actions/runs/9/approvals"): ("actions:read",),
    ("GET", "/environments/compression-eval"): ("actions:read",),
    ("GET", "/environments/compression-eval/deployment-branch-policies"): ("actions:read",),
}
SCOPES = ("metadata", "contents", "pull_requests", "issues", "checks", "actions")


@pytest.mark.parametrize(("method", "path"), list(PERMISSIONS))
def test_each_request_needs_the_permission_that_github_names_for_it(gh: LoopbackGitHub, method: str, path: str) -> None:
    named = [permission.split(":") for permission in PERMISSIONS[method, path]]
    gh.state.private = True  # anybody reads a public repository
    for scope, level in named:
        enough = gh.job_token({"metadata": "read", scope: level})
        assert Web(gh, enough)(method, path, {}).status_code != 403
    without = {scope: "write" for scope in SCOPES if scope not in {name for name, _ in named}}
    assert Web(gh, gh.job_token(without))(method, path, {}).status_code == 403
    if named[0][1] == "write":
        readers = dict.fromkeys(SCOPES, "read")
        assert Web(gh, gh.job_token(readers))(method, path, {}).status_code == 403


def test_tokens_decide_between_401_403_and_404(gh: LoopbackGitHub) -> None:
    comment = ("POST", "/issues/1/comments", {"body": "x"})
    assert Web(gh, "wrong")("GET", "/pulls/1").status_code == 401
    assert Web(gh, None)("GET", "/pulls/1").status_code == 200
    assert Web(gh, None)(*comment).status_code == 401
    reader = Web(gh, gh.job_token({"metadata": "read", "pull_requests": "read"}))
    assert reader(*comment).status_code == 403
    assert reader("GET", "/pulls/1").status_code == 200
    person = Web(gh, gh.user_token("maintainer"))
    assert person("POST", "/check-runs", {"name": "x", "head_sha": "0" * 40}).status_code == 403
    stranger = Web(gh, gh.user_token("stranger"))
    assert stranger("POST", "/issues/1/labels", {"labels": ["eval-compression"]}).status_code == 403
    assert stranger(*comment).status_code == 201
    gh.lock_conversation(1)
    assert stranger(*comment).status_code == 403
    assert person(*comment).status_code == 201


def test_a_private_repository_is_hidden_from_strangers() -> None:
    with LoopbackGitHub(REPO, private=True) as gh:
        gh.open_pull({"x": b"1"})
        assert Web(gh, None)("GET", "/pulls/1").status_code == 404
        assert Web(gh, gh.user_token("stranger"))("GET", "/pulls/1").status_code == 404
        assert Web(gh, gh.job_token())("GET", "/pulls/1").status_code == 200


def test_an_unchanged_answer_costs_nothing(gh: LoopbackGitHub, web: Web) -> None:
    first = web("GET", "/pulls/1")
    again = web("GET", "/pulls/1", **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["X-RateLimit-Remaining"] == first.headers["X-RateLimit-Remaining"]
    gh.push_to_pull(1, FILES)
    assert web("GET", "/pulls/1", **{"If-None-Match": first.headers["ETag"]}).status_code == 200


def test_the_rate_limit_runs_out_and_says_when_it_returns() -> None:
    with LoopbackGitHub(REPO, rate_limit=2) as gh:
        web = Web(gh, gh.job_token())
        assert [web("GET", "").status_code for _ in range(3)] == [200, 200, 403]
        refused = web("GET", "")
        assert refused.json()["message"].startswith("API rate limit exceeded")
        assert refused.headers["X-RateLimit-Remaining"] == "0"
        assert int(refused.headers["X-RateLimit-Reset"]) > 0
        assert web("GET", "//rate_limit").json()["rate"]["remaining"] == 0


def test_downloads_go_through_another_host_that_wants_no_token(gh: LoopbackGitHub, web: Web) -> None:
    moved = web("GET", f"/tarball/{gh.state.pulls[1].head_sha}")
    assert moved.status_code == 302
    target = moved.headers["Location"]
    assert not target.startswith(gh.url)
    assert requests.get(target, timeout=5).status_code == 200
    assert requests.get(target, headers={"Authorization": "Bearer x"}, timeout=5).status_code == 400


def test_a_server_stops_with_its_block_and_even_with_a_request_hanging(gh: LoopbackGitHub) -> None:
    with LoopbackGitHub(REPO) as other:
        other.fail("GET", "", kind="timeout")
        with pytest.raises(requests.exceptions.Timeout):
            requests.get(f"{other.url}/repos/{REPO}", timeout=0.2)
        url = other.url
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(url, timeout=1)
