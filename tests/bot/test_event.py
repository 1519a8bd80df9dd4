"""Events become requests; what is malformed is refused and what is not ours is ignored."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.event import EvaluationRequest, Ignored, WorkflowRun, read_event
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
    request = read_event("pull_request_target", payload("labeled"), ENV, label=LABEL)
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
    request = read_event("workflow_dispatch", value, ENV, label=LABEL)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.trigger, request.mode) == (7, SHA, "dispatch", "evaluate")
    assert (request.runs, request.force, request.label, request.sender) == (5, True, None, "maintainer")


def test_a_baseline_of_the_branch_needs_no_pull_request() -> None:
    value = changed(payload("workflow_dispatch"), "inputs", {"mode": "baseline", "pr": "", "sha": ""})
    request = read_event("workflow_dispatch", value, ENV, label=LABEL)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.mode) == (None, "f" * 40, "baseline")


def test_a_baseline_may_name_a_pull_request() -> None:
    value = changed(payload("workflow_dispatch"), "inputs.mode", "baseline")
    request = read_event("workflow_dispatch", value, ENV, label=LABEL)
    assert isinstance(request, EvaluationRequest)
    assert (request.pr, request.sha, request.mode) == (7, SHA, "baseline")


def test_of_two_runs_the_later_attempt_is_newer() -> None:
    assert WorkflowRun(1, 2) < WorkflowRun(2, 1) < WorkflowRun(2, 2)


@pytest.mark.parametrize("name", ["pull_request", "push", "issue_comment", "schedule", "Workflow_Dispatch", "", "x\n"])
def test_other_events_are_ignored_whatever_they_carry(name: str) -> None:
    assert isinstance(read_event(name, payload("labeled"), ENV, label=LABEL), Ignored)
    assert isinstance(read_event(name, None, ENV, label=LABEL), Ignored)


@pytest.mark.parametrize(
    "action", ["synchronize", "opened", "reopened", "unlabeled", "edited", "Labeled", "labeled ", "closed"]
)
def test_only_adding_a_label_starts_anything(action: str) -> None:
    value = changed(payload("labeled"), "action", action)
    assert isinstance(read_event("pull_request_target", value, ENV, label=LABEL), Ignored)


@pytest.mark.parametrize(
    "name",
    ["Eval-Compression", "eval-compression ", " eval-compression", "eval-compression\n", "eval", "eval\u2010compressi"],
)
def test_only_the_exact_label_counts(name: str) -> None:
    value = changed(payload("labeled"), "label.name", name)
    assert isinstance(read_event("pull_request_target", value, ENV, label=LABEL), Ignored)


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
        read_event("pull_request_target", changed(payload("labeled"), path, value), ENV, label=LABEL)
    assert "\n" not in str(caught.value)


HOSTILE_INPUTS: list[tuple[str, Any]] = [
    ("pr", ""),
    ("pr", "0"),
    ("pr", "12345678"),
    ("pr", "7\n"),
    ("pr", " 7"),
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
    ("sha", SHA[:7]),
    ("sha", SHA.upper()),
    ("sha", SHA + "0"),
    ("sha", SHA + "\n"),
    ("sha", f"{SHA}^{{}}"),
    ("sha", "--upload-pack=x" + "a" * 25),
    ("sha", "g" * 40),
    ("mode", "Evaluate"),
    ("mode", "delete"),
    ("mode", "evaluate\n"),
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
        read_event("workflow_dispatch", changed(payload("workflow_dispatch"), f"inputs.{key}", value), ENV, label=LABEL)
    message = str(caught.value)
    assert message.startswith("inputs")
    assert message.isascii()
    assert "\n" not in message
    assert "::set-output name=x::y\n" not in message


@pytest.mark.parametrize("inputs", [None, {}, [], "pr=7"])
def test_a_dispatch_without_inputs_is_refused(inputs: Any) -> None:
    with pytest.raises(UserError):
        read_event("workflow_dispatch", changed(payload("workflow_dispatch"), "inputs", inputs), ENV, label=LABEL)


def test_a_sha_without_its_pull_request_is_refused() -> None:
    value = changed(payload("workflow_dispatch"), "inputs", {"mode": "baseline", "sha": SHA})
    with pytest.raises(UserError, match=r"inputs\.pr"):
        read_event("workflow_dispatch", value, ENV, label=LABEL)


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
        read_event("pull_request_target", payload("labeled"), {**ENV, key: value}, label=LABEL)


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_payload_that_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(UserError):
        read_event("pull_request_target", value, ENV, label=LABEL)


def test_deciding_needs_no_network_library_and_the_bot_no_model() -> None:
    code = (
        "import sys, bot.event, bot.admission; pure = {'aiohttp', 'github', 'requests', 'litellm'} & set(sys.modules);"
        "import bot.github.repository, bot.github.comment, bot.github.check, bot.steps.fetch, bot.steps.gate;"
        "import bot.github.escape, bot.testing.github;"
        "print(sorted(pure), 'litellm' in sys.modules, 'github' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] False False"
