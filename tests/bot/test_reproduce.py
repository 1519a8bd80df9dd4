"""`reproduce`: the line in the comment measures the same, and no token goes where it is not meant to go."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import adopted
import pytest
import small

from bot.demo.journey import Journey, label_event
from bot.reproduce import PullAddress, pull_address, token_for
from eval_core.base.errors import UserError


def run(cwd: Path, words: list[str], answer: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV", "PYTHONPATH", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "bot", *words],
        cwd=cwd,
        env={**kept, "HOME": str(cwd), **env},
        input=answer,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_line_in_the_comment_measures_the_same_without_a_token(tmp_path: Path) -> None:
    base = adopted.configured(adopted.base_tree(), "setup: [touch set-up]\n")
    head = adopted.configured(adopted.worse_tree(adopted.base_tree()), "setup: [touch hijacked]\n")
    github, pull = adopted.world(base, head)
    here = tmp_path / "here"
    here.mkdir()
    with github:
        root = adopted.on_disk(base, tmp_path / "checkout")
        env = {"GITHUB_API_URL": github.url, "GITHUB_SERVER_URL": github.url}
        Journey(github, root, tmp_path / "work", servers=env).play(label_event(adopted.REPO, pull, "maintainer"))
        (line,) = re.findall(r"^compression-eval (reproduce .*)$", github.comments(1)[-1].body, re.MULTILINE)
        # Later commits change nothing: the line names the two that were measured.
        github.push_to_pull(1, base)
        asked = run(here, shlex.split(line), "n\n", **env)
        assert asked.returncode == 130
        assert "touch set-up" in asked.stdout
        assert "Models are called" not in asked.stdout
        assert not list(here.rglob("set-up"))
        done = run(here, [*shlex.split(line), "--yes"], **env)
    assert done.returncode == 0, done.stderr
    (check,) = github.state.checks.values()
    assert check.title is not None
    assert check.title.startswith("Regressed")
    assert check.title in " ".join(done.stdout.split())
    assert [path.name for path in here.rglob("set-up")] == ["set-up"]
    assert not list(here.rglob("hijacked"))


def test_a_pull_request_is_named_by_its_address_or_its_number(tmp_path: Path) -> None:
    github = PullAddress("https://github.com", "acme/agent", 7)
    assert pull_address("https://github.com/acme/agent/pull/7", tmp_path) == github
    assert pull_address("https://github.com/acme/agent/pull/7/files#diff-1", tmp_path) == github
    assert pull_address("acme/agent#7", tmp_path) == github
    assert github.api == "https://api.github.com"
    own = pull_address("https://git.acme.example/acme/agent/pull/7", tmp_path)
    assert (own.server, own.api) == ("https://git.acme.example", "https://git.acme.example/api/v3")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with pytest.raises(UserError, match="give the URL"):
        pull_address("7", tmp_path)
    subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", "git@github.com:acme/agent.git"], check=True)
    assert pull_address("7", tmp_path) == pull_address("#7", tmp_path) == github


@pytest.mark.parametrize(
    "given", ["", "seven", "https://github.com/acme/agent", "https://u@github.com/a/b/pull/7", "7x"]
)
def test_what_is_no_pull_request_is_refused(given: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the URL"):
        pull_address(given, tmp_path)


def test_a_token_goes_only_to_the_server_it_is_meant_for(tmp_path: Path) -> None:
    """A link to a look-alike server must not be sent the token of the real one."""
    small.write(tmp_path / "gh", '#!/bin/sh\n[ "$4" = git.acme.example ] && echo of-acme\n').chmod(0o755)
    path = {"PATH": str(tmp_path)}
    assert token_for("https://github.com", {**path, "GITHUB_TOKEN": "mine"}) == "mine"
    assert token_for("https://github.com.evil.example", {**path, "GITHUB_TOKEN": "mine"}) is None
    assert token_for("https://git.acme.example", {**path, "GH_TOKEN": "mine"}) == "of-acme"
    assert token_for("https://github.com", {"PATH": str(tmp_path / "none")}) is None
