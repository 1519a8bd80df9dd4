"""Check runs: only apps write them, and a conclusion completes them."""

from __future__ import annotations

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.shapes import app, node_id, stamp
from loopback.state import StoredCheck, now

__all__ = ["ROUTES"]

SUMMARY_LIMIT = 65_535
MOST_ANNOTATIONS = 50
ANNOTATION_LIMIT, TITLE_LIMIT = 64 << 10, 255
ANNOTATION_KEYS = frozenset({"path", "start_line", "end_line", "annotation_level", "title", "message"})
STATUSES = frozenset({"queued", "in_progress", "completed"})
CONCLUSIONS = frozenset({"success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"})


def _shape(ex: Exchange, check: StoredCheck) -> Json:
    here = f"{ex.url}/repos/{ex.state.repo}/check-runs/{check.id}"
    return {
        "id": check.id,
        "node_id": node_id("CR", check.id),
        "name": check.name,
        "head_sha": check.head_sha,
        "external_id": check.external_id,
        "url": here,
        "html_url": f"{ex.url}/{ex.state.repo}/runs/{check.id}",
        "details_url": check.details_url,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": stamp(check.started),
        "completed_at": stamp(check.completed),
        "output": {
            "title": check.title,
            "summary": check.summary,
            "text": None,
            "annotations_count": len(check.annotations),
            "annotations_url": f"{here}/annotations",
        },
        "check_suite": {"id": 1},
        "app": app(ex.url),
        "pull_requests": [],
    }


def _apps_only(ex: Exchange) -> None:
    if ex.token is not None and ex.token.permissions is None:
        raise Problem(403, "You must authenticate via a GitHub App.")
    ex.needs("checks")


async def create(ex: Exchange) -> web.Response:
    """Start a check run on a commit."""
    _apps_only(ex)
    body = await ex.body()
    for key in ("name", "head_sha"):
        if not isinstance(body.get(key), str) or not body[key]:
            raise Problem(422, f'Invalid request.\n\n"{key}" wasn\'t supplied.')
    if body["head_sha"] not in ex.state.history.commits:
        raise Problem(422, f"No commit found for SHA: {body['head_sha']}")
    check = StoredCheck(
        id=ex.state.new_id(),
        name=body["name"],
        head_sha=body["head_sha"],
        external_id="",
        status="queued",
        conclusion=None,
        details_url=None,
        title=None,
        summary=None,
        started=now(),
        completed=None,
    )
    _apply(check, body)
    ex.state.checks[check.id] = check
    return answer(_shape(ex, check), 201)


async def update(ex: Exchange) -> web.Response:
    """Change a check run."""
    _apps_only(ex)
    check = ex.state.checks.get(ex.number("check"))
    if check is None:
        raise Problem(404, "Not Found")
    _apply(check, await ex.body())
    return answer(_shape(ex, check))


async def listing(ex: Exchange) -> web.Response:
    """List a commit's check runs: the latest of each name, or all."""
    ex.needs("checks", level="read", role="read")
    sha = ex.state.resolve(ex.part("ref"))
    if sha is None:
        raise Problem(422, f"No commit found for SHA: {ex.part('ref')}")
    name = ex.request.query.get("check_name")
    found = [
        check
        for check in sorted(ex.state.checks.values(), key=lambda check: -check.id)
        if check.head_sha == sha and (name is None or check.name == name)
    ]
    if ex.request.query.get("filter", "latest") == "latest":
        found = list({check.name: check for check in reversed(found)}.values())
    return ex.page([_shape(ex, check) for check in found], key="check_runs")


def _apply(check: StoredCheck, body: Json) -> None:
    status, conclusion = body.get("status", check.status), body.get("conclusion")
    output = body.get("output")
    if status not in STATUSES:
        raise Problem.invalid("CheckRun", "status")
    if conclusion is not None and conclusion not in CONCLUSIONS:
        raise Problem.invalid("CheckRun", "conclusion")
    if body.get("status") == "completed" and conclusion is None:
        raise Problem(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
    if output is not None:
        if not isinstance(output, dict) or not all(isinstance(output.get(key), str) for key in ("title", "summary")):
            raise Problem(422, 'Invalid request.\n\n"title", "summary" weren\'t supplied.')
        if len(output["summary"].encode()) > SUMMARY_LIMIT:
            raise Problem.invalid("CheckRun", "summary", "custom", "Only 65535 characters are allowed")
        check.title, check.summary = output["title"], output["summary"]
        # GitHub adds those of an update to those that are there.
        check.annotations += _annotations(output.get("annotations", []))
    check.external_id = str(body.get("external_id", check.external_id))
    check.details_url = body.get("details_url", check.details_url)
    check.status = "completed" if conclusion is not None else status
    check.conclusion = conclusion
    check.completed = now() if conclusion is not None else None


def _annotations(given: list[Json]) -> list[Json]:
    if len(given) > MOST_ANNOTATIONS:
        raise Problem.invalid("CheckRun", "annotations", "custom", "Only 50 annotations are allowed per request")
    for item in given:
        lines = item.get("start_line"), item.get("end_line")
        fits = (
            all(isinstance(line, int) and line > 0 for line in lines)
            and item["start_line"] <= item["end_line"]
            and item.get("annotation_level") in ("notice", "warning", "failure")
            and all(isinstance(item.get(key), str) and item[key] for key in ("path", "message"))
            and len(item["message"].encode()) <= ANNOTATION_LIMIT
            and len(item.get("title", "")) <= TITLE_LIMIT
        )
        if not fits or set(item) - ANNOTATION_KEYS:
            raise Problem(422, f"Invalid request.\n\nInvalid annotation: {item}")
    return given


ROUTES: list[tuple[str, str, Handler]] = [
    ("POST", "/check-runs", create),
    ("PATCH", "/check-runs/{check}", update),
    ("GET", "/commits/{ref}/check-runs", listing),
]
