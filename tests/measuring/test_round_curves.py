"""The command that draws the curves of compressors over rounds makes the folder that it works in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import round_curves


def test_a_folder_that_is_not_there_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def version(folder: Path, names: list[str], suite: str) -> list[str]:
        # A command in that folder, in place of the hour of sessions that are played there.
        assert "version" in await round_curves.command(folder, "--version")
        assert (names, suite) == ([], "rounds")
        return []

    monkeypatch.setattr(round_curves, "play", version)
    monkeypatch.setattr(sys, "argv", ["round_curves", str(tmp_path / "new" / "curves"), "--only", ""])
    round_curves.main()
    assert "| compressor |" in capsys.readouterr().out
