"""A model that writes no summary: who is to blame is decided by what it writes for the evaluator."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import small

from eval_core.base.messages import Message, content_text
from eval_core.sandbox.isolation import detect
from tests.model_provider import Asked, reply_to

from .own_target import SOURCE, SPEC
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
    options = (
        "--runs",
        "1",
        "--set",
        "compress_runs=3",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli("run", *options)
    assert ran.code == 3
    runs = runs_of(one_probe)
    assert [run["outcome"] for run in runs] == ["bad_completion"] * 3
    assert all("refused in every run: " in str(run["detail"]) for run in runs)
    assert not any(run["probes"] for run in runs)
    on_disk = json.loads((one_probe / "results/a/small-debug-run-0.json").read_text())
    assert on_disk["outcome"] == "bad_completion"


@pytest.mark.parametrize(
    ("asks", "gets"),
    [(f"answer only: {REFUSAL}", REFUSAL), ("answer with an empty text", ""), ("answer with one word", "Sure!")],
    ids=["refusal", "empty", "near-empty"],
)
def test_a_compressor_that_asks_for_no_summary_is_broken_and_its_model_is_not_blamed(
    asks: str, gets: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    """Through the real gateway: the model does what it is told, and summarises the session for the evaluator."""
    if not detect("auto").confined:
        pytest.skip("no sandbox on this machine")
    provider.reply = lambda messages: gets if asks in content_text(messages[0]) else reply_to(messages)
    small.write(one_probe / "mini.py", SOURCE.replace("You summarise what an agent did.", asks))
    small.write(one_probe / "target.yml", SPEC)
    options = (
        "--runs",
        "2",
        "--target",
        "target.yml",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli("run", *options, "--fail-on", "regressed")
    said = " ".join(ran.out.split())
    assert "Broken: the compressor asks its model for what it does not write in 2 of 2 runs of small-debug" in said
    report = (one_probe / "results/a/report.md").read_text()
    assert "asked plainly before and after, the same model summarised this session" in report
    assert ran.code == 1
    assert [run["outcome"] for run in runs_of(one_probe)] == ["refused"] * 2
    summary = json.loads((one_probe / "results/a/summary.json").read_text())
    assert summary["stopped"] is None
    asked = len(provider.server.asked)
    assert cli("run", *options, "--fail-on", "regressed", "--resume").code == 1
    assert len(provider.server.asked) == asked, "what was found out is not found out again"


@pytest.mark.hangs
@pytest.mark.parametrize("everybody", [False, True], ids=["only the compressor", "everybody"])
def test_who_waits_for_a_call_that_the_model_answers_for_everybody_else_is_broken(
    everybody: bool, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    """It leaves a long call open and sleeps until its time is over, which looks like a provider that hangs."""
    if not detect("auto").confined:
        pytest.skip("no sandbox on this machine")

    def behave(asked: Asked) -> str | None:
        text = content_text(asked.messages[0])
        checked = "You condense" in text and "EXPORT_BUCKET" not in asked.last
        return "hang" if "without end" in text or (everybody and checked) else None

    provider.behave = behave
    small.write(one_probe / "mini.py", SOURCE.replace("You summarise what an agent did.", "Write without end."))
    small.write(one_probe / "target.yml", SPEC)
    options = (
        *provider.options,
        "--target",
        "target.yml",
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli("run", *ONE_RUN, *options, "--fail-on", "regressed")
    (run,) = runs_of(one_probe)
    assert (run["outcome"], ran.code) == (("bad_completion", 3) if everybody else ("refused", 1))
    assert "the provider did not answer a model call within the time of the step" in str(run["detail"])


def test_a_shard_that_is_resumed_knows_whose_doing_a_refusal_was(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    """It leaves the refusals to the merge, which knows all runs; what the model said to the evaluator it keeps."""

    def reply(messages: Sequence[Message]) -> str:
        text = content_text(messages[0]) + content_text(messages[-1])
        plain = "<what was asked, done and decided" in text or "EXPORT_BUCKET" in text
        return REFUSAL if "You condense" in text and not plain else reply_to(messages)

    provider.reply = reply
    options = (
        "run",
        *ONE_RUN,
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--shard",
        "1/1",
        "--quiet",
    )
    assert cli(*options).code == 0
    asked = len(provider.server.asked)
    assert cli(*options, "--resume").code == 0
    assert len(provider.server.asked) == asked
    cli("merge", "a")
    (run,) = runs_of(one_probe)
    assert (run["outcome"], run["answered_plainly"]) == ("refused", True)


@pytest.mark.parametrize("used", [True, False], ids=["as the summary", "to decide by"])
def test_one_word_is_no_summary_only_where_the_compressor_uses_it_as_one(
    used: bool, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    """Through the real gateway: a model that has one word for everybody is at fault, unless nobody wanted more."""
    if not detect("auto").confined:
        pytest.skip("no sandbox on this machine")
    checked = "EXPORT_BUCKET"
    provider.reply = lambda messages: (
        "Sure!"
        if "You summarise" in content_text(messages[0])
        or ("You condense" in content_text(messages[0]) and checked not in content_text(messages[-1]))
        else reply_to(messages)
    )
    source = SOURCE if used else SOURCE.replace(" + summary}", ' + "The rest was left out."}')
    small.write(one_probe / "mini.py", source)
    small.write(one_probe / "target.yml", SPEC)
    options = (
        *provider.options,
        "--target",
        "target.yml",
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli("run", *ONE_RUN, *options)
    (run,) = runs_of(one_probe)
    if used:
        assert (ran.code, run["outcome"]) == (3, "bad_completion")
        assert "nothing but 'Sure!'" in str(run["detail"])
    else:
        assert (ran.code, run["outcome"]) == (0, "ok")


def test_a_model_that_refuses_everybody_is_not_held_against_the_compressor_though_it_wrote_for_the_base(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    options = (*provider.options, "--set", "models.trust_judge=true", "--quiet")
    assert cli("baseline", "update", "--runs", "3", *options).code == 0
    provider.reply = refusing(lambda number: True)
    ran = cli("run", "--runs", "3", *options, "--label", "a", "--fail-on", "regressed")
    assert ran.code == 3
    assert "Regressed" not in ran.out
    assert [run["outcome"] for run in runs_of(one_probe)] == ["bad_completion"] * 3


def test_a_model_that_refuses_for_a_while_is_asked_again_and_measured(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    """The two refusals are all runs; the plain request and everything after it is answered."""
    provider.reply = refusing(lambda number: number < 2)
    options = (
        "--runs",
        "1",
        "--set",
        "compress_runs=2",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli("run", *options, "--set", "concurrency=1")
    assert ran.code == 0, ran.err
    assert [(run["outcome"], run["refused"]) for run in runs_of(one_probe)] == [("ok", "")] * 2


def test_a_provider_that_begins_to_refuse_between_the_plain_requests_is_to_blame_itself(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    """One refusal, one plain summary, and from then on refusals for everybody."""
    provider.reply = refusing(lambda number: number != 1)
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert ran.code == 3
    (run,) = runs_of(one_probe)
    assert (run["outcome"], run["answered_plainly"]) == ("bad_completion", False)


def test_a_refusal_in_some_runs_is_the_compressors_own(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    provider.reply = refusing(lambda number: number == 1)
    options = (
        "--runs",
        "1",
        "--set",
        "compress_runs=3",
        *provider.options,
        "--set",
        "models.trust_judge=true",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli("run", *options, "--set", "concurrency=1")
    assert ran.code == 0, ran.err
    runs = runs_of(one_probe)
    assert [run["outcome"] for run in runs] == ["ok"] * 3
    assert sorted(str(run["refused"]) for run in runs) == ["", "", REFUSAL]


def test_an_answer_that_refuses_is_unscored_and_not_zero(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    def reply(messages: Sequence[Message]) -> str:
        asks = "Which error code" in content_text(messages[-1]) and len(messages) > 2
        return REFUSAL if asks else reply_to(messages)

    provider.reply = reply
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert ran.code == 3
    (result,) = results_of(json.loads((one_probe / "results/a/summary.json").read_text()))
    assert result["kind"] == "unscored"
    assert "(refusal)" in result["reason"]


@pytest.mark.parametrize(("says", "told"), [(REFUSAL, "I'm sorry"), ("Sure!", "nothing but 'Sure!'")])
def test_a_compressor_that_refuses_from_the_first_call_on_costs_the_check_and_no_more(
    says: str, told: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = lambda messages: says if "You condense" in content_text(messages[0]) else reply_to(messages)
    ran = cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet")
    assert ran.code == 3
    assert f"no summary (refusal): openai/compressor: the model refused 3 times: {told}" in ran.err
    assert len(provider.server.asked) == 3 + 1 + 3


def test_a_compressor_that_refuses_the_check_once_is_asked_again(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    said = [REFUSAL]
    provider.reply = lambda messages: (
        said.pop() if said and "EXPORT_BUCKET" in content_text(messages[-1]) else reply_to(messages)
    )
    ran = cli("run", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
    assert ran.code == 0, ran.err
    assert not said
