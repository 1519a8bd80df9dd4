"""Measured values and the instrument version change together, or not at all."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from eval_core.base.files import digest
from eval_core.domain.fingerprint import INSTRUMENT_VERSION
from eval_core.domain.grade import Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "instrument.json"


def values_of(run: RunRecord) -> dict[str, object]:
    """Return what was measured of one run, without texts that people may reword."""
    return {
        "outcome": run.outcome.value,
        "tokens": [run.tokens_before, run.tokens_after],
        "verbatim": run.verbatim,
        "census": [run.census.total, run.census.at_risk, run.census.lost],
        "structure": run.structure,
        "facts": {
            name: [(fact.kept, fact.at_risk, fact.used) for fact in probe.facts] for name, probe in run.probes.items()
        },
        "scores": {name: probe.result.scores for name, probe in run.probes.items() if isinstance(probe.result, Grade)},
    }


def test_values_change_only_with_the_instrument_version(shipped_runs: Callable[[str], Measurement]) -> None:
    measured = {
        strategy: {name: digest(values_of(runs[0]))[:16] for name, runs in shipped_runs(strategy).fixtures.items()}
        for strategy in ("anchored", "opaque")
    }
    found = {"version": INSTRUMENT_VERSION, "values": measured}
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert found == golden, (
        "measured values have changed. If intended, raise INSTRUMENT_VERSION, run this test with UPDATE_GOLDEN=1,"
        " and renew the shipped baseline with `compression-eval baseline update`"
    )


def _rewritten(tree: ast.Module) -> str:
    """Return the same program in other words: no docstring, no comment, another layout."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and not isinstance(node, ast.Lambda):
            words = [item for item in body if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)]
            node.body = [item for item in body if item not in words] or [ast.Pass()]
    return ast.unparse(tree)


def test_the_shipped_baseline_still_compares_after_a_pure_refactoring(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "bot", tmp_path / "bot")
    shutil.copytree(ROOT / "eval_core", tmp_path / "eval_core")
    for name in ("fixtures", "probes", "baselines", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    for room in ("compressors", "domain", "evidence", "judging", "measuring"):
        for path in (tmp_path / "eval_core" / room).glob("*.py"):
            path.write_text(_rewritten(ast.parse(path.read_text(encoding="utf-8"))), encoding="utf-8")
    words = "run --quiet --runs 1 --fixtures debug-session-feishu-id-model --target builtin:anchored --format json"
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from bot.cli import main; main()", *words.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["verdict"]["kind"] == "no_detectable_change"
