"""A judge must rank plain cases; when it drifts, nothing is compared until the baseline is graded again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import small

from bot.testing.provider import reply_to
from eval_core.base.config import Config
from eval_core.base.messages import Message
from eval_core.comparing.findings import Kind
from eval_core.domain.grade import DIMENSIONS
from eval_core.measuring.options import Job
from eval_core.storage.baselines import load_baseline
from eval_core.storage.results import read_measurement

from .judges import shifted
from .world import CHECKS, JUDGE, ONE_RUN, Provider

TWO_RUNS = ("--runs", "2", "--compress-runs", "2")
CALIBRATION = 163
"""85 plain cases, 66 labelled answers, 12 of these twice."""
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
        assert len(provider.server.asked) == CALIBRATION
        assert cli("judge", "calibrate", *provider.options).out == ran.out
        assert cli("run", *ONE_RUN, *provider.options, "--quiet").code == 0
        # Three grades before the run, one of it and two of the controls.
        assert len(provider.asked_of(JUDGE)) == CALIBRATION + 3 + 3
        cli("judge", "calibrate", "--again", *provider.options)
        assert len(provider.asked_of(JUDGE)) == 2 * CALIBRATION + 3 + 3

    def test_a_judge_that_likes_everything_is_refused_before_anything_else_is_paid(
        self, one_probe: Path, cli: small.Cli, provider: Provider
    ) -> None:
        provider.reply = flattering
        ran = cli("run", *ONE_RUN, *provider.options, "--label", "a", "--quiet")
        assert ran.code == 2
        assert ran.err.startswith("Error: the judge openai/judge is not fit to decide: it graded three answers ")
        assert "right answer 5.0, partial answer 5.0, wrong_path answer 5.0" in ran.err
        assert "--trust-judge" in ran.err
        assert len(provider.server.asked) == sum(CHECKS.values())
        calibrated = cli("judge", "calibrate", *provider.options)
        assert calibrated.code == 1
        assert "This judge should not be used: " in calibrated.out
        assert len(provider.server.asked) == sum(CHECKS.values()) + CALIBRATION
        assert cli("run", *ONE_RUN, *provider.options, "--label", "b", "--quiet", "--trust-judge").code == 0

    def test_a_baseline_remembers_the_calibration(self, one_probe: Path, cli: small.Cli, provider: Provider) -> None:
        assert cli("baseline", "update", "--runs", "1", *provider.options, "--quiet").code == 0
        judged = len(provider.asked_of(JUDGE))
        shutil.rmtree(one_probe / "results")
        assert cli("run", *ONE_RUN, *provider.options, "--quiet").code == 0
        # Three before the run, one of it and one of the drift sample; calibration and controls are known.
        assert len(provider.asked_of(JUDGE)) == judged + 5


class TestDrift:
    @pytest.fixture
    def baseline(self, three_probes: Path, cli: small.Cli, provider: Provider) -> Path:
        """A baseline of six fixture-runs, graded by the judge as it was."""
        assert cli("baseline", "update", "--runs", "2", *provider.options, "--trust-judge", "--quiet").code == 0
        return three_probes / "baselines/models.json"

    def test_the_same_judge_shows_none(self, baseline: Path, cli: small.Cli, provider: Provider) -> None:
        ran = cli("run", *TWO_RUNS, *provider.options, "--label", "a", "--quiet", "--trust-judge")
        assert ran.code == 0
        assert "Not comparable" not in ran.out
        summary = json.loads((baseline.parents[1] / "results/a/summary.json").read_text())
        assert len(summary["extra"]["drift"]["cells"]) == 6
        noise = cli("noise", "baselines/models.json", "--splits", "10", "--regraded", "results/a")
        assert noise.code == 0, noise.err
        assert "the judge causes about 0 %" in noise.out
        assert "(6 answers graded twice)" in noise.out

    def test_a_stricter_judge_is_noticed_by_every_view_and_mended_by_regrading(
        self, baseline: Path, cli: small.Cli, provider: Provider
    ) -> None:
        provider.reply = shifted(-1)
        options = (*provider.options, "--quiet", "--trust-judge")
        ran = cli("run", *TWO_RUNS, *options, "--label", "a", "--fail-on", "inconclusive")
        first = ran.out.splitlines()[0]
        assert ran.code == 3
        assert first.startswith("≠ Not comparable: the judge drifted: ")
        assert "judge regrade baselines/models.json" in ran.out
        assert "6 calls, about $0.0" in ran.out
        assert cli("report", "results/a").out.splitlines()[0] == first
        assert cli("compare", "baselines/models.json", "results/a").out.splitlines()[0] == first
        job = Job(Config())  # as the bot's publish job decides anew, from the numbers alone
        decided = job.compared(read_measurement(Path("results/a")), job.load_cases()).verdict
        assert decided is not None
        assert decided.kind is Kind.NOT_COMPARABLE
        assert first.removeprefix("≠ ").startswith(decided.headline[:60])
        ran = cli("judge", "regrade", "baselines/models.json", "--output", "baselines/models.json", *options)
        assert ran.code == 0, ran.err
        assert "the judge drifted" in ran.out
        assert len(list(load_baseline(baseline)[0].fixtures)) == 3
        ran = cli("compare", "baselines/models.json", "results/a")
        assert "Not comparable" not in ran.out
        assert "Regressed" not in ran.out

    def test_a_drifted_judge_can_be_mended_in_the_same_run(
        self, baseline: Path, cli: small.Cli, provider: Provider
    ) -> None:
        before = baseline.read_bytes()
        provider.reply = shifted(-1)
        options = (*provider.options, "--quiet", "--trust-judge")
        ran = cli("run", *TWO_RUNS, *options, "--label", "a", "--regrade-baseline")
        assert ran.code == 0
        assert "Not comparable" not in ran.out
        assert "Regressed" not in ran.out
        assert cli("report", "results/a").out.splitlines()[0] == ran.out.splitlines()[0]
        assert baseline.read_bytes() == before

    def test_it_can_be_turned_off(self, baseline: Path, cli: small.Cli, provider: Provider) -> None:
        asked = len(provider.asked_of(JUDGE))
        cli("run", *TWO_RUNS, *provider.options, "--quiet", "--trust-judge", "--drift-sample", "0")
        assert len(provider.asked_of(JUDGE)) == asked + 3 + 6


class TestRegrade:
    def test_offline_answers_are_graded_again_to_the_same_grades(self, project: Path, cli: small.Cli) -> None:
        cli("run", *ONE_RUN, "--label", "a", "--quiet")
        ran = cli("judge", "regrade", "results/a", "--label", "again", "--quiet")
        assert ran.code == 0
        assert ran.out.startswith("12 answers graded again: ")
        assert "no drift that matters" in ran.out
        old, new = (json.loads((project / "results" / name / "summary.json").read_text()) for name in ("a", "again"))
        assert old["fixtures"] == new["fixtures"]

    def test_another_judge_makes_an_offline_result_comparable_with_its_own(
        self, one_probe: Path, cli: small.Cli, provider: Provider
    ) -> None:
        cli("run", *ONE_RUN, "--label", "a", "--quiet")
        ran = cli("judge", "regrade", "results/a", "--label", "b", "--quiet", "--trust-judge", *provider.options)
        assert ran.code == 0, ran.err
        summary = json.loads((one_probe / "results/b/summary.json").read_text())
        assert summary["models"]["judge"] == JUDGE
        assert summary["fingerprint"]["judge_model"]["model"] == JUDGE
        again = cli("judge", "regrade", "results/a", "--label", "b", "--resume", "--trust-judge", *provider.options)
        assert again.code == 0
        assert len(provider.server.asked) == 1

    def test_an_interrupted_regrade_is_completed(self, one_probe: Path, cli: small.Cli, provider: Provider) -> None:
        cli("run", *ONE_RUN, "--label", "a", "--quiet")
        command = ("judge", "regrade", "results/a", "--label", "b", "--quiet", "--trust-judge", *provider.options)
        ran = cli(*command, "--budget-usd", "0.0001")
        assert ran.code == 3
        assert "--label b --resume" in ran.err
        assert cli(*command, "--resume").code == 0

    def test_answers_to_other_questions_are_not_graded(self, project: Path, cli: small.Cli) -> None:
        cli("run", *ONE_RUN, "--label", "a", "--quiet")
        small.edit_json(
            project / "probes/small-plan.probes.json", lambda body: body["probes"][0].update(question="What?")
        )
        ran = cli("judge", "regrade", "results/a", "--quiet")
        assert ran.code == 2
        assert "probes/small-plan.probes.json is not the bank these answers were given to" in ran.err
