"""Every way in which a provider fails, in a whole run: no zero, a reason, the right exit code, a resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small

from .world import ANSWER, COMPRESSOR, JUDGE, ONE_RUN, Provider, faulty, results_of

# The fault, whose calls it meets, and the kind of failure that the report names.
FAULTS = {
    "429": (ANSWER, "rate_limit"),
    "429-retry-after": (ANSWER, "rate_limit"),
    "500": (ANSWER, "server"),
    "502": (JUDGE, "server"),
    "503": (ANSWER, "server"),
    "529": (JUDGE, "server"),
    "reset": (ANSWER, "connection"),
    "drip": (JUDGE, "timeout"),
    "hang": (ANSWER, "timeout"),
    "empty": (ANSWER, "empty"),
    "null": (ANSWER, "empty"),
    "reasoning-only": (JUDGE, "empty"),
    "refusal": (ANSWER, "refusal"),
    "content-filter": (JUDGE, "refusal"),
    "truncated": (JUDGE, "truncated"),
    "invalid-json": (JUDGE, "malformed"),
    "wrong-schema": (JUDGE, "malformed"),
    "out-of-range": (JUDGE, "malformed"),
    "html": (ANSWER, "malformed"),
    "402": (ANSWER, "payment"),
    "context-length": (ANSWER, "context_length"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_leaves_the_run_incomplete_and_resumable(
    fault: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    model, kind = FAULTS[fault]
    command = ("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a")
    provider.behave = faulty(fault, model)
    ran = cli(*command, "--quiet")
    assert ran.code == 3, ran.err
    assert "Incomplete: " in ran.err
    assert "--label a --quiet --resume` completes it" in ran.err
    summary = json.loads((one_probe / "results/a/summary.json").read_text())
    (result,) = results_of(summary)
    assert result["kind"] == "unscored"
    assert f"({kind})" in result["reason"]
    report = (one_probe / "results/a/report.md").read_text()
    assert "Missing is never counted as zero" in report
    assert kind.replace("_", "\\_") in report
    provider.behave = lambda asked: None
    ran = cli(*command, "--resume", "--quiet")
    assert ran.code == 0, ran.err
    (result,) = results_of(json.loads((one_probe / "results/a/summary.json").read_text()))
    assert (result["kind"], result["scores"]["accuracy"]) == ("grade", 5.0)
    assert provider.paid_twice() == 0


@pytest.mark.parametrize("fault", ["429", "500", "reset", "empty", "truncated"])
def test_a_passing_fault_is_not_seen_in_the_result(
    fault: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.behave = faulty(fault, ANSWER, times=1)
    ran = cli("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet")
    assert ran.code == 0, ran.err
    (result,) = results_of(json.loads((one_probe / "results/a/summary.json").read_text()))
    assert result["scores"]["accuracy"] == 5.0
    assert provider.paid_twice() == 0


@pytest.mark.parametrize("fault", ["500", "empty", "hang"])
def test_a_fault_of_the_compressors_model_is_no_result_of_the_compressor(
    fault: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    command = ("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet")
    provider.behave = faulty(fault, COMPRESSOR)
    ran = cli(*command)
    assert ran.code == 3
    summary = json.loads((one_probe / "results/a/summary.json").read_text())
    (run,) = summary["fixtures"]["small-debug"]
    assert run["outcome"] in ("infra", "bad_completion")
    assert not run["probes"]
    provider.behave = lambda asked: None
    assert cli(*command, "--resume").code == 0


def test_nobody_listening_is_an_outage(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    options = [word.replace(provider.server.base_url, "http://127.0.0.1:9/v1") for word in provider.options]
    ran = cli("run", *ONE_RUN, *options, "--trust-judge", "--label", "a", "--quiet")
    assert ran.code == 3
    assert "connection" in (one_probe / "results/a/report.md").read_text()
    assert cli("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet", "--resume").code == 0


@pytest.mark.parametrize(("fault", "words"), [("401", "no such key"), ("404", "no such model")])
def test_a_wrong_key_or_model_is_one_message_and_exit_code_2(
    fault: str, words: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    command = ("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet")
    provider.behave = lambda asked: fault
    ran = cli(*command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert len(provider.server.asked) <= 3  # one for each model, not one for each call
    provider.behave = lambda asked: None
    assert cli(*command, "--resume").code == 0


def test_a_model_that_another_one_answers_for_is_named(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    provider.behave = faulty("wrong-model", JUDGE)
    ran = cli("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet")
    assert ran.code == 0
    assert "openai/judge: 3 replies came from another-model" in ran.out
    assert "another-model" in (one_probe / "results/a/report.md").read_text()


@pytest.mark.parametrize("model", [COMPRESSOR, ANSWER], ids=["compressor", "answer"])
def test_an_agents_runner_reads_an_outage_as_unavailable(
    model: str, one_probe: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_EVALUATOR_DIGEST", "e" * 64)
    monkeypatch.setenv("HERMES_BATTERY_DIGEST", "b" * 64)
    provider.behave = faulty("500", model)
    ran = cli("run", *ONE_RUN, *provider.options, "--trust-judge", "--quiet")
    assert ran.code == 0, "the runner takes any other code for a crash and reads no report"
    report = json.loads((one_probe / "results/latest/report.json").read_text())
    assert report["status"] == "unavailable"
    assert report["baseline_tokens"] > 0
    assert report["probe_manifest"] == json.loads(cli("probe", "manifest").out)
    assert report["probe_scores"] == dict.fromkeys(report["probe_manifest"], -1.0)
    assert report["unscored_probes"] == report["probe_manifest"]
