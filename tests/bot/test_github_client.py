"""The client against a GitHub that pages, refuses, limits and fails."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bot_world import FILES, REPO, WORKFLOW, Waits
from loopback import InjectedFault, LoopbackGitHub

from bot.github.api_error import Conflict, Forbidden, NotFound, Unavailable
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from eval_core.base.errors import UserError


def test_a_pull_request_is_read_whole(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.label(1, "eval-compression")
    pull = client.pull(1)
    assert (pull.number, pull.state, pull.head_repo, pull.base_ref) == (1, "open", "contributor/agent", "main")
    assert (pull.labels, pull.changed_files, pull.author) == (("eval-compression",), 1, "contributor")
    assert pull.head_sha == gh.state.pulls[1].head_sha


def test_a_deleted_fork_leaves_the_pull_request_and_its_files(
    gh: LoopbackGitHub, client: GitHub, tmp_path: Path
) -> None:
    gh.delete_fork(1)
    pull = client.pull(1)
    assert pull.head_repo is None
    assert client.tarball(pull.head_sha, tmp_path / "tree.tar.gz") > 0


@pytest.mark.parametrize("role", ["none", "read", "triage", "write", "maintain", "admin"])
def test_permissions_keep_the_roles_apart(gh: LoopbackGitHub, client: GitHub, role: str) -> None:
    gh.user("somebody", role)
    assert client.permission("somebody") == role


def test_a_stranger_may_read_and_an_unknown_account_is_none(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.user("stranger")
    assert client.permission("stranger") == "read"
    assert client.permission("nobody-at-all") is None
    assert client.permission("dependabot[bot]") is None


def test_three_thousand_files_are_all_listed(gh: LoopbackGitHub, client: GitHub) -> None:
    many = {f"src/f{index:04}.py": b"x\n" for index in range(2_999)}
    number = gh.open_pull({**FILES, **many, "src/compressor.py": b"new\n"}).number
    files = client.changed_files(number)
    assert len(files) == len({file.path for file in files}) == client.pull(number).changed_files == 3_000


def test_beyond_three_thousand_the_count_tells_what_the_list_lacks(gh: LoopbackGitHub, client: GitHub) -> None:
    number = gh.open_pull({**FILES, **{f"f{index}": b"x" for index in range(3_050)}}).number
    assert len(client.changed_files(number)) == 3_000
    assert client.pull(number).changed_files == 3_050


def test_a_renamed_file_keeps_its_old_name(gh: LoopbackGitHub, client: GitHub) -> None:
    number = gh.open_pull({"README.md": FILES["README.md"], "lib/compressor.py": FILES["src/compressor.py"]}).number
    (file,) = client.changed_files(number)
    assert (file.path, file.status, file.previous) == ("lib/compressor.py", "renamed", "src/compressor.py")


def test_three_hundred_comments_are_all_read_in_order(gh: LoopbackGitHub, client: GitHub) -> None:
    ids = [gh.comment(1, "contributor", f"comment {index}").id for index in range(300)]
    assert [comment.id for comment in client.comments(1)] == ids


def test_a_label_already_gone_is_fine(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.label(1, "eval/compression 100%")
    assert client.remove_label(1, "eval/compression 100%") is True
    assert client.remove_label(1, "eval/compression 100%") is False
    assert gh.state.pulls[1].labels == []


def test_reacting_twice_leaves_one_reaction(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.fail("POST", "/reactions$", 502, takes_effect=True)
    client.react(1, "eyes")
    client.react(1, "eyes")
    assert [reaction.content for reaction in gh.state.reactions] == ["eyes"]


def test_a_jobs_token_knows_its_account_and_a_person_theirs(gh: LoopbackGitHub, client: GitHub) -> None:
    assert client.me.login == "github-actions[bot]"
    person = GitHub(REPO, gh.user_token("maintainer"), api_url=gh.url)
    assert person.me.login == "maintainer"


def test_commits_know_their_tree_and_how_far_they_are_behind(gh: LoopbackGitHub, client: GitHub) -> None:
    head = client.pull(1).head_sha
    gh.push("main", {**FILES, "NEWS": b"1"})
    gh.push("main", {**FILES, "NEWS": b"2"})
    assert client.commit(head).parents == (gh.state.pulls[1].base_sha,)
    distance = client.compare("main", head)
    assert (distance.ahead, distance.behind) == (1, 2)
    merged = gh.merge(1)
    assert client.commit(merged).tree == client.commit(head).tree
    assert client.commit("main").sha == merged
    with pytest.raises(NotFound):
        client.commit("0" * 40)
    assert client.default_branch() == "main"


@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_outage_is_waited_out_with_growing_pauses(
    gh: LoopbackGitHub, client: GitHub, waits: Waits, status: int
) -> None:
    gh.fail("GET", "/pulls/1$", status, times=3)
    assert client.pull(1).number == 1
    assert waits.seconds == [1, 2, 4]
    assert gh.faults.pending == 0


def test_an_outage_in_the_middle_of_a_list_loses_nothing(gh: LoopbackGitHub, client: GitHub) -> None:
    ids = [gh.comment(1, "contributor", "x").id for _ in range(250)]
    gh.fail("GET", "/issues/1/comments", 502, after=1)
    assert [comment.id for comment in client.comments(1)] == ids


def test_an_outage_without_end_is_said_in_one_line(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.fail("GET", "/pulls/1$", 503, times=99)
    with pytest.raises(Unavailable, match=r"pull request #1 of acme/agent: .*503.* after 5 attempts; run this again"):
        client.pull(1)


def test_the_primary_limit_is_waited_for_until_its_reset(gh: LoopbackGitHub) -> None:
    gh.exhaust(reset_in=90)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        gh.refill()

    client = GitHub(REPO, gh.job_token(), api_url=gh.url, retry=ApiRetries(sleep=sleep))
    assert client.pull(1).number == 1
    assert len(slept) == 1
    assert 60 < slept[0] <= 91


def test_a_reset_too_far_away_is_not_waited_for(gh: LoopbackGitHub, client: GitHub, waits: Waits) -> None:
    gh.exhaust(reset_in=3_000)
    with pytest.raises(Unavailable, match=r"rate limit .* run this again after \d\d:\d\d UTC"):
        client.pull(1)
    assert waits.seconds == []


@pytest.mark.parametrize(
    ("status", "retry_after", "waited"), [(403, 17, 17), (429, 17, 17), (403, None, 60), (429, 0, 1)]
)
def test_the_secondary_limit_is_waited_for_as_asked(
    gh: LoopbackGitHub, client: GitHub, waits: Waits, status: int, retry_after: int | None, waited: float
) -> None:
    gh.secondary_limit("POST", "/issues/1/comments", status=status, retry_after=retry_after)
    client.create_comment(1, "hello")
    assert waits.seconds == [waited]
    assert [comment.body for comment in gh.comments(1)] == ["hello"]


def test_patience_with_limits_has_an_end(gh: LoopbackGitHub, client: GitHub, waits: Waits) -> None:
    gh.secondary_limit("GET", "/pulls/1$", retry_after=140, times=99)
    with pytest.raises(Unavailable):
        client.pull(1)
    assert waits.seconds == [140, 140]


def test_a_silent_server_is_given_up_on_and_asked_again(gh: LoopbackGitHub, waits: Waits) -> None:
    gh.fail("GET", "/pulls/1$", kind="timeout")
    client = GitHub(REPO, gh.job_token(), api_url=gh.url, retry=ApiRetries(timeout=1, sleep=waits))
    assert client.pull(1).number == 1
    assert waits.seconds == [1]


def test_a_broken_connection_is_tried_again(gh: LoopbackGitHub, client: GitHub, waits: Waits) -> None:
    gh.fail("GET", "/pulls/1$", kind="drop", times=2)
    assert client.pull(1).number == 1
    assert waits.seconds == [1, 2]


@pytest.mark.parametrize("kind", ["status", "drop"])
def test_a_comment_whose_answer_got_lost_is_not_sent_again(gh: LoopbackGitHub, client: GitHub, kind: str) -> None:
    gh.fail("POST", "/issues/1/comments", 502, takes_effect=True, kind=kind)  # type: ignore[arg-type]
    with pytest.raises(Unavailable) as caught:
        client.create_comment(1, "hello")
    assert caught.value.maybe_done
    assert len(gh.comments(1)) == 1


def test_an_unknown_token_is_named_but_never_shown(gh: LoopbackGitHub) -> None:
    secret = "-".join(["not", "a", "token", "x" * 20])
    client = GitHub(REPO, secret, api_url=gh.url)
    with pytest.raises(Forbidden, match="GITHUB_TOKEN") as caught:
        client.pull(1)
    assert secret not in str(caught.value)
    assert secret not in repr(client) + repr(vars(client)["_transport"])


@pytest.mark.parametrize(
    ("lacking", "act"),
    [
        ("pull_requests", lambda client: client.pull(1)),
        ("checks", lambda client: client.create_check({"name": "x", "head_sha": "0" * 40})),
        ("contents", lambda client: client.commit("main")),
        ("actions", lambda client: list(client.workflow_runs.of(WORKFLOW))),
    ],
)
def test_a_missing_permission_is_said_with_the_remedy(
    gh: LoopbackGitHub, lacking: str, act: Callable[[GitHub], object]
) -> None:
    granted = {"metadata": "read", "contents": "read", "pull_requests": "write", "checks": "write", "actions": "read"}
    del granted[lacking]
    client = GitHub(REPO, gh.job_token(granted), api_url=gh.url)
    with pytest.raises(Forbidden, match="grant the job the permission"):
        act(client)


def test_what_does_not_exist_is_said_to_be_missing(gh: LoopbackGitHub, client: GitHub) -> None:
    with pytest.raises(NotFound, match="#99 of acme/agent: not found; check the number"):
        client.pull(99)
    with pytest.raises(NotFound, match="comment 5"):
        client.comment(5)
    elsewhere = GitHub("acme/other", gh.job_token(), api_url=gh.url)
    with pytest.raises(NotFound):
        elsewhere.pull(1)


@pytest.mark.parametrize(
    ("repo", "token", "url"), [("acme", "t", ""), ("acme/agent", "", ""), ("acme/agent", "t", "ftp:x")]
)
def test_a_bad_environment_is_refused_at_once(repo: str, token: str, url: str) -> None:
    with pytest.raises(UserError, match="GITHUB_"):
        GitHub.from_environment({"GITHUB_REPOSITORY": repo, "GITHUB_TOKEN": token, "GITHUB_API_URL": url})


def test_a_collected_commit_is_explained(gh: LoopbackGitHub, client: GitHub, tmp_path: Path) -> None:
    old = client.pull(1).head_sha
    gh.push_to_pull(1, FILES, force=True)
    gh.forget_commit(old)
    with pytest.raises(NotFound, match="force-push or its fork was deleted: push again"):
        client.tarball(old, tmp_path / "tree.tar.gz")
    assert not (tmp_path / "tree.tar.gz").exists()


def test_a_download_is_retried_capped_and_leaves_no_half_file(
    gh: LoopbackGitHub, client: GitHub, waits: Waits, tmp_path: Path
) -> None:
    sha, place = client.pull(1).head_sha, tmp_path / "tree.tar.gz"
    gh.fail("GET", "/tarball/", 502)
    gh.fail("GET", "/_storage/", 503)
    size = client.tarball(sha, place)
    assert place.stat().st_size == size
    assert waits.seconds == [1, 2]
    with pytest.raises(UserError, match="larger than 10 bytes"):
        client.tarball(sha, place, limit=10)
    assert not place.exists()


def test_runs_of_foreign_events_are_not_trusted(gh: LoopbackGitHub, client: GitHub) -> None:
    sha = client.pull(1).head_sha
    ours = gh.run(WORKFLOW, sha)
    gh.run(WORKFLOW, sha, event="pull_request")
    gh.run("other.yml", sha)
    assert [run.id for run in client.workflow_runs.of(WORKFLOW)] == [ours.id]
    with pytest.raises(NotFound, match="default branch"):
        list(client.workflow_runs.of("absent.yml"))


def test_runs_are_found_by_time_and_commit_over_all_pages(gh: LoopbackGitHub, client: GitHub) -> None:
    now = datetime.now(UTC)
    for index in range(120):
        gh.run(WORKFLOW, "d" * 40, created=now - timedelta(hours=index))
    gh.run(WORKFLOW, "e" * 40, created=now)
    assert len(list(client.workflow_runs.of(WORKFLOW))) == 121
    assert len(list(client.workflow_runs.of(WORKFLOW, since=now - timedelta(hours=9, minutes=30)))) == 11
    assert [run.head_sha for run in client.workflow_runs.of(WORKFLOW, head_sha="e" * 40)] == ["e" * 40]


def test_the_newest_artifact_that_can_be_had_is_downloaded(gh: LoopbackGitHub, client: GitHub, tmp_path: Path) -> None:
    sha = client.pull(1).head_sha
    old, new = gh.run(WORKFLOW, sha), gh.run(WORKFLOW, sha)
    gh.artifact(gh.run(WORKFLOW, sha, event="pull_request").id, "results", {"run.json": b"forged"})
    gh.artifact(old.id, "results", {"run.json": b"old"})
    gh.artifact(new.id, "logs", {"log": b"x"})
    wanted = gh.artifact(new.id, "results", {"run.json": b"new"})
    artifact = client.workflow_runs.find_artifact(WORKFLOW, "results", head_sha=sha)
    assert artifact is not None
    assert (artifact.id, artifact.run_id, artifact.head_sha) == (wanted.id, new.id, sha)
    client.workflow_runs.download(artifact, tmp_path / "results.zip")
    with zipfile.ZipFile(tmp_path / "results.zip") as archive:
        assert archive.read("run.json") == b"new"
    wanted.expired = True
    with pytest.raises(NotFound, match="expired or deleted; run the evaluation again"):
        client.workflow_runs.download(artifact, tmp_path / "again.zip")
    found = client.workflow_runs.find_artifact(WORKFLOW, "results", head_sha=sha)
    assert found is not None
    assert found.run_id == old.id
    assert client.workflow_runs.find_artifact(WORKFLOW, "absent") is None


def test_a_baseline_pull_request_is_opened_once_and_then_updated(gh: LoopbackGitHub, client: GitHub) -> None:
    contents = client.contents
    tip = client.commit("main").sha
    contents.point_branch("baseline/offline", tip)
    assert contents.put_file("baselines/offline.json", b"{}\n", branch="baseline/offline", message="Baseline")
    assert not contents.put_file("baselines/offline.json", b"{}\n", branch="baseline/offline", message="Baseline")
    first = contents.open_pull(head="baseline/offline", base="main", title="New baseline", body="one")
    second = contents.open_pull(head="baseline/offline", base="main", title="New baseline", body="two")
    assert (first.created, second.created) == (True, False)
    assert first.number == second.number
    assert gh.state.pulls[first.number].body == "two"
    # A newer baseline starts from the newer main.
    gh.push("main", {**FILES, "NEWS": b"1"})
    contents.point_branch("baseline/offline", client.commit("main").sha)
    assert contents.file("baselines/offline.json", "baseline/offline") is None


def test_a_file_changed_meanwhile_is_read_again_and_replaced(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.before("PUT", "/contents/README.md", lambda: gh.push("main", {**FILES, "README.md": b"theirs"}))
    assert client.contents.put_file("README.md", b"ours", branch="main", message="Ours")
    stored = client.contents.file("README.md", "main")
    assert stored is not None
    assert stored.content == b"ours"


@pytest.mark.parametrize("path", ["/git/refs", "/contents/", "/pulls$"])
def test_lost_answers_make_no_second_baseline(gh: LoopbackGitHub, client: GitHub, path: str) -> None:
    for method in ("POST", "PUT"):
        gh.fail(method, path, 502, takes_effect=True)
    client.contents.point_branch("b", client.commit("main").sha)
    assert client.contents.put_file("baselines/a.json", b"1", branch="b", message="m")
    client.contents.open_pull(head="b", base="main", title="t", body="x")
    assert len(gh.state.pulls) == 2
    assert len(gh.state.history.ancestors(gh.state.refs["heads/b"])) == 2


def test_a_large_file_is_read_through_its_blob(gh: LoopbackGitHub, client: GitHub) -> None:
    large = b"x" * (2 << 20)
    gh.push("main", {**FILES, "large.bin": large})
    stored = client.contents.file("large.bin", "main")
    assert stored is not None
    assert stored.content == large
    with pytest.raises(Conflict, match="not a file"):
        client.contents.file("src", "main")


def test_a_list_that_leads_elsewhere_is_not_followed(gh: LoopbackGitHub, client: GitHub) -> None:
    # An empty page that claims to go on at another server.
    elsewhere = {"Link": '<http://localhost:1/repos/acme/agent/issues/1/comments?page=2>; rel="next"'}
    gh.faults.add(InjectedFault("GET", "/issues/1/comments", status=200, body=[], headers=elsewhere))
    with pytest.raises(Unavailable, match="leads elsewhere"):
        client.comments(1)
