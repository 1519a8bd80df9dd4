"""`compression-eval demo`: a pull request that drops a section of the summary, the comment it gets, and its preview."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_core.domain.measurement import Measurement
    from eval_core.domain.rollout import RolloutRecord

# A comment as a page: near enough to how GitHub shows it to be looked at.

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d1d9e0, #3d444d); --soft: light-dark(#f6f8fa, #151b23);
  --text: light-dark(#1f2328, #f0f6fc); --page: light-dark(#fff, #0d1117); --link: light-dark(#0969da, #4493f8); }
body { margin: 2rem auto; max-width: 58rem; padding: 0 1rem; background: var(--page); color: var(--text);
  font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
article { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
header { background: var(--soft); border-bottom: 1px solid var(--line); padding: .5rem 1rem; }
main { padding: 1rem; overflow-wrap: break-word; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 0 0 1rem; }
th, td { border: 1px solid var(--line); padding: 6px 13px; }
tr:nth-child(2n) { background: var(--soft); }
code { background: var(--soft); border-radius: 6px; padding: .2em .4em; font-size: 85%; }
pre { background: var(--soft); border-radius: 6px; padding: 1rem; overflow: auto; } pre code { padding: 0; }
blockquote { border-left: .25em solid var(--line); margin: 0 0 1rem; padding: 0 1em; }
details { margin: 0 0 .6rem; } summary { cursor: pointer; } a { color: var(--link); }
"""


def comment_page(body: str, title: str) -> str:
    """Render a comment's markdown. The body is ours: what came from others is neutral in it already."""
    from markdown_it import MarkdownIt

    text = MarkdownIt("commonmark").enable("table").render(body)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><article><header><b>github-actions</b> bot commented</header>"
        f"<main>{text}</main></article></html>\n"
    )


# `compression-eval demo`: a pull request that drops a section of the summary, and the comment it gets.

REPO = "demo/agent"
_TITLE = "Shorten the summary: drop the list of blockers"
_SECTION = '        Section("blockers"'


def demo_tree() -> dict[str, bytes]:
    """Return a repository that has adopted the bot: an agent's compressor, fixtures, probes and a baseline."""
    from bot.demo.journey import package_source, write_tree
    from bot.init import adoption
    from eval_core import compressors
    from eval_core.base.config import CONFIG_FILE
    from eval_core.base.shipped import shipped
    from eval_core.storage.baselines import dump_baseline, load_baseline

    tree = package_source(Path(compressors.__file__).parent, "agent")
    for folder in ("fixtures", "probes", "baselines"):
        tree |= {f"{folder}/{path.name}": path.read_bytes() for path in sorted(shipped(folder).glob("*.json*"))}
    with tempfile.TemporaryDirectory() as name:
        write_tree(tree, Path(name))
        plan = adoption(Path(name), f"demo/compression-eval@{'0' * 40}", None)
    written = {path: text.encode() for path, text in plan.files.items() if text}
    # The shipped baseline is of the same code under its own name; in this repository the code has another one.
    measurement, noise = load_baseline(shipped("baselines/offline.json"))
    provenance = measurement.provenance.model_copy(update={"target": plan.target, "watched": None})
    measurement = measurement.model_copy(update={"provenance": provenance})
    tree["baselines/offline.json"] = dump_baseline(measurement, noise).encode()
    # Offline nothing varies from run to run: as many compressions as graded runs are enough, and much quicker.
    written[CONFIG_FILE] += b"compress_runs: 3\nbot: {suite: quick}\n"
    return {**tree, **written}


def demo_pull(tree: dict[str, bytes]) -> dict[str, bytes]:
    """Return the tree of a pull request that drops "Blockers" from the summary's template."""
    path = "agent/context_compressor.py"
    lines = tree[path].decode().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(_SECTION)]
    assert len(kept) == len(lines) - 1, "the demo's pull request changes exactly one line"
    return {**tree, path: "".join(kept).encode()}


def _need_sandbox() -> None:
    from eval_core.base.errors import UserError
    from eval_core.sandbox.isolation import detect

    try:
        detect()
    except UserError as exc:
        raise UserError(
            f"{exc}. The demo's compressor is part of this program, so `compression-eval demo --sandbox none` is safe"
        ) from None


def play_tasks(measured: Measurement) -> None:
    """Do the shipped tasks from the pull request's states, and from those of the code that it changes."""
    from eval_core.base.messages import Message
    from eval_core.base.shipped import shipped
    from eval_core.domain.case import load_suite
    from eval_core.reporting.terminal import console, print_table
    from eval_core.sandbox.isolation import detect
    from eval_core.sandbox.targets import BuiltinSubject
    from eval_core.tasks.check import from_states
    from eval_core.tasks.task import find_tasks

    async def play() -> dict[str, list[RolloutRecord]]:
        cases = load_suite(shipped("fixtures"), shipped("probes"), sorted(measured.fixtures))
        ledgers = {case.fixture.name: case.ledger for case in cases}
        found = find_tasks(shipped("tasks"), {case.fixture.name: case.fixture for case in cases}, ledgers)
        subject, base = BuiltinSubject("anchored"), dict[str, Sequence[Message]]()
        for fixture in {task.fixture.name: task.fixture for task in found}.values():
            base[fixture.name] = (await subject.compress(fixture, run=0, seed=0)).state
        ours: dict[str, Sequence[Message]] = {name: runs[0].messages for name, runs in measured.fixtures.items()}
        states = {"base": base, "pull request": ours}
        return await from_states(found, detect(), states, lambda text: click.echo(f"  {text}", err=True))

    rollouts = asyncio.run(play())
    rows = [(pair[0].task, *map(_outcome, pair)) for pair in zip(*rollouts.values(), strict=True)]
    print_table(console(), "Tasks, by a script that knows what a state holds: no verdict", ("task", *rollouts), rows)


def _outcome(rollout: RolloutRecord) -> str:
    against = rollout.failed("rule", "repeat", "redone")
    job = "finished" if rollout.finished else "not finished"
    return f"{job}, against {', '.join(against)}" if against else job


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Where the comment, the rendered page and the report are written.",
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="none: run the demo's compressor, which is part of this program, as it is.",
)
@click.option("--tasks", is_flag=True, help="Let a script finish the tasks with what each side's states still hold.")
def demo(output: Path, sandbox: str, tasks: bool) -> None:
    """Play a labelled pull request on a local GitHub, up to the comment. No account, no key, no network.

    \b
    Examples:
      compression-eval demo
      compression-eval demo --sandbox none   # where bubblewrap cannot be installed
      compression-eval demo --tasks
    """
    from bot.demo.demo_github import DemoGitHub
    from bot.demo.journey import Journey, label_event, write_tree
    from eval_core.base.config import CONFIG_FILE, load_config
    from eval_core.base.errors import UserError
    from eval_core.base.files import write_atomic
    from eval_core.cli.report import print_data
    from eval_core.measuring.compare_with_base import compare, find_base
    from eval_core.storage.results import read_runs

    if sandbox == "auto":
        _need_sandbox()
    tree = demo_tree()
    # Before the journey, not after it: a place that cannot be written to is known at once.
    write_atomic(output / "comment.md", "")
    with (
        tempfile.TemporaryDirectory(prefix="compression-eval-demo-") as name,
        DemoGitHub(REPO, tree, demo_pull(tree), title=_TITLE, label="eval-compression") as github,
    ):
        checkout, work = Path(name) / "base", Path(name) / "work"
        write_tree(tree, checkout)
        click.echo("Pull request #1 drops one line of the summary's template; the label is added.", err=True)
        journey = Journey(
            github, checkout, work, say=lambda line: click.echo(f"  {line}", err=True), sandboxed=sandbox == "auto"
        )
        journey.play(label_event(REPO, github, "maintainer"))
        body = github.comments[-1]["body"]
        report = next(work.glob("results/*/report.html"), None)
        if report is None:
            raise UserError("the demo could not be measured; what went wrong is printed above")
        write_atomic(output / "report.html", report.read_text(encoding="utf-8"))
        measured = read_runs(report.parent)
        base = find_base(measured, load_config(checkout / CONFIG_FILE), checkout, folder=report.parent)
        data = compare(base, measured, [])
    write_atomic(output / "comment.md", body)
    write_atomic(output / "comment.html", comment_page(body, _TITLE))
    print_data(data, "text", where=output / "report.html", details=None)
    if tasks:
        play_tasks(data.candidate)
    click.echo(f"Comment: {output / 'comment.html'}")
