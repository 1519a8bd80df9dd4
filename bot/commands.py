"""`compression-eval bot`: the steps of the workflow, each a single call."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.base.errors import IncompleteError, UserError, bug_message
from eval_core.base.markdown_text import plain
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.cli.entry import CommandGroup

if TYPE_CHECKING:
    from bot.pull_request.ticket import Ticket
    from eval_core.comparing.compare import ReportData
    from eval_core.domain.shard import Shard
    from eval_core.storage.results import ResultsFolder

_DEFAULT_WORK = ".compression-eval"
_WORK = click.option(
    "--work",
    type=click.Path(path_type=Path),
    default=Path(_DEFAULT_WORK),
    show_default=True,
    help="Folder for the fetched tree and the results.",
)


class _Steps(CommandGroup):
    """Shows what went wrong on the run's page as well."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a step."""
        try:
            return super().invoke(ctx)
        except (UserError, IncompleteError) as exc:
            _summary(f"**{ctx.invoked_subcommand}:** {plain(str(exc), 2_000)}")
            raise
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except Exception as exc:
            _summary(f"**{ctx.invoked_subcommand}:** {bug_message(exc)}")
            raise


@click.group(cls=_Steps)
def bot() -> None:
    """The steps of the pull-request workflow; they read GitHub's environment variables.

    \b
    gate      decides, consumes the label, posts "evaluating"     GITHUB_TOKEN
    fetch     the pull request's tree by SHA, as data             GITHUB_TOKEN, TICKET
    setup     the configured setup commands, without any secret   TICKET
    evaluate  measures, sandboxed                                 model key, TICKET, SHARD
    merge     joins the shards of an evaluation                   TICKET
    begin     says that a reviewer approved and it has started    GITHUB_TOKEN, TICKET
    publish   comment and check run                               GITHUB_TOKEN, TICKET
    baseline  proposes the measured baseline by pull request      GITHUB_TOKEN, TICKET
    status    marks what happened to a pull request               GITHUB_TOKEN
    """


def _environment(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise UserError(f"{name}: not set; these commands are run by the workflow that `compression-eval init` writes")
    return value


def _ticket() -> Ticket:
    from bot.pull_request.ticket import read_ticket

    return read_ticket(_environment("TICKET"))


def _output(**values: str) -> None:
    """Pass values to later steps and jobs."""
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as stream:
            for name, value in values.items():
                stream.write(f"{name}={value}\n")


def _summary(text: str) -> None:
    """Show a text on the run's page."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")


def _event(path: Path) -> object:
    """Read what GitHub says has happened."""
    try:
        value: object = parse_json(path.read_bytes())
    except (OSError, BadJson) as exc:
        raise UserError(f"GITHUB_EVENT_PATH: {path} cannot be read as JSON ({exc}); start the workflow again") from None
    return value


@contextmanager
def _measuring(work: Path) -> Iterator[Ticket]:
    """Give the ticket to a step of the evaluate job; why it fails is left for the comment."""
    from bot.pull_request.ticket import keep_error

    ticket, shard = _ticket(), _shard()
    try:
        yield ticket
    except (UserError, IncompleteError) as exc:
        keep_error(work / "results" / (shard.label(ticket.label) if shard else ticket.label), str(exc))
        raise
    except Exception as exc:
        keep_error(work / "results" / ticket.label, bug_message(exc))
        raise


def _shard() -> Shard | None:
    """Return which shard this job is; None where one job does all."""
    from eval_core.domain.shard import parse_shard

    text = os.environ.get("SHARD", "")
    shard = parse_shard(text, "SHARD") if text else None
    return shard if shard is not None and shard.of > 1 else None


@bot.command()
def gate() -> None:
    """Decide whether this event may spend money; consume the label and tell the pull request.

    \b
    Example (in a workflow):
      compression-eval bot gate
    """
    from bot.github.repository import GitHub
    from bot.steps.base_config import read_base_config
    from bot.steps.estimate import describe
    from bot.steps.gate import Admission, admit

    decision = admit(
        GitHub.from_environment(os.environ),
        _environment("GITHUB_EVENT_NAME"),
        _event(Path(_environment("GITHUB_EVENT_PATH"))),
        os.environ,
        read_config=read_base_config,
        describe=describe,
        own_token=os.environ.get("OWN_TOKEN") == "true",
    )
    if isinstance(decision, Admission):
        ticket = decision.ticket
        _output(
            allowed="true",
            mode=ticket.mode,
            pr=str(ticket.pr or ""),
            base_sha=ticket.base_sha,
            artifact=ticket.artifact,
            results=f"{_DEFAULT_WORK}/results/{ticket.label}",
            ticket=ticket.line,
            awaits="true" if decision.awaits else "false",
            shards=ticket.matrix,
            sharded="true" if ticket.parts else "false",
        )
        click.echo(f"Allowed: {ticket.mode} {ticket.sha} with everything else from {ticket.base_sha}.")
        return
    _output(allowed="false")
    if decision.post_error:
        # The label is gone and nobody was answered: a green job would be silence.
        raise IncompleteError(f"not evaluated: {decision.why} This could not be posted: {decision.post_error}")
    _summary(f"Not evaluated: {decision.why}")
    click.echo(f"Not evaluated: {decision.why}")


@bot.command()
@_WORK
def fetch(work: Path) -> None:
    """Fetch the tree of the evaluated commit, and what an earlier run of it has measured."""
    from bot.github.repository import GitHub
    from bot.steps.fetch import fetch as download

    with _measuring(work) as ticket:
        download(GitHub.from_environment(os.environ), ticket, work, _shard())
    click.echo(f"Fetched {ticket.sha}.")


@bot.command()
@_WORK
def setup(work: Path) -> None:
    """Run the setup commands of the base branch's configuration."""
    from eval_core.base.config import load_config

    with _measuring(work):
        config = load_config(None, Path())
        if config.setup:
            from bot.steps.evaluate import set_up

            set_up(config, Path())


@bot.command()
@_WORK
@click.option(
    "--deadline",
    type=click.IntRange(min=1),
    help="Minutes after the job's start at which to stop and keep what was measured. Set it below timeout-minutes.",
)
def evaluate(work: Path, deadline: int | None) -> None:
    """Measure the evaluated commit; the result goes into the work folder, even if it is incomplete.

    \b
    Example (in a workflow, with TICKET from the gate):
      compression-eval bot evaluate --deadline 80
    """
    from bot.steps.evaluate import evaluate as measure
    from bot.steps.evaluate import minutes_left
    from eval_core.base.config import load_config
    from eval_core.cli.progress import Progress
    from eval_core.domain.record import RunRecord

    progress = Progress(0)

    def started(cells: int) -> None:
        nonlocal progress
        progress = Progress(cells)
        click.echo(f"{cells} fixture-runs to measure.")

    def finished(record: RunRecord) -> None:
        progress.record(record)
        left = f", {progress.left}" if progress.left else ""
        click.echo(f"{progress.done} of {progress.total}: {record.fixture}, run {record.run}: {record.outcome}{left}")

    with _measuring(work) as ticket:
        data, folder = measure(
            ticket,
            load_config(None, Path()),
            root=Path(),
            work=work,
            on_start=started,
            on_record=finished,
            deadline_minutes=minutes_left(deadline, os.environ, time.time()),
            shard=_shard(),
        )
    _tell_measured(data, folder)


def _tell_measured(data: ReportData, folder: ResultsFolder) -> None:
    """Show a result on the run's page, unless it is only a part, and say where it is."""
    from eval_core.reporting.markdown import render_markdown
    from eval_core.reporting.view import make_view

    if _shard() is None:
        _summary(render_markdown(make_view(data)))
    click.echo(f"Results in {folder.path}.")
    if data.candidate.stopped:
        click.echo(f"Incomplete: {data.candidate.stopped}.", err=True)


@bot.command()
@_WORK
def merge(work: Path) -> None:
    """Join the shards of an evaluation, from WORK/shards, into one result. No key is needed.

    \b
    Example (in a workflow, with TICKET from the gate):
      compression-eval bot merge
    """
    from bot.steps.evaluate import merge as join
    from eval_core.base.config import load_config

    with _measuring(work) as ticket:
        data, folder = join(ticket, load_config(None, Path()), root=Path(), work=work)
    _tell_measured(data, folder)


@bot.command()
def status() -> None:
    """Mark in the comment what happened to a pull request, and answer a required check where nothing is measured.

    \b
    Example (in the workflow that `compression-eval init --status` writes):
      compression-eval bot status
    """
    from bot.github.repository import GitHub
    from bot.steps.status import mark

    name, payload = _environment("GITHUB_EVENT_NAME"), _event(Path(_environment("GITHUB_EVENT_PATH")))
    click.echo(mark(GitHub.from_environment(os.environ), name, payload, os.environ))


@bot.command()
def begin() -> None:
    """Say in the comment and on the commit that an evaluation that waited for a reviewer has begun.

    \b
    Example (in a workflow, with TICKET from the gate):
      compression-eval bot begin
    """
    from bot.github.repository import GitHub
    from bot.steps.publish import begin as tell

    attempt = os.environ.get("GITHUB_RUN_ATTEMPT", "")
    for trouble in tell(GitHub.from_environment(os.environ), _ticket(), int(attempt) if attempt.isdecimal() else 1):
        click.echo(f"::warning::{trouble}")


@bot.command()
@_WORK
def publish(work: Path) -> None:
    """Check what the evaluate job left and post it to the comment and the check run.

    EVALUATE_RESULT holds that job's result: success, failure, cancelled or skipped. REPORT_URL is the address of the
    uploaded report, if there is one.
    """
    from bot.github.repository import GitHub
    from bot.steps.publish import publish as post
    from bot.steps.publish import render_without_token
    from eval_core.base.config import load_config

    ticket = _ticket()
    result = os.environ.get("EVALUATE_RESULT", "success")
    posted = post(
        GitHub.from_environment(os.environ),
        ticket,
        load_config(None, Path()),
        root=Path(),
        folder=work,
        result=result,
        write=render_without_token,
        report_url=os.environ.get("REPORT_URL"),
    )
    _summary(posted.report)
    click.echo(posted.title)
    if posted.troubles:
        raise IncompleteError(f"not everything could be posted: {'; '.join(posted.troubles)}")


@bot.command()
@_WORK
@click.option("--name", help="Name of the baseline.  [default: offline, or models]")
def baseline(work: Path, name: str | None) -> None:
    """Propose the measured baseline by pull request."""
    from bot.github.repository import GitHub
    from bot.steps.baseline import propose
    from eval_core.base.config import load_config

    proposed = propose(
        GitHub.from_environment(os.environ),
        _ticket(),
        load_config(None, Path()),
        root=Path(),
        folder=work,
        name=name,
        own_token=os.environ.get("OWN_TOKEN") == "true",
    )
    _summary(proposed.message)
    click.echo(proposed.message)
