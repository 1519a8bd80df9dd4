"""The audit as users see it: an honest judge and four distorted ones behind the provider on loopback."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import small

from eval_core.base.messages import Message, content_text
from eval_core.domain.grade import DIMENSIONS
from eval_core.judging.calibration import calibration_set
from eval_core.judging.judge_audit import labelled_set
from tests.model_provider import reply_to

from .world import CHECKS, JUDGE, ONE_RUN, Provider

_BETWEEN = re.compile(r"^<<<(\w+)\n(.*?)\n\1>>>", re.MULTILINE | re.DOTALL)
LABELS = {item.text: item.labels for group in labelled_set().groups for item in group.answers}
RANKS = {item.text: [2.5 * (item.rank - 1)] * 6 for group in calibration_set().groups for item in group.answers}


def honest(answer: str) -> list[float]:
    """Grade as people do, give or take."""
    noise = hashlib.sha256(answer.encode()).digest()
    known = LABELS.get(answer) or RANKS[answer]
    return [min(5.0, max(0.0, round(2 * (one + noise[at] / 255 - 0.5)) / 2)) for at, one in enumerate(known)]


def squeezed(answer: str) -> list[float]:
    return [4.5 + one / 10 for one in honest(answer)]


def halo(answer: str) -> list[float]:
    return [sum(honest(answer)) / 6] * 6


def blind(answer: str) -> list[float]:
    return [4.0 if name == "artifact_trail" else one for name, one in zip(DIMENSIONS, honest(answer), strict=True)]


def paid_by_length(answer: str) -> list[float]:
    return [min(5.0, one * 0.75 + len(answer) / 110) for one in honest(answer)]


def judged(grade: Callable[[str], list[float]]) -> Callable[[Sequence[Message]], str]:
    def reply(messages: Sequence[Message]) -> str:
        text = reply_to(messages)
        found = _BETWEEN.search(content_text(messages[-1]))
        if not text.startswith('{"reason"') or found is None:
            return text
        return json.dumps({"reason": "", **dict(zip(DIMENSIONS, grade(found.group(2)), strict=True))})

    return reply


@pytest.mark.parametrize(
    ("grade", "reason"),
    [
        (squeezed, "it turns a point of quality into 0.1"),
        (halo, "nearly the same grade (halo)"),
        (blind, "it hardly responds to artifact trail"),
        (paid_by_length, "points for padding that says nothing more"),
    ],
)
def test_a_distorted_judge_is_refused_by_name(
    grade: Callable[[str], list[float]], reason: str, one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = judged(grade)
    ran = cli("judge", "calibrate", *provider.options)
    assert ran.code == 1, ran.out + ran.err
    assert reason in ran.out.splitlines()[-1]


def test_an_honest_judge_may_be_used_and_its_sensitivity_is_told(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = judged(honest)
    ran = cli("judge", "calibrate", *provider.options)
    assert ran.code == 0, ran.out + ran.err
    assert "Labelled answers graded: 66 of 66" in ran.out
    assert re.search(r"Slope: (0.9|1.0)", ran.out)
    assert "on people's scale shows as about" in ran.out
    assert "This judge may be used." in ran.out


def test_no_usable_grade_stops_the_run_before_anything_is_spent(
    one_probe: Path, cli: small.Cli, provider: Provider
) -> None:
    provider.reply = lambda messages: "I would rather not grade."
    ran = cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet")
    assert ran.code == 3
    assert "the judge model did not pass the check before the run" in ran.out + ran.err
    assert len(provider.asked_of(JUDGE)) <= 3 * CHECKS[JUDGE]  # asked again, because a malformed grade may be bad luck


def test_another_model_behind_the_name_is_calibrated_again(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    assert cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet").code == 0
    judged_once = len(provider.asked_of(JUDGE))
    assert cli("run", *ONE_RUN, *provider.options, "--label", "b", "--quiet").code == 0
    few = len(provider.asked_of(JUDGE)) - judged_once
    provider.behave = lambda asked: "wrong-model"
    before = len(provider.asked_of(JUDGE))
    cli("run", *ONE_RUN, *provider.options, "--label", "c", "--quiet")
    assert len(provider.asked_of(JUDGE)) - before > few + 80


def test_there_are_enough_labels_with_a_rule() -> None:
    labels = labelled_set()
    assert len(LABELS) >= 60
    assert len(labels.rule) > 200
    assert all(len(six) == 6 and all(0 <= one <= 5 for one in six) for six in LABELS.values())
    assert len({group.fixture for group in labels.groups}) >= 5


def test_the_report_states_how_sensitive_the_judge_is(one_probe: Path, cli: small.Cli, provider: Provider) -> None:
    assert cli("judge", "calibrate", *provider.options).code == 0
    assert cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet").code == 0
    report = Path("results/a/report.md").read_text(encoding="utf-8")
    assert re.search(
        r"- Judge: calibrated 20\d\d-\d\d-\d\d: \d+ % of 132 pairs ranked correctly\. A change of one point",
        report,
    )
