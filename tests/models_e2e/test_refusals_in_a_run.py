"""A model that refuses in plain text: in every run it is the model's doing, in some runs the compressor's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import small

from bot.testing.provider import reply_to
from eval_core.base.messages import Message, content_text

from .world import ONE_RUN, Provider, results_of

REFUSAL = "I'm sorry, but I can't assist with that."


def refusing(when: Callable[[int], bool]) -> Callable[[Sequence[Message]], str]:
    """Refuse some of the compressions of the run, counted from 0."""
    seen = [0]

    def reply(messages: Sequence[Message]) -> str:
        text = content_text(messages[0]) + content_text(messages[-1])
        if "You condense" not in text or "EXPORT_BUCKET" in text:
            return reply_to(messages)
        seen[0] += 1
        return REFUSAL if when(seen[0] - 1) else reply_to(messages)

    return reply


def runs_of(project: Path) -> list[dict[str, object]]:
    summary = json.loads((project / "results/a/summary.json").read_text())
    return [run for runs in summary["fixtures"].values() for run in runs]


@pytest.mark.parametrize("said", [REFUSAL, "Sure!"])
def test_a_refusal_in_every_run_is_a_bad_completion(
    said: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    always = refusing(lambda number: True)
    provider.reply = lambda messages: said if (text := always(messages)) == REFUSAL else text
    options = ("--runs", "1", "--compress-runs", "3", *provider.options, "--trust-judge", "--label", "a", "--quiet")
    ran = cli("run", *options)
    assert ran.code == 3
    runs = runs_of(one_probe)
    assert [run["outcome"] for run in runs] == ["bad_completion"] * 3
    assert all("refused in every run: " in str(run["detail"]) for run in runs)
    assert not any(run["probes"] for run in runs)
    on_disk = json.loads((one_probe / "results/a/small-debug-run-0.json").read_text())
    assert on_disk["outcome"] == "bad_completion"


def test_a_model_that_refuses_where_it_wrote_for_the_base_is_named_as_a_regression(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    options = (*provider.options, "--trust-judge", "--quiet")
    assert cli("baseline", "update", "--runs", "3", *options).code == 0
    provider.reply = refusing(lambda number: True)
    ran = cli("run", "--runs", "3", *options, "--label", "a", "--fail-on", "regressed")
    said = (
        "Regressed: the compressor's model refused to write the summary in every run, which it never did for the base."
    )
    assert said in " ".join(ran.out.split())
    assert REFUSAL in ran.out
    assert ran.code in (1, 3)


def test_a_refusal_in_some_runs_is_the_compressors_own(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    provider.reply = refusing(lambda number: number == 1)
    options = ("--runs", "1", "--compress-runs", "3", *provider.options, "--trust-judge", "--label", "a", "--quiet")
    ran = cli("run", *options, "--concurrency", "1")
    assert ran.code == 0, ran.err
    runs = runs_of(one_probe)
    assert [run["outcome"] for run in runs] == ["ok"] * 3
    assert sorted(str(run["refused"]) for run in runs) == ["", "", REFUSAL]


def test_an_answer_that_refuses_is_unscored_and_not_zero(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    def reply(messages: Sequence[Message]) -> str:
        asks = "Which error code" in content_text(messages[-1]) and len(messages) > 2
        return REFUSAL if asks else reply_to(messages)

    provider.reply = reply
    ran = cli("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet")
    assert ran.code == 3
    (result,) = results_of(json.loads((one_probe / "results/a/summary.json").read_text()))
    assert result["kind"] == "unscored"
    assert "(refusal)" in result["reason"]


def test_a_compressor_that_refuses_from_the_first_call_on_costs_the_check_and_no_more(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = lambda messages: REFUSAL if "You condense" in content_text(messages[0]) else reply_to(messages)
    ran = cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet")
    assert ran.code == 3
    assert "no summary (refusal): openai/compressor: the model refused 3 times: I'm sorry" in ran.err
    assert len(provider.server.asked) == 3 + 1 + 3


def test_a_compressor_that_refuses_the_check_once_is_asked_again(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    said = [REFUSAL]
    provider.reply = lambda messages: (
        said.pop() if said and "EXPORT_BUCKET" in content_text(messages[-1]) else reply_to(messages)
    )
    ran = cli("run", *ONE_RUN, *provider.options, "--trust-judge", "--label", "a", "--quiet")
    assert ran.code == 0, ran.err
    assert not said
