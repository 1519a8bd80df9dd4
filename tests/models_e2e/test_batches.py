"""Half price with batches: answers and grades in the provider's batches, with the real command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import small

from bot.testing.batches import Batch
from eval_core.domain.measurement import Measurement
from eval_core.models.journal import parse_line
from eval_core.models.retry import RetryPolicy
from eval_core.storage.baselines import load_baseline
from eval_core.storage.results import read_measurement

from .world import AGAIN, ANSWER, JUDGE, UPDATE, Provider, faulty, files_below

CLAUDE = "anthropic/claude-sonnet-4-5"
KEY = "sk-loopback-0123456789"


def lines(journal: str = "results/a/journal.jsonl", at: str | None = None) -> list[dict[str, Any]]:
    found = [parse_line(raw) for raw in Path(journal).read_bytes().splitlines()]
    return [line for line in found if at is None or line["at"] == at]


def cells(measured: Measurement) -> list[Any]:
    """Return what was measured in every cell, without what it cost and when."""
    return [
        (name, run.run, run.messages, probe, record.answer and record.answer.text, getattr(record.result, "scores", 0))
        for name, runs in measured.fixtures.items()
        for run in runs
        for probe, record in run.probes.items()
    ] + [measured.controls]


def until_done(cli: small.Cli, *arguments: str, most: int = 6) -> tuple[small.Ran, int]:
    """Resume until the run is complete; return how it ended and how often it was incomplete before."""
    for times in range(most):
        ran = cli(*arguments)
        if ran.code != 3:
            return ran, times
    raise AssertionError(ran.err)


@pytest.fixture
def live(three_probes: Path, cli: small.Cli, provider: Provider) -> Measurement:
    """The same baseline, every call made at once; what it kept for later runs is thrown away."""
    assert cli(*UPDATE, *provider.options, "--results", "live", "--label", "a").code == 0
    for path in Path("baselines").iterdir():
        path.unlink()
    for asked in (provider.server.asked, provider.server.delivered):
        asked.clear()
    provider.server.input_tokens = provider.server.output_tokens = 0
    return read_measurement(Path("live/a"))


def answers_waiting(cli: small.Cli, provider: Provider, *more: str) -> tuple[str, ...]:
    """Submit the answers of a baseline; return the command that goes on."""
    command = (*UPDATE, *provider.options, "--batch", *more)
    assert cli(*command, "--label", "a").code == 3
    return (*command, *AGAIN)


def submissions(provider: Provider) -> int:
    return len(provider.server.batches.openai) + len(provider.server.batches.anthropic)


def complete(cli: small.Cli, command: tuple[str, ...], live: Measurement, provider: Provider) -> None:
    """Go on to the end, and find there what the live run measured, with nothing paid twice."""
    ran, _ = until_done(cli, *command)
    assert ran.code == 0, ran.err
    assert cells(read_measurement(Path("results/a"))) == cells(live)
    assert len(provider.server.delivered) == calls(live)


def calls(measured: Measurement) -> int:
    return sum(use.calls for use in measured.use.values())


def test_a_baseline_in_batches_is_the_live_one_cell_by_cell(
    live: Measurement, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPRESSION_EVAL_API_KEY", KEY)
    batches = provider.server.batches
    command = (*UPDATE, *provider.options, "--batch")
    first = cli(*command, "--label", "a")
    assert first.code == 3
    assert first.err.startswith(
        "Waiting: submitted 12 calls to be made within a day at half price (openai/answerer: 11 in batch_0; "
        "openai/judge: 1 in batch_1), about $0.00"
    )
    assert first.err.endswith("The same command with `--label a --resume` collects the replies.\n")
    live_calls = len(provider.server.asked)
    assert len(provider.asked_of(ANSWER)) == 1  # the check before the run
    assert len(lines(at="queued")) == 12
    assert not Path("baselines/models.json").exists()

    batches.held = True
    waiting = cli(*command, *AGAIN)
    assert waiting.code == 3
    assert waiting.err.startswith(
        "Waiting: batch_0 of openai/answerer is still running: 0 of 11 calls are done; batch_1"
    )
    assert submissions(provider) == 2

    batches.held = False
    graded = cli(*command, *AGAIN)
    assert graded.code == 3
    assert "(openai/judge: 11 in batch_2)" in graded.err
    done = cli(*command, *AGAIN)
    assert done.code == 0, done.err
    assert len(provider.server.asked) == live_calls
    assert len(provider.server.delivered) == calls(live)
    assert len(provider.server.batched) == len(lines(at="collected")) == len(lines(at="queued")) == 23

    stored, _ = load_baseline(Path("baselines/models.json"))
    assert cells(read_measurement(Path("results/a"))) == cells(stored) == cells(live)
    assert batches.keys == {f"Bearer {KEY}"}
    assert not [path for path, raw in files_below(Path()) if KEY.encode() in raw]


def test_what_is_collected_is_charged_at_half_the_price(live: Measurement, cli: small.Cli, provider: Provider) -> None:
    complete(cli, answers_waiting(cli, provider), live, provider)
    queued = {line["key"] for line in lines(at="queued")}
    charged = [line["usage"] for line in lines(at="done") if line["key"] in queued]
    assert len(charged) == len(queued)
    for usage in charged:
        assert usage["cost_usd"] == pytest.approx((usage["input_tokens"] + 4 * usage["output_tokens"]) / 2e6)
    measured = read_measurement(Path("results/a"))
    assert measured.use["answer"].input_tokens == live.use["answer"].input_tokens
    assert (measured.use["answer"].cost_usd or 0) < 0.6 * (live.use["answer"].cost_usd or 0)


@pytest.mark.parametrize("moment", ["upload", "submit"])
def test_a_process_killed_while_it_submits_pays_once(
    live: Measurement, cli: small.Cli, provider: Provider, moment: str
) -> None:
    batches, command = provider.server.batches, (*UPDATE, *provider.options, "--batch")
    host = subprocess.Popen(
        [sys.executable, "-m", "models_e2e.host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{small.REPOSITORY}{os.pathsep}{small.REPOSITORY / 'tests'}"},
    )
    assert host.stdin is not None
    assert host.stdout is not None
    child: list[int] = []
    known = threading.Event()

    def kill(batch: Batch | None = None) -> None:
        assert known.wait(60)
        os.kill(child[0], signal.SIGKILL)

    if moment == "upload":
        batches.on_upload = kill
    else:
        batches.on_submit = kill
    try:
        assert host.stdout.readline() == "ready\n"
        host.stdin.write(json.dumps([*command, "--label", "a"]) + "\n")
        host.stdin.flush()
        child.append(int(host.stdout.readline()))
        known.set()
        assert int(host.stdout.readline()) == -signal.SIGKILL
    finally:
        host.stdin.close()
        host.wait(30)
        host.stdout.close()
    assert len(lines(at="queued")) == 11
    assert not lines(at="submitted")
    batches.on_upload, batches.on_submit = lambda: None, lambda batch: None
    assert submissions(provider) == (moment == "submit")
    complete(cli, (*command, *AGAIN), live, provider)
    assert len(provider.server.batched) == 23


def test_a_call_that_failed_in_its_batch_is_made_in_the_next(
    live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    command = answers_waiting(cli, provider)
    asked = len(provider.server.asked)
    provider.behave = faulty("500", ANSWER, 2)
    again = cli(*command)
    assert again.code == 3
    assert "openai/answerer: 2 in batch_2" in again.err
    complete(cli, command, live, provider)
    assert len(provider.server.asked) == asked
    assert [line["kind"] for line in lines(at="free")] == ["server", "server"]


def test_a_reply_that_cannot_be_used_is_asked_for_again_at_once(
    live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    command = answers_waiting(cli, provider)
    assert cli(*command).code == 3
    asked = len(provider.server.asked)
    provider.behave = faulty("invalid-json", JUDGE, 1)
    complete(cli, command, live, provider)
    assert len(provider.server.asked) == asked + 1
    (paid,) = lines(at="paid")
    assert paid["usage"]["cost_usd"] == pytest.approx(
        (paid["usage"]["input_tokens"] + 4 * paid["usage"]["output_tokens"]) / 2e6
    )


def test_what_an_expired_batch_left_undone_goes_into_another(
    live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    provider.server.batches.ends, provider.server.batches.worked_before_the_end = "expire", 4
    command = answers_waiting(cli, provider)
    provider.server.batches.ends = "complete"
    again = cli(*command)
    assert again.code == 3
    assert "openai/answerer: 7 in batch_2" in again.err
    complete(cli, command, live, provider)
    assert len(lines(at="free")) == 7


def test_a_batch_that_the_provider_refuses_is_told_and_costs_nothing(
    live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    provider.server.batches.ends = "refuse"
    command = answers_waiting(cli, provider)
    provider.server.batches.ends = "complete"
    told = cli(*command)
    assert told.code == 3
    assert "batch_0 of openai/answerer was refused: a line cannot be used" in told.err
    assert submissions(provider) == 2
    complete(cli, command, live, provider)


@pytest.mark.parametrize("lost", ["batch", "replies"])
def test_a_batch_that_the_provider_has_forgotten_is_given_up_when_its_time_is_over(
    lost: str, live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    command, batches = answers_waiting(cli, provider), provider.server.batches
    if lost == "batch":
        batches.openai.clear()
    else:
        batches.keeps_replies = False
    calls_before = submissions(provider)
    ran = cli(*command)
    assert ran.code == 3
    assert "was it submitted with another key or --api-base?" in ran.err
    assert submissions(provider) == calls_before, "as long as it may be there, its calls are not made again"
    journal = Path("results/a/journal.jsonl")
    journal.write_text(
        re.sub(r'"since":(\d+)', lambda found: f'"since":{int(found[1]) - 3 * 86_400}', journal.read_text())
    )
    assert cli(*command).code == 3
    batches.keeps_replies = True
    ran, _ = until_done(cli, *command)
    assert ran.code == 0, ran.err
    assert cells(read_measurement(Path("results/a"))) == cells(live)
    assert len(lines(at="lost")) == 12, "they may have been made and charged"


def test_without_the_option_a_resumed_run_collects_and_makes_the_rest_at_once(
    live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    command = tuple(word for word in answers_waiting(cli, provider) if word != "--batch")
    provider.server.batches.held = True
    assert cli(*command).code == 3  # never beside a batch that may still be paid for
    provider.server.batches.held = False
    complete(cli, command, live, provider)
    assert submissions(provider) == 2


def test_a_batch_is_never_larger_than_the_budget_has_room_for(
    live: Measurement, cli: small.Cli, provider: Provider
) -> None:
    Path(".compression-eval.yml").write_text("models: {compressor_max_tokens: 2000}\n", encoding="utf-8")
    command = answers_waiting(cli, provider, "--budget-usd", "0.05")
    assert 0 < len(lines(at="queued")) < 12
    complete(cli, command, live, provider)
    assert sum(use.cost_usd or 0 for use in read_measurement(Path("results/a")).use.values()) < 0.055


def test_a_server_without_a_batch_api_is_told_before_anything_waits(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.server.batches.offered = False
    ran = cli(*UPDATE, *provider.options, "--batch", "--label", "a")
    assert ran.code == 3
    assert "has no batch API" in ran.err
    assert "leave out --batch" in ran.err
    assert cli(*(word for word in (*UPDATE, *provider.options, *AGAIN))).code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no model is configured"),
        (("--model", "bedrock/anthropic.claude-3-haiku-20240307-v1:0"), "no batch API is known for bedrock"),
        (("--model", "x", "--api-base", "ollama"), "no batch API is known for ollama"),
        (("--model", "openai/gpt-4.1", "--judge", "offline"), "only compressions are paid for"),
    ],
)
def test_models_without_a_batch_api_are_refused_at_once(
    three_probes: Path, cli: small.Cli, options: tuple[str, ...], said: str
) -> None:
    for more in ((), ("--dry-run",)):
        ran = cli(*UPDATE, *options, "--batch", *more)
        assert ran.code == 2
        assert said in ran.err


def test_the_dry_run_says_the_price_in_batches(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    def costs(role: str, *more: str) -> tuple[int, float, float]:
        out = cli(*UPDATE, *provider.options, "--dry-run", *more).out
        (row,) = re.findall(rf"^\W*{role}\b.*? (\d+)  .*?\$([\d.]+) +\$([\d.]+)", out, re.MULTILINE)
        return int(row[0]), float(row[1]), float(row[2])

    def halved(role: str, at_full_price: int) -> None:
        calls, usual, _ = costs(role)
        _, plain, cached = costs(role, "--batch")
        assert plain == pytest.approx(usual / 2 * (1 + at_full_price / calls), rel=0.05)
        assert cached == plain  # no provider promises a prompt cache in a batch

    halved("answer", 0)
    halved("judge", 3)  # the three grades that try the judge are not made in a batch
    assert costs("compressor", "--batch") == costs("compressor")
    said = cli(*UPDATE, *provider.options, "--dry-run", "--batch").out
    assert "in batches, at half the price" in said
    whole = costs("total")[2]
    assert f"without --batch and with prompt caching, all this costs about ${whole:.2f}" in " ".join(said.split())
    assert not provider.server.asked


def test_a_calibration_waits_for_its_batch_also_when_it_is_made_again(
    three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    command = ("judge", "calibrate", "--quiet", *provider.options, "--batch")
    assert cli(*command[:-1], "--results", "live").code == 0
    once = len(provider.server.asked)
    assert cli(*command, "--again").code == 3
    assert len(provider.server.asked) == once
    ran = cli(*command, "--again")
    assert ran.code == 0, ran.err
    assert ran.out == cli(*command[:-1], "--results", "live").out
    assert len(provider.server.batched) == once
    assert submissions(provider) == 1


def test_a_regrade_waits_for_its_batch(three_probes: Path, cli: small.Cli, provider: Provider) -> None:
    assert cli(*UPDATE, *provider.options, "--label", "x").code == 0
    command = ("judge", "regrade", "baselines/models.json", "--quiet", "--trust-judge", *provider.options, "--batch")
    asked = len(provider.server.asked)
    assert cli(*command, "--label", "a").code == 3
    ran = cli(*command, *AGAIN)
    assert ran.code == 0, ran.err
    assert len(provider.server.asked) == asked
    assert len(provider.server.batched) == 6
    assert cells(read_measurement(Path("results/a"))) == cells(load_baseline(Path("baselines/models.json"))[0])


@pytest.fixture
def claude(three_probes: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A baseline update whose models are reached through Anthropic's own API."""
    # The first call imports a part of litellm, which may take longer than the second that tests allow a reply.
    monkeypatch.setattr("eval_core.measuring.wiring.RETRY", RetryPolicy(base_seconds=0.01, longest_seconds=0.02))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    url = provider.server.base_url.removesuffix("/v1")
    endpoint = {"url": url, "protocol": "litellm"}
    config = {"models": {"compressor": CLAUDE, "endpoints": {CLAUDE: endpoint}}}
    Path(".compression-eval.yml").write_text(json.dumps(config), encoding="utf-8")
    return (*UPDATE, "--price", f"{CLAUDE}=1,4")


def test_anthropic_batches_bring_the_same(claude: tuple[str, ...], cli: small.Cli, provider: Provider) -> None:
    ran = cli(*claude, "--results", "live", "--label", "a")
    assert ran.code == 0, ran.err
    live = read_measurement(Path("live/a"))
    Path("baselines/models.json").unlink()
    provider.server.delivered.clear()
    batches = provider.server.batches
    first = cli(*claude, "--batch", "--label", "a")
    assert first.code == 3
    assert "12 in msgbatch_0" in first.err
    batches.held = True
    assert "msgbatch_0 of anthropic/claude-sonnet-4-5 is still running: 0 of 12" in cli(*claude, "--batch", *AGAIN).err
    batches.held = False
    provider.behave = faulty("529", "claude-sonnet-4-5", 2)
    complete(cli, (*claude, "--batch", *AGAIN), live, provider)
    assert batches.keys == {KEY}
    assert not [path for path, raw in files_below(Path()) if KEY.encode() in raw]
    queued = {line["key"] for line in lines(at="queued")}
    usages = [line["usage"] for line in lines(at="done") if line["key"] in queued]
    assert all(
        usage["cost_usd"] == pytest.approx((usage["input_tokens"] + 4 * usage["output_tokens"]) / 2e6)
        for usage in usages
    )


def test_an_anthropic_batch_whose_id_was_never_heard_is_found_by_the_names_of_its_calls(
    claude: tuple[str, ...], cli: small.Cli, provider: Provider
) -> None:
    batches = provider.server.batches

    def fall_over(batch: Batch) -> None:
        raise RuntimeError("taken, and never told")

    batches.on_submit = fall_over
    ran = cli(*claude, "--batch", "--label", "a")
    assert ran.code == 3
    assert "whether the batch of anthropic/claude-sonnet-4-5 was submitted is not known" in ran.err
    assert len(batches.anthropic) == 1
    batches.on_submit = lambda batch: None
    asked = len(provider.server.asked)
    again = cli(*claude, "--batch", *AGAIN)
    assert again.code == 3
    assert "msgbatch_0: it may be the batch whose submission was interrupted" in again.err
    assert len(batches.anthropic) == 1
    batches.work()
    ran, _ = until_done(cli, *claude, "--batch", *AGAIN)
    assert ran.code == 0, ran.err
    assert len(provider.server.asked) == asked
    assert len(provider.server.batched) == 23
