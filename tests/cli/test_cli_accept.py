"""An intended removal is accepted with what follows from it; the next run is not red for it, and a further loss is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import small

from bot.demo.journey import write_tree
from bot.demo.play import demo_pull, demo_tree
from eval_core.base.config import CONFIG_FILE, load_config

SUITE = "constraints-and-reversals,debug-session-feishu-id-model"
RUN = ("run", "--quiet", "--runs", "3", "--fixtures", SUITE, "--sandbox", "none", "--fail-on", "regressed")


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's pull request, checked out."""
    write_tree(demo_pull(demo_tree()), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _drop(demo: Path, section: str) -> None:
    path = demo / "agent" / "context_compressor.py"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    small.write(path, "".join(line for line in lines if not line.startswith(f'        Section("{section}"')))


def test_the_demos_removal_is_accepted_and_the_next_one_is_not(demo: Path, cli: small.Cli) -> None:
    before = (demo / CONFIG_FILE).read_text(encoding="utf-8") + "accept:  # ours\n  sections: [long gone]\n"
    small.write(demo / CONFIG_FILE, before)
    ran = cli(*RUN)
    assert (ran.code, ran.out[:12]) == (1, "▼ Regressed:")
    assert "compression-eval accept" in ran.out

    done = cli("accept", "--yes")
    assert done.code == 0, done.err
    accept = load_config(demo / CONFIG_FILE).accept
    assert accept.sections == ["long gone", "blockers"]
    assert accept.facts
    text = (demo / CONFIG_FILE).read_text(encoding="utf-8")
    assert all(line in text.splitlines() for line in before.splitlines() if "sections" not in line)
    assert Path(done.out.rstrip().rpartition("cp ")[2].split()[0]).read_text(encoding="utf-8") == before

    again = cli(*RUN)
    assert again.code == 0, again.out
    assert again.out[:1] not in "▼✖◆"
    assert "Accepted in the configuration" in again.out
    assert "no removal to accept" in cli("accept", "--yes").err

    _drop(demo, "decisions_made")
    assert cli(*RUN).code == 1


def test_without_yes_nothing_is_written_unless_it_is_confirmed(
    demo: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (demo / CONFIG_FILE).read_text(encoding="utf-8")
    cli(*RUN)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert cli("accept").code == 130
    assert (demo / CONFIG_FILE).read_text(encoding="utf-8") == before


def test_what_was_compared_with_nothing_has_no_removal(demo: Path, cli: small.Cli) -> None:
    cli(*RUN, "--compare-to", "none")
    ran = cli("accept", "--compare-to", "none", "--yes")
    assert ran.code == 2
    assert "nothing to accept, because it was compared with nothing" in ran.err
