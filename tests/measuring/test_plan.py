"""A plan holds what is decided before a run; what it read is not read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.storage import baselines


def test_a_run_reads_its_baseline_once(project: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("baseline", "update", "--runs", "1", "--quiet", "--accept-failing").code == 0
    read, real = [], baselines.read_json

    def noted(path: Path) -> Any:
        read.append(path.name)
        return real(path)

    monkeypatch.setattr(baselines, "read_json", noted)
    ran = cli("run", "--runs", "1", "--quiet")
    assert ran.code == 0, ran.err
    assert read == ["offline.json"]


def test_a_baseline_that_cannot_be_read_stops_only_what_needs_it(project: Path) -> None:
    small.write(project / "baselines/offline.json", "{}")
    with pytest.raises(UserError, match="not a baseline file"):
        make_plan(RunOptions(Config(), project))
    assert make_plan(RunOptions(Config(), project, compare_to="none")).stored is None
    assert make_plan(RunOptions(Config(), project, baseline="rerun")).base.in_run == "whole"
