"""Two runs that start at the same time pay for one calibration; a judge that no provider serves says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import small

from eval_core.judging.calibration import calibration_set

from .world import JUDGE, ONE_RUN, Provider, faulty

ANSWERS = sum(len(group.answers) for group in calibration_set().groups)


def test_two_runs_in_two_processes_pay_for_one_calibration(one_probe: Path, provider: Provider) -> None:
    command = [sys.executable, "-m", "bot", "run", *ONE_RUN, *provider.options, "--compare-to", "none", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(small.REPOSITORY)}
    both = [
        subprocess.Popen(
            [*command, "--label", label],
            cwd=one_probe,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for label in ("a", "b")
    ]
    said = [process.communicate(timeout=150)[0].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    # One calibration; the other run has only its checks, grades and controls to ask for.
    assert ANSWERS < len(provider.asked_of(JUDGE)) < 2 * ANSWERS, said


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        ("401", "correct COMPRESSION_EVAL_API_KEY"),
        ("403", "what the key may use"),
        ("404", "check the model's name as the provider spells it"),
    ],
)
def test_a_configuration_that_no_provider_takes_says_what_to_do(
    one_probe: Path, cli: small.Cli, provider: Provider, fault: str, advice: str
) -> None:
    provider.behave = faulty(fault, JUDGE)
    ran = cli("run", "--runs", "1", "--set", "compress_runs=1", *provider.options, "--label", "a", "--quiet")
    assert ran.code == 3  # the other models answered, and what they gave is kept
    assert advice in ran.err
    assert "--label a --quiet --resume" in ran.err
