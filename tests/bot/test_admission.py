"""The gate's job against a GitHub that fails, and everything that can have happened meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import adopted
import pytest
import small
from bot_gate import PLAN, environment
from loopback import InjectedFault, LoopbackGitHub
from loopback.shapes import stamp
from pydantic import ValidationError

from bot.demo import journey
from bot.demo.journey import label_event
from bot.github.api_error import Unavailable
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.pull_request.event import WorkflowRun
from bot.pull_request.ledger import EvaluationEnded, ResultMeasured
from bot.pull_request.ticket import read_ticket
from bot.steps.base_config import read_base_config
from bot.steps.comment import MARKER, Sticky
from bot.steps.estimate import RunEstimate
from bot.steps.fetch import BASE, SUBJECT, fetch
from bot.steps.gate import Admission, NotAdmitted, admit
from bot.steps.publish import begin
from eval_core.base.config import BotConfig, Config, ModelConfig
from eval_core.base.errors import UserError

CONFIG = Config(watch=["agent/**"], target={"compressor": "agent.context_compressor:ContextCompressor"})
Admit = Callable[..., Admission | NotAdmitted]


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github


def client(gh: LoopbackGitHub) -> GitHub:
    retry = ApiRetries(timeout=2, sleep=lambda seconds: None)
    return GitHub(adopted.REPO, gh.job_token({"metadata": "read", **journey._GATE}), api_url=gh.url, retry=retry)


@pytest.fixture
def enter(gh: LoopbackGitHub) -> Admit:
    def call(
        event: dict[str, Any] | None = None,
        config: Config = CONFIG,
        run: int = 100,
        attempt: int = 1,
        unfit: str | None = None,
        sha: str | None = None,
        **more: Any,
    ) -> Admission | NotAdmitted:
        payload = label_event(adopted.REPO, gh.state.pulls[1], "maintainer") if event is None else event
        kinds = {"inputs": "workflow_dispatch", "comment": "issue_comment", "workflow_run": "workflow_run"}
        name = next((kinds[key] for key in kinds if key in payload), "pull_request_target")
        env = {**environment(run, attempt), "GITHUB_SHA": sha or gh.state.refs["heads/main"]}
        given = {"describe": lambda _: PLAN, **more}
        return admit(client(gh), name, payload, env, read_config=lambda *_: (config, unfit), **given)

    return call


def only_comment(gh: LoopbackGitHub) -> str:
    (body,) = (comment.body for comment in gh.comments(1) if comment.body.startswith(MARKER))
    return body


def test_a_label_is_consumed_and_the_comment_says_what_is_coming(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter()
    assert isinstance(decision, Admission)
    assert decision.ticket.sha == gh.state.pulls[1].head_sha
    assert decision.ticket.base_sha == gh.state.refs["heads/main"]
    assert gh.state.pulls[1].labels == []
    body = only_comment(gh)
    assert f"**Evaluating** `{decision.ticket.sha[:7]}` since " in body
    assert f"[Live log]({decision.ticket.run_url})" in body
    assert "Estimated cost: $0.00" in body
    assert [(item.number, item.content) for item in gh.state.reactions] == [(1, "eyes")]
    (check,) = gh.state.checks.values()
    assert (check.head_sha, check.status, check.title) == (decision.ticket.sha, "in_progress", "Evaluating")
    assert not decision.awaits


def test_tasks_are_played_for_a_label_of_their_own_or_always_and_by_one_job(gh: LoopbackGitHub, enter: Admit) -> None:
    models = {"answer": "openai/answerer", "judge": "openai/judge"}
    sharded = {"models": ModelConfig.model_validate(models), "bot": BotConfig(shards=3)}
    paid = CONFIG.model_copy(update=sharded)
    gh.label(1, "eval-compression-tasks")
    event = label_event(adopted.REPO, gh.state.pulls[1], "maintainer")
    event["label"]["name"] = "eval-compression-tasks"
    seen: list[Config] = []
    asked = enter(event, config=paid, describe=lambda config: seen.append(config) or PLAN)
    assert isinstance(asked, Admission)
    assert (asked.ticket.tasks, asked.ticket.shards, seen[0].play_tasks) == (True, 1, True)
    assert "eval-compression-tasks" not in gh.state.pulls[1].labels
    for config, tasks in ((paid, False), (CONFIG.model_copy(update={"bot": BotConfig(tasks=True)}), False),
                          (paid.model_copy(update={"bot": BotConfig(tasks=True)}), True)):  # fmt: skip
        gh.label(1, adopted.LABEL)
        found = enter(config=config)
        assert isinstance(found, Admission)
        assert found.ticket.tasks is tasks


def test_what_the_pull_request_changed_of_the_judging_files_is_written_down(gh: LoopbackGitHub, enter: Admit) -> None:
    tree = adopted.worse_tree(adopted.base_tree())
    edits = ("fixtures/small-plan.json", "probes/small-plan.probes.json", "baselines/offline.json")
    more = {name: tree[name] + b" " for name in (*edits, ".compression-eval.yml")}
    gh.push_to_pull(1, {**tree, **more, "requirements.txt": b"x\n", ".github/workflows/ci.yml": b"on: push\n"})
    decision = enter()
    assert isinstance(decision, Admission)
    kinds = {line.rsplit(" (", 1)[1].rstrip(")") for line in decision.ticket.ignored_files}
    assert kinds == {"fixture", "probe", "baseline", "configuration", "dependencies", "workflow"}


def test_a_pull_request_that_lacks_commits_of_its_base_is_compared_with_what_it_branched_from(
    gh: LoopbackGitHub, enter: Admit, tmp_path: Path
) -> None:
    head, fork = gh.state.pulls[1].head_sha, gh.state.refs["heads/main"]
    tip = gh.push("main", {**adopted.base_tree(), "agent/added_since.py": b"NEW = 1\n"})
    decision = enter()
    assert isinstance(decision, Admission)
    ticket = decision.ticket
    assert (ticket.sha, ticket.base_sha, ticket.compared_sha) == (head, tip, fork)
    assert (ticket.base_ref, ticket.behind, ticket.warnings) == ("main", 1, [])
    fetch(client(gh), ticket, tmp_path / "work")
    for folder, tree in ((SUBJECT, adopted.worse_tree(adopted.base_tree())), (BASE, adopted.base_tree())):
        assert (tmp_path / "work" / folder / adopted.COMPRESSOR).read_bytes() == tree[adopted.COMPRESSOR]
        assert not (tmp_path / "work" / folder / "agent/added_since.py").exists()


def test_files_that_both_sides_changed_are_named(gh: LoopbackGitHub, enter: Admit) -> None:
    tree = adopted.base_tree()
    gh.push("main", {**tree, adopted.COMPRESSOR: tree[adopted.COMPRESSOR] + b"# also changed here\n"})
    decision = enter()
    assert isinstance(decision, Admission)
    (warning,) = decision.ticket.warnings
    assert warning == (
        f"`main` has changed `{adopted.COMPRESSOR}` as well since this pull request left it. The two together are not "
        "measured: merge `main` into the pull request and add the label again for that."
    )


def test_one_that_holds_its_whole_base_is_compared_with_the_tip(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.push("main", {**adopted.base_tree(), "agent/added_since.py": b"NEW = 1\n"})
    merged = {**adopted.worse_tree(adopted.base_tree()), "agent/added_since.py": b"NEW = 1\n"}
    gh.push_to_pull(1, merged, onto=(gh.state.pulls[1].head_sha, gh.state.refs["heads/main"]))
    decision = enter()
    assert isinstance(decision, Admission)
    ticket = decision.ticket
    assert ticket.compared_sha == ticket.base_sha == gh.state.refs["heads/main"]
    assert (ticket.behind, ticket.warnings) == (0, [])


def test_a_retargeted_pull_request_is_compared_with_where_it_left_the_new_branch(
    gh: LoopbackGitHub, enter: Admit
) -> None:
    first = gh.state.refs["heads/main"]
    gh.push("main", {**adopted.base_tree(), "README.md": b"main\n"})
    gh.state.refs["heads/release"] = first
    tip = gh.push("release", {**adopted.base_tree(), "README.md": b"release\n"})
    gh.retarget(1, "release")
    decision = enter()
    assert isinstance(decision, Admission)
    ticket = decision.ticket
    assert (ticket.base_ref, ticket.base_sha, ticket.compared_sha) == ("release", tip, first)


def test_a_head_that_shares_no_commit_with_its_base_is_refused(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.push_to_pull(1, adopted.worse_tree(adopted.base_tree()), onto=())
    refused = enter()
    assert isinstance(refused, NotAdmitted)
    assert "finds no commit that" in refused.why
    assert "rebase the pull request" in only_comment(gh)


def test_the_estimate_counts_the_whole_base_where_the_branch_changed_watched_files(
    gh: LoopbackGitHub, enter: Admit
) -> None:
    asked: list[str] = []

    def describe(config: Config) -> RunEstimate:
        asked.append(config.baseline.control)
        return PLAN

    enter(describe=describe)
    gh.label(1, adopted.LABEL)
    tree = adopted.base_tree()
    gh.push("main", {**tree, adopted.COMPRESSOR: tree[adopted.COMPRESSOR] + b"# changed here\n"})
    enter(describe=describe, run=101)
    assert asked == ["auto", "always"]


def refusals() -> dict[str, tuple[Callable[[LoopbackGitHub], Any], str]]:
    def readme_only(gh: LoopbackGitHub) -> None:
        gh.push_to_pull(1, {**adopted.base_tree(), "README.md": b"x\n"}, force=True)

    return {
        "closed": (lambda gh: gh.close(1), "is closed: reopen it"),
        "merged": (lambda gh: gh.merge(1), "already merged: start the workflow in baseline mode"),
        "unlabelled": (lambda gh: gh.unlabel(1, adopted.LABEL), "removed before the evaluation began"),
        "no permission": (lambda gh: gh.user("maintainer", "triage"), "ask someone with write permission"),
        "not watched": (readme_only, "start the workflow by hand with force"),
    }


@pytest.mark.parametrize("name", refusals())
def test_a_refusal_is_a_comment_with_the_remedy_and_consumes_the_label(
    gh: LoopbackGitHub, enter: Admit, name: str
) -> None:
    change, words = refusals()[name]
    change(gh)
    decision = enter()
    assert isinstance(decision, NotAdmitted)
    assert words in decision.why
    body = only_comment(gh)
    assert "**Not evaluated**" in body
    assert decision.why in body
    assert gh.state.pulls[1].labels == []


def test_a_locked_conversation_turns_the_request_away_without_a_crash(
    gh: LoopbackGitHub, enter: Admit, capsys: pytest.CaptureFixture[str]
) -> None:
    gh.lock_conversation(1)
    decision = enter()
    assert isinstance(decision, NotAdmitted)
    assert "is locked" in decision.why
    assert (decision.post_error == "") == (gh.comments(1) != [])


def test_a_base_branch_that_is_not_ready_is_told_in_the_pull_request(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter(unfit=".compression-eval.yml: line 3: broken YAML <img> @all")
    assert isinstance(decision, NotAdmitted)
    body = only_comment(gh)
    assert "The base branch is not ready" in body
    assert "broken YAML" in body
    assert "@all" not in body
    assert gh.state.pulls[1].labels == []


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ("COMPRESSION_EVAL_API_KEY", "ANTHROPIC_API_KEY for anthropic/claude"),
        ("COMPRESSION_EVAL_API_KEY ANTHROPIC_API_KEY OPENAI_API_KEY", None),
    ],
)
def test_two_providers_behind_one_key_are_refused_before_a_job_with_the_key_starts(
    gh: LoopbackGitHub, enter: Admit, lines: str, refused: str | None
) -> None:
    workflow = "\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in lines.split())
    gh.push("main", {**adopted.base_tree(), ".github/workflows/compression-eval.yml": workflow.encode()})
    models = {"compressor": "anthropic/claude-sonnet-4-5", "judge": "openai/gpt-5"}
    config = Config.model_validate({**CONFIG.model_dump(), "models": models})
    decision = enter(config=config)
    if refused is None:
        assert isinstance(decision, Admission)
        return
    assert isinstance(decision, NotAdmitted)
    assert refused in decision.why
    assert "one key for 2 providers" in only_comment(gh)


def test_an_event_of_another_kind_touches_nothing(gh: LoopbackGitHub, enter: Admit) -> None:
    event = {**label_event(adopted.REPO, gh.state.pulls[1], "maintainer"), "action": "synchronize"}
    assert isinstance(enter(event), NotAdmitted)
    assert gh.seen == []


def posted_result(gh: LoopbackGitHub, run: int = 9, sha: str | None = None) -> None:
    """Let a result be in the comment, as publish leaves it."""
    event = ResultMeasured(
        run=WorkflowRun(run, 1),
        at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        url=f"https://github.com/acme/agent/actions/runs/{run}/attempts/1",
        sha=sha or gh.state.pulls[1].head_sha,
        outcome="regressed",
        headline="Regressed: overall.",
        body="**Regressed:** the report that was paid for",
    )
    Sticky(client(gh), 1).record(event)


def quota() -> Config:
    return CONFIG.model_copy(update={"bot": CONFIG.bot.model_copy(update={"runs_per_day": 1})})


def _after(change: Callable[[LoopbackGitHub], object], **more: Any) -> Callable[[LoopbackGitHub, Admit], object]:
    """Change something on GitHub, then let the label's event come."""

    def act(gh: LoopbackGitHub, enter: Admit) -> object:
        change(gh)
        return enter(**more)

    return act


AFTER_A_RESULT: dict[str, Callable[[LoopbackGitHub, Admit], object]] = {
    "triage": _after(lambda gh: gh.user("maintainer", "triage")),
    "consumed label": _after(lambda gh: gh.unlabel(1, adopted.LABEL)),
    "quota": _after(lambda gh: gh.run("compression-eval.yml", "d" * 40, jobs={"evaluate": "success"}), config=quota()),
    "merged": _after(lambda gh: gh.merge(1)),
    "closed": _after(lambda gh: gh.close(1)),
    "mistyped sha": lambda gh, enter: enter(adopted.dispatch_event(pr="1", sha="a" * 40)),
    "unfit": lambda gh, enter: enter(unfit="broken YAML"),
    "admitted": lambda gh, enter: enter(),
    "re-run": lambda gh, enter: enter(run=5, attempt=2),
}


@pytest.mark.parametrize("name", AFTER_A_RESULT)
def test_whatever_the_gate_says_the_result_stays(gh: LoopbackGitHub, enter: Admit, name: str) -> None:
    posted_result(gh)
    AFTER_A_RESULT[name](gh, enter)
    body = only_comment(gh)
    assert "the report that was paid for" in body
    assert body.splitlines()[2].startswith("### \N{LARGE RED CIRCLE} Regressed")
    assert ("**Evaluating**" in body) == (name in ("admitted", "re-run"))
    assert ("**Not evaluated**" in body) == (name not in ("admitted", "re-run"))


def test_an_evaluation_that_waits_for_a_reviewer_says_so(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.user("boss", "admin")
    gh.state.reviewers["compression-eval"] = ["boss"]
    decision = enter()
    assert isinstance(decision, Admission)
    assert decision.awaits
    assert "**Waiting for approval**" in only_comment(gh)
    (check,) = gh.state.checks.values()
    assert (check.status, check.title) == ("queued", "Waiting for approval")
    assert begin(client(gh), decision.ticket) == ()
    assert "**Evaluating**" in only_comment(gh)
    assert (check.status, check.title) == ("in_progress", "Evaluating")


def test_a_rejected_evaluation_that_is_approved_when_its_failed_jobs_run_again_says_so(
    gh: LoopbackGitHub, enter: Admit
) -> None:
    """The gate is not run again then, and the ticket is that of the first attempt."""
    gh.user("boss", "admin")
    gh.state.reviewers["compression-eval"] = ["boss"]
    decision = enter()
    assert isinstance(decision, Admission)
    ticket = decision.ticket
    Sticky(client(gh), 1).record(
        EvaluationEnded(
            run=ticket.run, at=datetime.now(UTC), url=ticket.run_url, sha=ticket.sha, kind="rejected", why="no."
        )
    )
    assert "**Waiting for approval**" not in only_comment(gh)
    assert begin(client(gh), ticket, attempt=2) == ()
    assert "**Evaluating**" in only_comment(gh)
    assert "rejected" not in only_comment(gh)


def test_an_evaluation_whose_run_was_killed_is_not_said_to_go_on(gh: LoopbackGitHub, enter: Admit) -> None:
    killed = gh.run("compression-eval.yml", "d" * 40, status="in_progress", conclusion=None)
    first = enter(run=killed.id)
    assert isinstance(first, Admission)
    gh.label(1, adopted.LABEL)
    enter(run=killed.id + 1)
    assert f"runs/{killed.id}/" in only_comment(gh)  # it is still at work
    killed.status, killed.conclusion = "completed", "cancelled"
    gh.label(1, adopted.LABEL)
    enter(run=killed.id + 2)
    assert f"runs/{killed.id}/" not in only_comment(gh).split("<!--")[2].split("-->")[1].split("Log")[0]
    checks = {check.external_id: check.conclusion for check in gh.state.checks.values()}
    assert checks[f"{killed.id}/1"] == "cancelled"


def test_a_refusal_too_takes_killed_runs_off_the_state_line(gh: LoopbackGitHub, enter: Admit) -> None:
    killed = gh.run("compression-eval.yml", "d" * 40, status="in_progress", conclusion=None)
    enter(run=killed.id)
    killed.status, killed.conclusion = "completed", "cancelled"
    assert isinstance(enter(run=killed.id + 1), NotAdmitted)  # its label is consumed
    assert "**Evaluating**" not in only_comment(gh)


def test_a_killed_run_that_is_run_again_and_refused_is_not_said_to_go_on(gh: LoopbackGitHub, enter: Admit) -> None:
    killed = gh.run("compression-eval.yml", "d" * 40, status="in_progress", conclusion=None)
    enter(run=killed.id)
    killed.attempt = 2
    gh.close(1)
    assert isinstance(enter(run=killed.id, attempt=2), NotAdmitted)
    assert "**Evaluating**" not in only_comment(gh)


def test_a_release_branch_is_judged_by_its_own_configuration(gh: LoopbackGitHub) -> None:
    release = adopted.configured(adopted.base_tree(), "bot: {label: release-eval}\n")
    gh.push("release", release)
    pull = gh.open_pull(adopted.worse_tree(release), base="release")
    gh.label(pull.number, "release-eval")
    event = label_event(adopted.REPO, pull, "maintainer", "release-eval")
    decision = admit(
        client(gh), "pull_request_target", event, environment(), read_config=read_base_config, describe=lambda _: PLAN
    )
    assert isinstance(decision, Admission)
    assert decision.ticket.base_sha == gh.state.refs["heads/release"]


def test_another_label_is_left_on(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.label(1, "eval-compressions")
    event = label_event(adopted.REPO, gh.state.pulls[1], "maintainer", "eval-compressions")
    assert isinstance(enter(event), NotAdmitted)
    assert "eval-compressions" in gh.state.pulls[1].labels
    assert gh.comments(1) == []


def test_the_label_in_another_case_is_the_label(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.state.pulls[1].labels.clear()
    gh.label(1, "Eval-Compression")
    event = label_event(adopted.REPO, gh.state.pulls[1], "maintainer", "Eval-Compression")
    assert isinstance(enter(event), Admission)
    assert gh.state.pulls[1].labels == []


def test_an_app_may_label_where_it_is_listed_and_its_comments_start_nothing(gh: LoopbackGitHub, enter: Admit) -> None:
    event = label_event(adopted.REPO, gh.state.pulls[1], "renovate[bot]")
    refused = enter(event)
    assert isinstance(refused, NotAdmitted)
    assert "name it under bot.apps on the base branch" in refused.why
    listed = CONFIG.model_copy(update={"bot": BotConfig(apps=["renovate[bot]"])})
    said = enter(command(gh, "/eval-compression", "renovate[bot]"), config=listed)
    assert isinstance(said, NotAdmitted)
    gh.label(1, adopted.LABEL)
    assert isinstance(enter(event, config=listed, run=101), Admission)
    with pytest.raises(ValidationError):
        BotConfig(apps=["a-person"])


def test_a_label_of_dependabots_is_answered_without_a_write_that_its_token_cannot_make(
    gh: LoopbackGitHub, enter: Admit
) -> None:
    decision = enter(label_event(adopted.REPO, gh.state.pulls[1], "dependabot[bot]"))
    assert isinstance(decision, NotAdmitted)
    assert "someone with write permission has to remove the label and add it again" in decision.why
    assert decision.post_error == ""
    assert gh.comments(1) == []
    assert gh.state.pulls[1].labels == ["eval-compression"]


def test_a_reaction_that_fails_for_good_decides_nothing(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.faults.add(InjectedFault("POST", "/reactions", status=403, message="Resource not accessible", times=9))
    assert isinstance(enter(), Admission)
    assert "**Evaluating**" in only_comment(gh)


def test_a_gate_that_cannot_write_checks_still_admits(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.faults.add(InjectedFault("POST", "/check-runs", status=403, message="Resource not accessible", times=9))
    assert isinstance(enter(), Admission)
    assert "**Evaluating**" in only_comment(gh)


def command(gh: LoopbackGitHub, body: str, sender: str = "maintainer") -> dict[str, Any]:
    return adopted.comment_event(gh.comment(1, sender, body))


def test_the_command_goes_through_the_same_gate(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter(command(gh, "/eval-compression runs=5 fixtures=small-plan"))
    assert isinstance(decision, Admission)
    ticket = decision.ticket
    assert (ticket.sha, ticket.runs, ticket.fixtures) == (gh.state.pulls[1].head_sha, 5, ["small-plan"])
    assert "Only small-plan, as requested" in only_comment(gh)


@pytest.mark.parametrize("digits", [0, 7, 12], ids=["no commit", "7 digits", "12 digits"])
def test_a_push_after_the_command_is_not_evaluated_by_it(gh: LoopbackGitHub, enter: Admit, digits: int) -> None:
    """Even where the first digits fit: whoever pushes can choose them."""
    event = command(gh, "/eval-compression")
    head = gh.push_to_pull(1, {**adopted.worse_tree(adopted.base_tree()), "agent/more.py": b"MORE = 1\n"})
    if digits:
        event["comment"]["body"] += f" sha={head[:digits]}"
    decision = enter(event)
    assert isinstance(decision, NotAdmitted)
    assert f"comment `/eval-compression sha={head}`" in decision.why
    assert isinstance(enter(command(gh, f"/eval-compression sha={head}"), run=101), Admission)


def test_a_command_after_a_push_and_its_re_run_mean_the_head(gh: LoopbackGitHub, enter: Admit) -> None:
    head = gh.push_to_pull(1, adopted.worse_tree(adopted.base_tree()))
    event = command(gh, "/eval-compression")
    first = enter(event)
    assert isinstance(first, Admission)
    # The gate's own comment came after the command; the same run knows what it was admitted for.
    again = enter(event, attempt=2)
    assert isinstance(again, Admission)
    assert first.ticket.sha == again.ticket.sha == head


def test_a_command_for_a_head_that_was_evaluated_before_survives_other_comments(
    gh: LoopbackGitHub, enter: Admit
) -> None:
    enter()
    event = command(gh, "/eval-compression")
    gh.state.comments[event["comment"]["id"]].created += timedelta(hours=1)
    event["comment"]["created_at"] = stamp(gh.state.comments[event["comment"]["id"]].created)
    gh.state.pulls[1].updated += timedelta(hours=2)
    assert isinstance(enter(event, run=101), Admission)


def test_an_approving_review_is_admitted_once(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.unlabel(1, adopted.LABEL)
    gh.review(1, "maintainer")
    event = adopted.review_event(gh.state.pulls[1], "maintainer")
    found = enter(event)
    assert isinstance(found, Admission)
    assert (found.ticket.pr, found.ticket.sha) == (1, gh.state.pulls[1].head_sha)
    assert "Evaluating" in only_comment(gh)
    again = enter(event, run=101)
    assert isinstance(again, NotAdmitted)
    assert "was evaluated already" in again.why


@pytest.mark.parametrize("what", ["a stranger", "a comment", "an older commit", "another account", "nothing watched"])
def test_what_a_review_does_not_start_is_not_answered(gh: LoopbackGitHub, enter: Admit, what: str) -> None:
    """A fork brings its own version of the workflow that tells of reviews: only what GitHub says of them counts."""
    gh.unlabel(1, adopted.LABEL)
    reviewer = "contributor" if what == "a stranger" else "maintainer"
    gh.review(1, reviewer, "COMMENTED" if what == "a comment" else "APPROVED")
    if what == "an older commit":
        gh.push_to_pull(1, {**adopted.worse_tree(adopted.base_tree()), "agent/more.py": b"MORE = 1\n"})
    actor = "helper" if what == "another account" else reviewer
    config = CONFIG.model_copy(update={"watch": ["elsewhere/**"]}) if what == "nothing watched" else CONFIG
    assert isinstance(enter(adopted.review_event(gh.state.pulls[1], actor), config), NotAdmitted)
    assert gh.comments(1) == []
    assert not gh.state.checks


def test_a_push_after_the_approval_is_not_evaluated_by_it(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.review(1, "maintainer")
    event = adopted.review_event(gh.state.pulls[1], "maintainer")
    gh.push_to_pull(1, {**adopted.worse_tree(adopted.base_tree()), "agent/more.py": b"MORE = 1\n"})
    assert isinstance(enter(event), NotAdmitted)
    assert gh.comments(1) == []


@pytest.mark.parametrize(
    "change", [{"event": "push"}, {"conclusion": "skipped"}, {"head_sha": "abc"}, {"actor": None}, {"head_branch": ""}]
)
def test_another_workflows_end_starts_nothing(gh: LoopbackGitHub, enter: Admit, change: dict[str, object]) -> None:
    gh.review(1, "maintainer")
    event = adopted.review_event(gh.state.pulls[1], "maintainer", **change)
    if set(change) & {"event", "conclusion"}:
        assert isinstance(enter(event), NotAdmitted)
    else:
        with pytest.raises(UserError, match="workflow_run"):
            enter(event)


def test_a_mistake_in_the_command_is_answered(gh: LoopbackGitHub, enter: Admit) -> None:
    assert isinstance(enter(command(gh, "/eval-compression rnus=5")), NotAdmitted)
    assert "'rnus=5' is not an option; known are runs=N" in only_comment(gh)


def test_a_stranger_who_types_the_command_changes_nothing(gh: LoopbackGitHub, enter: Admit) -> None:
    posted_result(gh)
    before = only_comment(gh)
    gh.user("stranger")
    decision = enter(command(gh, "/eval-compression runs=50", "stranger"))
    assert isinstance(decision, NotAdmitted)
    assert "ask someone with write permission" in decision.why
    assert only_comment(gh) == before


def test_a_short_sha_means_the_head_or_is_refused(gh: LoopbackGitHub, enter: Admit) -> None:
    head = gh.state.pulls[1].head_sha
    decision = enter(adopted.dispatch_event(pr="#1", sha=head[:8]))
    assert isinstance(decision, Admission)
    assert decision.ticket.sha == head
    wrong = enter(adopted.dispatch_event(pr=" 1", sha="0000000"))
    assert isinstance(wrong, NotAdmitted)
    assert head in wrong.why


@pytest.mark.parametrize("own", [False, True])
def test_a_baseline_that_could_not_be_proposed_is_refused_before_it_is_paid_for(
    gh: LoopbackGitHub, enter: Admit, own: bool
) -> None:
    gh.state.actions_open_pulls = False
    decision = enter(adopted.dispatch_event(mode="baseline"), own_token=own)
    if own:
        assert isinstance(decision, Admission)
        return
    assert isinstance(decision, NotAdmitted)
    assert "Allow GitHub Actions to create and approve pull requests" in decision.why
    assert "COMPRESSION_EVAL_TOKEN" in decision.why
    assert len(gh.state.pulls) == 1


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
    assert "**Evaluating**" in only_comment(gh)
    assert gh.state.pulls[1].labels == []


def test_a_timeout_is_waited_for_too(gh: LoopbackGitHub, enter: Admit) -> None:
    break_once(gh, "timeout", "GET", r"/pulls/1$")
    assert isinstance(enter(), Admission)


# Nothing is decided by these: the evaluation goes on, and publish will tell.
COSMETIC = (r"/reactions", r"/issues/1/comments")


@pytest.mark.parametrize(("method", "path"), STEPS)
def test_a_lasting_outage_is_told_and_a_retry_succeeds(
    gh: LoopbackGitHub, enter: Admit, method: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    break_once(gh, "503", method, path, times=25)
    if path in COSMETIC:
        assert isinstance(enter(), Admission)
        assert "::warning::" in capsys.readouterr().out
    else:
        with pytest.raises(Unavailable, match=r"GitHub failed .*; run this again"):
            enter()
        # Not silence: the label is off (unless that is what fails) and the comment says why nothing happens.
        assert "Nothing was evaluated or paid for" in only_comment(gh)
        assert gh.state.pulls[1].labels == ([adopted.LABEL] if method == "DELETE" else [])
    gh.faults._queue.clear()
    # As "Re-run jobs" does it: the same run, the next attempt; the label may be consumed already.
    assert isinstance(enter(attempt=2), Admission)
    assert "**Evaluating**" in only_comment(gh)


@pytest.mark.parametrize("answer", [{}, "", {"message": "Maintenance"}], ids=["empty", "text", "words"])
@pytest.mark.parametrize(("method", "path"), [step for step in STEPS if step[0] == "GET"])
def test_an_answer_that_makes_no_sense_is_told_like_an_outage(
    gh: LoopbackGitHub, enter: Admit, method: str, path: str, answer: object
) -> None:
    gh.fail(method, path, 200, times=25, body=answer)
    if path in COSMETIC:
        assert isinstance(enter(), Admission)
    else:
        with pytest.raises(Unavailable, match=r"could not be parsed|is not a list"):
            enter()
        assert "Nothing was evaluated or paid for" in only_comment(gh)
    assert gh.state.pulls[1].labels == []
    gh.faults._queue.clear()
    assert isinstance(enter(attempt=2), Admission)
    assert "**Evaluating**" in only_comment(gh)


def test_a_fault_of_ours_is_answered_too(gh: LoopbackGitHub, enter: Admit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("what the error quotes")

    monkeypatch.setattr("bot.steps.gate.gather", fail)
    with pytest.raises(ZeroDivisionError):
        enter()
    assert "a bug in compression-eval: ZeroDivisionError" in only_comment(gh)
    assert gh.state.pulls[1].labels == []


def test_a_fault_of_ours_in_the_announcement_does_not_undo_the_decision(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.fail("POST", "/check-runs", 200, body={"id": "x"}, times=9)
    assert isinstance(enter(), Admission)
    assert "**Evaluating**" in only_comment(gh)


def test_of_two_gates_that_see_one_label_only_the_one_that_takes_it_off_evaluates(
    gh: LoopbackGitHub, enter: Admit
) -> None:
    # The other one is quicker, after both have seen the label.
    gh.before("DELETE", "/labels/", lambda: gh.unlabel(1, adopted.LABEL))
    assert isinstance(enter(), NotAdmitted)
    assert "removed before the evaluation began" in only_comment(gh)


def test_a_label_whose_removal_was_heard_but_not_answered_is_ours(gh: LoopbackGitHub, enter: Admit) -> None:
    gh.fail("DELETE", "/labels/", 502, takes_effect=True)
    assert isinstance(enter(), Admission)


def test_a_comment_that_is_deleted_meanwhile_is_written_again(gh: LoopbackGitHub, enter: Admit) -> None:
    posted_result(gh)
    (comment,) = gh.comments(1)
    gh.before("PATCH", "/issues/comments/", lambda: gh.delete_comment(comment.id))
    enter()
    assert "**Evaluating**" in only_comment(gh)


def test_a_dispatch_for_an_unknown_pull_request_is_one_message(enter: Admit) -> None:
    event = adopted.dispatch_event(pr="99", sha="a" * 40)
    with pytest.raises(UserError, match=r"pull request #99 of acme/agent: not found; check the number"):
        enter(event)


def test_a_dispatch_must_name_the_head(gh: LoopbackGitHub, enter: Admit) -> None:
    decision = enter(adopted.dispatch_event(pr="1", sha="a" * 40))
    assert isinstance(decision, NotAdmitted)
    assert gh.state.pulls[1].head_sha in decision.why
    assert decision.why in only_comment(gh)


def test_a_baseline_of_a_branch_that_is_not_merged_is_refused_before_it_costs(gh: LoopbackGitHub, enter: Admit) -> None:
    sha = gh.commit({**adopted.base_tree(), "README.md": b"x\n"}, [gh.state.refs["heads/main"]])
    for branch, expected in ((sha, NotAdmitted), (gh.state.refs["heads/main"], Admission)):
        decision = enter(adopted.dispatch_event(mode="baseline"), sha=branch)
        assert isinstance(decision, expected)
        if isinstance(decision, NotAdmitted):
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

    def run(content: bytes | None = None) -> dict[str, str]:
        event = json.dumps(label_event(adopted.REPO, gh.state.pulls[1], "maintainer")).encode()
        (tmp_path / "event.json").write_bytes(event if content is None else content)
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
    gh.push("main", {**adopted.base_tree(), ".compression-eval.yml": config.encode()})
    outputs = gate()
    assert (outputs["code"], outputs["allowed"]) == ("0", "false")
    assert words in only_comment(gh)
    assert gh.state.pulls[1].labels == []


@pytest.mark.parametrize("content", [b'{"action": "labe', b"", b"\xff\xfe", b"[" * 100_000])
def test_a_half_written_event_is_one_message(
    gate: Callable[..., dict[str, str]], tmp_path: Path, content: bytes
) -> None:
    outputs = gate(content)
    assert outputs["code"] == "2"
    assert "GITHUB_EVENT_PATH" in outputs["err"]
    assert "start the workflow again" in outputs["err"]


def test_an_outage_is_shown_on_the_runs_page(
    gh: LoopbackGitHub, gate: Callable[[], dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gh.exhaust(3_600)
    outputs = gate()
    assert outputs["code"] == "3"
    assert "allowed" not in outputs
    assert "rate limit is used up" in outputs["err"]
    assert "rate limit is used up" in (tmp_path / "summary").read_text(encoding="utf-8")


def test_a_refusal_that_cannot_be_posted_is_a_red_job_with_the_reason(
    gh: LoopbackGitHub, gate: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    gh.user("helper", "triage")
    gh.fail("POST", "/issues/1/comments", 403, times=99)
    outputs = gate(json.dumps(label_event(adopted.REPO, gh.state.pulls[1], "helper")).encode())
    assert (outputs["code"], outputs["allowed"]) == ("3", "false")
    assert "helper has only triage permission" in outputs["err"]
    assert "could not be posted" in (tmp_path / "summary").read_text(encoding="utf-8")
    assert gh.comments(1) == []
