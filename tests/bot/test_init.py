"""Adopting the bot: once, again, over edits, and straight into a working evaluation."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import adopted
import pytest
import small
import yaml

from bot.testing.github import LoopbackGitHub
from bot.testing.journey import Journey, label_event
from eval_core.base.config import load_config

ACTION = ("--action", adopted.ACTION)
WORKFLOW = ".github/workflows/compression-eval.yml"
CONFIG = ".compression-eval.yml"
CODE = "class ContextCompressor:\n    def compress(self, messages): ...\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small.write(tmp_path / "agent/__init__.py", "")
    small.write(tmp_path / "agent/context_compressor.py", CODE)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_writes_a_workflow_and_a_configuration_and_says_what_is_left(folder: Path, cli: small.Cli) -> None:
    ran = cli("init", str(folder), *ACTION)
    assert ran.code == 0, ran.err
    assert f"uses: {adopted.ACTION}" in (folder / WORKFLOW).read_text(encoding="utf-8")
    config = load_config(None, folder)
    assert config.watch == ["agent/**"]
    assert isinstance(config.target, dict)
    assert config.target["compressor"] == "agent.context_compressor:ContextCompressor"
    for number, word in enumerate(("Secret", "Label", "Fixtures and a first baseline"), start=1):
        assert f"{number}. {word}" in ran.out
    assert {"fixtures", "probes", "baselines"} <= {path.name for path in folder.iterdir()}


def test_doing_it_again_changes_nothing(folder: Path, cli: small.Cli) -> None:
    cli("init", str(folder), *ACTION)
    small.write(folder / "fixtures/a.json", "{}")
    (folder / "fixtures/.gitkeep").unlink()
    before = contents(folder)
    ran = cli("init", str(folder), *ACTION)
    assert ran.code == 0
    assert contents(folder) == before
    assert "written" not in ran.out
    assert "replaced" not in ran.out


@pytest.mark.parametrize(("answer", "kept"), [("n\n", True), ("\n", True), ("y\n", False)])
def test_an_edited_file_is_shown_as_a_diff_before_it_is_replaced(
    folder: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, answer: str, kept: bool
) -> None:
    cli("init", str(folder), *ACTION)
    edited = (folder / CONFIG).read_text(encoding="utf-8") + "runs: 7\n"
    small.write(folder / CONFIG, edited)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    ran = cli("init", str(folder), *ACTION)
    assert ran.code == 0
    assert "-runs: 7" in ran.out
    assert ((folder / CONFIG).read_text(encoding="utf-8") == edited) is kept


def test_yes_replaces_without_asking(folder: Path, cli: small.Cli) -> None:
    small.write(folder / CONFIG, "runs: 7\n")
    ran = cli("init", str(folder), *ACTION, "--yes")
    assert "-runs: 7" in ran.out
    assert "runs" not in yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--action", "not an action"), "give OWNER/REPO@SHA"),
        ((*ACTION, "--compressor", "agent.other:Missing"), "no such class"),
    ],
)
def test_a_mistake_is_one_message_and_nothing_is_written(
    folder: Path, cli: small.Cli, words: tuple[str, ...], message: str
) -> None:
    before = contents(folder)
    ran = cli("init", str(folder), *words)
    assert ran.code == 2
    assert message in ran.err
    assert contents(folder) == before


def test_a_tree_without_a_compressor_is_told_how_to_name_one(tmp_path: Path, cli: small.Cli) -> None:
    ran = cli("init", str(tmp_path), *ACTION)
    assert ran.code == 2
    assert "--compressor package.module:Class" in ran.err


@pytest.mark.e2e
def test_a_repository_in_a_src_layout_is_evaluated_without_editing_code(tmp_path: Path, cli: small.Cli) -> None:
    tree = {f"src/{name}": content for name, content in adopted.base_tree().items() if name.startswith("agent/")}
    root = adopted.on_disk(tree, tmp_path / "base")
    assert cli("init", str(root), *ACTION).code == 0
    data = adopted.base_tree()
    kept = ("fixtures/", "probes/", "baselines/")
    adopted.on_disk({name: content for name, content in data.items() if name.startswith(kept)}, root)
    small.write(root / CONFIG, (root / CONFIG).read_text(encoding="utf-8") + adopted.PLAN)
    base = contents(root)
    compressor = "src/agent/context_compressor.py"
    change = {**base, compressor: base[compressor].replace(b"= 0.28", b"= 0.02")}
    with LoopbackGitHub(adopted.REPO, files=base) as github:
        github.user("maintainer", "write")
        github.workflow("compression-eval.yml")
        pull = github.open_pull(change)
        github.label(pull.number, adopted.LABEL)
        Journey(github, root, tmp_path / "work").play(label_event(adopted.REPO, pull, "maintainer"))
        (comment,) = github.comments(pull.number)
    assert "**Regressed:** " in comment.body
    assert "`agent.context_compressor:ContextCompressor`" in comment.body
