"""`compression-eval reproduce`: a pull request measured on this machine as the bot measures it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.base.errors import UserError

if TYPE_CHECKING:
    from bot.github.repository import GitHub
    from bot.pull_request.ticket import Ticket
    from eval_core.base.config import Config

_URL = re.compile(r"(https?://[^/\s@]+)/([^/\s]+/[^/\s]+)/pull/([0-9]{1,7})(?:[/?#].*)?")
_SHORT = re.compile(r"(?:([^/\s#]+/[^/\s#]+))?#?([0-9]{1,7})")
_GITHUB = "https://github.com"


@dataclass(frozen=True)
class PullAddress:
    """Which pull request of which repository, on which server."""

    server: str
    repo: str
    number: int

    @property
    def api(self) -> str:
        """The address of the server's API."""
        return "https://api.github.com" if self.server == _GITHUB else f"{self.server}/api/v3"


def pull_address(given: str, here: Path) -> PullAddress:
    """Read a pull request's URL, OWNER/REPO#NUMBER, or the number alone in a checkout of the repository."""
    from bot.github.checkout import own_repository

    if (url := _URL.fullmatch(given)) is not None:
        return PullAddress(url[1].lower(), url[2], int(url[3]))
    if (short := _SHORT.fullmatch(given)) is not None:
        repo = short[1] or own_repository(here)
        if repo is None:
            raise UserError(f"{given}: origin of {here.resolve()} is not on GitHub; give the URL of the pull request")
        return PullAddress(_GITHUB, repo, int(short[2]))
    raise UserError(f"{given!r}: give the URL of a pull request, OWNER/REPO#NUMBER, or its number")


def token_for(server: str, environ: Mapping[str, str]) -> str | None:
    """Return a token that is meant for this server, and for no other; None asks as nobody."""
    host = server.partition("://")[2]
    given = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN")
    if given and (server == _GITHUB or environ.get("GITHUB_API_URL")):
        return given
    try:
        done = subprocess.run(
            ["gh", "auth", "token", "--hostname", host], capture_output=True, text=True, check=False, env=dict(environ)
        )
    except OSError:
        return None
    return done.stdout.strip() or None


def _ticket(github: GitHub, at: PullAddress, sha: str | None, base: str | None, asked: dict[str, object]) -> Ticket:
    """Pin what is measured, as the gate does."""
    from bot.pull_request.ticket import Ticket
    from eval_core.base.files import parse

    pull = github.pull(at.number)
    of = {
        "repo": at.repo,
        "mode": "evaluate",
        "pr": at.number,
        "sha": sha or pull.head_sha,
        "base_sha": base or github.commit(pull.base_ref).sha,
        "sender": "reproduce",
        "run_id": 1,
        "run_attempt": 1,
        "run_url": pull.html_url,
        "ignored_files": [],
        "ignored_more": 0,
        "warnings": [],
    }
    ticket = parse(Ticket, {**of, **asked}, "options")
    since = github.compare(ticket.sha, ticket.base_sha)
    return ticket.against(pull.base_ref, since.merge_base, since.ahead, [])


def _fetched(github: GitHub, ticket: Ticket, work: Path) -> Path:
    """Fetch head, branch point and tip of the base branch, each into a folder of its own; return the last one."""
    from bot.steps.fetch import BASE, SUBJECT, fetch_tree

    trees = {SUBJECT: ticket.sha, BASE: ticket.compared_sha, "root": ticket.base_sha}
    for name, sha in trees.items():
        if not (work / name).exists():
            click.echo(f"Fetching {sha[:12]} into {work / name}", err=True)
            part = work / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)  # of a fetch that was interrupted
            fetch_tree(github, sha, part)
            part.rename(work / name)
    return work / "root"


def _agreed(config: Config, *, yes: bool) -> None:
    """Say what runs outside of the sandbox and what costs money, and ask."""
    from eval_core.measuring.options import RunOptions

    paid = RunOptions(config).models is not None
    if config.setup:
        click.echo("Setup commands of the base branch, which run with your permissions, outside of the sandbox:")
        click.echo("\n".join(f"  {command}" for command in config.setup))
    if paid:
        click.echo(f"Models are called with your keys, for at most ${config.budget_usd:.2f} (budget_usd of the base).")
    if (config.setup or paid) and not yes:
        click.confirm("Go on?", abort=True)


@click.command()
@click.argument("pull")
@click.option("--sha", help="Commit of the pull request.  [default: its head]")
@click.option("--base", help="Commit of the base branch, for fixtures and configuration.  [default: its tip]")
@click.option(
    "--runs", type=click.IntRange(1, 50), help="Graded runs of each fixture.  [default: the configured number]"
)
@click.option("--fixtures", "names", help="Comma-separated fixture names; default: all.")
@click.option("--look", type=click.IntRange(1, 3), default=1, show_default=True, help="Which look at the commit it is.")
@click.option(
    "--work", type=click.Path(path_type=Path), help="Folder for trees and results.  [default: named after PULL]"
)
@click.option("--yes", is_flag=True, help="Do not ask before setup commands run or models are called.")
def reproduce(
    pull: str,
    sha: str | None,
    base: str | None,
    runs: int | None,
    names: str | None,
    look: int,
    work: Path | None,
    yes: bool,
) -> None:
    """Measure a pull request on this machine as the bot does, and print its headline. Public ones need no token.

    Head, branch point and base are fetched into folders of their own; your checkout is left alone. The compressors
    always run in the sandbox. The setup commands run outside of it: the base branch's, never the pull request's.

    \b
    Examples:
      compression-eval reproduce https://github.com/my-org/my-agent/pull/7
      compression-eval reproduce 7 --fixtures debug-session-feishu-id-model
    """
    from bot.github.repository import GitHub
    from bot.steps.artifact import read_result
    from bot.steps.evaluate import evaluate, set_up
    from eval_core.base.config import load_config
    from eval_core.cli.report import print_data
    from eval_core.domain.record import RunRecord

    at = pull_address(pull, Path())
    api = os.environ.get("GITHUB_API_URL") or at.api
    github = GitHub(at.repo, token_for(at.server, os.environ), api_url=api)
    given = [name.strip() for name in names.split(",")] if names else []
    ticket = _ticket(github, at, sha, base, {"runs": runs, "fixtures": given, "looks": look})
    work = work or Path(f"compression-eval-{ticket.label}")
    root = _fetched(github, ticket, work).resolve()
    config = load_config(None, root)
    if config.private_probes is not None and config.private_probes.key_env not in os.environ:
        click.echo("Private probes are left out: their key is not here. The scores may differ a little.", err=True)
        config = config.model_copy(update={"private_probes": None})
    _agreed(config, yes=yes)
    set_up(config, root)
    total = done = 0

    def started(cells: int) -> None:
        nonlocal total
        total = cells

    def finished(record: RunRecord) -> None:
        nonlocal done
        done += 1
        click.echo(f"{done} of {total}: {record.fixture}, run {record.run}: {record.outcome}", err=True)

    _, folder = evaluate(ticket, config, root=root, work=work.resolve(), on_start=started, on_record=finished)
    print_data(read_result(ticket, config, root, folder.path), "text", where=folder.path / "report.html")
