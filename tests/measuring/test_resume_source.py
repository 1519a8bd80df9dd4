"""A resumed run is of the same compressor: not of the same name, nor of the same commit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import agent_tree
import pytest
import small

RUN = (*agent_tree.RUN, "--label", "a")


@pytest.fixture
def begun(tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent's tree with a run that was interrupted: one of its fixture-runs is missing."""
    agent = agent_tree.write_agent(tmp_path / "my-agent")
    small.write(agent / "agent" / "prompts" / "summary.md", "Be short.")
    small.write(agent / "README.md", "An agent.")
    monkeypatch.chdir(agent)
    assert cli(*RUN).code == 0
    (agent / "results" / "a" / "small-debug-run-0.json").unlink()
    (agent / "results" / "a" / "summary.json").unlink()
    return agent


def append(path: str, text: str = "\n# changed\n") -> Callable[[Path], object]:
    return lambda root: small.write(root / path, (root / path).read_text(encoding="utf-8") + text)


def upgrade(root: Path) -> None:
    (old,) = root.glob(".venv/lib/python*/site-packages/only_in_the_environment-1.0.dist-info")
    old.rename(old.with_name("only_in_the_environment-1.1.dist-info"))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "code": (append("agent/shorten.py"), "agent/shorten.py changed"),
    "a new module": (lambda root: small.write(root / "agent" / "more.py", ""), "agent/more.py changed"),
    "a module taken away": (lambda root: (root / "agent" / "__init__.py").unlink(), "agent/__init__.py changed"),
    "a prompt beside the code": (append("agent/prompts/summary.md"), "agent/prompts/summary.md changed"),
    "adapter": (append("adapter.py"), "target.adapter, adapter.py changed"),
    "description": (
        lambda root: small.write(
            root / ".compression-eval.yml", agent_tree.CONFIG.replace("none", "none\n  timeout_s: 30")
        ),
        "target.timeout_s changed",
    ),
    "package": (upgrade, "package only_in_the_environment (1.0 -> 1.1) changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_compressor_is_not_mixed_in_and_the_change_is_named(begun: Path, cli: small.Cli, change: str) -> None:
    make, said = CHANGES[change]
    make(begun)
    before = {path.name: path.read_bytes() for path in (begun / "results" / "a").iterdir()}
    ran = cli(*RUN, "--resume")
    assert ran.code == 2
    assert f"--resume cannot complete this run: {said} since it began" in ran.err
    assert {path.name: path.read_bytes() for path in (begun / "results" / "a").iterdir()} == before


def test_what_is_no_part_of_the_compressor_may_change(begun: Path, cli: small.Cli) -> None:
    append("README.md")(begun)
    small.write(begun / "results" / "notes.py", "")
    small.write(begun / "agent" / "__pycache__" / "shorten.cpython-311.pyc", "x")
    small.write(begun / ".venv" / "notes.txt", "x")
    assert cli(*RUN, "--resume").code == 0


def test_names_that_are_not_utf_8_are_read_back_as_they_were(begun: Path, cli: small.Cli) -> None:
    odd = [Path(os.fsdecode(os.fsencode(begun / "agent") + b"/" + name)) for name in (b"\xff.py", b"\xfe.py")]
    odd[0].write_bytes(b"")
    assert r"agent/\xff.py changed since it began" in cli(*RUN, "--resume").err
    again = (*agent_tree.RUN, "--label", "b")
    assert cli(*again).code == 0
    ran = cli(*again, "--resume")
    assert ran.code == 0, ran.err
    # Still told apart: one broken name for another is another file.
    odd[0].rename(odd[1])
    assert r"agent/\xfe.py, agent/\xff.py changed since it began" in cli(*again, "--resume").err


def test_watched_files_count_wherever_they_lie(begun: Path, cli: small.Cli) -> None:
    small.write(begun / ".compression-eval.yml", agent_tree.CONFIG.replace("[agent/**]", "[agent/**, README.md]"))
    ran = cli(*RUN, "--resume")
    assert "README.md changed since it began" in ran.err


def test_the_reference_compressor_counts_by_its_own_code(project: Path, cli: small.Cli) -> None:
    cli(*RUN)
    path = project / "results" / "a" / "session.json"
    name = "compression-eval/rule_based.py"
    assert name in json.loads(path.read_text(encoding="utf-8"))["source"]["files"]
    small.edit_json(path, lambda body: body["source"]["files"].update({name: "0"}))
    assert f"{name} changed since it began" in cli(*RUN, "--resume").err


def test_a_run_that_another_version_began_is_not_guessed_at(project: Path, cli: small.Cli) -> None:
    cli(*RUN)
    small.edit_json(project / "results" / "a" / "session.json", lambda body: body.pop("source"))
    ran = cli(*RUN, "--resume")
    assert ran.code == 2
    assert "--resume cannot tell what this run was about" in ran.err
