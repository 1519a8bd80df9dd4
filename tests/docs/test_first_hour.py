"""The recording of the first hour is what its script records, and what an edit loses comes back with the edit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import small

PAGE = small.REPOSITORY / "docs" / "first-hour.md"


def typed(page: str) -> list[str]:
    """Return the headings, the commands and the edits of a recording."""
    return [line for line in page.splitlines() if line.startswith(("#", "$ "))]


@pytest.mark.e2e
def test_the_recorded_hour_can_be_recorded_again(tmp_path: Path) -> None:
    again = tmp_path / "again.md"
    subprocess.run([sys.executable, str(small.REPOSITORY / "scripts" / "first-hour"), str(again)], check=True)
    page = again.read_text(encoding="utf-8")
    assert typed(page) == typed(PAGE.read_text(encoding="utf-8"))
    _, lost, gained, prompt = page.split("Edit and watch")[1].split("saved in the editor")
    minus, plus = ({line[4:] for line in part.splitlines() if line.startswith(f"  {sign} ")}
                   for part, sign in ((lost, "-"), (gained, "+")))  # fmt: skip
    assert minus
    assert minus == plus
    assert "Offline, no model follows a prompt" in prompt
    assert str(tmp_path) not in page
