"""The command `compression-eval`: commands are imported when they are called, so that help is instant."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from eval_core.base.errors import IncompleteError, UserError
from eval_core.models.settings import environment_secrets, redact

__all__ = ["DEBUG", "UNEXPECTED", "main", "root", "unexpected"]

UNEXPECTED = 70
"""The exit code of an error that is nobody's but ours (EX_SOFTWARE)."""
DEBUG = "COMPRESSION_EVAL_DEBUG"

_COMMANDS = {
    "run": ("eval_core.cli.run:run", "Compress, probe and grade; compare with the baseline."),
    "compare": ("eval_core.cli.report:compare", "Compare two results or baselines."),
    "report": ("eval_core.cli.report:report", "Render a result again, without any model call."),
    "noise": ("eval_core.cli.noise:noise", "Measure a baseline against itself."),
    "baseline": ("eval_core.cli.baseline:baseline", "Update, show or check stored baselines."),
    "fixture": ("eval_core.cli.fixture:fixture", "Import, scrub, audit or show recorded sessions."),
    "probe": ("eval_core.cli.probe:probe", "Check, propose or list probes."),
    "judge": ("eval_core.cli.judge:judge", "Calibrate the judge, or grade stored answers again."),
    "bot": ("bot.commands:bot", "The steps of the pull-request workflow."),
    "init": ("bot.init:init", "Adopt the bot in a repository."),
    "doctor": ("eval_core.cli.doctor:doctor", "Say what is configured, what is missing, how to get it."),
    "demo": ("bot.testing.demo:demo", "The whole journey on loopback: no account, no key."),
}


class _PipeClosed(Exception):
    """Whoever read our output has gone."""


class _LazyGroup(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _PipeClosed from None  # click would end with 1, which is the code of a verdict

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="compression-eval")
def root() -> None:
    """Know whether a change to a context compressor made it better or worse.

    \b
    Try it without an account or a key:
      compression-eval demo
      compression-eval run
      compression-eval run --target builtin:opaque
    """


def main() -> None:
    """Run a command; what went wrong is one message and a code of its own, never a traceback.

    1 is left to what a command was asked to tell (a verdict, findings). Nothing that fails may end with it.
    """
    try:
        root(standalone_mode=False)
    except click.exceptions.Exit as exc:
        sys.exit(exc.exit_code)
    except click.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as exc:
        exc.show()
        sys.exit(UserError.exit_code)
    except (UserError, IncompleteError) as exc:
        click.echo(f"Error: {exc}", err=True)
        sys.exit(exc.exit_code)
    except _PipeClosed:
        # As a program in a shell's pipe ends; what is left in the buffer has no reader any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except Exception as exc:
        click.echo(unexpected(exc, os.environ), err=True)
        sys.exit(UNEXPECTED)


def unexpected(exc: Exception, environ: Mapping[str, str]) -> str:
    """Keep the traceback of an error of ours in a file, and return the sentence that says where."""
    trace = redact("".join(traceback.format_exception(exc)), environment_secrets(environ))
    if environ.get(DEBUG):
        return trace
    said = redact(f"{type(exc).__name__}: {' '.join(str(exc).split())[:200]}", environment_secrets(environ))
    # In the results where there are some: nothing else of a checkout may change.
    folder = Path("results") if Path("results").is_dir() else Path(tempfile.gettempdir())
    try:
        handle, name = tempfile.mkstemp(prefix="compression-eval-error-", suffix=".txt", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(trace)
        kept = f"the traceback is in {name}"
    except OSError:
        kept = f"set {DEBUG}=1 to see the traceback"
    return (
        f"Error: this should not happen, and is a fault of compression-eval: {said}. "
        f"Everything paid for so far is kept; {kept}. Please report it"
    )
