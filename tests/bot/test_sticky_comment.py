"""One comment per pull request, whatever happens around it."""

from __future__ import annotations

import pytest

from bot.event import WorkflowRun
from bot.github.api_error import Forbidden, Unavailable
from bot.github.comment import LIMIT, MARKER, Posted, Sticky, Superseded, body_budget
from bot.github.repository import GitHub
from bot.testing.github import LoopbackGitHub
from eval_core.base.errors import UserError

FIRST, SECOND = WorkflowRun(100, 1), WorkflowRun(101, 1)


def bodies(gh: LoopbackGitHub) -> list[str]:
    return [comment.body for comment in gh.comments(1) if comment.author.endswith("[bot]")]


def test_a_comment_is_created_then_updated_then_left_alone(gh: LoopbackGitHub, client: GitHub) -> None:
    sticky = Sticky(client, 1)
    actions = []
    for body in ("queued", "done", "done"):
        posted = sticky.put(body, FIRST)
        assert isinstance(posted, Posted)
        actions.append(posted.action)
    assert actions == ["created", "updated", "unchanged"]
    assert len(bodies(gh)) == 1
    assert bodies(gh)[0].endswith("done")


def test_among_three_hundred_comments_ours_is_found(gh: LoopbackGitHub, client: GitHub) -> None:
    for index in range(150):
        gh.comment(1, "contributor", f"before {index}")
    Sticky(client, 1).put("one", FIRST)
    for index in range(150):
        gh.comment(1, "contributor", f"after {index}")
    posted = Sticky(client, 1).put("two", SECOND)
    assert isinstance(posted, Posted)
    assert posted.action == "updated"
    assert len(bodies(gh)) == 1


@pytest.mark.parametrize("login", ["contributor", "maintainer"])
def test_a_forged_marker_of_somebody_else_is_no_comment_of_ours(gh: LoopbackGitHub, client: GitHub, login: str) -> None:
    forged = gh.comment(1, login, f"{MARKER}\n<!-- compression-eval:run id=999999 attempt=1 -->\nImproved!")
    posted = Sticky(client, 1).put("real", FIRST)
    assert isinstance(posted, Posted)
    assert posted.action == "created"
    assert gh.state.comments[forged.id].body.endswith("Improved!")


def test_another_workflow_of_the_same_account_is_left_alone(gh: LoopbackGitHub, client: GitHub) -> None:
    other = gh.comment(1, "github-actions[bot]", f"Coverage 80 %\n> {MARKER}\n\n{MARKER}")
    Sticky(client, 1).put("real", FIRST)
    assert gh.state.comments[other.id].body.startswith("Coverage")
    assert len(bodies(gh)) == 2


def test_of_two_comments_of_ours_the_oldest_is_kept_up_to_date(gh: LoopbackGitHub, client: GitHub) -> None:
    oldest = gh.comment(1, "github-actions[bot]", f"{MARKER}\nold")
    gh.comment(1, "github-actions[bot]", f"{MARKER}\nnewer")
    posted = Sticky(client, 1).put("now", FIRST)
    assert isinstance(posted, Posted)
    assert posted.comment.id == oldest.id


@pytest.mark.parametrize("older", [WorkflowRun(99, 1), WorkflowRun(99, 7), WorkflowRun(100, 1)])
def test_an_older_run_never_overwrites_a_newer_one(gh: LoopbackGitHub, client: GitHub, older: WorkflowRun) -> None:
    newer = WorkflowRun(100, 2)
    Sticky(client, 1).put("new", newer)
    refused = Sticky(client, 1).put("old", older)
    assert isinstance(refused, Superseded)
    assert refused.by == newer
    assert bodies(gh)[0].endswith("new")


def test_a_comment_edited_in_the_browser_is_still_ours(gh: LoopbackGitHub, client: GitHub) -> None:
    Sticky(client, 1).put("one\ntwo", FIRST)
    (comment,) = gh.comments(1)
    comment.body = comment.body.replace("\n", "\r\n")
    again = Sticky(client, 1).put("one\ntwo", FIRST)
    assert isinstance(again, Posted)
    assert again.action == "unchanged"


def test_a_comment_deleted_between_read_and_edit_is_written_anew(gh: LoopbackGitHub, client: GitHub) -> None:
    Sticky(client, 1).put("one", FIRST)
    (first,) = gh.comments(1)
    gh.before("PATCH", "/issues/comments/", lambda: gh.delete_comment(first.id))
    posted = Sticky(client, 1).put("two", SECOND)
    assert isinstance(posted, Posted)
    assert posted.action == "created"
    assert len(bodies(gh)) == 1
    assert bodies(gh)[0].endswith("two")


@pytest.mark.parametrize("kind", ["status", "drop"])
@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_lost_answer_makes_no_second_comment_and_loses_none(
    gh: LoopbackGitHub, client: GitHub, kind: str, takes_effect: bool
) -> None:
    gh.fail("POST", "/comments$", 502, takes_effect=takes_effect, kind=kind)  # type: ignore[arg-type]
    posted = Sticky(client, 1).put("once", FIRST)
    assert isinstance(posted, Posted)
    assert posted.action == "created"
    assert len(bodies(gh)) == 1


def test_an_update_survives_outages(gh: LoopbackGitHub, client: GitHub) -> None:
    Sticky(client, 1).put("one", FIRST)
    gh.fail("PATCH", "/issues/comments/", 500, times=2)
    gh.secondary_limit("PATCH", "/issues/comments/", status=429, retry_after=3)
    Sticky(client, 1).put("two", SECOND)
    assert [body.rsplit("\n", 1)[-1] for body in bodies(gh)] == ["two"]


def test_an_outage_without_end_is_an_error_not_a_flood(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.fail("POST", "/comments$", 502, times=99)
    with pytest.raises(Unavailable, match="comment on #1"):
        Sticky(client, 1).put("never", FIRST)
    assert sum(seen.method == "POST" for seen in gh.seen) == 3


def test_a_locked_conversation_is_explained(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.lock_conversation(1)
    with pytest.raises(Forbidden, match=r"comment on #1: the conversation is locked .* unlock it"):
        Sticky(client, 1).put("x", FIRST)


def test_a_closed_pull_request_still_gets_its_result(gh: LoopbackGitHub, client: GitHub) -> None:
    Sticky(client, 1).put("running", FIRST)
    gh.close(1)
    assert isinstance(Sticky(client, 1).put("done", FIRST), Posted)


def test_a_body_that_is_too_long_is_refused_before_it_is_sent(gh: LoopbackGitHub, client: GitHub) -> None:
    room = body_budget(FIRST)
    with pytest.raises(UserError, match="65,536"):
        Sticky(client, 1).put("ä" * (room // 2 + 1), FIRST)
    assert gh.seen == []
    assert isinstance(Sticky(client, 1).put("x" * room, FIRST), Posted)
    assert len(bodies(gh)[0]) == LIMIT


def test_a_marker_inside_the_body_is_taken_apart(gh: LoopbackGitHub, client: GitHub) -> None:
    Sticky(client, 1).put("<!-- compression-eval:run id=9999 attempt=9 -->", FIRST)
    assert bodies(gh)[0].count("<!-- compression-eval:") == 2
    assert isinstance(Sticky(client, 1).put("next", SECOND), Posted)
