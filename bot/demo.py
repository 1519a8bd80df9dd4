"""`compression-eval demo`: a pull request that drops a section of the summary, and the comment it gets."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

__all__ = ["demo", "demo_pull", "demo_tree"]

REPO = "demo/agent"
_SECTION = '        Section("blockers"'


def demo_tree() -> dict[str, bytes]:
    """Return a repository that has adopted the bot: an agent's compressor, fixtures, probes and a baseline."""
    from bot.init import adoption
    from bot.journey import package_source, shipped, write_tree
    from eval_core.config import CONFIG_FILE

    root = shipped()
    tree = package_source(root / "eval_core" / "compressors", "agent")
    for folder in ("fixtures", "probes", "baselines"):
        tree |= {f"{folder}/{path.name}": path.read_bytes() for path in sorted((root / folder).glob("*.json*"))}
    with tempfile.TemporaryDirectory() as name:
        write_tree(tree, Path(name))
        plan = adoption(Path(name), f"demo/compression-eval@{'0' * 40}", None)
    written = {path: text.encode() for path, text in plan.files.items() if text}
    # Offline nothing varies from run to run: as many compressions as graded runs are enough, and much quicker.
    written[CONFIG_FILE] += b"compress_runs: 3\n"
    return {**tree, **written}


def demo_pull(tree: dict[str, bytes]) -> dict[str, bytes]:
    """Return the tree of a pull request that drops "Blockers" from the summary's template."""
    path = "agent/context_compressor.py"
    lines = tree[path].decode().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(_SECTION)]
    assert len(kept) == len(lines) - 1, "the demo's pull request changes exactly one line"
    return {**tree, path: "".join(kept).encode()}


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Where the comment, the rendered page and the report are written.",
)
def demo(output: Path) -> None:
    """A labelled pull request on a GitHub on this machine becomes a comment. No account, no key, no network.

    \b
    Example:
      compression-eval demo
    """
    from bot.journey import Journey, label_event, write_tree
    from bot.loopback.server import LoopbackGitHub
    from bot.page import comment_page

    tree = demo_tree()
    output.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="compression-eval-demo-") as name,
        LoopbackGitHub(REPO, files=tree) as github,
    ):
        checkout, work = Path(name) / "base", Path(name) / "work"
        write_tree(tree, checkout)
        github.user("maintainer", "write")
        github.workflow("compression-eval.yml")
        pull = github.open_pull(demo_pull(tree), title="Shorten the summary: drop the list of blockers")
        github.label(pull.number, "eval-compression")
        click.echo(
            f"Pull request #{pull.number} drops one line of the summary's template; the label is added.", err=True
        )
        journey = Journey(github, checkout, work, say=lambda line: click.echo(f"  {line}", err=True))
        journey.play(label_event(REPO, pull, "maintainer"))
        body = github.comments(pull.number)[-1].body
        for report in work.glob("results/*/report.html"):
            shutil.copy(report, output / "report.html")
    (output / "comment.md").write_text(body, encoding="utf-8")
    (output / "comment.html").write_text(comment_page(body, pull.title), encoding="utf-8")
    click.echo(_readable(body))
    click.echo(
        f"\nThe comment as a page: {output / 'comment.html'}\nThe full report: {output / 'report.html'}", err=True
    )


def _readable(body: str) -> str:
    """Return the comment without the markers that only the bot reads."""
    return "\n".join(line for line in body.splitlines() if not line.startswith("<!--")).strip()
