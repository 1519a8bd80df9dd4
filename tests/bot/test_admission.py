"""The gate's job against a GitHub that fails, and everything that can have happened meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adopted
import pytest
import small

from bot.event import WorkflowRun
from bot.github.api_error import Unavailable
from bot.github.comment import MARKER, Sticky
from bot.github.repository import GitHub
from bot.github.rest import Patience
from bot.steps.gate import Admission, Turned, admit
from bot.testing.github import LoopbackGitHub
from bot.testing.journey import label_event
from bot.ticket import read_ticket
from eval_core.base.config import Config
from eval_core.base.errors import UserError

CONFIG = Config(watch=["agent/**"], target={"compressor": "agent.context_compressor:ContextCompressor"})
Admit = Callable[..., Admission | Turned]


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github


def client(gh: LoopbackGitHub) -> GitHub:
    permissions = {"contents": "read", "pull_requests": "write", "checks": "read", "actions": "read"}
    patience = Patience(timeout=2, sleep=lambda seconds: None)
    return GitHub(adopted.REPO, gh.job_token({"metadata": "read", **permissions}), api_url=gh.url, patience=patience)


def environment(run: int = 100, attempt: int = 1) -> dict[str, str]:
    return {
        "GITHUB_REPOSITORY": adopted.REPO,
        "GITHUB_RUN_ID": str(run),
        "GITHUB_RUN_ATTEMPT": str(attempt),
        "GITHUB_SHA": "c" * 40,
    }


@pytest.fixture
def enter(gh: LoopbackGitHub) -> Admit:
    def call(
        event: dict[str, Any] | None = None, config: Config = CONFIG, run: int = 100, **more: Any
    ) -> Admission | Turned:
        payload = label_event(adopted.REPO, gh.state.pulls[1], "maintainer") if event is None else event
        name = "workflow_dispatch" if "inputs" in payload else "pull_request_target"
        env = {**environment(run), "GITHUB_SHA": gh.state.refs["heads/main"]}
        words = {"models": "none", "estimate": "$0.00", "minutes": "a minute"}
        return admit(client(gh), name, payload, env, config, **words, **more)

    return call


def only_comment(gh: LoopbackGitHub) -> str:
    (comment,) = gh.comments(1)
    assert comment.body.startswith(MARKER)
    return comment.body


def test_a_label_is_consumed_and_the_comment_says_what_is_coming(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter()
    assert isinstance(decision, Admission)
    assert decision.ticket.sha == gh.state.pulls[1].head_sha
    assert decision.ticket.base_sha == gh.state.refs["heads/main"]
    assert gh.state.pulls[1].labels == []
    body = only_comment(gh)
    assert f"### Evaluating `{decision.ticket.sha[:7]}`" in body
    assert f"[Follow the log]({decision.ticket.run_url})" in body
    assert "Estimated cost: $0.00" in body
    assert [(item.number, item.content) for item in gh.state.reactions] == [(1, "eyes")]


def test_what_the_pull_request_changed_of_the_judging_files_is_written_down(gh: LoopbackGitHub, enter: Admit) -> None:
    tree = adopted.worse_tree(adopted.base_tree())
    edits = ("fixtures/small-plan.json", "probes/small-plan.probes.json", "baselines/offline.json")
    more = {name: tree[name] + b" " for name in (*edits, ".compression-eval.yml")}
    gh.push_to_pull(1, {**tree, **more, "requirements.txt": b"x\n", ".github/workflows/ci.yml": b"on: push\n"})
    decision = enter()
    assert isinstance(decision, Admission)
    kinds = {line.rsplit(" (", 1)[1].rstrip(")") for line in decision.ticket.ignored_files}
    assert kinds == {"fixture", "probe", "baseline", "configuration", "dependencies", "workflow"}


def refusals() -> dict[str, tuple[Callable[[LoopbackGitHub], Any], str]]:
    def readme_only(gh: LoopbackGitHub) -> None:
        gh.push_to_pull(1, {**adopted.base_tree(), "README.md": b"x\n"}, force=True)

    return {
        "closed": (lambda gh: gh.close(1), "is closed: reopen it"),
        "merged": (lambda gh: gh.merge(1), "already merged: start the workflow in baseline mode"),
        "unlabelled": (lambda gh: gh.unlabel(1, adopted.LABEL), "taken off before the evaluation began"),
        "no permission": (lambda gh: gh.user("maintainer", "triage"), "ask somebody with write permission"),
        "not watched": (readme_only, "start the workflow by hand with force"),
    }


@pytest.mark.parametrize("name", refusals())
def test_a_refusal_is_a_comment_with_the_remedy_and_consumes_the_label(
    gh: LoopbackGitHub, enter: Admit, name: str
) -> None:
    change, words = refusals()[name]
    change(gh)
    decision = enter()
    assert isinstance(decision, Turned)
    assert words in decision.why
    body = only_comment(gh)
    assert "### Not evaluated" in body
    assert decision.why in body
    assert gh.state.pulls[1].labels == []


def test_a_locked_conversation_turns_the_request_away_without_a_crash(
    gh: LoopbackGitHub, enter: Admit, capsys: pytest.CaptureFixture[str]
) -> None:
    gh.lock_conversation(1)
    decision = enter()
    assert isinstance(decision, Turned)
    assert "is locked" in decision.why
    assert gh.comments(1) == [] or "is locked" in only_comment(gh)


def test_a_base_branch_that_is_not_ready_is_told_in_the_pull_request(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter(unfit=".compression-eval.yml: line 3: broken YAML <img> @all")
    assert isinstance(decision, Turned)
    body = only_comment(gh)
    assert "The base branch is not ready" in body
    assert "broken YAML" in body
    assert "@all" not in body
    assert gh.state.pulls[1].labels == []


def test_an_event_of_another_kind_touches_nothing(gh: LoopbackGitHub, enter: Admit) -> None:
    event = {**label_event(adopted.REPO, gh.state.pulls[1], "maintainer"), "action": "synchronize"}
    assert isinstance(enter(event), Turned)
    assert gh.seen == []


def test_a_newer_runs_comment_is_left_standing(gh: LoopbackGitHub, enter: Admit) -> None:
    Sticky(client(gh), 1).put("the newer word", WorkflowRun(200, 1))
    assert isinstance(enter(run=100), Admission)
    assert "the newer word" in only_comment(gh)


def test_the_last_runs_survive_in_the_next_comment(gh: LoopbackGitHub, enter: Admit) -> None:
    line = "- `abcdef1` 2026-01-02 03:04: regressed ([log](https://github.com/acme/agent/actions/runs/9/attempts/1))"
    Sticky(client(gh), 1).put(f"old\n\n{line}", WorkflowRun(9, 1))
    enter()
    assert line in only_comment(gh)


STEPS = [
    ("GET", r"/pulls/1$"),
    ("GET", r"/pulls/1/files"),
    ("GET", r"/collaborators/"),
    ("GET", r"/commits/main$"),
    ("GET", r"/check-runs"),
    ("GET", r"/workflows/"),
    ("DELETE", r"/labels/"),
    ("POST", r"/reactions"),
    ("GET", r"/issues/1/comments"),
    ("POST", r"/issues/1/comments"),
]


def break_once(gh: LoopbackGitHub, kind: str, method: str, path: str, times: int = 1) -> None:
    if kind == "429":
        gh.secondary_limit(method, path, status=429, retry_after=3, times=times)
    elif kind == "403":
        gh.secondary_limit(method, path, status=403, times=times)
    elif kind in ("drop", "timeout"):
        gh.fail(method, path, kind=kind, times=times)  # type: ignore[arg-type]
    elif kind == "lost answer":
        gh.fail(method, path, 502, takes_effect=True, times=times)
    else:
        gh.fail(method, path, int(kind), times=times)


@pytest.mark.parametrize("kind", ["500", "502", "403", "429", "drop", "lost answer"])
@pytest.mark.parametrize(("method", "path"), STEPS)
def test_a_passing_fault_at_any_step_changes_nothing(
    gh: LoopbackGitHub, enter: Admit, method: str, path: str, kind: str
) -> None:
    break_once(gh, kind, method, path)
    try:
        decision = enter()
    except Unavailable:
        # A comment that may or may not have been heard is not sent twice; the next attempt looks for it first.
        assert method == "POST"
        decision = enter()
    assert isinstance(decision, Admission)
    assert gh.faults.pending == 0
    assert "### Evaluating" in only_comment(gh)
    assert gh.state.pulls[1].labels == []


def test_a_timeout_is_waited_for_too(gh: LoopbackGitHub, enter: Admit) -> None:
    break_once(gh, "timeout", "GET", r"/pulls/1$")
    assert isinstance(enter(), Admission)


@pytest.mark.parametrize(("method", "path"), STEPS)
def test_a_lasting_outage_ends_in_one_message_and_a_retry_succeeds(
    gh: LoopbackGitHub, enter: Admit, method: str, path: str
) -> None:
    break_once(gh, "503", method, path, times=8)
    with pytest.raises(Unavailable, match=r"GitHub failed .*; run this again"):
        enter()
    gh.faults._queue.clear()
    # As "Re-run jobs" does it: the same run, the next attempt; the label may be consumed already.
    payload = label_event(adopted.REPO, gh.state.pulls[1], "maintainer")
    words = {"models": "none", "estimate": "$0.00", "minutes": "a minute"}
    decision = admit(client(gh), "pull_request_target", payload, environment(100, 2), CONFIG, **words)
    assert isinstance(decision, Admission)
    assert "### Evaluating" in only_comment(gh)


def test_a_label_that_vanishes_while_it_is_taken_off_is_no_error(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.before("DELETE", "/labels/", lambda: gh.unlabel(1, adopted.LABEL))
    assert isinstance(enter(), Admission)


def test_a_comment_that_is_deleted_meanwhile_is_written_again(gh: LoopbackGitHub, enter: Admit) -> None:
    posted = Sticky(client(gh), 1).put("old", WorkflowRun(9, 1))
    gh.before("PATCH", "/issues/comments/", lambda: gh.delete_comment(posted.comment.id))
    enter()
    assert "### Evaluating" in only_comment(gh)


def test_a_dispatch_for_an_unknown_pull_request_is_one_message(enter: Admit) -> None:
    event = adopted.dispatch_event(pr="99", sha="a" * 40)
    with pytest.raises(UserError, match=r"pull request #99 of acme/agent: not found; check the number"):
        enter(event)


def test_a_dispatch_must_name_the_head(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter(adopted.dispatch_event(pr="1", sha="a" * 40))
    assert isinstance(decision, Turned)
    assert gh.state.pulls[1].head_sha in decision.why
    assert decision.why in only_comment(gh)


def test_a_baseline_of_a_branch_that_is_not_merged_is_refused_before_it_costs(gh: LoopbackGitHub) -> None:
    sha = gh.commit({**adopted.base_tree(), "README.md": b"x\n"}, [gh.state.refs["heads/main"]])
    words = {"models": "none", "estimate": "$0.00", "minutes": "a minute"}
    for branch, expected in ((sha, Turned), (gh.state.refs["heads/main"], Admission)):
        env = {**environment(), "GITHUB_SHA": branch}
        event = adopted.dispatch_event(mode="baseline")
        decision = admit(client(gh), "workflow_dispatch", event, env, CONFIG, **words)
        assert isinstance(decision, expected)
        if isinstance(decision, Turned):
            assert "is not on main, which the baseline is proposed to" in decision.why


@pytest.fixture
def gate(
    gh: LoopbackGitHub, cli: small.Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], dict[str, str]]:
    """Run the step itself in a checkout and return its outputs."""
    root = adopted.on_disk(adopted.base_tree(), tmp_path / "base")
    monkeypatch.chdir(root)
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request_target")
    monkeypatch.setenv("GITHUB_API_URL", gh.url)
    monkeypatch.setenv("GITHUB_TOKEN", gh.job_token())
    for name, value in environment().items():
        monkeypatch.setenv(name, value)

    def run() -> dict[str, str]:
        event = label_event(adopted.REPO, gh.state.pulls[1], "maintainer")
        (tmp_path / "event.json").write_text(json.dumps(event), encoding="utf-8")
        (tmp_path / "output").write_text("", encoding="utf-8")
        ran = cli("bot", "gate")
        lines = (tmp_path / "output").read_text(encoding="utf-8").splitlines()
        return {"code": str(ran.code), "err": ran.err, **dict(line.split("=", 1) for line in lines)}

    return run


def test_the_gates_outputs_are_what_the_workflow_passes_on(
    gh: LoopbackGitHub, gate: Callable[[], dict[str, str]]
) -> None:
    outputs = gate()
    assert outputs["allowed"] == "true"
    ticket = read_ticket(outputs["ticket"])
    assert (outputs["mode"], outputs["base_sha"], outputs["artifact"]) == ("evaluate", ticket.base_sha, ticket.artifact)
    assert outputs["results"] == f".compression-eval/results/{ticket.label}"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("target: builtin:anchored\n", "own code"),
        ("wacth: []\n", "unknown field"),
        ("a: [\n", "broken YAML"),
        ("target: nowhere.yml\n", "no such file"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_a_refusal_not_a_red_job(
    gh: LoopbackGitHub, gate: Callable[[], dict[str, str]], config: str, words: str
) -> None:
    Path(".compression-eval.yml").write_text(config, encoding="utf-8")
    outputs = gate()
    assert (outputs["code"], outputs["allowed"]) == ("0", "false")
    assert words in only_comment(gh)
    assert gh.state.pulls[1].labels == []


def test_an_outage_is_shown_on_the_runs_page(
    gh: LoopbackGitHub, gate: Callable[[], dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gh.exhaust(3_600)
    outputs = gate()
    assert outputs["code"] == "3"
    assert "allowed" not in outputs
    assert "rate limit is used up" in outputs["err"]
    assert "rate limit is used up" in (tmp_path / "summary").read_text(encoding="utf-8")
