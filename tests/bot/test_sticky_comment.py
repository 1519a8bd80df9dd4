"""One comment per pull request, whatever happens around it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bot_rendering import outside_code, render
from bot_world import REPO, Waits
from loopback import LoopbackGitHub

from bot.github.api_error import Forbidden, Unavailable
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.pull_request.event import WorkflowRun
from bot.pull_request.ledger import (
    EvaluationQueued,
    Ledger,
    LedgerNotice,
    LedgerRun,
    RequestRefused,
    ResultMeasured,
    advance,
)
from bot.steps.comment import LIMIT, MARKER, RESULT_BUDGET, Posted, Sticky, compose, read_comment

SHA = "a" * 40
START = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def queued(run: int = 100) -> EvaluationQueued:
    return EvaluationQueued(run=WorkflowRun(run, 1), at=START, url=f"https://x.invalid/{run}", sha=SHA, head=SHA)


def result(run: int = 100, minute: int = 1, body: str = "") -> ResultMeasured:
    return ResultMeasured(
        run=WorkflowRun(run, 1),
        at=START + timedelta(minutes=minute),
        url=f"https://x.invalid/{run}",
        sha=SHA,
        head=SHA,
        outcome="regressed",
        headline="Regressed: x.",
        body=body or f"report of {run}",
    )


def refusal(run: int) -> RequestRefused:
    return RequestRefused(
        run=WorkflowRun(run, 1), at=START, url=f"https://x.invalid/{run}", why="no.", sha=SHA, head=SHA
    )


def bodies(gh: LoopbackGitHub) -> list[str]:
    return [comment.body for comment in gh.comments(1) if comment.author.endswith("[bot]")]


def record(client: GitHub, *events: EvaluationQueued | ResultMeasured | RequestRefused) -> Posted:
    posted = [Sticky(client, 1).record(event) for event in events]
    return posted[-1]


def test_a_comment_is_created_then_updated_then_left_alone(gh: LoopbackGitHub, client: GitHub) -> None:
    actions = [record(client, event).action for event in (queued(), result(), result())]
    assert actions == ["created", "updated", "unchanged"]
    (body,) = bodies(gh)
    assert "report of 100" in body


def test_among_three_hundred_comments_ours_is_found(gh: LoopbackGitHub, client: GitHub) -> None:
    for index in range(150):
        gh.comment(1, "contributor", f"before {index}")
    record(client, queued())
    for index in range(150):
        gh.comment(1, "contributor", f"after {index}")
    assert record(client, result()).action == "updated"
    assert len(bodies(gh)) == 1


@pytest.mark.parametrize("login", ["contributor", "maintainer"])
def test_a_perfect_forgery_of_somebody_else_is_no_comment_of_ours(
    gh: LoopbackGitHub, client: GitHub, login: str
) -> None:
    forged = gh.comment(1, login, compose(advance(Ledger(), result(999, 99, "Improved!")), "1#1"))
    assert record(client, queued()).action == "created"
    assert "Improved!" in gh.state.comments[forged.id].body
    assert "Improved!" not in bodies(gh)[0]


def test_another_workflow_of_the_same_account_is_left_alone(gh: LoopbackGitHub, client: GitHub) -> None:
    other = gh.comment(1, "github-actions[bot]", f"Coverage 80 %\n> {MARKER}\n\n{MARKER}")
    record(client, queued())
    assert gh.state.comments[other.id].body.startswith("Coverage")
    assert len(bodies(gh)) == 2


def test_an_apps_own_token_finds_its_comment_again(gh: LoopbackGitHub, waits: Waits) -> None:
    app = GitHub(REPO, gh.app_token("our-evals"), api_url=gh.url, retry=ApiRetries(timeout=5, sleep=waits))
    record(app, queued(), result())
    assert [comment.author for comment in gh.comments(1)] == ["our-evals[bot]"]


def test_what_an_earlier_account_of_ours_said_is_folded(gh: LoopbackGitHub, client: GitHub, waits: Waits) -> None:
    record(client, queued(), result())
    gh.comment(1, "contributor", f"{MARKER} is how it begins")
    app = GitHub(REPO, gh.app_token("our-evals"), api_url=gh.url, retry=ApiRetries(timeout=5, sleep=waits))
    record(app, queued(101))
    said = {comment.author: comment.minimized for comment in gh.comments(1)}
    assert said == {"github-actions[bot]": True, "contributor": False, "our-evals[bot]": False}


def test_of_two_comments_of_ours_the_oldest_is_kept_up_to_date(gh: LoopbackGitHub, client: GitHub) -> None:
    oldest = gh.comment(1, "github-actions[bot]", f"{MARKER}\nold")
    gh.comment(1, "github-actions[bot]", f"{MARKER}\nnewer")
    assert record(client, result()).comment.id == oldest.id


def test_results_outlive_a_new_name_of_the_repository(gh: LoopbackGitHub, client: GitHub, waits: Waits) -> None:
    record(client, queued(), result())
    gh.state.repo = "elsewhere/renamed"
    retry = ApiRetries(timeout=5, sleep=waits)
    later = GitHub(gh.state.repo, gh.job_token(), api_url=gh.url, retry=retry)
    record(later, queued(101), result(101, 9))
    (body,) = bodies(gh)
    assert "report of 101" in body
    assert "Last 2 results" in body
    assert "edit history" not in body


def test_one_edited_word_costs_the_report_and_no_result(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, queued(), result(), queued(101), result(101, 9))
    (comment,) = gh.comments(1)
    comment.body = comment.body.replace("report of 101", "report of 1o1")
    record(client, queued(102))
    (body,) = bodies(gh)
    assert "1o1" not in body
    assert "Last 2 results" in body
    assert "This report was changed" in body


def test_two_first_runs_that_meet_leave_one_comment_with_both(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.before("POST", "/issues/1/comments", lambda: _write(gh, result(7)))
    record(client, queued(8))
    (body,) = bodies(gh)
    assert "report of 7" in body
    assert "x.invalid/8" in body


def _write(gh: LoopbackGitHub, *events: EvaluationQueued | ResultMeasured | RequestRefused) -> None:
    """Write as another job that read the comment as it is now."""
    standing = next((c for c in gh.comments(1) if c.author.endswith("[bot]")), None)
    from bot.steps.comment import read_comment

    ledger = read_comment(standing.body, "1#1") if standing else Ledger()
    for event in events:
        ledger = advance(ledger, event)
    text = compose(ledger, "1#1")
    if standing is None:
        gh.comment(1, "github-actions[bot]", text)
    else:
        standing.body = text


def test_a_result_overwritten_by_somebody_who_read_before_is_written_again(gh: LoopbackGitHub, waits: Waits) -> None:
    overwritten: list[str] = []

    def sleep(seconds: float) -> None:
        # While we wait, a gate that read the comment before our result writes its refusal.
        if not overwritten:
            (comment,) = gh.comments(1)
            overwritten.append(comment.body)
            comment.body = compose(advance(advance(Ledger(), queued()), refusal(101)), "1#1")
        waits(seconds)

    client = GitHub(REPO, gh.job_token(), api_url=gh.url, retry=ApiRetries(timeout=5, sleep=waits))
    record(client, queued())
    slow = GitHub(REPO, gh.job_token(), api_url=gh.url, retry=ApiRetries(timeout=5, sleep=sleep))
    record(slow, result())
    (body,) = bodies(gh)
    assert overwritten
    assert "report of 100" in body


def test_a_comment_with_the_browsers_line_ends_is_still_ours(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, queued(), result())
    (comment,) = gh.comments(1)
    comment.body = comment.body.replace("\n", "\r\n")
    assert record(client, result()).action == "unchanged"


def test_a_comment_edited_by_hand_is_not_believed_and_says_so(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, queued(), result())
    (comment,) = gh.comments(1)
    comment.body = comment.body.replace("report of 100", "Improved!")
    record(client, refusal(101))
    (body,) = bodies(gh)
    assert "Improved!" not in body
    assert "edit history" in body


FORGED = (
    "@maintainer [click](https://evil.invalid) <img src=x> www.evil.invalid evil@evil.invalid\n\n# evil",
    "```x @maintainer <b>evil</b> ` `` ` \\`evil @maintainer` \\",
    "`code` **evil** https://evil.invalid `",
)


@pytest.mark.parametrize("words", FORGED)
def test_words_of_a_forged_ledger_do_not_act(words: str) -> None:
    # The digest has no key: another workflow of the same account could write a ledger that fits it.
    notice = LedgerNotice(run_id=2, attempt=1, at=START, url="https://github.com/x", kind="failed", why=words)
    run = LedgerRun(
        run_id=3, attempt=1, at=START, url="https://github.com/x", sha="a" * 40, stage="evaluating", note=words
    )
    forged = compose(Ledger(notices=(notice,), runs=(run,)), "acme/agent#1")
    known = read_comment(forged, "acme/agent#1")
    assert known.notices[0].why == words
    html = outside_code(render(compose(known, "acme/agent#1").partition("-->\n### ")[2]))
    assert "@maintainer" not in html
    assert not re.search(r"<(?:img|b>|h1|strong>evil)|href=\"[^\"]*evil", html), html


def test_an_address_in_a_ledger_stays_inside_its_link() -> None:
    for url in ("https://x) @maintainer (", "javascript:evil()", "https://x\n\n# evil", "<b>", "https://x`"):
        with pytest.raises(ValueError, match="url"):
            LedgerNotice(run_id=2, attempt=1, at=START, url=url, kind="failed", why="")


def test_a_comment_deleted_between_read_and_edit_is_written_anew(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, queued())
    (first,) = gh.comments(1)
    gh.before("PATCH", "/issues/comments/", lambda: gh.delete_comment(first.id))
    assert record(client, result()).action == "created"
    (body,) = bodies(gh)
    assert "report of 100" in body


@pytest.mark.parametrize("kind", ["status", "drop"])
@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_lost_answer_makes_no_second_comment_and_loses_none(
    gh: LoopbackGitHub, client: GitHub, kind: str, takes_effect: bool
) -> None:
    gh.fail("POST", "/comments$", 502, takes_effect=takes_effect, kind=kind)  # type: ignore[arg-type]
    assert record(client, result()).action == "created"
    assert len(bodies(gh)) == 1


def test_a_list_that_lags_behind_makes_no_second_comment(gh: LoopbackGitHub, client: GitHub) -> None:
    # GitHub reads lists from copies: right after it was written, a comment may be missing there.
    gh.fail("GET", "/issues/1/comments", 200, after=1, times=2, body=[])
    assert record(client, queued()).action == "created"
    assert len(bodies(gh)) == 1


def test_a_lost_answer_is_waited_for_before_the_list_is_read_again(gh: LoopbackGitHub, waits: Waits) -> None:
    listed: list[float] = []
    gh.fail("POST", "/comments$", 502, takes_effect=True)
    gh.before("GET", "/issues/1/comments", lambda: listed.append(sum(waits.seconds)), after=1)
    client = GitHub(REPO, gh.job_token(), api_url=gh.url, retry=ApiRetries(timeout=5, sleep=waits))
    record(client, queued())
    assert listed[0] >= 1


def test_an_update_survives_outages(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, queued())
    gh.fail("PATCH", "/issues/comments/", 500, times=2)
    gh.secondary_limit("PATCH", "/issues/comments/", status=429, retry_after=3)
    record(client, result())
    (body,) = bodies(gh)
    assert "report of 100" in body


def test_an_outage_without_end_is_an_error_not_a_flood(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.fail("POST", "/comments$", 502, times=99)
    with pytest.raises(Unavailable, match="comment on #1"):
        record(client, queued())
    assert sum(seen.method == "POST" and "/comments" in seen.path for seen in gh.seen) == 5


def test_a_locked_conversation_is_explained(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.lock_conversation(1)
    with pytest.raises(Forbidden, match=r"comment on #1: the conversation is locked .* unlock it"):
        record(client, queued())


def test_a_closed_pull_request_still_gets_its_result(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, queued())
    gh.close(1)
    assert "report of 100" in record(client, result()).comment.body


def test_a_report_without_a_budget_does_not_cost_the_verdict(gh: LoopbackGitHub, client: GitHub) -> None:
    record(client, result(body="ä" * LIMIT))
    (body,) = bodies(gh)
    assert len(body.encode()) <= LIMIT
    assert "Regressed" in body
    assert record(client, refusal(101)).ledger.shown is not None


def test_long_words_about_failures_do_not_cost_the_report(gh: LoopbackGitHub, client: GitHub) -> None:
    """Escaped in the hidden data, an emoji takes twelve bytes."""
    report = "r" * (RESULT_BUDGET - 10)
    long = [replace(refusal(run), why="\N{PILE OF POO}" * 600) for run in (101, 102, 103)]
    record(client, result(body=report), *(replace(one, at=START + timedelta(hours=1)) for one in long))
    (body,) = bodies(gh)
    assert len(body.encode()) <= LIMIT
    assert report in body
    assert [notice.run_id for notice in Sticky(client, 1).read().notices] == [103, 102, 101]
    assert "The log says why." in body
