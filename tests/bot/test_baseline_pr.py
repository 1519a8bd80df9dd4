"""Baseline mode: one pull request, never a push to the default branch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adopted
import pytest
from test_evaluation import ticket_for

from bot.github.api_error import Unavailable
from bot.github.repository import GitHub
from bot.github.rest import Patience
from bot.steps.baseline import BRANCH, STAGE, Proposed, propose
from bot.testing.github import InjectedFault, LoopbackGitHub
from eval_core.base.config import load_config
from eval_core.base.errors import UserError
from eval_core.domain.measurement import Measurement
from eval_core.storage.baselines import load_baseline
from eval_core.storage.results import ResultsFolder

PERMISSIONS = {"metadata": "read", "contents": "write", "pull_requests": "write"}
Propose = Callable[..., Proposed]


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github


def client(gh: LoopbackGitHub) -> GitHub:
    patience = Patience(timeout=2, sleep=lambda seconds: None)
    return GitHub(adopted.REPO, gh.job_token(PERMISSIONS), api_url=gh.url, patience=patience)


@pytest.fixture
def offer(gh: LoopbackGitHub, tmp_path: Path) -> Propose:
    """Propose a measurement from a fresh checkout, as the job does."""
    count = 0

    def call(measurement: Measurement | None = None, edit: Callable[[Any], None] | None = None) -> Proposed:
        nonlocal count
        count += 1
        root = adopted.on_disk(adopted.base_tree(), tmp_path / f"base{count}")
        folder = ResultsFolder(tmp_path / f"published{count}")
        folder.write_measurement(measurement or adopted.measured("opaque", 4))
        if edit is not None:
            body = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
            edit(body)
            (folder.path / "summary.json").write_text(json.dumps(body), encoding="utf-8")
        ticket = ticket_for(gh, mode="baseline", pr=None, sha=gh.state.refs["heads/main"])
        return propose(client(gh), ticket, load_config(None, root), root=root, folder=folder.path)

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
    assert f"heads/{STAGE}" not in gh.state.refs
    for words in (
        "Against the one it replaces: `Regressed",
        "Run-to-run noise",
        "Cost: ",
        "Fingerprint: `",
        before[:12],
    ):
        assert words in pull.body
    assert all(name.replace("_", " ") in pull.body for name in noise)


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


def test_nothing_new_is_said_and_is_no_error(gh: LoopbackGitHub, offer: Propose) -> None:
    done = offer(adopted.measured("anchored", 10))
    assert done == Proposed(None, "baselines/offline.json already says the same; nothing to propose.")
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


def test_a_repository_that_forbids_workflows_to_open_pull_requests_is_told_what_to_do(
    gh: LoopbackGitHub, offer: Propose
) -> None:
    message = "GitHub Actions is not permitted to create or approve pull requests."
    gh.faults.add(InjectedFault("POST", r"/pulls$", status=403, message=message))
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
