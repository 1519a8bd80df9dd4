"""The doctor says which context file was picked."""

import pytest

from lantern.cli import main
from lantern.doctor import report


def lines(folder):
    return [line for line in report({}, folder) if "context" in line]


@pytest.mark.parametrize("name", [".lantern.md", "AGENTS.md"])
def test_the_file_is_named(tmp_path, name):
    (tmp_path / name).write_text("be kind")
    (tmp_path / ".glowrules").write_text("old")
    assert len(lines(tmp_path)) == 1
    assert name in lines(tmp_path)[0]


def test_none_is_said(tmp_path):
    assert [line.split() for line in lines(tmp_path)] == [["context", "none"]]


def test_the_command_passes_the_folder_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "CONTEXT.md").write_text("about us")
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    assert "CONTEXT.md" in capsys.readouterr().out
