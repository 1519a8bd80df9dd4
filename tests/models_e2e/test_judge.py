"""A judge must rank plain cases before it may decide."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import small

from eval_core.base.messages import Message
from eval_core.domain.grade import DIMENSIONS
from tests.model_provider import reply_to

from .world import CHECKS, JUDGE, ONE_RUN, Provider

TWO_RUNS = ("--runs", "2", "--set", "compress_runs=2")
CALIBRATION, AUDIT = 85, 78
"""Plain cases; 66 labelled answers, 12 of these twice."""
PREFLIGHT = 4


def flattering(messages: Sequence[Message]) -> str:
    """Give everybody five."""
    text = reply_to(messages)
    return json.dumps({"reason": "lovely", **dict.fromkeys(DIMENSIONS, 5)}) if text.startswith('{"reason"') else text


class TestCalibration:
    def test_the_offline_judge_may_be_used(
        self, tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        ran = cli("judge", "calibrate")
        assert ran.code == 0
        assert ran.out.startswith("offline:facts: 100.0% of ")
        assert "This judge may be used." in ran.out

    def test_a_good_judge_is_paid_for_once(self, one_probe: Path, cli: small.Cli, provider: Provider) -> None:
        ran = cli("judge", "calibrate", *provider.options)
        assert ran.code == 0, ran.out + ran.err
        assert len(provider.server.asked) == CALIBRATION + AUDIT
        assert cli("judge", "calibrate", *provider.options).out == ran.out
        assert cli("run", *ONE_RUN, *provider.options, "--quiet").code == 0
        # Three grades before the run, one of it and two of the controls.
        assert len(provider.asked_of(JUDGE)) == CALIBRATION + AUDIT + 3 + 3
        cli("judge", "calibrate", "--again", *provider.options)
        assert len(provider.asked_of(JUDGE)) == 2 * (CALIBRATION + AUDIT) + 3 + 3

    def test_a_judge_that_likes_everything_is_refused_before_anything_else_is_paid(
        self, one_probe: Path, cli: small.Cli, provider: Provider
    ) -> None:
        provider.reply = flattering
        ran = cli("run", *ONE_RUN, *provider.options, "--compare-to", "none", "--label", "a", "--quiet")
        assert ran.code == 2
        assert ran.err.startswith("Error: the judge openai/judge is not fit to decide: it graded three answers ")
        assert "right answer 5.0, partial answer 5.0, wrong_path answer 5.0" in ran.err
        assert "--set", "models.trust_judge=true" in ran.err
        assert len(provider.server.asked) == sum(CHECKS.values())
        calibrated = cli("judge", "calibrate", *provider.options)
        assert calibrated.code == 1
        assert "This judge should not be used: " in calibrated.out
        assert len(provider.server.asked) == sum(CHECKS.values()) + CALIBRATION + AUDIT
        assert (
            cli("run", *ONE_RUN, *provider.options, "--label", "b", "--quiet", "--set", "models.trust_judge=true").code
            == 0
        )

    def test_a_baseline_remembers_the_calibration(self, one_probe: Path, cli: small.Cli, provider: Provider) -> None:
        assert cli("baseline", "update", "--runs", "1", *provider.options, "--quiet").code == 0
        judged = len(provider.asked_of(JUDGE))
        shutil.rmtree(one_probe / "results")
        assert cli("run", *ONE_RUN, *provider.options, "--quiet").code == 0
        # Three before the run and one of it; calibration and controls are known.
        assert len(provider.asked_of(JUDGE)) == judged + 4

    def test_a_run_calibrates_and_does_not_audit_and_an_audit_pays_for_itself_alone(
        self, one_probe: Path, cli: small.Cli, provider: Provider
    ) -> None:
        assert cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet").code == 0
        judged = len(provider.asked_of(JUDGE))
        assert judged == CALIBRATION + 3  # the three grades before the run are of the calibration
        said = cli("judge", "calibrate", "--dry-run", *provider.options)
        assert f"Calls: {AUDIT} audit" in said.out
        assert cli("judge", "calibrate", *provider.options).code == 0
        assert len(provider.asked_of(JUDGE)) == judged + AUDIT
        assert "66 of 66" in cli("judge", "calibrate", *provider.options).out
