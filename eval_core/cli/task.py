"""`compression-eval task`: check tasks, and begin one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from eval_core.base.errors import UserError
from eval_core.base.numbers import counted
from eval_core.cli.entry import CONFIGURED, CommandGroup, configured

if TYPE_CHECKING:
    from eval_core.tasks.check import Checked
    from eval_core.tasks.task import Task

_PATH = click.Path(path_type=Path)


def _folder(name: Literal["fixtures", "probes", "tasks"]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        f"--{name}-dir", type=_PATH, default=lambda: configured(name), show_default=CONFIGURED,
        help=f"Folder of the {name}.",
    )  # fmt: skip


@click.group(cls=CommandGroup)
def task() -> None:
    """Check tasks that an agent finishes, or begin one."""


def _load(tasks: Path, fixtures: Path, probes: Path, names: tuple[str, ...]) -> list[Task]:
    from eval_core.domain.case import ledger_of
    from eval_core.domain.fixture import fixture_files, load_fixture
    from eval_core.tasks.task import find_tasks

    sessions = {(session := load_fixture(path)).name: session for path in fixture_files(fixtures)}
    ledgers = {name: ledger_of(probes, session) for name, session in sessions.items()}
    found = find_tasks(tasks, sessions, ledgers, names)
    if not found:
        raise UserError(f"{tasks}: there is no task; `compression-eval task new FIXTURE` begins one")
    return found


@task.command("check")
@click.argument("names", metavar="[FIXTURE[/NAME]]...", nargs=-1)
@_folder("tasks")
@_folder("fixtures")
@_folder("probes")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def check_command(names: tuple[str, ...], tasks_dir: Path, fixtures_dir: Path, probes_dir: Path, quiet: bool) -> None:
    """Check that tasks measure what they say, with a scripted agent and no model.

    The workspace is built twice and is the same; the solution is clean three times; nothing is done before it; somebody
    who knows nothing does not finish cleanly; and each fact, taken away alone, makes a difference. Exit 1 if not.

    \b
    Examples:
      compression-eval task check
      compression-eval task check iterative-merge-migration
    """
    from eval_core.sandbox.isolation import detect
    from eval_core.tasks.check import check_tasks

    found = _load(tasks_dir, fixtures_dir, probes_dir, names)
    said = (lambda text: None) if quiet else (lambda text: click.echo(text, err=True))
    checked = asyncio.run(check_tasks(found, detect(), said))
    _print(checked)
    problems = [f"{item.name}: {problem}" for item in checked for problem in item.problems]
    for problem in problems:
        click.echo(problem)
    click.echo(f"{counted(len(checked), 'task')}: {counted(len(problems), 'problem') if problems else 'all good'}")
    if problems:
        raise SystemExit(1)


def _print(checked: list[Checked]) -> None:
    from eval_core.reporting.terminal import console, print_table

    columns = ("agent", "clean", "rules broken", "tried or done again", "calls", "priced tokens")
    for item in checked:
        rows = [
            (
                row.who,
                "yes" if row.rollout.clean else "no",
                str(len(row.rollout.failed("rule"))),
                str(len(row.rollout.failed("repeat", "redone"))),
                str(len(row.rollout.actions)),
                f"{row.priced:,.0f}",
            )
            for row in item.rows
        ]
        print_table(console(), item.name, columns, rows)


@task.command("new")
@click.argument("fixture")
@click.option("--name", default="first", show_default=True, help="Name of the task.")
@click.option("--folder", required=True, help="The workspace, as the transcript calls it, e.g. /home/user/project.")
@click.option("--repo", type=_PATH, help="The repository that the session worked in.")
@click.option("--commit", help="Where the session began in it.")
@_folder("tasks")
@_folder("fixtures")
@_folder("probes")
def new_command(
    fixture: str,
    name: str,
    folder: str,
    repo: Path | None,
    commit: str | None,
    tasks_dir: Path,
    fixtures_dir: Path,
    probes_dir: Path,
) -> None:
    """Begin a task: a workspace, and a draft to complete.

    With a repository, its commit is bundled, and what the session wrote and patched is done again over it and compared
    with what it read. Without one, the files that the transcript shows are all there is.

    \b
    Examples:
      compression-eval task new my-session --folder /home/user/project --repo ../project --commit 4f1c2aa
      compression-eval task new my-session --folder /home/user/project --name next-step
    """
    from eval_core.domain.case import ledger_of
    from eval_core.domain.fixture import load_fixture, named_fixture
    from eval_core.tasks.author import new_task, summary

    if (repo is None) != (commit is None):
        raise UserError("--repo and --commit: give both, or neither for what the transcript shows")
    session = load_fixture(named_fixture(fixture, fixtures_dir))
    if (ledger := ledger_of(probes_dir, session)) is None:
        raise UserError(
            f"{session.name} has no ledger, and the facts that a task needs are lines of it; draft one with "
            f"`compression-eval probe propose {session.name} --ledger`"
        )
    path, found = new_task(tasks_dir, name, session, ledger, folder.rstrip("/"), repo, commit or "")
    for line in summary(found):
        click.echo(line)
    click.echo(
        f"{path}: a draft; complete task.yml, checks/ and solution.yml, then run `task check {session.name}/{name}`"
    )
