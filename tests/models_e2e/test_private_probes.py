"""Private probes: asked and scored like the others, and not a word of them in anything that a run leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.messages import Message, content_text
from eval_core.base.sealing import SealingKey
from eval_core.domain.call import ModelCall
from eval_core.models.journal import call_key
from tests import model_provider as loopback
from tests.model_provider import Asked, reply_to

from .world import ANSWER, JUDGE, ONE_RUN, Provider, files_below

KEY = "COMPRESSION_EVAL_PROBES_KEY"
QUESTION, FACT, SAID, WHY = "canary-question-7f3a", "canary-fact-91bc", "canary-answer-55d0", "canary-reason-2e6e"
CANARIES = (QUESTION, FACT, SAID, WHY)
PRIVATE = {
    "fixture": "small-debug",
    "probes": [
        {
            "id": f"p{number}",
            "type": "recall",
            "question": f"How long does a token live ({QUESTION}, number {number})?",
            "expected_facts": [{"regex": f"{FACT}-{number}|TOKEN_TTL = 900"}],
        }
        for number in range(4)
    ],
}
CONFIG = "private_probes: {file: probes/private.sealed.json}\n"


@pytest.fixture
def sealed(one_probe: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Path:
    """A project with one public probe and four private ones."""
    monkeypatch.setenv(KEY, SealingKey.new()[1])
    outside: Path = tmp_path_factory.mktemp("private")
    small.write(outside / "small-debug.probes.json", json.dumps(PRIVATE))
    done = cli("probe", "seal", str(outside / "small-debug.probes.json"))
    assert done.code == 0, done.err + done.out
    assert "4 probes of 1 fixture," in done.out
    small.write(one_probe / ".compression-eval.yml", CONFIG)
    return one_probe


def talkative(messages: Sequence[Message]) -> str:
    """Answer and judge as usual, and repeat in both what nobody else may read."""
    text = "\n".join(content_text(message) for message in messages)
    plain = reply_to(messages)
    if QUESTION not in text:
        return plain
    if "artifact_trail" in text:
        return json.dumps({**json.loads(plain), "reason": f"{WHY}: {QUESTION} {FACT}"})
    return f"{SAID}: {plain}"


def assert_no_trace(folder: Path, *said: str) -> None:
    texts = {path.name: content.decode("utf-8", "replace") for path, content in files_below(folder)}
    texts |= {f"output {number}": text for number, text in enumerate(said)}
    for name, text in texts.items():
        for canary in CANARIES:
            assert canary not in text, (name, canary)


def test_questions_facts_answers_and_reasons_leave_no_trace_and_scores_do(
    sealed: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = talkative
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a")
    ran = cli(*command)
    assert ran.code == 0, ran.err
    assert sum(QUESTION in asked.last for asked in provider.asked_of(ANSWER)) >= 4
    record = json.loads((sealed / "results/a/small-debug-run-0.json").read_text())
    assert set(record["probes"]) == {"recall-error", "p0", "p1", "p2", "p3"}
    assert all(probe["result"]["kind"] == "grade" for probe in record["probes"].values())
    assert record["probes"]["p0"]["facts"][0]["label"] == "private fact 1"
    assert record["probes"]["p0"]["result"]["reason"] == "private"
    assert record["probes"]["recall-error"]["facts"][0]["label"] != "private fact 1"
    assert "p0" in (sealed / "results/a/report.html").read_text()
    assert_no_trace(sealed, ran.out, ran.err)
    # Everything that was paid for is still there for whoever has the key.
    asked = len(provider.server.asked)
    (sealed / "results/a/small-debug-run-0.json").unlink()
    again = cli(*command, "--resume")
    assert again.code == 0, again.err
    assert len(provider.server.asked) == asked
    assert_no_trace(sealed, again.out, again.err)


def test_an_error_that_quotes_the_prompt_is_kept_by_its_kind_alone(
    sealed: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(loopback._ERRORS, "400", lambda: loopback._error(400, f"cannot read: {QUESTION} {FACT}"))
    provider.behave = lambda asked: "400" if QUESTION in str(asked.body) and asked.model == JUDGE else None
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a")
    assert_no_trace(sealed, ran.out, ran.err)
    assert '"kind":"bad_request"' in (sealed / "results/a/journal.jsonl").read_text()


@pytest.mark.parametrize(
    "score",
    [QUESTION, {"score": QUESTION}, [QUESTION], {QUESTION: 1}],
    ids=["as text", "as the score of a score", "in a list", "as a key"],
)
def test_a_judge_that_writes_the_question_where_a_score_belongs_is_not_quoted(
    sealed: Path, cli: small.Cli, provider: Provider, score: object
) -> None:
    def reply(messages: Sequence[Message]) -> str:
        text, plain = "\n".join(content_text(message) for message in messages), reply_to(messages)
        if QUESTION in text and "artifact_trail" in text:
            return json.dumps({**json.loads(plain), "accuracy": score})
        return plain

    provider.reply = reply
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a")
    assert '"kind":"malformed"' in (sealed / "results/a/journal.jsonl").read_text()
    assert "this model's replies cannot be read" in ran.err
    assert_no_trace(sealed, ran.out, ran.err)
    # The judge itself is told what was wrong with its reply: it has seen the question anyway.
    assert any("accuracy is " in asked.last for asked in provider.asked_of(JUDGE) if QUESTION in asked.last)


def test_tool_calls_beside_a_reply_are_sealed_with_it(
    sealed: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = loopback.LoopbackProvider._completion

    def completion(self: loopback.LoopbackProvider, asked: Asked, *rest: Any) -> dict[str, Any]:
        body = original(self, asked, *rest)
        if QUESTION in str(asked.body) and asked.model == ANSWER:
            function = {"name": "search", "arguments": json.dumps({"query": QUESTION})}
            body["choices"][0]["message"]["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
        return body

    monkeypatch.setattr(loopback.LoopbackProvider, "_completion", completion)
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a")
    ran = cli(*command)
    assert ran.code == 0, ran.err
    assert '"calls":' in (sealed / "results/a/journal.jsonl").read_text()
    assert_no_trace(sealed, ran.out, ran.err)
    asked = len(provider.server.asked)
    (sealed / "results/a/small-debug-run-0.json").unlink()
    assert cli(*command, "--resume").code == 0
    assert len(provider.server.asked) == asked


def test_a_sealed_bank_that_cannot_be_used_is_not_quoted(sealed: Path, cli: small.Cli) -> None:
    key = SealingKey.parse(os.environ[KEY], KEY)
    path = sealed / "probes/private.sealed.json"
    body = json.loads(path.read_text())
    inner = json.loads(key.open(body["sealed"]))
    probes = inner["banks"]["small-debug"]["probes"]
    probes[0]["expected_facts"] = [{"fact": FACT, "kind": f"{FACT}-kind"}]
    probes[1]["question"] = [QUESTION]
    probes[2]["expected_facts"] = [{"regex": f"({FACT}"}]
    probes[3]["question"], probes[3]["questoin"] = "", QUESTION
    small.write(path, json.dumps({**body, "sealed": key.seal(json.dumps(inner))}))
    for command in (("run", "--label", "a"), ("probe", "unseal", str(path), "--output", str(sealed / "opened"))):
        ran = cli(*command)
        assert ran.code == 2
        assert "probes[1].question: Input should be a valid string" in ran.err
        assert "probes[0].expected_facts[0].kind: " in ran.err
        assert "probes[2].expected_facts[0]: cannot be used (what it holds is not shown)" in ran.err
        assert_no_trace(sealed, ran.out, ran.err)
    inner["banks"] = {QUESTION: {"fixture": QUESTION, "probes": []}}
    small.write(path, json.dumps({**body, "sealed": key.seal(json.dumps(inner))}))
    ran = cli("run", "--label", "a")
    assert ran.code == 2
    assert "its clear part was edited" in ran.err
    assert_no_trace(sealed, ran.out, ran.err)


def test_the_journal_does_not_confirm_a_guess_and_finds_its_calls_after_a_change_of_keys(
    sealed: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ModelCall] = []

    def key_of(call: ModelCall) -> str:
        made.append(call)
        return call_key(call)

    monkeypatch.setattr("eval_core.models.journal.call_key", key_of)
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a")
    assert cli(*command).code == 0
    lines = [json.loads(line) for line in (sealed / "results/a/journal.jsonl").read_text().splitlines()]
    keys = {line["key"] for line in lines}
    assert {call.private for call in made} == {True, False}
    assert all((call_key(call) in keys) is not call.private for call in made)
    asked, old, new = len(provider.server.asked), os.environ[KEY], SealingKey.new()[1]
    monkeypatch.setenv(KEY, f"{new},{old}")
    (sealed / "results/a/small-debug-run-0.json").unlink()
    assert cli(*command, "--resume").code == 0
    assert len(provider.server.asked) == asked


def test_a_run_that_is_killed_in_the_middle_leaves_no_trace_either(sealed: Path, provider: Provider) -> None:
    private: list[Asked] = []

    def behave(asked: Asked) -> None:
        if asked.model == JUDGE and QUESTION in str(asked.body):
            private.append(asked)
            if len(private) == 3:
                started.kill()

    provider.reply, provider.behave = talkative, behave
    (sealed / "tmp").mkdir()
    command = [
        sys.executable,
        "-m",
        "bot",
        "run",
        *ONE_RUN,
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
    ]
    environment = {**os.environ, "TMPDIR": str(sealed / "tmp"), "PYTHONPATH": str(small.REPOSITORY)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=sealed, env=environment, stdout=pipe, stderr=pipe, text=True) as started:
        out, err = started.communicate()
    assert started.returncode == -signal.SIGKILL, err
    assert (sealed / "results/a/journal.jsonl").exists()
    assert_no_trace(sealed, out, err)


def test_without_the_key_the_public_probes_are_asked_and_compared_with_the_full_baseline(
    sealed: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("baseline", "update", "--runs", "3").code == 0
    assert_no_trace(sealed)
    monkeypatch.delenv(KEY)
    ran = cli("run", "--runs", "3", "--set", "compress_runs=3", "--label", "a")
    assert ran.code == 0, ran.err
    assert f"4 private probes are not asked: {KEY} is not set" in ran.err
    verdict = json.loads((sealed / "results/a/verdict.json").read_text())
    assert verdict["kind"] == "no_detectable_change", verdict["headline"]


def test_each_period_draws_another_share_and_every_share_fits_the_baseline(
    sealed: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("baseline", "update", "--runs", "3").code == 0
    draws = set()
    for seed in range(6):
        config = f"private_probes: {{file: probes/private.sealed.json, share: 0.5, rotate_days: 0, seed: {seed}}}\n"
        small.write(sealed / ".compression-eval.yml", config)
        ran = cli("run", "--runs", "3", "--set", "compress_runs=3", "--label", f"seed-{seed}")
        assert ran.code == 0, ran.err
        record = json.loads((sealed / f"results/seed-{seed}/small-debug-run-0.json").read_text())
        drawn = frozenset(name for name in record["probes"] if name != "recall-error")
        assert len(drawn) == 2
        draws.add(drawn)
        verdict = json.loads((sealed / f"results/seed-{seed}/verdict.json").read_text())
        assert verdict["kind"] == "no_detectable_change", verdict["headline"]
    assert len(draws) > 1


def test_a_baseline_of_one_share_is_not_compared_with_another(sealed: Path, cli: small.Cli) -> None:
    half = "private_probes: {file: probes/private.sealed.json, share: 0.5, rotate_days: 0}\n"
    small.write(sealed / ".compression-eval.yml", half)
    assert cli("run", "--runs", "3", "--set", "compress_runs=3", "--label", "half").code == 0
    assert cli("baseline", "update", "--from", "results/half").code == 0
    small.write(sealed / ".compression-eval.yml", CONFIG)
    ran = cli("run", "--runs", "3", "--set", "compress_runs=3", "--label", "whole")
    verdict = json.loads((sealed / "results/whole/verdict.json").read_text())
    assert verdict["kind"] == "not_comparable", ran.out
    assert "private probes of small-debug" in json.dumps(verdict["reasons"])


def test_unsealing_gives_the_banks_back_and_another_key_does_not(
    sealed: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("opened")
    assert cli("probe", "unseal", "probes/private.sealed.json", "--output", str(folder)).code == 0
    assert QUESTION in (folder / "small-debug.probes.json").read_text()
    assert "exists already" in cli("probe", "unseal", "probes/private.sealed.json", "--output", str(folder)).err
    old = os.environ[KEY]
    monkeypatch.setenv(KEY, SealingKey.new()[1])
    wrong = cli("run", "--label", "a")
    assert wrong.code == 2
    assert "cannot be opened with this key" in wrong.err
    monkeypatch.setenv(KEY, f"{SealingKey.new()[1]},{old}")
    assert cli("probe", "unseal", "probes/private.sealed.json", "--output", str(folder), "--force").code == 0
    monkeypatch.setenv(KEY, "hello")
    refused = cli("run", "--label", "a")
    assert refused.code == 2
    assert "is not a key for sealed probes" in refused.err
    assert "hello" not in refused.err


def test_a_sealed_file_whose_clear_part_was_edited_is_refused(sealed: Path, cli: small.Cli) -> None:
    path = sealed / "probes/private.sealed.json"
    small.edit_json(path, lambda body: body["banks"]["small-debug"]["probes"].pop("p0"))
    ran = cli("run", "--label", "a")
    assert ran.code == 2
    assert "its clear part was edited" in ran.err
