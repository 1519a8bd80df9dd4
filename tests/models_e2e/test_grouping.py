"""Several questions in one call: fewer calls and the same scores, or a refusal; nothing is lost on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import small

from bot.testing.provider import reply_to
from eval_core.base.config import Config, ModelConfig
from eval_core.base.messages import Message, content_text
from eval_core.domain.probe import PrivateProbe
from eval_core.judging.answering import grouped, split_answers
from eval_core.judging.extractive import NOT_IN_CONTEXT
from eval_core.measuring.cost import quote
from eval_core.measuring.forecast import GROUPING
from eval_core.measuring.options import Job
from eval_core.models.prices import parse_prices
from eval_core.models.settings import ModelFlags
from eval_core.storage.results import read_measurement

from .world import ANSWER, COMPRESSOR, JUDGE, Provider, results_of

PLAN = ("--runs", "1", "--compress-runs", "1", "--trust-judge", "--quiet", "--label")
PROBES = sum(len(case.probes) for case in small.cases())
"""In three sessions; the states and the floors of the controls are asked about as well."""


@pytest.fixture
def four_at_once(project: Path) -> Path:
    small.write(project / ".compression-eval.yml", "models: {questions_per_call: 4}\n")
    return project


def shared(provider: Provider) -> list[int]:
    """Return how many questions each shared call held."""
    return [_count(asked.last) for asked in provider.asked_of(ANSWER) if "[[1]]" in asked.last]


def _count(prompt: str) -> int:
    return len(re.findall(r"^\d+\. ", prompt, re.MULTILINE))


def test_questions_share_calls_and_the_scores_stay(four_at_once: Path, cli: small.Cli, provider: Provider) -> None:
    command = ("run", *PLAN, "a", *provider.options)
    ran = cli(*command)
    assert ran.code == 0, ran.err
    measured = read_measurement(four_at_once / "results/a")
    record = measured.extra.grouping
    assert record is not None
    assert (record.questions_per_call, record.probes, record.change) == (4, PROBES, 0.0)
    calls = sum(len(grouped(case.probes, 4)) for case in small.cases())
    assert len(shared(provider)) == 2 * calls  # those of the check and those of the run
    assert sum(run.use["answer"].calls for runs in measured.fixtures.values() for run in runs) == calls
    results = results_of(json.loads((four_at_once / "results/a/summary.json").read_text()))
    assert {result["kind"] for result in results} == {"grade"}

    small.write(four_at_once / ".compression-eval.yml", "")
    assert cli("run", *PLAN, "b", *provider.options).code == 0
    alone = read_measurement(four_at_once / "results/b")
    for name, (run,) in measured.fixtures.items():
        (other,) = alone.fixtures[name]
        assert {key: probe.answer.text for key, probe in run.probes.items() if probe.answer} == {
            key: probe.answer.text for key, probe in other.probes.items() if probe.answer
        }
    assert "questions_per_call" in measured.fingerprint.answer_model
    assert "questions_per_call" not in alone.fingerprint.answer_model


def test_a_check_is_paid_for_once(four_at_once: Path, cli: small.Cli, provider: Provider) -> None:
    assert cli("run", *PLAN, "a", *provider.options).code == 0
    before = len(shared(provider))
    assert cli("run", *PLAN, "b", *provider.options).code == 0
    assert len(shared(provider)) == before + before // 2


def test_a_model_that_answers_worse_in_shared_calls_is_refused(
    four_at_once: Path, cli: small.Cli, provider: Provider
) -> None:
    def careless(messages: Sequence[Message]) -> str:
        if "[[1]]" not in content_text(messages[-1]):
            return reply_to(messages)
        numbers = range(1, _count(content_text(messages[-1])) + 1)
        return "\n".join(f"[[{number}]]\n{NOT_IN_CONTEXT}" for number in numbers)

    provider.reply = careless
    ran = cli("run", *PLAN, "a", *provider.options)
    assert ran.code == 2
    assert f"models.questions_per_call: 4 is not fit for {ANSWER}" in ran.err
    assert "Set it to 1" in ran.err
    assert not provider.asked_of(COMPRESSOR)


def test_a_reply_that_cannot_be_split_is_asked_for_one_by_one(
    four_at_once: Path, cli: small.Cli, provider: Provider
) -> None:
    assert cli("run", *PLAN, "a", *provider.options).code == 0
    one = small.cases()[0].probes[0].question

    def muddled(messages: Sequence[Message]) -> str:
        last = content_text(messages[-1])
        return "All is well." if "[[1]]" in last and one in last else reply_to(messages)

    provider.reply = muddled
    ran = cli("run", *PLAN, "b", *provider.options)
    assert ran.code == 0, ran.err
    results = results_of(json.loads((four_at_once / "results/b/summary.json").read_text()))
    assert {result["kind"] for result in results} == {"grade"}


def test_an_outage_leaves_the_answers_of_a_call_unscored_and_a_resume_asks_them(
    four_at_once: Path, cli: small.Cli, provider: Provider
) -> None:
    assert cli("run", *PLAN, "a", *provider.options).code == 0
    provider.behave = lambda asked: "500" if "[[1]]" in asked.last else None
    command = ("run", *PLAN, "b", *provider.options)
    assert cli(*command).code == 3
    results = results_of(json.loads((four_at_once / "results/b/summary.json").read_text()))
    assert any(result["kind"] == "unscored" and "(server)" in result["reason"] for result in results)
    provider.behave = lambda asked: None
    assert cli(*command, "--resume").code == 0


def test_the_dry_run_counts_shared_calls_and_the_check(four_at_once: Path, cli: small.Cli, provider: Provider) -> None:
    prices = parse_prices([f"{model}=1,4,0.1" for model in (COMPRESSOR, ANSWER, JUDGE)])
    flags = ModelFlags(compressor=COMPRESSOR, answer=ANSWER, judge=JUDGE, prices=prices)
    settings = Config(models=ModelConfig(questions_per_call=4))
    said = quote(Job(settings, flags=flags, runs=1, compress_runs=1, trust_judge=True))
    assert said is not None
    assert cli("run", *PLAN, "a", *provider.options).code == 0
    answers = next(row for row in said.rows if row.role == "answer")
    assert answers.calls == len(provider.asked_of(ANSWER))
    assert dict(said.purposes)[GROUPING] == 3 * PROBES + len(shared(provider)) // 2
    # The same answer in both calls is graded once.
    assert 0.75 * said.total.calls < len(provider.server.asked) <= said.total.calls


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[1]]\nred\n[[2]]\nblue, not\n[[3]] here", ["red", "blue, not\n[[3]] here"]),
        ("Sure:\n**[[1]]**\nred\n\n### [[2]]:\nblue", ["red", "blue"]),
        ("[[2]]\nblue\n[[1]]\nred", "it holds [[2]], [[1]]"),
        ("[[1]]\nred", "it holds [[1]]"),
        ("red and blue", "it holds none"),
        ("[[1]]\n\n[[2]]\nblue", "no answer below [[1]]"),
        ("[[1]]\nred\n[[2]]\nblue\n[[2]]\ngreen", "it holds [[1]], [[2]], [[2]]"),
    ],
)
def test_a_reply_is_split_where_every_answer_has_its_number(text: str, found: list[str] | str) -> None:
    answers = split_answers(text, 2)
    assert answers == found if isinstance(found, list) else isinstance(answers, str) and found in answers


def test_private_probes_share_no_call_with_others() -> None:
    probes = [probe for case in small.cases() for probe in case.probes][:5]
    mixed = [PrivateProbe.of(probe) if at % 2 else probe for at, probe in enumerate(probes)]
    groups = grouped(mixed, 4)
    assert [[probe.private for probe in group] for group in groups] == [[False] * 3, [True] * 2]
