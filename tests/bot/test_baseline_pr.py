"""Baseline mode: one pull request, never a push to the default branch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adopted
import pytest
from bot_tickets import ticket_for
from loopback import LoopbackGitHub

from bot.github.api_error import Unavailable
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.steps.baseline import BRANCH, Proposed, propose
from eval_core.base.config import load_config
from eval_core.base.errors import IncompleteError, UserError
from eval_core.domain.measurement import Measurement
from eval_core.storage.baselines import load_baseline, store_baseline
from eval_core.storage.results import ResultsFolder

PERMISSIONS = {"metadata": "read", "contents": "write", "pull_requests": "write"}
Propose = Callable[..., Proposed]


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github


def client(gh: LoopbackGitHub) -> GitHub:
    retry = ApiRetries(timeout=2, sleep=lambda seconds: None)
    return GitHub(adopted.REPO, gh.job_token(PERMISSIONS), api_url=gh.url, retry=retry)


@pytest.fixture
def offer(gh: LoopbackGitHub, tmp_path: Path) -> Propose:
    """Propose a measurement from a fresh checkout, as the job does."""
    count = 0

    def call(
        measurement: Measurement | None = None,
        edit: Callable[[Any], None] | None = None,
        own: str | None = None,
        **changes: object,
    ) -> Proposed:
        nonlocal count
        count += 1
        root = adopted.on_disk(adopted.base_tree(), tmp_path / f"base{count}")
        folder = ResultsFolder(tmp_path / f"published{count}")
        folder.write_measurement(measurement or adopted.measured("opaque", 4))
        if edit is not None:
            body = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
            edit(body)
            (folder.path / "summary.json").write_text(json.dumps(body), encoding="utf-8")
        ticket = ticket_for(gh, **{"mode": "baseline", "pr": None, "sha": gh.state.refs["heads/main"], **changes})
        github = client(gh) if own is None else GitHub(adopted.REPO, own, api_url=gh.url)
        settings = load_config(None, root)
        return propose(github, ticket, settings, root=root, folder=folder.path, own_token=own is not None)

    return call


def proposal(gh: LoopbackGitHub) -> Any:
    (pull,) = [pull for pull in gh.state.pulls.values() if pull.head_ref == BRANCH and pull.state == "open"]
    return pull


def proposed_files(gh: LoopbackGitHub) -> dict[str, bytes]:
    main, ours = (gh.state.history.commits[gh.state.refs[f"heads/{name}"]].tree for name in ("main", BRANCH))
    assert not set(main) - set(ours)
    return {path: content for path, content in ours.items() if main.get(path) != content}


def test_the_new_baseline_is_proposed_and_the_default_branch_left_alone(
    gh: LoopbackGitHub, offer: Propose, tmp_path: Path
) -> None:
    before = gh.state.refs["heads/main"]
    done = offer()
    pull = proposal(gh)
    assert done.url is not None
    assert f"#{pull.number} opened" in done.message
    files = proposed_files(gh)
    assert set(files) == {"baselines/offline.json", "baselines/history.jsonl"}
    (tmp_path / "offline.json").write_bytes(files["baselines/offline.json"])
    stored, noise = load_baseline(tmp_path / "offline.json")
    assert (stored.planned_runs, stored.provenance.source_sha) == (4, before)
    assert gh.state.refs["heads/main"] == before
    assert [ref for ref in gh.state.refs if ref.startswith(f"heads/{BRANCH}-")] == []
    for words in (
        "Against the one it replaces: `Regressed",
        "there is no run-to-run noise",
        "Cost: ",
        "Fingerprint: `",
        before[:12],
    ):
        assert words in pull.body
    assert set(noise.values()) == {0.0}


def test_a_second_run_updates_the_same_pull_request(gh: LoopbackGitHub, offer: Propose) -> None:
    offer()
    first = proposal(gh)
    number, files = first.number, proposed_files(gh)
    done = offer(adopted.measured("anchored", 5))
    assert f"#{number} brought up to date" in done.message
    assert proposal(gh).number == number
    assert proposed_files(gh)["baselines/offline.json"] != files["baselines/offline.json"]
    # One line for the proposed baseline, however often it was proposed.
    history = proposed_files(gh)["baselines/history.jsonl"].splitlines()
    main = gh.state.history.commits[gh.state.refs["heads/main"]].tree["baselines/history.jsonl"].splitlines()
    assert len(history) == len(main) + 1
    assert json.loads(history[-1])["verdict"]


def test_nothing_new_is_said_and_is_no_error(gh: LoopbackGitHub, offer: Propose) -> None:
    done = offer(adopted.measured("anchored", 10))
    assert done == Proposed(None, "baselines/offline.json already has the same content; nothing to propose.")
    assert f"heads/{BRANCH}" not in gh.state.refs


def test_a_forged_or_incomplete_measurement_is_never_proposed(gh: LoopbackGitHub, offer: Propose) -> None:
    with pytest.raises(UserError, match="other fixtures or probes"):
        offer(edit=lambda body: body["fingerprint"]["fixtures"].update({"small-plan": "0" * 64}))
    with pytest.raises(UserError, match="not a plain text"):
        offer(edit=lambda body: body["models"].update({"judge": "<b>"}))
    with pytest.raises(UserError, match="needs a complete measurement"):
        offer(edit=lambda body: body.update(stopped="the budget is used up"))
    assert f"heads/{BRANCH}" not in gh.state.refs


STEPS = [
    ("GET", r"/repos/acme/agent$"),
    ("GET", r"/git/ref/"),
    ("POST", r"/git/refs$"),
    ("GET", r"/contents/"),
    ("PUT", r"/contents/"),
    ("DELETE", r"/git/refs/"),
    ("GET", r"/pulls$"),
    ("POST", r"/pulls$"),
]


@pytest.mark.parametrize("kind", ["500", "403", "429", "drop", "lost answer"])
@pytest.mark.parametrize(("method", "path"), STEPS)
def test_a_passing_fault_at_any_step_still_makes_exactly_one_pull_request(
    gh: LoopbackGitHub, offer: Propose, method: str, path: str, kind: str
) -> None:
    if kind in ("403", "429"):
        gh.secondary_limit(method, path, status=int(kind), retry_after=3)
    elif kind == "drop":
        gh.fail(method, path, kind="drop")
    else:
        gh.fail(method, path, 502, takes_effect=kind == "lost answer")
    try:
        offer()
    except Unavailable:
        offer()
    assert gh.faults.pending == 0
    proposal(gh)
    assert set(proposed_files(gh)) == {"baselines/offline.json", "baselines/history.jsonl"}


def test_an_outage_half_way_leaves_the_open_proposal_as_it_was(gh: LoopbackGitHub, offer: Propose) -> None:
    offer()
    number, files = proposal(gh).number, proposed_files(gh)
    gh.fail("PUT", "/contents/baselines/history", 503, times=50)
    with pytest.raises(Unavailable):
        offer(adopted.measured("anchored", 5))
    assert proposal(gh).number == number
    assert proposed_files(gh) == files


def test_a_branch_that_github_does_not_find_again_is_no_bug_of_ours_and_running_again_repairs_it(
    gh: LoopbackGitHub, offer: Propose
) -> None:
    gh.fail("GET", r"/git/ref/heads/.*-run-", 404, after=1)
    with pytest.raises(IncompleteError, match=r"GitHub does not find it now; run the job `propose` again"):
        offer()
    assert gh.faults.pending == 0
    offer()
    assert set(proposed_files(gh)) == {"baselines/offline.json", "baselines/history.jsonl"}
    assert proposal(gh).title


def test_a_repository_that_forbids_workflows_to_open_pull_requests_is_told_what_to_do(
    gh: LoopbackGitHub, offer: Propose
) -> None:
    message = "GitHub Actions is not permitted to create or approve pull requests."
    gh.state.actions_open_pulls = False
    with pytest.raises(UserError, match=r"holds the new baseline.*Settings, Actions, General") as caught:
        offer()
    assert message in str(caught.value)
    assert set(proposed_files(gh)) == {"baselines/offline.json", "baselines/history.jsonl"}


def test_a_branch_that_moved_on_since_is_the_base_of_the_next_proposal(gh: LoopbackGitHub, offer: Propose) -> None:
    offer()
    number = proposal(gh).number
    tip = gh.push("main", {**adopted.base_tree(), "README.md": b"new\n"})
    offer()
    assert proposal(gh).number == number
    assert tip in gh.state.history.ancestors(gh.state.refs[f"heads/{BRANCH}"])


def test_the_title_says_what_it_means_and_a_worse_baseline_is_a_draft_that_asks_for_a_reason(
    gh: LoopbackGitHub, offer: Propose
) -> None:
    offer()
    pull = proposal(gh)
    assert pull.title.startswith("Compression baseline offline: worse by 62 pp (facts kept)")
    assert pull.title.endswith("needs a reason")
    assert pull.draft
    assert "Why is this acceptable?" in pull.body
    assert "Once it is merged" not in pull.body


@pytest.mark.parametrize("drafts", [True, False])
def test_an_open_proposal_that_gets_worse_is_made_a_draft_again(
    gh: LoopbackGitHub, offer: Propose, drafts: bool
) -> None:
    offer(adopted.measured("anchored", 5))
    number = proposal(gh).number
    assert not proposal(gh).draft
    gh.state.drafts = drafts
    offer()
    assert (proposal(gh).number, proposal(gh).draft) == (number, drafts)
    assert proposal(gh).title.endswith("needs a reason")
    assert "an earlier approval was given to another baseline" in proposal(gh).body


def test_a_baseline_that_says_the_same_with_other_runs_is_a_refresh(gh: LoopbackGitHub, offer: Propose) -> None:
    offer(adopted.measured("anchored", 5))
    pull = proposal(gh)
    assert pull.title == "Compression baseline offline: refresh"
    assert not pull.draft
    assert "Once it is merged" in pull.body


def test_a_better_baseline_says_by_how_much(gh: LoopbackGitHub, offer: Propose, tmp_path: Path) -> None:
    worse = adopted.on_disk(adopted.base_tree(baseline=False), tmp_path / "worse")
    assert store_baseline(adopted.measured("opaque", 10), worse / "baselines", "offline", noise={})
    folder = ResultsFolder(tmp_path / "better")
    folder.write_measurement(adopted.measured("anchored", 4))
    ticket = ticket_for(gh, mode="baseline", pr=None, sha=gh.state.refs["heads/main"])
    propose(client(gh), ticket, load_config(None, worse), root=worse, folder=folder.path)
    assert proposal(gh).title.startswith("Compression baseline offline: better by 62 pp (facts kept)")


def test_a_plan_without_drafts_gets_the_same_pull_request_with_the_same_words(
    gh: LoopbackGitHub, offer: Propose
) -> None:
    gh.state.drafts = False
    offer()
    assert not proposal(gh).draft
    assert "needs a reason" in proposal(gh).title


def test_a_token_of_ones_own_needs_no_setting_and_lets_other_workflows_start(
    gh: LoopbackGitHub, offer: Propose
) -> None:
    gh.state.actions_open_pulls = False
    offer(own=gh.app_token("our-evals"))
    pull = proposal(gh)
    assert pull.author == "our-evals[bot]"
    assert "no other workflow starts on it" not in pull.body


def test_with_the_jobs_own_token_it_is_said_that_no_other_workflow_starts(gh: LoopbackGitHub, offer: Propose) -> None:
    offer()
    assert "no other workflow starts on it" in proposal(gh).body


def test_three_runs_in_a_row_end_with_the_newest_commit_whichever_ends_last(gh: LoopbackGitHub, offer: Propose) -> None:
    shas = [gh.state.refs["heads/main"]]
    for text in (b"1\n", b"2\n"):
        shas.append(gh.push("main", {**adopted.base_tree(), "README.md": text}))
    for run, sha in ((1, shas[1]), (2, shas[2])):
        assert "brought up to date" in offer(run_id=run, base_sha=sha, sha=sha).message or run == 1
    late = offer(adopted.measured("anchored", 5), run_id=3, base_sha=shas[0], sha=shas[0])
    assert "newer commit" in late.message
    assert f"compression-eval-baseline-{shas[0]}" in late.message
    assert shas[2] in gh.state.history.ancestors(gh.state.refs[f"heads/{BRANCH}"])
    assert shas[2][:12] in proposal(gh).body


def test_runs_at_the_same_time_do_not_meet_on_a_branch(gh: LoopbackGitHub, offer: Propose) -> None:
    gh.before("PUT", "/contents/baselines/history", lambda: gh.push(f"{BRANCH}-run-999", {"other": b"run\n"}))
    offer(run_id=1)
    assert set(proposed_files(gh)) == {"baselines/offline.json", "baselines/history.jsonl"}
