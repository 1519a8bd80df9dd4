"""Adopting the bot: once, again, over edits, and straight into a working evaluation."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import adopted
import agent_tree
import pytest
import small
import yaml
from loopback import LoopbackGitHub

from bot.demo.journey import Journey, label_event
from eval_core.base.config import load_config

ACTION = ("--action", adopted.ACTION)
WORKFLOW = ".github/workflows/compression-eval.yml"
CONFIG = ".compression-eval.yml"
STANDIN = Path(__file__).parents[1] / "subject" / "hermes_standin"
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
    for number, word in enumerate(("Fixtures and a first baseline", "Label", "Secret", "Baseline pull"), start=1):
        assert f"{number}. {word}" in ran.out
    # Without it the first baseline is refused; as GitHub writes it, so that it can be searched for.
    said = " ".join(ran.out.split())
    assert '"Allow GitHub Actions to create and approve pull requests"' in said
    assert "COMPRESSION_EVAL_TOKEN" in said
    assert {"fixtures", "probes", "baselines"} <= {path.name for path in folder.iterdir()}


def test_an_editor_finds_the_schema_of_the_configuration_at_the_pinned_commit(folder: Path, cli: small.Cli) -> None:
    cli("init", str(folder), *ACTION)
    first = (folder / CONFIG).read_text(encoding="utf-8").splitlines()[0]
    start, _, path = first.partition("/docs/")
    assert (
        start == f"# yaml-language-server: $schema=https://raw.githubusercontent.com/{adopted.ACTION.replace('@', '/')}"
    )
    assert (small.REPOSITORY / "docs" / path).is_file()


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


def test_an_edited_file_is_kept_and_the_difference_is_shown(folder: Path, cli: small.Cli) -> None:
    cli("init", str(folder), *ACTION)
    edited = (folder / CONFIG).read_text(encoding="utf-8") + "runs: 7\n"
    small.write(folder / CONFIG, edited)
    ran = cli("init", str(folder), *ACTION)
    assert ran.code == 0
    assert "-runs: 7" in ran.out
    assert f"kept     {CONFIG}: yours differs as shown; --force replaces it" in ran.out
    assert (folder / CONFIG).read_text(encoding="utf-8") == edited


def test_force_replaces_what_was_edited(folder: Path, cli: small.Cli) -> None:
    small.write(folder / CONFIG, "runs: 7\n")
    ran = cli("init", str(folder), *ACTION, "--force")
    assert "-runs: 7" in ran.out
    assert "runs" not in yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))


def test_a_configured_repository_need_not_be_understood_again(tmp_path: Path, cli: small.Cli) -> None:
    small.write(tmp_path / "mine.py", "def shorten(messages): return messages[:1]\n")
    small.write(tmp_path / CONFIG, "target: {compressor: 'mine:shorten', llm: none}\n")
    small.write(tmp_path / ".gitignore", "build/\n")
    ran = cli("init", str(tmp_path), *ACTION)
    assert ran.code == 0, ran.err
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "build/\nresults/\n"
    assert "target: mine:shorten in" in ran.out


def test_it_ends_with_a_try(folder: Path, cli: small.Cli) -> None:
    ran = cli("init", str(folder), *ACTION)
    assert "broken   target: target_error: the compressor returned None" in ran.out
    assert ran.out.rstrip().endswith("Fix what is broken, then run `compression-eval doctor`.")
    small.write(folder / "agent/context_compressor.py", CODE.replace("...", "return messages[:2]"))
    ran = cli("init", str(folder), *ACTION)
    assert "ok       compressed short-session: " in ran.out
    assert "broken" not in ran.out


def test_an_agent_that_we_know_gets_its_whole_target(tmp_path: Path, cli: small.Cli) -> None:
    shutil.copytree(STANDIN, tmp_path, dirs_exist_ok=True)
    for name in ("agent/auxiliary_client.py", "agent/prompt_builder.py"):
        small.write(tmp_path / name, "")
    agent_tree.make_environment(tmp_path / ".venv")
    ran = cli("init", str(tmp_path), *ACTION)
    assert ran.code == 0, ran.err
    config = load_config(None, tmp_path)
    assert config.setup == ["python3 -m venv .venv", ".venv/bin/pip install pyyaml httpx requests openai"]
    assert "provider: custom is what makes it use base_url" in (tmp_path / CONFIG).read_text(encoding="utf-8")
    assert "ok       compressed short-session: " in ran.out
    assert f"with {tmp_path}/.venv/bin/python" in ran.out
    assert "offline model called 1 x" in ran.out


def test_a_copy_that_is_no_clone_says_what_it_cannot_know(
    folder: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.init.own_source", lambda: None)
    ran = cli("init", str(folder))
    assert ran.code == 0, ran.err
    assert "--action :" not in ran.out
    assert "does not run from a clone of a GitHub repository" in ran.out
    assert "run init again with --action OWNER/REPO@SHA" in ran.out
    # What works without GitHub is there; a workflow that could install nothing is not.
    assert (folder / CONFIG).exists()
    assert not (folder / ".github").exists()
    again = cli("init", str(folder), *ACTION)
    assert (again.code, "written  .github/workflows/compression-eval.yml" in again.out) == (0, True)


@pytest.mark.parametrize(
    ("file", "setup"),
    [
        ("requirements.txt", ".venv/bin/pip install -r requirements.txt"),
        ("pyproject.toml", ".venv/bin/pip install ."),
        ("README.md", None),
    ],
)
def test_an_environment_of_the_repository_is_used_where_it_can_be_made_again(
    folder: Path, cli: small.Cli, file: str, setup: str | None
) -> None:
    """Without a list of what is in it, the workflow could not make it."""
    small.write(folder / file, "")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    ran = cli("init", str(folder), *ACTION)
    assert ran.code == 0, ran.err
    config = load_config(None, folder)
    assert isinstance(config.target, dict)
    expected = (".venv/bin/python", ["python3 -m venv .venv", setup]) if setup else (None, [])
    assert (config.target.get("python"), config.setup) == expected
    ignored = (folder / ".gitignore").read_text(encoding="utf-8").split()
    assert ignored == (["results/", ".venv/"] if setup else ["results/"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--action", "not an action"), "give OWNER/REPO@SHA"),
        ((*ACTION, "--compressor", "agent.other:Missing"), "no such class"),
        ((*ACTION, "--compressor", ""), "--compressor '': give package.module:Class"),
        ((*ACTION, "--compressor", "agent/memory.py"), "--compressor 'agent/memory.py': give package.module:Class"),
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


def test_a_program_in_another_language_is_named_as_a_command(tmp_path: Path, cli: small.Cli) -> None:
    small.write(tmp_path / "src/compress.sh", "exit 1\n")
    small.write(tmp_path / "package.json", "{}")
    small.write(tmp_path / "package-lock.json", "{}")
    small.write(tmp_path / ".gitignore", "node_modules\n*.log")
    (tmp_path / "node_modules").mkdir()
    ran = cli("init", str(tmp_path), *ACTION, "--command", "sh src/compress.sh --fast", "--llm", "none")
    assert ran.code == 0, ran.err
    written = yaml.safe_load((tmp_path / CONFIG).read_text(encoding="utf-8"))
    assert written == {
        "target": {"command": ["sh", "src/compress.sh", "--fast"], "llm": "none", "runtime": "."},
        "watch": ["src/**"],
        "setup": ["npm ci"],
    }
    assert load_config(None, tmp_path).setup == ["npm ci"]
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8").split() == ["node_modules", "*.log", "results/"]
    assert "target check" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("node src/compres.ts", "src/compres.ts: no such file in"),
        ("nodde compress", "nodde is neither a program on this machine nor a file in"),
        ("", "it is empty"),
        ("sh 'open", "No closing quotation"),
    ],
)
def test_a_command_that_cannot_be_started_is_told_at_once(
    words: str, message: str, tmp_path: Path, cli: small.Cli
) -> None:
    ran = cli("init", str(tmp_path), *ACTION, "--command", words)
    assert ran.code == 2
    assert message in ran.err
    assert not list(tmp_path.iterdir())


TWO = {
    "agent/memory.py": "class Memory:\n    def compact(self, messages): return messages[:2]\n",
    "agent/notes.py": "class Notes:\n    def compress(self, messages): return messages[:3]\n",
}


def test_of_several_compressors_a_script_has_to_name_one_or_say_yes(tmp_path: Path, cli: small.Cli) -> None:
    for name, code in TWO.items():
        small.write(tmp_path / name, code)
    ran = cli("init", str(tmp_path), *ACTION)
    assert ran.code == 2
    assert "--compressor agent.memory:Memory --method compact" in ran.err
    assert sorted(contents(tmp_path)) == sorted(TWO)
    ran = cli("init", str(tmp_path), *ACTION, "--yes")
    assert ran.code == 0, ran.err
    assert load_config(None, tmp_path).target["compressor"] == "agent.notes:Notes"  # type: ignore[index]


def test_at_a_terminal_the_user_is_asked_which_one_it_is(tmp_path: Path) -> None:
    for name, code in TWO.items():
        small.write(tmp_path / name, code)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bot", "init", str(tmp_path), *ACTION]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        os.write(ours, b"2\n")
        said, _ = process.communicate(timeout=300)
    for end in (ours, theirs):
        os.close(end)
    assert process.returncode == 0, said
    assert "2. --compressor agent.memory:Memory --method compact  (agent/memory.py, calls no model)" in said
    assert load_config(None, tmp_path).target["method"] == "compact"  # type: ignore[index]


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
    assert "Regressed · `" in comment.body
    assert "`agent.context_compressor:ContextCompressor`" in comment.body
