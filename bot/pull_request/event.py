"""What happened on GitHub, read into one request: a label, a command, an approving review, or "Run workflow"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from eval_core.base.config import MOST_SHARDS
from eval_core.base.errors import UserError

Mode = Literal["evaluate", "baseline"]
Trigger = Literal["label", "dispatch", "comment", "review"]

COMMAND = "/eval-compression"
"""The first word of a comment that asks for an evaluation."""
MAX_RUNS = 50
DEFAULT_SERVER = "https://github.com"

REPO = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9._-]{1,100}"
"""owner/name; accounts that a company manages carry an underscore and a suffix, also as owners."""
LOGIN = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\[bot\])?"
"""An account; apps end in "[bot]"."""

_PR = re.compile(r"[0-9]{1,7}")
_SHA = re.compile(r"[0-9a-f]{40}")
_SHORT_SHA = re.compile(r"[0-9a-f]{7,40}")
_REPO = re.compile(REPO)
_LOGIN = re.compile(LOGIN)
_FIXTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_COUNT = re.compile(r"[0-9]{1,3}")
_ID = re.compile(r"[0-9]{1,19}")
_SERVER = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")


@dataclass(frozen=True, order=True)
class WorkflowRun:
    """The workflow run that acts; of two runs the greater one is the newer."""

    id: int
    attempt: int


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """A wish to evaluate one commit, pinned when it was made."""

    repo: str
    pr: int | None
    """None only for a baseline of the branch itself."""
    sha: str
    """The commit; a dispatch or a comment may give its first digits, and a comment none at all: the head is meant."""
    sender: str
    trigger: Trigger
    run: WorkflowRun
    run_url: str
    mode: Mode = "evaluate"
    runs: int | None = None
    """Graded runs asked for; None leaves it to the configuration."""
    force: bool = False
    label: str | None = None
    shards: int | None = None
    """Jobs that share the work; None leaves it to the configuration."""
    fixtures: tuple[str, ...] = ()
    """Fixtures asked for; none means all."""
    asked_at: datetime | None = None
    """When the comment was written; the commit that was the head then is meant."""
    head: str | None = None
    """Where the reviewed commit is, as owner:branch; which pull request that is, GitHub has to tell."""
    mistake: str | None = None
    """What is wrong with the command, for whoever may give one."""


@dataclass(frozen=True)
class Ignored:
    """An event that is none of our business, and why."""

    why: str


def read_event(name: str, payload: Any, env: Mapping[str, str]) -> EvaluationRequest | Ignored:
    """Turn a webhook payload into a request; anything malformed is an error, anything else is ignored.

    Whether a label is the one that starts an evaluation is for the configuration of the base branch to say.
    """
    if name == "pull_request_target":
        return _labeled(_table(payload, "event"), env)
    if name == "workflow_dispatch":
        return _dispatched(_table(payload, "event"), env)
    if name == "issue_comment":
        return _commented(_table(payload, "event"), env)
    if name == "workflow_run":
        return _reviewed(_table(payload, "event"), env)
    return Ignored(f"the event {_shown(name)} does not start an evaluation")


@dataclass(frozen=True)
class StatusEvent:
    """Something that happened to a pull request, or a merge that a queue tests, and asks for no evaluation."""

    pr: int | None
    """None for a merge of the queue."""
    sha: str
    run: WorkflowRun
    run_url: str
    retargeted: bool = False
    closed: bool = False


def read_status_event(name: str, payload: Any, env: Mapping[str, str]) -> StatusEvent | str:
    """Turn a webhook payload into what is marked, or into why nothing is."""
    event = _table(payload, "event")
    if name not in ("pull_request_target", "merge_group"):
        return f"the event {_shown(name)} marks nothing"
    run, run_url, _ = _surroundings(event, env)
    if name == "merge_group":
        group = _table(event.get("merge_group"), "event.merge_group")
        return StatusEvent(None, _sha(group.get("head_sha"), "event.merge_group.head_sha"), run, run_url)
    if _sender(event) == "dependabot[bot]":
        return "GitHub gives a run that Dependabot starts a token that can only read."
    action = _text(event, "action", "event")
    changes = event.get("changes")
    retargeted = action == "edited" and isinstance(changes, Mapping) and "base" in changes
    if action == "edited" and not retargeted:
        return "only the text of the pull request was edited"
    pull = _table(event.get("pull_request"), "event.pull_request")
    head = _table(pull.get("head"), "event.pull_request.head")
    return StatusEvent(
        _number(pull.get("number"), "event.pull_request.number"),
        _sha(head.get("sha"), "event.pull_request.head.sha"),
        run,
        run_url,
        retargeted,
        action == "closed",
    )


def _labeled(payload: Mapping[str, Any], env: Mapping[str, str]) -> EvaluationRequest | Ignored:
    action = _text(payload, "action", "event")
    if action != "labeled":
        # "synchronize" above all: a push after the label must never start a run with our key.
        return Ignored(f"the action {_shown(action)} of a pull request does not start an evaluation")
    name = _text(_table(payload.get("label"), "event.label"), "name", "event.label")
    pull = _table(payload.get("pull_request"), "event.pull_request")
    number = _number(pull.get("number"), "event.pull_request.number")
    outer = payload.get("number")
    if outer is not None and _number(outer, "event.number") != number:
        raise UserError(f"event.number: {outer} is not the pull request's number {number}; the event is inconsistent")
    head = _table(pull.get("head"), "event.pull_request.head")
    run, run_url, repo = _surroundings(payload, env)
    return EvaluationRequest(
        repo=repo,
        pr=number,
        sha=_sha(head.get("sha"), "event.pull_request.head.sha"),
        sender=_sender(payload),
        trigger="label",
        label=name,
        run=run,
        run_url=run_url,
    )


def _dispatched(payload: Mapping[str, Any], env: Mapping[str, str]) -> EvaluationRequest:
    given = payload.get("inputs")
    inputs = {} if given is None else _table(given, "event.inputs")
    unknown = sorted(str(key) for key in set(inputs) - {"pr", "sha", "mode", "runs", "shards", "force"})
    if unknown:
        raise UserError(f"inputs: unknown input {_shown(unknown[0])}; known are pr, sha, mode, runs, shards and force")
    mode = _mode(_input(inputs, "mode"))
    pr, sha = _input(inputs, "pr"), _input(inputs, "sha")
    if mode == "evaluate" and not pr:
        raise UserError("inputs.pr: empty; give the number of the pull request to evaluate, for example 123")
    if pr and not sha:
        raise UserError("inputs.sha: empty; give the SHA of the pull request's last commit, at least 7 digits of it")
    if sha and not pr:
        raise UserError("inputs.pr: empty although a SHA is given; give the pull request that the commit belongs to")
    run, run_url, repo = _surroundings(payload, env)
    return EvaluationRequest(
        repo=repo,
        pr=_number(pr, "inputs.pr") if pr else None,
        # Without a pull request the commit is the one that the workflow was started on.
        sha=_short_sha(sha, "inputs.sha") if sha else _sha(env.get("GITHUB_SHA"), "GITHUB_SHA"),
        sender=_sender(payload),
        trigger="dispatch",
        mode=mode,
        runs=_runs(_input(inputs, "runs")),
        shards=_count(_input(inputs, "shards"), "inputs.shards", MOST_SHARDS),
        force=_flag(_input(inputs, "force")),
        run=run,
        run_url=run_url,
    )


def _commented(payload: Mapping[str, Any], env: Mapping[str, str]) -> EvaluationRequest | Ignored:
    """Read `/eval-compression [runs=5] [fixtures=a,b] [sha=1234567] [force] [baseline]` from a new comment."""
    if _text(payload, "action", "event") != "created":
        return Ignored("only a new comment starts an evaluation")
    issue = _table(payload.get("issue"), "event.issue")
    comment = _table(payload.get("comment"), "event.comment")
    body = comment.get("body")
    words = body.strip().split("\n", 1)[0].split() if isinstance(body, str) and body.strip() else []
    if issue.get("pull_request") is None or not words or words[0] != COMMAND:
        return Ignored(f"the comment does not begin with {COMMAND} on a pull request")
    run, run_url, repo = _surroundings(payload, env)
    bare = EvaluationRequest(
        repo=repo,
        pr=_number(issue.get("number"), "event.issue.number"),
        sha="",
        sender=_sender(payload),
        trigger="comment",
        run=run,
        run_url=run_url,
        asked_at=_moment(comment.get("created_at"), "event.comment.created_at"),
    )
    try:
        return _with_options(bare, words[1:])
    except UserError as exc:
        return replace(bare, mistake=str(exc))


def _reviewed(payload: Mapping[str, Any], env: Mapping[str, str]) -> EvaluationRequest | Ignored:
    """Read that a review was submitted. GitHub tells a run that has the key only of the run that heard of it."""
    run = _table(payload.get("workflow_run"), "event.workflow_run")
    if run.get("event") != "pull_request_review" or run.get("conclusion") != "success":
        return Ignored("only an approving review starts an evaluation after another workflow")
    owner = _table(_table(run.get("head_repository"), "head_repository").get("owner"), "head_repository.owner")
    place = f"{_login(owner, 'head_repository.owner')}:{_text(run, 'head_branch', 'event.workflow_run')}"
    # Whoever submitted the review; the sender of this event may be somebody who ran that workflow again.
    reviewer = _login(_table(run.get("actor"), "event.workflow_run.actor"), "event.workflow_run.actor")
    ours, run_url, repo = _surroundings(payload, env)
    return EvaluationRequest(
        repo=repo,
        pr=None,
        sha=_sha(run.get("head_sha"), "event.workflow_run.head_sha"),
        sender=reviewer,
        trigger="review",
        run=ours,
        run_url=run_url,
        head=place,
    )


def _with_options(request: EvaluationRequest, words: Sequence[str]) -> EvaluationRequest:
    for word in words:
        name, sign, value = word.partition("=")
        match (name, bool(sign)):
            case ("runs", True):
                request = replace(request, runs=_runs(value, "runs"))
            case ("fixtures", True):
                request = replace(request, fixtures=_fixtures(value))
            case ("sha", True):
                request = replace(request, sha=_short_sha(value, "sha"))
            case ("force", False):
                request = replace(request, force=True)
            case ("again", False):
                pass  # the command itself asks for one more evaluation
            case ("baseline", False):
                request = replace(request, mode="baseline")
            case _:
                raise UserError(
                    f"{COMMAND}: {_shown(word)} is not an option; "
                    "known are runs=N, fixtures=A,B, sha=1234567, force, again and baseline"
                )
    return request


def _fixtures(value: str) -> tuple[str, ...]:
    names = tuple(name for name in value.split(",") if name)
    wrong = [name for name in names if not _FIXTURE.fullmatch(name)]
    if wrong or not names or len(names) > 50:
        raise UserError(f"fixtures: {_shown(wrong[0] if wrong else value)} is not a list of fixtures, like a,b")
    return tuple(dict.fromkeys(names))


def _surroundings(payload: Mapping[str, Any], env: Mapping[str, str]) -> tuple[WorkflowRun, str, str]:
    repo = _text(_table(payload.get("repository"), "event.repository"), "full_name", "event.repository")
    if not _REPO.fullmatch(repo) or repo.endswith(("/.", "/..")):
        raise UserError(f"event.repository.full_name: {_shown(repo)} is not owner/name")
    running = env.get("GITHUB_REPOSITORY")
    if running and running != repo:
        raise UserError(f"event.repository.full_name: {repo} is not the repository of this run, {_shown(running)}")
    values: dict[str, int] = {}
    for key in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"):
        value = env.get(key, "")
        if not _ID.fullmatch(value):
            raise UserError(f"{key}: {_shown(value)} is not a number; run this inside a GitHub workflow or set it")
        values[key] = int(value)
    server = env.get("GITHUB_SERVER_URL") or DEFAULT_SERVER
    if not _SERVER.fullmatch(server):
        raise UserError(f"GITHUB_SERVER_URL: {_shown(server)} is not the address of a server")
    run = WorkflowRun(values["GITHUB_RUN_ID"], values["GITHUB_RUN_ATTEMPT"])
    return run, f"{server}/{repo}/actions/runs/{run.id}/attempts/{run.attempt}", repo


def _shown(value: object) -> str:
    """Quote a stranger's value for a message: escaped and short, so that it cannot pose as ours."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{where}: {'missing' if value is None else 'not an object'} in the payload")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise UserError(f"{where}.{key}: {'missing' if value is None else _shown(value) + ' is not a text'}")
    return value


def _input(inputs: Mapping[str, Any], key: str) -> str:
    """Return an input as text; GitHub sends texts, but booleans too where the input's type says so."""
    value = inputs.get(key)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise UserError(f"inputs.{key}: {_shown(value)} is not a text")
    # Typed by a person into a form.
    return value.strip()


def _number(value: Any, where: str) -> int:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str):
        text = text.removeprefix("#")
    if not isinstance(text, str) or not _PR.fullmatch(text) or int(text) == 0:
        raise UserError(f"{where}: {_shown(value)} is not the number of a pull request; give digits only, like 123")
    return int(text)


def _moment(value: Any, where: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise UserError(f"{where}: {_shown(value)} is not a time") from None
    if found.tzinfo is None:
        raise UserError(f"{where}: {_shown(value)} has no time zone")
    return found


def _sha(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _SHA.fullmatch(value):
        raise UserError(f"{where}: {_shown(value)} is not a full commit SHA; give all 40 digits (0-9, a-f)")
    return value


def _short_sha(value: str, where: str) -> str:
    if not _SHORT_SHA.fullmatch(value.lower()):
        raise UserError(f"{where}: {_shown(value)} is not a commit SHA; give 7 to 40 digits (0-9, a-f)")
    return value.lower()


def _sender(payload: Mapping[str, Any]) -> str:
    return _login(_table(payload.get("sender"), "event.sender"), "event.sender")


def _login(account: Mapping[str, Any], where: str) -> str:
    login = _text(account, "login", where)
    if not _LOGIN.fullmatch(login):
        raise UserError(f"{where}.login: {_shown(login)} is not the name of an account")
    return login


def _mode(value: str) -> Mode:
    if value in ("", "evaluate"):
        return "evaluate"
    if value == "baseline":
        return "baseline"
    raise UserError(f"inputs.mode: {_shown(value)} is not one of evaluate, baseline")


def _runs(value: str, where: str = "inputs.runs") -> int | None:
    return _count(value, where, MAX_RUNS)


def _count(value: str, where: str, most: int) -> int | None:
    if not value:
        return None
    if not _COUNT.fullmatch(value) or not 1 <= int(value) <= most:
        raise UserError(f"{where}: {_shown(value)} is not a number from 1 to {most}")
    return int(value)


def _flag(value: str) -> bool:
    if value in ("", "false"):
        return False
    if value == "true":
        return True
    raise UserError(f"inputs.force: {_shown(value)} is not true or false")
