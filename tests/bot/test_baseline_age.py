"""An old baseline is said to be old: by a scheduled run that fails, and only where that is configured."""

from __future__ import annotations

from pathlib import Path

import adopted
import pytest
import small

from bot.testing.github import LoopbackGitHub
from eval_core.storage.baselines import dump_baseline, load_baseline


def _aged(tree: adopted.Tree, date: str, sha: str, folder: Path) -> adopted.Tree:
    """Return the tree with its baseline measured on another day, at another commit."""
    path = folder / "offline.json"
    path.write_bytes(tree["baselines/offline.json"])
    measurement, noise = load_baseline(path)
    provenance = measurement.provenance.model_copy(update={"date": date, "source_sha": sha})
    measurement = measurement.model_copy(update={"provenance": provenance})
    return {**tree, "baselines/offline.json": dump_baseline(measurement, noise).encode()}


@pytest.mark.parametrize(
    ("config", "date", "code"),
    [
        ("bot: {remind_after_days: 30}\n", "2020-01-02T03:04:05Z", 3),
        ("bot: {remind_after_days: 30}\n", "2999-01-02T03:04:05Z", 0),
        ("", "2020-01-02T03:04:05Z", 0),
    ],
    ids=["old", "young", "not configured"],
)
def test_a_scheduled_run_fails_for_an_old_baseline_and_says_how_old_it_is(
    cli: small.Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, date: str, code: int
) -> None:
    tree = adopted.configured(adopted.base_tree(), config)
    with LoopbackGitHub(adopted.REPO, files=tree) as github:
        measured_at = github.state.refs["heads/main"]
        for number in range(2):
            github.push("main", {**tree, "README.md": str(number).encode()})
        root = adopted.on_disk(_aged(tree, date, measured_at, tmp_path), tmp_path / "base")
        monkeypatch.chdir(root)
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", adopted.REPO)
        monkeypatch.setenv("GITHUB_SHA", github.state.refs["heads/main"])
        monkeypatch.setenv("GITHUB_TOKEN", github.job_token({"metadata": "read", "contents": "read"}))
        ran = cli("bot", "remind")
    assert ran.code == code
    if code:
        assert "baselines/offline.json is " in ran.err
        assert "days old, 2 commits behind" in ran.err
        assert "baseline mode" in (tmp_path / "summary").read_text(encoding="utf-8")
