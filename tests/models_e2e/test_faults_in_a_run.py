"""Every way in which a provider fails, in a whole run: no zero, a reason, the right exit code, a resume."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import small

from tests.model_provider import Asked

from .world import ANSWER, CHECKS, COMPRESSOR, JUDGE, ONE_RUN, Provider, faulty, once_in_ten, results_of

# The fault, whose calls it meets, and the kind of failure that the report names.
FAULTS = {
    "429": (ANSWER, "rate_limit"),
    "429-retry-after": (ANSWER, "rate_limit"),
    "429-quota-day": (ANSWER, "rate_limit"),
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
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a")
    provider.behave = faulty(fault, model, after=CHECKS[model])
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


CHECKS_COST = 0.02  # dollars at the prices of the loopback; 2 % of a run of the shipped suite is several times that
ALWAYS = {
    **{fault: kind for fault, (_, kind) in FAULTS.items()},
    "429-quota": "payment",
    "400": "bad_request",
    "401": "auth",
    "403": "auth",
    "404": "not_found",
    "broken-body": "malformed",
    "wrong-shape": "malformed",
    "error-with-200": "server",
}


MODELS = (COMPRESSOR, ANSWER, JUDGE)


@pytest.mark.parametrize(
    ("fault", "model"),
    [
        *((fault, model) for fault in ("429-quota-day", "500", "hang", "empty") for model in MODELS),
        *(
            (fault, JUDGE)
            for fault in ("invalid-json", "wrong-schema", "out-of-range", "truncated", "401", "403", "404")
        ),
        *((fault, MODELS[at % 3]) for at, fault in enumerate(ALWAYS)),
    ],
)
def test_a_model_that_never_answers_stops_the_run_before_it_spends(
    fault: str, model: str, three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    if fault in ("invalid-json", "wrong-schema", "out-of-range") and model != JUDGE:
        pytest.skip("a proper reply for this role")
    if fault == "truncated" and model == ANSWER:
        pytest.skip("a long answer is used as far as it goes")
    provider.behave = faulty(fault, model)
    command = ("run", *provider.options, "--label", "a")
    ran = cli(*command, "--quiet")
    assert ran.code == 3, ran.err
    assert f"({ALWAYS[fault]})" in ran.err
    assert model in ran.err
    assert len(provider.server.delivered) <= sum(CHECKS.values())
    assert provider.bill() < CHECKS_COST
    assert "--label a --quiet --resume` completes it" in ran.err
    summary = json.loads((three_probes / "results/a/summary.json").read_text())
    assert {run["outcome"] for runs in summary["fixtures"].values() for run in runs} == {"infra"}
    provider.behave = lambda asked: None
    assert (
        cli(*command, "--resume", "--runs", "1", "--set", "compress_runs=1", "--set", "models.trust_judge=true").code
        == 0
    )


@pytest.mark.parametrize("fault", ["429", "500", "reset", "empty", "truncated"])
def test_a_passing_fault_is_not_seen_in_the_result(
    fault: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.behave = faulty(fault, ANSWER, times=1)
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert ran.code == 0, ran.err
    (result,) = results_of(json.loads((one_probe / "results/a/summary.json").read_text()))
    assert result["scores"]["accuracy"] == 5.0
    assert provider.paid_twice() == 0


@pytest.mark.parametrize("fault", ["500", "empty", "hang"])
def test_a_fault_of_the_compressors_model_is_no_result_of_the_compressor(
    fault: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
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
    ran = cli("run", *ONE_RUN, *options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert ran.code == 3
    assert "connection" in (one_probe / "results/a/report.md").read_text()
    assert (
        cli(
            "run",
            *ONE_RUN,
            *provider.options,
            "--set",
            "models.trust_judge=true",
            "--label",
            "a",
            "--quiet",
            "--resume",
        ).code
        == 0
    )


@pytest.mark.parametrize(("fault", "words"), [("401", "no such key"), ("404", "no such model")])
def test_a_key_or_name_that_no_model_ever_answered_to_is_one_message_and_exit_code_2(
    fault: str, words: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    once = ("run", *ONE_RUN, *provider.options, "--compare-to", "none", "--label", "a", "--quiet")
    command = (*once, "--set", "models.trust_judge=true")
    provider.behave = lambda asked: fault
    ran = cli(*command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert len(provider.server.asked) <= 9  # three for each model, not one for each call
    provider.behave = lambda asked: None
    assert cli(*command, "--resume").code == 0


@pytest.mark.parametrize("fault", ["401", "403", "404"])
def test_what_was_paid_for_is_kept_where_a_key_or_a_name_fails_later_in_every_role(
    fault: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    command = ("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    provider.behave = faulty("500", JUDGE, after=CHECKS[JUDGE])
    assert cli(*command).code == 3
    provider.behave = lambda asked: fault
    ran = cli(*command, "--resume")
    assert ran.code == 3, ran.err
    assert "Facts kept:" in ran.out
    assert ("correct COMPRESSION_EVAL_API_KEY" if fault != "404" else "openai/judge") in ran.err
    provider.behave = lambda asked: None
    assert cli(*command, "--resume").code == 0
    assert provider.paid_twice() == 0


@pytest.mark.parametrize(("fault", "model"), [("401", JUDGE), ("404", ANSWER), ("500", JUDGE)])
def test_what_costs_nothing_is_measured_though_a_model_cannot_be_used(
    fault: str, model: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    command = ("run", *ONE_RUN, *provider.options, "--target", "builtin:sliding-window", "--label", "a", "--quiet")
    provider.behave = faulty(fault, model)
    ran = cli(*command)
    assert ran.code == 3, ran.err
    assert "Facts kept:" in ran.out
    assert model in ran.err
    summary = json.loads((one_probe / "results/a/summary.json").read_text())
    (run,) = summary["fixtures"]["small-debug"]
    assert (run["outcome"], run["size"]["facts"] > 0) == ("ok", True)
    assert not provider.asked_of(COMPRESSOR)
    provider.behave = lambda asked: None
    assert cli(*command, "--resume", "--set", "models.trust_judge=true").code == 0


def test_a_model_that_another_one_answers_for_is_named(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    provider.behave = faulty("wrong-model", JUDGE)
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert ran.code == 0
    assert "openai/judge: 6 replies came from another-model" in ran.out
    assert "another-model" in (one_probe / "results/a/report.md").read_text()


@pytest.mark.parametrize(
    "fault",
    ["429", "429-quota", "429-quota-day", "500", "502", "400", "401", "402", "403", "404", "context-length", "html",
     "broken-body", "wrong-shape", "empty", "refusal", "truncated", "reset", "hang"],
)  # fmt: skip
def test_a_provider_that_fails_one_call_in_ten_costs_no_cell(
    fault: str, three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    unlucky = once_in_ten(fault)
    failures: list[Asked] = []

    def behave(asked: Asked) -> str | None:
        if (found := unlucky(asked)) is not None:
            failures.append(asked)
        return found

    provider.behave = behave
    ran = cli(
        "run",
        "--runs",
        "2",
        "--set",
        "compress_runs=2",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    assert ran.code == 0, ran.err
    assert failures
    summary = json.loads((three_probes / "results/a/summary.json").read_text())
    assert [result["kind"] for result in results_of(summary)] == ["grade"] * 6


def test_after_the_deadline_the_result_is_incomplete_with_the_numbers_it_has(
    project: Path, cli: small.Cli, provider: Provider
) -> None:
    """The first calls are answered at once, on any machine within the deadline; the others not before it has passed."""

    def behave(asked: Asked) -> None:
        provider.server._latency = 6.0 if asked.number >= 12 else 0.0

    provider.behave = behave
    command = (
        "run",
        "--runs",
        "1",
        "--set",
        "compress_runs=8",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli(*command, "--set", "concurrency=2", "--set", "deadline_minutes=0.08")
    assert ran.code == 3, ran.err
    assert "Incomplete: the deadline of 0.08 minutes was reached" in ran.err
    assert "--resume` completes it" in ran.err
    asked = len(provider.server.asked)
    summary = json.loads((project / "results/a/summary.json").read_text())
    assert summary["stopped"] == "the deadline of 0.08 minutes was reached"
    assert 12 < asked < 16
    provider.behave = lambda asked: None
    provider.server._latency = 0.0
    assert cli(*command, "--resume").code == 0
    assert all(r["kind"] == "grade" for r in results_of(json.loads((project / "results/a/summary.json").read_text())))


def test_a_model_whose_every_grade_is_unreadable_is_refused_though_it_may_misrank(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.behave = faulty("wrong-schema", JUDGE)
    ran = cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet")
    assert ran.code == 3
    assert "the judge model did not pass the check before the run: no grade (malformed)" in ran.err
    assert len(provider.asked_of(COMPRESSOR)) == 0
    ran = cli("judge", "calibrate", *provider.options)
    assert ran.code in (1, 3)
    assert len(provider.asked_of(JUDGE)) < 40


@pytest.mark.parametrize("model", [COMPRESSOR, ANSWER], ids=["compressor", "answer"])
def test_an_agents_runner_reads_an_outage_as_unavailable(
    model: str, one_probe: Path, cli: small.Cli, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_EVALUATOR_DIGEST", "e" * 64)
    monkeypatch.setenv("HERMES_BATTERY_DIGEST", "b" * 64)
    provider.behave = faulty("500", model)
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--quiet")
    assert ran.code == 0, "the runner takes any other code for a crash and reads no report"
    report = json.loads((one_probe / "results/latest/report.json").read_text())
    assert report["status"] == "unavailable"
    assert report["baseline_tokens"] > 0
    assert report["probe_manifest"] == json.loads(cli("probe", "manifest").out)
    assert report["probe_scores"] == dict.fromkeys(report["probe_manifest"], -1.0)
    assert report["unscored_probes"] == report["probe_manifest"]


@pytest.mark.parametrize(
    ("fault", "model"), [("500", ANSWER), ("500", JUDGE), ("401", ANSWER), ("401", JUDGE), ("wrong-shape", ANSWER)]
)
def test_a_cell_that_failed_every_attempt_is_asked_for_once_more_at_the_end(
    fault: str, model: str, three_probes: Path, cli: small.Cli, provider: Provider
) -> None:
    unlucky: set[str] = set()
    failures = Counter[str]()

    def behave(asked: Asked) -> str | None:
        if asked.model != model or len(asked.messages) < 2 or asked.number < 8:
            return None
        if not unlucky:
            unlucky.add(asked.last)
        if asked.last not in unlucky or failures[asked.last] >= 3:
            return None
        failures[asked.last] += 1
        return fault

    provider.behave = behave
    ran = cli(
        "run",
        "--runs",
        "1",
        "--set",
        "compress_runs=1",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    assert ran.code == 0, ran.err
    assert sum(failures.values()) == 3
    summary = json.loads((three_probes / "results/a/summary.json").read_text())
    assert [result["kind"] for result in results_of(summary)] == ["grade"] * 3
    assert all(
        None not in (probe["ceiling"], probe["floor"])
        for control in summary["controls"].values()
        for probe in control["probes"].values()
    )


def test_answers_that_are_always_cut_off_are_found_out_before_the_run(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.behave = faulty("truncated-late", ANSWER)
    ran = cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet")
    assert ran.code == 3
    assert "the answer model did not pass the check before the run: no answer (truncated)" in ran.err
    assert "raise the role's max_tokens" in ran.err
