"""Events become requests; what is malformed is refused and what is not ours is ignored."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.pull_request.event import EvaluationRequest, Ignored, WorkflowRun, read_event
from eval_core.base.errors import UserError

PAYLOADS = Path(__file__).parent / "payloads"
SHA = "0123456789abcdef0123456789abcdef01234567"
LABEL = "eval-compression"
ENV = {
    "GITHUB_REPOSITORY": "acme/agent",
    "GITHUB_RUN_ID": "4711",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_SHA": "f" * 40,
}
MISSING = object()


def payload(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((PAYLOADS / f"{name}.json").read_text())
    return value


def changed(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    """Return a copy with one field changed or, for MISSING, removed."""
    value = copy.deepcopy(value)
    *parents, last = path.split(".")
    place: Any = value
    for part in parents:
        place = place[part]
    if new is MISSING:
        del place[last]
    else:
        place[last] = new
    return value


def test_a_label_pins_the_commit_of_its_event() -> None:
    request = read_event("pull_request_target", payload("labeled"), ENV)
    assert request == EvaluationRequest(
        repo="acme/agent",
        pr=7,
        sha=SHA,
        sender="maintainer",
        trigger="label",
        mode="evaluate",
        runs=None,
        force=False,
        label=LABEL,
        run=WorkflowRun(4711, 2),
        run_url="https://github.com/acme/agent/actions/runs/4711/attempts/2",
    )


def test_a_dispatch_carries_its_inputs() -> None:
    value = payload("workflow_dispatch")
    value["inputs"] |= {"runs": "5", "force": True}
    request = read_event("workflow_dispatch", value, ENV)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.trigger, request.mode) == (7, SHA, "dispatch", "evaluate")
    assert (request.runs, request.force, request.label, request.sender) == (5, True, None, "maintainer")


def test_a_baseline_of_the_branch_needs_no_pull_request() -> None:
    value = changed(payload("workflow_dispatch"), "inputs", {"mode": "baseline", "pr": "", "sha": ""})
    request = read_event("workflow_dispatch", value, ENV)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.mode) == (None, "f" * 40, "baseline")


def test_a_baseline_may_name_a_pull_request() -> None:
    value = changed(payload("workflow_dispatch"), "inputs.mode", "baseline")
    request = read_event("workflow_dispatch", value, ENV)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.mode) == (7, SHA, "baseline")


def test_of_two_runs_the_later_attempt_is_newer() -> None:
    assert WorkflowRun(1, 2) < WorkflowRun(2, 1) < WorkflowRun(2, 2)


@pytest.mark.parametrize("name", ["pull_request", "push", "schedule", "Workflow_Dispatch", "", "x\n"])
def test_other_events_are_ignored_whatever_they_carry(name: str) -> None:
    assert isinstance(read_event(name, payload("labeled"), ENV), Ignored)
    assert isinstance(read_event(name, None, ENV), Ignored)


@pytest.mark.parametrize(
    "action", ["synchronize", "opened", "reopened", "unlabeled", "edited", "Labeled", "labeled ", "closed"]
)
def test_only_adding_a_label_starts_anything(action: str) -> None:
    value = changed(payload("labeled"), "action", action)
    assert isinstance(read_event("pull_request_target", value, ENV), Ignored)


HOSTILE_LABELED: list[tuple[str, Any]] = [
    ("action", MISSING),
    ("action", 1),
    ("label", MISSING),
    ("label", "eval-compression"),
    ("label.name", None),
    ("label.name", ["eval-compression"]),
    ("pull_request", MISSING),
    ("pull_request", []),
    ("pull_request.number", MISSING),
    ("pull_request.number", True),
    ("pull_request.number", -7),
    ("pull_request.number", 0),
    ("pull_request.number", 7.0),
    ("pull_request.number", 12345678),
    ("number", 8),
    ("pull_request.head", None),
    ("pull_request.head.sha", MISSING),
    ("pull_request.head.sha", SHA.upper()),
    ("pull_request.head.sha", SHA[:39]),
    ("pull_request.head.sha", SHA + "\n"),
    ("pull_request.head.sha", int("1" * 40)),
    ("repository", MISSING),
    ("repository.full_name", "acme"),
    ("repository.full_name", "acme/agent/../other"),
    ("repository.full_name", "acme/.."),
    ("repository.full_name", "someone/else"),
    ("sender", MISSING),
    ("sender.login", ""),
    ("sender.login", "../admin"),
    ("sender.login", "maintainer\nadmin"),
    ("sender.login", "a b"),
]


@pytest.mark.parametrize(("path", "value"), HOSTILE_LABELED)
def test_a_malformed_label_event_is_an_error(path: str, value: Any) -> None:
    with pytest.raises(UserError) as caught:
        read_event("pull_request_target", changed(payload("labeled"), path, value), ENV)
    assert "\n" not in str(caught.value)


HOSTILE_INPUTS: list[tuple[str, Any]] = [
    ("pr", ""),
    ("pr", "0"),
    ("pr", "12345678"),
    ("pr", "##7"),
    ("pr", "7 8"),
    ("pr", "+7"),
    ("pr", "7; curl example"),
    ("pr", "$(id)"),
    ("pr", "`id`"),
    ("pr", "../../etc/passwd"),
    ("pr", "\u0667"),
    ("pr", "７"),
    ("pr", ["7"]),
    ("pr", {"a": 1}),
    ("sha", ""),
    ("sha", "main"),
    ("sha", "HEAD"),
    ("sha", SHA[:6]),
    ("sha", SHA + "0"),
    ("sha", f"{SHA}^{{}}"),
    ("sha", "--upload-pack=x" + "a" * 25),
    ("sha", "g" * 40),
    ("mode", "Evaluate"),
    ("mode", "delete"),
    ("runs", "0"),
    ("runs", "51"),
    ("runs", "-1"),
    ("runs", "1e3"),
    ("runs", "3.5"),
    ("force", "yes"),
    ("force", "True"),
    ("force", "::set-output name=x::y"),
    ("budget", "1000000"),
]


@pytest.mark.parametrize(("key", "value"), HOSTILE_INPUTS)
def test_a_hostile_input_is_refused_and_quoted_harmlessly(key: str, value: Any) -> None:
    with pytest.raises(UserError) as caught:
        read_event("workflow_dispatch", changed(payload("workflow_dispatch"), f"inputs.{key}", value), ENV)
    message = str(caught.value)
    assert message.startswith("inputs")
    assert message.isascii()
    assert "\n" not in message
    assert "::set-output name=x::y\n" not in message


@pytest.mark.parametrize("inputs", [None, {}, [], "pr=7"])
def test_a_dispatch_without_inputs_is_refused(inputs: Any) -> None:
    with pytest.raises(UserError):
        read_event("workflow_dispatch", changed(payload("workflow_dispatch"), "inputs", inputs), ENV)


def test_a_sha_without_its_pull_request_is_refused() -> None:
    value = changed(payload("workflow_dispatch"), "inputs", {"mode": "baseline", "sha": SHA})
    with pytest.raises(UserError, match=r"inputs\.pr"):
        read_event("workflow_dispatch", value, ENV)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("GITHUB_RUN_ID", ""),
        ("GITHUB_RUN_ID", "12a"),
        ("GITHUB_RUN_ATTEMPT", "-1"),
        ("GITHUB_SERVER_URL", "javascript:alert(1)"),
        ("GITHUB_SERVER_URL", "https://github.com/) [x](https://example"),
        ("GITHUB_REPOSITORY", "someone/else"),
    ],
)
def test_a_strange_environment_is_refused(key: str, value: str) -> None:
    with pytest.raises(UserError, match=r"GITHUB_|event\.repository"):
        read_event("pull_request_target", payload("labeled"), {**ENV, key: value})


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_payload_that_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(UserError):
        read_event("pull_request_target", value, ENV)


def test_deciding_needs_no_network_library_and_the_bot_no_model() -> None:
    code = (
        "import sys, bot.pull_request.event, bot.pull_request.admission;"
        "pure = {'aiohttp', 'github', 'requests', 'litellm'} & set(sys.modules);"
        "import bot.github.repository, bot.steps.comment, bot.steps.check, bot.steps.fetch, bot.steps.gate;"
        "print(sorted(pure), 'litellm' in sys.modules, 'github' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] False False"


@pytest.mark.parametrize(("given", "meant"), [("#2", 2), (" 2", 2), ("2 ", 2), ("2", 2), (" #2 ", 2)])
def test_a_number_may_be_written_as_people_write_it(given: str, meant: int) -> None:
    value = changed(payload("workflow_dispatch"), "inputs.pr", given)
    request = read_event("workflow_dispatch", value, ENV)
    assert isinstance(request, EvaluationRequest)
    assert request.pr == meant


@pytest.mark.parametrize("given", [SHA[:7], SHA[:12], f" {SHA[:9]} ", SHA[:8].upper()])
def test_a_short_sha_is_taken(given: str) -> None:
    request = read_event("workflow_dispatch", changed(payload("workflow_dispatch"), "inputs.sha", given), ENV)
    assert isinstance(request, EvaluationRequest)
    assert SHA.startswith(request.sha)


def test_an_owner_that_a_company_manages_is_one() -> None:
    value = changed(payload("labeled"), "repository.full_name", "jane_acme/agent")
    request = read_event("pull_request_target", value, {**ENV, "GITHUB_REPOSITORY": "jane_acme/agent"})
    assert isinstance(request, EvaluationRequest)
    assert request.repo == "jane_acme/agent"


def comment(body: object, *, pull: bool = True, action: str = "created") -> dict[str, Any]:
    issue: dict[str, Any] = {"number": 7, **({"pull_request": {"url": "x"}} if pull else {})}
    return {
        "action": action,
        "issue": issue,
        "comment": {"body": body, "created_at": "2026-01-02T03:04:05Z"},
        "repository": {"full_name": "acme/agent"},
        "sender": {"login": "maintainer"},
    }


def test_the_command_in_a_comment_asks_for_the_head_with_its_options() -> None:
    body = f"/eval-compression runs=5 fixtures=a,b-1 sha={SHA[:7]} force\r\n\r\nplease"
    request = read_event("issue_comment", comment(body), ENV)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.trigger, request.mode) == (7, SHA[:7], "comment", "evaluate")
    assert (request.runs, request.fixtures, request.force, request.mistake) == (5, ("a", "b-1"), True, None)
    bare = read_event("issue_comment", comment("/eval-compression"), ENV)
    assert isinstance(bare, EvaluationRequest)
    assert (bare.sha, bare.runs, bare.fixtures) == ("", None, ())
    assert bare.asked_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    again = read_event("issue_comment", comment("/eval-compression again"), ENV)
    assert again == bare
    renew = read_event("issue_comment", comment("/eval-compression baseline"), ENV)
    assert isinstance(renew, EvaluationRequest)
    assert renew.mode == "baseline"


@pytest.mark.parametrize(
    "value",
    [
        comment("/eval-compression", pull=False),
        comment("/eval-compression", action="edited"),
        comment("/eval-compressions"),
        comment("please /eval-compression"),
        comment("> /eval-compression"),
        comment(""),
        comment(None),
    ],
)
def test_other_comments_start_nothing(value: dict[str, Any]) -> None:
    assert isinstance(read_event("issue_comment", value, ENV), Ignored)


@pytest.mark.parametrize("moment", [None, 5, "yesterday", "2026-01-02T03:04:05"])
def test_a_command_without_its_time_is_an_error(moment: Any) -> None:
    value = comment("/eval-compression")
    value["comment"]["created_at"] = moment
    with pytest.raises(UserError, match="created_at"):
        read_event("issue_comment", value, ENV)


@pytest.mark.parametrize(
    "options", ["runs=0", "runs=x", "runs", "fixtures=", "fixtures=../x", "fixtures=a;b", "sha=HEAD", "now", "--force"]
)
def test_a_mistake_in_the_command_is_kept_for_the_answer(options: str) -> None:
    request = read_event("issue_comment", comment(f"/eval-compression {options}"), ENV)
    assert isinstance(request, EvaluationRequest)
    assert request.mistake
    assert "`" not in request.mistake
