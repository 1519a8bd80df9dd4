"""Which compressor is measured, and that an agent's own runner gets the report it expects."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.target import Builtin, TargetSpec
from eval_core.sandbox.targets import find_target

STANDIN = Path(__file__).parents[1] / "subject" / "hermes_standin"
OWN = {"compressor": "my.module:Compressor", "llm": "none"}


def test_the_command_line_comes_before_the_runner_and_the_runner_before_the_configuration(tmp_path: Path) -> None:
    runner = {"HERMES_AGENT_ROOT": str(tmp_path)}
    assert find_target("builtin:opaque", OWN, tmp_path, tmp_path, runner).spec == Builtin("opaque")
    asked = find_target(None, OWN, Path(), None, runner)
    assert isinstance(asked.spec, TargetSpec)
    assert asked.spec.compressor == "agent.context_compressor:ContextCompressor"
    assert asked.tree == tmp_path
    (tmp_path / "base").mkdir()
    base = find_target(None, OWN, Path(), tmp_path / "base", runner)
    assert isinstance(base.spec, TargetSpec)
    assert (base.tree, base.spec.pythonpath) == (tmp_path / "base", [str(tmp_path / "base")])
    configured = find_target(None, OWN, tmp_path, tmp_path, {})
    assert isinstance(configured.spec, TargetSpec)
    assert configured.spec.compressor == "my.module:Compressor"


def test_a_runner_s_tree_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"HERMES_AGENT_ROOT=.*nowhere: no such folder"):
        find_target(None, OWN, tmp_path, tmp_path, {"HERMES_AGENT_ROOT": str(tmp_path / "nowhere")})


def test_an_agent_s_runner_finds_its_report_and_an_otherwise_unchanged_tree(
    project: Path, cli: small.Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path_factory.mktemp("agent-tree") / "agent-root"
    shutil.copytree(STANDIN, agent)
    source = agent / "agent" / "context_compressor.py"
    # Two messages at either end: the small sessions call a tool in their third.
    source.write_text(source.read_text().replace("protect_first_n: int = 3", "protect_first_n: int = 2"))
    git = ["git", "-C", str(agent), "-c", "user.name=Dev One", "-c", "user.email=dev1@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "agent"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.setenv("HERMES_AGENT_ROOT", str(agent))
    monkeypatch.setenv("HERMES_EVALUATOR_DIGEST", "e" * 64)
    monkeypatch.setenv("HERMES_BATTERY_DIGEST", "b" * 64)
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    ran = cli("run", "--runs", "1", "--set", "compress_runs=1", "--compare-to", "none", "--quiet")
    assert ran.code == 0, ran.err
    after = {path: path.read_bytes() for path in project.rglob("*") if path.is_file() and "results" not in path.parts}
    assert after == before
    report = json.loads((project / "results" / "latest" / "report.json").read_text())
    assert report["source_sha"] == head
    assert (report["evaluator_digest"], report["battery_digest"]) == ("e" * 64, "b" * 64)
    assert report["schema_version"] == 1
    assert report["baseline_tokens"] > report["compressed_tokens"] > 0
    assert report["probe_manifest"] == sorted(report["probe_scores"])
    assert report["status"] in ("pass", "fail")
    assert all(isinstance(value, str) and value for value in report["model_provenance"].values())
    assert str(Path.home()) not in json.dumps(report)
