"""The publish job: a hostile artifact, a failing GitHub, and a comment that says what holds."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import adopted
import pytest
from bot_rendering import LIVE, outside_code, render
from bot_tickets import ticket_for
from bot_world import publish
from loopback import LoopbackGitHub

from bot.demo import journey
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.pull_request.event import WorkflowRun
from bot.pull_request.ledger import EvaluationQueued, RequestRefused
from bot.pull_request.result_body import READING
from bot.pull_request.ticket import Ticket, keep_error
from bot.steps.artifact import read_measured, read_result
from bot.steps.check import Check
from bot.steps.comment import LIMIT, MARKER, Sticky, read_comment
from bot.steps.gate import _looks
from bot.steps.publish import Published
from eval_core.base.config import Config, load_config
from eval_core.base.errors import UserError
from eval_core.measuring.provenance import now
from eval_core.storage.results import ResultsFolder

PERMISSIONS = {"metadata": "read", **journey._PUBLISH}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return adopted.on_disk(adopted.base_tree(), tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def config(root: Path) -> Config:
    return load_config(None, root)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What an evaluation leaves: here of a compressor that loses a lot."""
    folder = tmp_path_factory.mktemp("worse")
    ResultsFolder(folder).write_measurement(adopted.measured("opaque"))
    body: Json = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return body


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github


def client(gh: LoopbackGitHub) -> GitHub:
    retry = ApiRetries(timeout=2, sleep=lambda seconds: None)
    return GitHub(adopted.REPO, gh.job_token(PERMISSIONS), api_url=gh.url, retry=retry)


@pytest.fixture
def post(gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path) -> Callable[..., Published]:
    def call(
        body: Json | None = None, result: str = "success", ticket: Ticket | None = None, base: Json | None = None
    ) -> Published:
        folder = tmp_path / "published"
        folder.mkdir(exist_ok=True)
        if base is not None:
            (folder / "base").mkdir(exist_ok=True)
            (folder / "base/summary.json").write_text(json.dumps(base), encoding="utf-8")
        (folder / "summary.json").write_text(json.dumps(summary if body is None else body), encoding="utf-8")
        return publish(client(gh), ticket or ticket_for(gh), config, root=root, folder=folder, result=result)

    return call


Post = Callable[..., Published]


def only_comment(gh: LoopbackGitHub) -> str:
    (comment,) = gh.comments(1)
    assert comment.body.startswith(MARKER)
    return comment.body


def visible(comment: str) -> str:
    """Return the comment without the marker and the hidden ledger."""
    return "\n".join(comment.splitlines()[2:])


def words(posted: Published) -> str:
    """Return a result's first sentence as the comment has it, below the title that says the verdict."""
    _, _, rest = posted.title.partition(": ")
    return f"{rest[0].upper()}{rest[1:]}"


def only_check(gh: LoopbackGitHub) -> tuple[str | None, str | None]:
    (check,) = gh.state.checks.values()
    return check.conclusion, check.title


def test_the_result_becomes_comment_check_and_report(gh: LoopbackGitHub, post: Post) -> None:
    posted = post()
    assert posted.title.startswith(("Regressed: ", "Mixed: "))
    assert posted.troubles == ()
    body = only_comment(gh)
    assert words(posted) in body
    verdict = posted.title.partition(":")[0]
    assert body.splitlines()[2].startswith(f"### \N{LARGE RED CIRCLE} {verdict}")
    assert "Requested by @maintainer." in body
    assert "| Facts kept: " in body
    assert only_check(gh) == ("neutral", posted.title[:255])
    assert posted.report.startswith("## Compression eval")
    (check,) = gh.state.checks.values()
    assert check.summary == posted.report


def test_a_loss_is_shown_once_beside_the_line_that_it_comes_from(
    gh: LoopbackGitHub, post: Post, root: Path, config: Config, tmp_path: Path
) -> None:
    post()
    post()
    (check,) = gh.state.checks.values()
    (note,) = check.annotations
    assert (note["path"], note["annotation_level"]) == (adopted.COMPRESSOR, "warning")
    line = (
        gh.state.history.commits[check.head_sha].tree[adopted.COMPRESSOR].decode().splitlines()[note["start_line"] - 1]
    )
    assert "= 0.02" in line, "what the pull request changes"
    assert str(check.title) in str(note["message"])
    gh.push_to_pull(1, adopted.worse_tree(adopted.base_tree()))
    ResultsFolder(tmp_path / "same").write_measurement(adopted.measured("anchored"))
    same = ticket_for(gh, run_id=9, run_url="https://github.com/acme/agent/actions/runs/9/attempts/1")
    publish(client(gh), same, config, root=root, folder=tmp_path / "same", result="success")
    moved = ticket_for(
        gh, run_id=10, run_url="https://github.com/acme/agent/actions/runs/10/attempts/1", sha=check.head_sha
    )
    post(ticket=moved)
    found = {other.external_id: len(other.annotations) for other in gh.state.checks.values()}
    assert found == {check.external_id: 1, "9/1": 0, "10/1": 0}, "no loss; another diff by now"


def test_where_only_changes_are_wanted_an_unchanged_result_writes_no_first_comment(
    gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path
) -> None:
    quiet = config.model_copy(update={"bot": config.bot.model_copy(update={"comment": "changes"})})
    ResultsFolder(tmp_path / "same").write_measurement(adopted.measured("anchored"))

    def post(folder: Path, run: int) -> Published:
        ticket = ticket_for(gh, run_id=run, run_url=f"https://github.com/acme/agent/actions/runs/{run}/attempts/1")
        return publish(client(gh), ticket, quiet, root=root, folder=folder, result="success")

    assert post(tmp_path / "same", 7).title.startswith("No detectable change")
    assert gh.comments(1) == []
    assert len(gh.state.checks) == 1
    (tmp_path / "worse").mkdir()
    (tmp_path / "worse/summary.json").write_text(json.dumps(summary), encoding="utf-8")
    post(tmp_path / "worse", 8)
    assert "Regressed" in only_comment(gh)
    post(tmp_path / "same", 9)
    assert "No detectable change" in only_comment(gh), "a comment that is there says what holds now"


def test_a_job_that_failed_after_measuring_is_not_passed_over(gh: LoopbackGitHub, post: Post) -> None:
    posted = post(result="failure")
    assert posted.title.startswith(("Regressed: ", "Mixed: "))
    assert "The job failed after these results were measured" in only_comment(gh)
    post()
    assert "The job failed" not in only_comment(gh)


def test_the_verdict_fails_the_check_only_where_the_base_branch_says_so(
    gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path
) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    strict = config.model_copy(update={"bot": config.bot.model_copy(update={"conclusion": "verdict"})})
    publish(client(gh), ticket_for(gh), strict, root=root, folder=tmp_path, result="success")
    assert only_check(gh)[0] == "failure"


def test_a_forged_verdict_is_not_believed(gh: LoopbackGitHub, post: Post, tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    forged = {"kind": "improved", "headline": "Improved: everything."}
    for name in ("verdict.json", "report.json", "run.json"):
        (tmp_path / "published" / name).write_text(json.dumps(forged), encoding="utf-8")
    (tmp_path / "published" / "report.md").write_text("Improved: everything.", encoding="utf-8")
    posted = post()
    assert "Improved: everything" not in only_comment(gh) + posted.report
    assert posted.title.startswith(("Regressed: ", "Mixed: "))


def _set(path: str, value: Any) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        *parents, last = path.split("/")
        item: Any = body
        for part in parents:
            item = item[int(part)] if isinstance(item, list) else item[part]
        item[int(last) if isinstance(item, list) else last] = value

    return change


def _rename_probe(body: Json) -> None:
    probes = body["fixtures"]["small-plan"][0]["probes"]
    probes["evil"] = probes.pop("recall-refusal")


RUN = "fixtures/small-plan/0"
GRADE = f"{RUN}/probes/recall-refusal/result"
FORGERIES: dict[str, tuple[Callable[[Json], None], str]] = {
    "schema": (_set("surplus", 1), "unknown field"),
    "version": (_set("planned_runs", -1), "planned_runs"),
    "fixtures": (_set("fingerprint/fixtures/small-plan", "0" * 64), "other fixtures or probes"),
    "probes": (_set("fingerprint/probes/small-plan", "0" * 64), "other fixtures or probes"),
    "fewer fixtures": (lambda body: body["fixtures"].pop("small-plan"), "other fixtures or probes"),
    "probe types": (_set("probe_types/small-plan/recall-refusal", "artifact"), "other fixtures or probes"),
    "unknown probe": (_rename_probe, "other fixtures or probes"),
    "run of another": (_set(f"{RUN}/fixture", "small-debug"), "another fixture"),
    "run twice": (_set(f"{RUN}/run", 1), "appears twice"),
    "score": (_set(f"{GRADE}/scores/accuracy", 50), "six scores"),
    "no score": (_set(f"{GRADE}/scores", {"accuracy": 5}), "six scores"),
    "huge": (_set(f"{RUN}/tokens_before", 10**400), "a number has 401 digits"),
    "huge text": (_set(f"{RUN}/tokens_before", "9" * 30), "a number that no measurement has"),
    "no number": (_set(f"{RUN}/seconds", "nan"), "a number that no measurement has"),
    "endless": (_set(f"{RUN}/seconds", "-inf"), "a number that no measurement has"),
    "census count": (_set(f"{RUN}/census/lost/path", "9" * 200), "a number that no measurement has"),
    "key": (lambda body: body["models"].update({"<img src=x>": "y"}), "not a plain text"),
    "model": (_set("models/judge", "[x](https://example.invalid)"), "not a plain text"),
    "address": (_set("models/judge", "see https://example.invalid"), "not a plain text"),
    "mention": (_set("provenance/target", "by @maintainer"), "not a plain text"),
    "quarantine": (_set("controls/small-plan/probes/recall-refusal/quarantined", "</details>"), "not a plain text"),
    "census": (_set("census/small-plan/0/value", "approve@example.invalid"), "not what is found in the fixture"),
    "worst": (_set(f"{RUN}/census/worst", ["path: <img>"]), "not in the fixture's census"),
    "fact": (_set(f"{RUN}/probes/recall-refusal/facts/0/label", "another"), "other facts than the bank's"),
    "place": (_set(f"{RUN}/probes/recall-refusal/facts/0/evidence", [0]), "other facts than the bank's"),
    "stale": (_set(f"{RUN}/stale", [{"probe": "recall-refusal", "value": "x"}]), "no probe calls superseded"),
    "fates": (_set(f"{RUN}/census/fates", "10" * 50), "no measurement has"),
    "kind": (_set(f"{RUN}/invented", [{"kind": "joke", "value": "x"}]), "no measurement has"),
    "verbatim": (_set(f"{RUN}/verbatim", [10_000]), "no measurement has"),
    "check": (lambda body: body["fixtures"]["small-plan"][0]["structure"].update({"all good": True}), "no measurement"),
    "structure": (lambda body: body["fixtures"]["small-plan"][0]["structure"].update({"*a*": False}), "plain text"),
}


def test_what_a_quarantine_says_is_text_in_the_comment_and_no_link(
    gh: LoopbackGitHub, post: Post, summary: Json
) -> None:
    body = copy.deepcopy(summary)
    _set("controls/small-plan/probes/recall-refusal/quarantined", "ask somebody@example.invalid")(body)
    post(body)
    comment = only_comment(gh)
    assert "Left out of the scores: small-plan / recall-refusal: ask somebody" in comment
    assert "somebody@" not in comment


@pytest.mark.parametrize("name", FORGERIES)
def test_a_summary_that_no_evaluation_leaves_is_refused_and_told(
    gh: LoopbackGitHub, post: Post, summary: Json, name: str
) -> None:
    change, words = FORGERIES[name]
    body = copy.deepcopy(summary)
    change(body)
    posted = post(body)
    assert posted.title == "The evaluation failed"
    assert words in only_comment(gh)
    assert only_check(gh) == ("neutral", "The evaluation failed")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"label": NaN}', "NaN is not a number"),
        (b'{"label": 1e999}', "broken JSON"),
        (b"[" * 100_000, "broken JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'"\\ud800"', "refused"),
        (b"", "broken JSON"),
    ],
    ids=["nan", "infinite", "deep", "bytes", "surrogate", "empty"],
)
def test_broken_json_is_refused_in_words(
    root: Path, config: Config, gh: LoopbackGitHub, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "summary.json").write_bytes(content)
    publish(client(gh), ticket_for(gh), config, root=root, folder=tmp_path, result="success")
    assert "**The evaluation failed**" in only_comment(gh)
    assert words in only_comment(gh)


def test_a_link_a_pipe_or_a_giant_is_not_opened(root: Path, config: Config, gh: LoopbackGitHub, tmp_path: Path) -> None:
    import os

    path = tmp_path / "summary.json"
    makers: list[Callable[[], object]] = [
        lambda: path.symlink_to("/etc/passwd"),
        lambda: os.mkfifo(path),
        lambda: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 65 << 20),
        path.mkdir,
    ]
    for make in makers:
        make()
        with pytest.raises(UserError, match=r"no summary\.json that can be read"):
            read_result(ticket_for(gh), config, root, tmp_path)
        path.rmdir() if path.is_dir() else path.unlink()


HOSTILE = (
    "</code></td></table></details><h1>Improved</h1> @maintainer ![x](https://example.invalid/p.png) `|` **5.0** | |\n"
    f"{MARKER}\n# Improved\n- `abcdef1` 2026-01-01 10:00: improved ([log](https://example.invalid))"
)


def poisoned(value: Any, key: str = "") -> Any:
    """Put hostile text wherever a compressor's or a model's own words stand."""
    if isinstance(value, dict):
        return {name: item if name == "facts" else poisoned(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item, key) for item in value]
    free = ("detail", "notes", "summary", "text", "reason", "label", "headings", "flags", "stopped")
    return HOSTILE if key in free and (isinstance(value, str) or key == "stopped") else value


def test_text_of_strangers_is_inert_in_comment_and_report(gh: LoopbackGitHub, post: Post, summary: Json) -> None:
    body = poisoned(summary)
    body["label"] = summary["label"]
    first = body["fixtures"]["small-debug"][0]
    first.update(outcome="target_error", detail=HOSTILE, probes={})
    body["fixtures"]["small-plan"][0]["probes"]["recall-refusal"]["result"] = {"kind": "unscored", "reason": HOSTILE}
    ticket = ticket_for(gh, sender="asker", ignored_files=[HOSTILE] * 40, ignored_more=3)
    posted = post(body, ticket=ticket)
    comment = only_comment(gh)
    assert "example.invalid" in comment  # it is shown, and does nothing
    for text in (visible(comment), posted.report):
        shown = outside_code(render(text))
        assert "@maintainer" not in shown
        assert not re.search(r'(?:href|src)="https://example', shown)
        assert "<h1>Improved" not in shown
        assert "<img" not in shown
    assert comment.count(MARKER) == 1
    # A forged line of the list of results is not carried into the next comment.
    post(summary, ticket=ticket_for(gh, run_id=8))
    assert "example.invalid" not in "".join(line for line in visible(only_comment(gh)).splitlines() if "[log](" in line)


def test_every_tag_in_the_rendered_comment_is_our_own(gh: LoopbackGitHub, post: Post, summary: Json) -> None:
    body = poisoned(summary)
    body["label"] = summary["label"]
    post(body)
    shown = outside_code(render(visible(only_comment(gh))))
    ours = re.sub(r"</?(?:details|summary|strong|em|ul|li|a|h3|blockquote)\b[^>]*>|<!--[^>]*-->", "", shown)
    assert not LIVE.search(ours.replace('<pre lang="sh">', ""))
    links = set(re.findall(r'href="([^"]*)"', shown))
    run = ticket_for(gh).run_url
    form = run.split("/runs/")[0] + "/workflows/compression-eval.yml"
    assert links <= {run, form, READING, f"{READING}#5-reproducing-a-result"}


def test_a_moved_head_is_said_first(gh: LoopbackGitHub, post: Post) -> None:
    ticket = ticket_for(gh, warnings=["A draft."])
    new = gh.push_to_pull(1, adopted.base_tree())
    post(ticket=ticket)
    body = only_comment(gh)
    assert f"The result below is for `{ticket.sha[:7]}`, not for the last commit, `{new[:7]}`." in body
    assert "> A draft." in body
    assert [check.head_sha for check in gh.state.checks.values()] == [ticket.sha]


def test_why_a_run_stopped_early_is_said(gh: LoopbackGitHub, post: Post, summary: Json) -> None:
    post({**summary, "stopped": "the budget of $5.00 is used up"})
    assert "> The run stopped early: `the budget of $5.00 is used up`" in only_comment(gh)


@pytest.mark.parametrize(
    ("result", "title"),
    [("cancelled", "was cancelled or timed out"), ("failure", "failed"), ("skipped", "failed")],
)
def test_an_evaluation_without_a_result_is_told_with_the_remedy(
    gh: LoopbackGitHub, root: Path, config: Config, tmp_path: Path, result: str, title: str
) -> None:
    keep_error(tmp_path, "no sandbox works here @all: install bubblewrap")
    publish(client(gh), ticket_for(gh), config, root=root, folder=tmp_path, result=result)
    body = only_comment(gh)
    assert f"**The evaluation {title}**" in body
    assert "then add the label `eval-compression` again: what was measured and paid for is reused" in body
    assert "install bubblewrap" in body
    assert "@all" not in body
    assert only_check(gh)[0] == ("cancelled" if result == "cancelled" else "neutral")


@pytest.mark.parametrize("later", [True, False])
def test_one_that_is_dropped_from_the_queue_for_a_later_one_is_not_told_to_ask_again(
    gh: LoopbackGitHub, root: Path, config: Config, tmp_path: Path, later: bool
) -> None:
    """Of the jobs that wait GitHub keeps only the last: another label would cancel the one that follows."""
    for run in (7, 8, 9) if later else (7, 8):
        url = f"https://x.invalid/{run}"
        Sticky(client(gh), 1).record(EvaluationQueued(run=WorkflowRun(run, 1), at=now(), url=url, sha="a" * 40))
    publish(client(gh), ticket_for(gh, run_id=8), config, root=root, folder=tmp_path, result="cancelled")
    body = only_comment(gh)
    assert ("**Cancelled, and a later request follows**" in body) is later
    assert ("then add the label" in body) is not later
    assert only_check(gh)[0] == "cancelled"


def test_a_refusal_with_a_newer_run_id_does_not_hide_the_result(gh: LoopbackGitHub, post: Post) -> None:
    refused = RequestRefused(run=WorkflowRun(9_999, 1), at=now(), url="https://x.invalid/9999", why="no.", sha=None)
    Sticky(client(gh), 1).record(refused)
    posted = post()
    assert words(posted) in only_comment(gh)


def test_a_failure_after_a_result_leaves_the_result(
    gh: LoopbackGitHub, root: Path, config: Config, tmp_path: Path, post: Post
) -> None:
    posted = post()
    empty = tmp_path / "nothing"
    empty.mkdir()
    for run, result in ((8, "failure"), (9, "cancelled"), (10, "skipped")):
        publish(client(gh), ticket_for(gh, run_id=run), config, root=root, folder=empty, result=result)
        body = only_comment(gh)
        assert words(posted) in body
        assert "**The evaluation " in body
        assert "The result below still holds" in body


@pytest.mark.parametrize("late", [False, True])
def test_a_re_run_of_an_older_run_is_shown_and_a_late_publication_is_not_taken_for_newer(
    gh: LoopbackGitHub, post: Post, late: bool
) -> None:
    old, new = (gh.run("compression-eval.yml", "d" * 40, jobs={"evaluate": "success"}) for _ in range(2))
    old.created = new.created + timedelta(hours=-1 if late else 1)
    post(ticket=ticket_for(gh, run_id=new.id, run_url=f"https://x.invalid/{new.id}"))
    post(ticket=ticket_for(gh, run_id=old.id, run_url=f"https://x.invalid/{old.id}"))
    shown = read_comment(only_comment(gh), "1#1")
    assert [result.run_id for result in shown.results] == ([new.id, old.id] if late else [old.id, new.id])
    assert shown.shown is not None
    assert shown.shown.run_id == (new.id if late else old.id)


@pytest.mark.parametrize("result", ["cancelled", "failure"])
def test_what_a_job_had_measured_when_it_was_cut_off_is_published(gh: LoopbackGitHub, post: Post, result: str) -> None:
    posted = post(result=result)
    body = only_comment(gh)
    assert words(posted) in body
    wanted = (
        "These are the results up to that point"
        if result == "cancelled"
        else "failed after these results were measured"
    )
    assert wanted in body
    assert only_check(gh)[0] == "neutral"


def test_a_rejected_approval_is_told_with_who_and_why(
    gh: LoopbackGitHub, root: Path, config: Config, tmp_path: Path
) -> None:
    gh.user("boss", "admin")
    run = gh.run("compression-eval.yml", "d" * 40, conclusion="failure", jobs={"evaluate": "failure"})
    run.reviews.append(("compression-eval", "rejected", "boss", "too dear this month @all"))
    ticket = ticket_for(gh, run_id=run.id)
    publish(client(gh), ticket, config, root=root, folder=tmp_path, result="failure")
    body = only_comment(gh)
    assert "**A reviewer rejected the evaluation**" in body
    assert "boss rejected it: too dear this month" in body
    assert "@all" not in visible(body)
    assert only_check(gh)[0] == "cancelled"
    # A re-run that was approved and failed is not called rejected for what was said before.
    run.reviews.append(("compression-eval", "approved", "boss", "now it is fine"))
    publish(client(gh), ticket, config, root=root, folder=tmp_path, result="failure")
    assert "**The evaluation failed**" in only_comment(gh)


def test_the_full_report_is_linked_only_if_it_is_of_this_run(
    gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path
) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    good = "https://github.com/acme/agent/actions/runs/7/artifacts/123"
    for url in (good, "https://github.com/acme/agent/actions/runs/8/artifacts/123", "https://evil.invalid/1", ""):
        publish(
            client(gh), ticket_for(gh), config, root=root, folder=tmp_path, result="success", report_url=url or None
        )
        assert (f"[Full report]({good})" in only_comment(gh)) == (url == good)
        assert "evil" not in only_comment(gh)


@pytest.mark.parametrize(("sender", "wanted"), [("maintainer", True), ("renovate[bot]", False)])
def test_whoever_asked_is_named_once_unless_it_is_a_robot_or_turned_off(
    gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path, sender: str, wanted: bool
) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    ticket = ticket_for(gh, sender=sender)
    publish(client(gh), ticket, config, root=root, folder=tmp_path, result="success")
    assert only_comment(gh).count(f"@{sender}") == wanted
    again = ticket.model_copy(update={"run_id": ticket.run_id + 1})
    Sticky(client(gh), 1).record(EvaluationQueued(run=again.run, at=now(), url=again.run_url, sha=again.sha))
    assert f"@{sender}" not in only_comment(gh)
    (tmp_path / "summary.json").unlink()
    publish(client(gh), again, config, root=root, folder=tmp_path, result="failure")
    # The end that was added notifies, and only it does.
    assert only_comment(gh).count(f"@{sender}") == wanted
    assert ("Requested by @" in only_comment(gh).partition("compression-eval:result -->")[0]) == wanted
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    ticket = ticket.model_copy(update={"run_id": ticket.run_id + 2})
    quiet = config.model_copy(update={"bot": config.bot.model_copy(update={"mention": False})})
    publish(client(gh), ticket, quiet, root=root, folder=tmp_path, result="success")
    assert f"@{sender}" not in only_comment(gh)


def test_the_check_that_the_gate_began_is_the_one_that_is_completed(gh: LoopbackGitHub, post: Post) -> None:
    ticket = ticket_for(gh)
    Check(client(gh), ticket.sha, ticket.run, ticket.run_url).queue("Waiting for approval", "soon")
    post(ticket=ticket)
    assert only_check(gh)[0] == "neutral"


def test_the_same_run_twice_makes_one_comment_and_one_check(gh: LoopbackGitHub, post: Post) -> None:
    post()
    post()
    assert only_check(gh)[0] == "neutral"


def test_other_peoples_comments_are_never_touched(gh: LoopbackGitHub, post: Post) -> None:
    fake = gh.comment(1, "contributor", f"{MARKER}\n<!-- compression-eval:ledger {'0' * 64} {{}} -->\nImproved!")
    post()
    assert gh.state.comments[fake.id].body.endswith("Improved!")
    assert len(gh.comments(1)) == 2


STEPS = [
    ("GET", r"/pulls/1$"),
    ("GET", r"/users/"),
    ("GET", r"/issues/1/comments"),
    ("POST", r"/issues/1/comments"),
    ("GET", r"/check-runs"),
    ("POST", r"/check-runs"),
]


def disturb(gh: LoopbackGitHub, method: str, path: str, kind: str) -> None:
    if kind in ("403", "429"):
        gh.secondary_limit(method, path, status=int(kind), retry_after=3)
    elif kind == "drop":
        gh.fail(method, path, kind="drop")
    else:
        gh.fail(method, path, 502 if kind == "lost answer" else int(kind), takes_effect=kind == "lost answer")


@pytest.mark.parametrize("kind", ["500", "502", "403", "429", "drop", "lost answer"])
@pytest.mark.parametrize(("method", "path"), STEPS[1:])
def test_a_passing_fault_at_any_step_loses_and_doubles_nothing(
    gh: LoopbackGitHub, post: Post, method: str, path: str, kind: str
) -> None:
    disturb(gh, method, path, kind)
    posted = post()
    assert gh.faults.pending == 0
    if posted.troubles:
        assert method == "POST"  # may have been heard, so it is not sent again by itself; the next attempt looks first
        posted = post()
    assert posted.troubles == ()
    assert words(posted) in only_comment(gh)
    assert only_check(gh)[0] == "neutral"


@pytest.mark.parametrize("kind", ["500", "429", "drop"])
def test_a_passing_fault_does_not_hide_whether_the_head_has_moved(gh: LoopbackGitHub, post: Post, kind: str) -> None:
    ticket = ticket_for(gh)
    new = gh.push_to_pull(1, adopted.base_tree())
    disturb(gh, *STEPS[0], kind)
    assert post(ticket=ticket).troubles == ()
    assert f"not for the last commit, `{new[:7]}`" in only_comment(gh)


@pytest.mark.parametrize(("method", "path"), STEPS)
def test_a_lasting_outage_loses_only_what_it_concerns(gh: LoopbackGitHub, post: Post, method: str, path: str) -> None:
    gh.fail(method, path, 503, times=50)
    posted = post()
    assert posted.report.startswith("## Compression eval")
    if path == r"/pulls/1$":
        assert posted.troubles == ()
        assert "is still the head could not be checked" in only_comment(gh)
        return
    assert len(posted.troubles) == 1
    assert "run this again" in posted.troubles[0]
    if "check-runs" in path:
        assert words(posted) in only_comment(gh)
    else:
        assert only_check(gh)[0] == "neutral"


def test_a_comment_deleted_meanwhile_is_written_again(gh: LoopbackGitHub, post: Post) -> None:
    post(ticket=ticket_for(gh, run_id=6))
    (standing,) = gh.comments(1)
    gh.before("PATCH", "/issues/comments/", lambda: gh.delete_comment(standing.id))
    posted = post()
    assert words(posted) in only_comment(gh)


def test_a_pull_request_closed_or_without_its_fork_still_gets_its_comment(gh: LoopbackGitHub, post: Post) -> None:
    gh.close(1)
    gh.delete_fork(1)
    assert words(post()) in only_comment(gh)


def test_a_commit_that_is_gone_costs_the_check_but_not_the_comment(gh: LoopbackGitHub, post: Post) -> None:
    ticket = ticket_for(gh)
    gh.push_to_pull(1, adopted.base_tree(), force=True)
    gh.forget_commit(ticket.sha)
    posted = post(ticket=ticket)
    assert words(posted) in only_comment(gh)
    assert len(posted.troubles) == 1
    assert "No commit found" in posted.troubles[0]


def test_a_lost_permission_is_one_clear_sentence_and_the_check_is_made(
    gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path
) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    token = gh.job_token({**PERMISSIONS, "pull_requests": "read"})
    weak = GitHub(adopted.REPO, token, api_url=gh.url)
    posted = publish(weak, ticket_for(gh), config, root=root, folder=tmp_path, result="success")
    assert len(posted.troubles) == 1
    assert "grant the job the permission it lacks" in posted.troubles[0]
    assert only_check(gh)[0] == "neutral"


def test_the_comment_never_outgrows_github(gh: LoopbackGitHub, post: Post) -> None:
    ticket = ticket_for(gh, ignored_files=["\U0001f600" * 199] * 40, warnings=["w" * 15_000] * 3)
    post(ticket=ticket)
    assert len(only_comment(gh).encode()) <= LIMIT


def test_what_cannot_be_posted_ends_the_step_with_its_reason_after_the_summary(
    gh: LoopbackGitHub, root: Path, summary: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    gh.exhaust(3_600)
    page = tmp_path / "page.md"
    monkeypatch.chdir(root)
    for name, value in {
        "TICKET": ticket_for(gh).line,
        "GITHUB_TOKEN": gh.job_token(PERMISSIONS),
        "GITHUB_API_URL": gh.url,
        "GITHUB_REPOSITORY": adopted.REPO,
        "GITHUB_STEP_SUMMARY": str(page),
        "EVALUATE_RESULT": "success",
    }.items():
        monkeypatch.setenv(name, value)
    ran = cli("bot", "publish", "--work", str(tmp_path))
    assert ran.code == 3
    assert "not everything could be posted" in ran.err
    assert "## Compression eval" in page.read_text(encoding="utf-8")


def test_evaluations_that_failed_do_not_use_up_the_looks_at_a_commit(
    gh: LoopbackGitHub, root: Path, config: Config, tmp_path: Path, post: Post
) -> None:
    for run in range(1, 5):
        publish(client(gh), ticket_for(gh, run_id=run), config, root=root, folder=tmp_path, result="failure")
    assert _looks(client(gh), ticket_for(gh).sha) == 0
    post(ticket=ticket_for(gh, run_id=9))
    assert _looks(client(gh), ticket_for(gh).sha) == 1


# The base that was measured in the same run: what the stored baseline would blame the pull request for, it did itself.


def test_a_base_measured_in_the_run_is_what_a_pull_request_is_compared_with(
    gh: LoopbackGitHub, post: Post, summary: Json
) -> None:
    body = {**summary, "extra": {"base": "rerun", "stale": True}}
    fork = gh.state.refs["heads/main"]
    tip = gh.push("main", {**adopted.base_tree(), "README.md": b"main goes on\n"})
    posted = post(body, base=summary, ticket=ticket_for(gh, base_ref="main", merge_base=fork, base_sha=tip, behind=1))
    assert posted.title.startswith("No detectable change")
    assert "The stored baseline baselines/offline.json is stale" in posted.report
    assert "against it: Regressed" in posted.report
    assert f"main at `{fork[:12]}`, measured in this run" in posted.report
    comment = gh.comments(1)[-1].body
    first_screen, folded = comment.split("<details>", 1)
    # What the base lost is told where it is seen, and no age of a baseline that was not used.
    assert "is stale" in first_screen
    assert "against it: Regressed" in first_screen
    assert "Nothing to do." not in comment
    assert "is stale" not in folded
    assert f"compared with `main` at `{fork[:7]}`, 1 commit behind its tip" in first_screen
    assert f"compression-eval reproduce https://github.com/{adopted.REPO}/pull/1 --sha {ticket_for(gh).sha}" in comment
    assert "days old" not in comment


@pytest.mark.parametrize("spoilt", ["missing", "grade", "word", "fixture"])
def test_the_base_of_a_run_is_read_as_hostile_input_too(
    gh: LoopbackGitHub, post: Post, summary: Json, spoilt: str
) -> None:
    base = copy.deepcopy(summary)
    if spoilt == "grade":
        base["fixtures"]["small-plan"][0]["probes"]["recall-refusal"]["result"]["scores"]["accuracy"] = 9.0
    elif spoilt == "word":
        base["provenance"]["target"] = HOSTILE
    elif spoilt == "fixture":
        base["fixtures"]["small-plan"][0]["fixture"] = "small-debug"
    posted = post({**summary, "extra": {"base": "rerun"}}, base=None if spoilt == "missing" else base)
    assert posted.title == "The evaluation failed"
    assert "base/summary.json" in posted.report


def test_a_control_is_read_as_hostile_input_too(post: Post, summary: Json) -> None:
    runs = {name: copy.deepcopy(found[:1]) for name, found in summary["fixtures"].items()}
    runs["small-plan"][0]["probes"]["recall-refusal"]["result"]["scores"]["accuracy"] = 9.0
    posted = post({**summary, "extra": {"control": {"fixtures": runs, "source_sha": None}}})
    assert posted.title == "The evaluation failed"
    assert "extra.control" in posted.report
    assert "six scores from 0 to 5" in posted.report


def test_how_often_a_commit_was_looked_at_is_the_tickets_to_say(
    gh: LoopbackGitHub, root: Path, config: Config, summary: Json, tmp_path: Path
) -> None:
    body = {**summary, "planned_runs": 6, "extra": {"looks": []}}
    (tmp_path / "summary.json").write_text(json.dumps(body), encoding="utf-8")
    measurement, _ = read_measured(ticket_for(gh, looks=2), config, root, tmp_path)
    (before,) = measurement.extra.looks
    assert before[0] == config.runs
