"""Private probes in the bot: one step has their key, and neither artifact nor comment holds a word of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import adopted
import pytest
import small
from bot_tickets import Bench, ticket_for
from bot_world import publish

from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.steps.artifact import read_result
from eval_core.base.config import load_config
from eval_core.base.errors import UserError
from eval_core.base.files import pretty
from eval_core.base.sealing import SealingKey
from eval_core.domain.private_probes import seal_banks
from eval_core.domain.probe import ProbeBank

KEY = "COMPRESSION_EVAL_PROBES_KEY"
QUESTION, FACT = "canary-question-1d2c", "canary-fact-8e41"
FILE = "probes/private.sealed.json"
BANK = ProbeBank.model_validate(
    {
        "fixture": "small-debug",
        "probes": [
            {"id": "p1", "type": "recall", "question": f"{QUESTION}: how long does a token live?",
             "expected_facts": [{"regex": f"{FACT}|TOKEN_TTL = 900"}]},
            {"id": "p2", "type": "decision", "question": f"{QUESTION}: what is next?",
             "expected_facts": [{"regex": f"{FACT}|test_refresh_window"}]},
        ],
    }
)  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A base branch with two private probes, and the evaluate step's environment."""
    key, text = SealingKey.new()
    monkeypatch.setenv(KEY, text)
    tree = adopted.configured(adopted.base_tree(baseline=False), f"private_probes: {{file: {FILE}}}\n")
    tree[FILE] = pretty(seal_banks([BANK], key).model_dump(mode="json")).encode()
    github, _ = adopted.world(tree)
    with github:
        token = github.job_token(
            {"contents": "read", "actions": "read", "checks": "write", "pull_requests": "write", "metadata": "read"}
        )
        client = GitHub(
            adopted.REPO, token, api_url=github.url, retry=ApiRetries(timeout=5, sleep=lambda seconds: None)
        )
        root = adopted.on_disk(tree, tmp_path / "base")
        yield Bench(github, client, root, load_config(None, root))


def test_the_artifact_and_the_comment_hold_ids_and_scores_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = ticket_for(bench.github)
    bench.fetch(ticket)
    bench.evaluate(ticket)
    folder = bench.work / "results" / ticket.label
    texts = {path.name: path.read_text(errors="replace") for path in folder.iterdir() if path.is_file()}
    assert {"summary.json", "report.html", "small-debug-run-0.json"} <= set(texts)
    assert json.loads(texts["small-debug-run-0.json"])["probes"]["p1"]["result"]["kind"] == "grade"
    # The publish job has no key: what stands in the clear is enough to check the result against.
    monkeypatch.delenv(KEY)
    posted = publish(
        bench.client, ticket, bench.config, root=bench.root, folder=folder, result="success", report_url=None
    )
    assert posted.troubles == ()
    (comment,) = bench.github.comments(1)
    texts |= {"comment": comment.body, "report": posted.report, "title": posted.title}
    assert "the result is invalid" not in comment.body
    for name, text in texts.items():
        assert QUESTION not in text, name
        assert FACT not in text, name


def test_an_evaluation_without_the_key_says_which_secret_is_missing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = ticket_for(bench.github)
    bench.fetch(ticket)
    monkeypatch.setenv(KEY, "")  # what a secret that does not exist is for a workflow
    with pytest.raises(UserError, match=f"{KEY} is not set.*secret of the environment"):
        bench.evaluate(ticket)


@pytest.mark.parametrize("forged", ["left out", "another bank", "another probe"])
def test_a_result_that_passes_the_private_probes_over_is_refused(
    bench: Bench, forged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = ticket_for(bench.github)
    bench.fetch(ticket)
    bench.evaluate(ticket)
    monkeypatch.delenv(KEY)
    folder = bench.work / "results" / ticket.label

    def forge(body: dict[str, dict[str, dict[str, str]]]) -> None:
        if forged == "another probe":
            body["probe_types"]["small-debug"]["p3"] = "recall"
        else:
            body["fingerprint"]["private"] = {} if forged == "left out" else {"small-debug": "0" * 64}

    read_result(ticket, bench.config, bench.root, folder)
    small.edit_json(folder / "summary.json", forge)
    with pytest.raises(UserError, match=r"summary\.json: .*refused"):
        read_result(ticket, bench.config, bench.root, folder)
