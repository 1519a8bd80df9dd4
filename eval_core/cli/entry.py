"""Running a command: suggestions for typos, one message for each error, exit codes, closed pipes."""

from __future__ import annotations

import contextlib
import difflib
import errno
import io
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import click

from eval_core.base.errors import IncompleteError, UserError
from eval_core.base.removed import COMMANDS, FLAGS
from eval_core.base.screen import Inert

UNEXPECTED = 70
"""The exit code of an error that is a fault of this program (EX_SOFTWARE)."""
DEBUG = "COMPRESSION_EVAL_DEBUG"
"""Set to print the traceback of such an error instead of keeping it in a file."""

_BAD_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM)
"""What only a path can be that somebody gave us: our own are short, have no loops, and are open to us."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""What a disk can be, or whatever else the output goes to."""

CONFIGURED = "the configured one"
"""What help shows for the default that `configured` finds."""


def configured(field: Literal["fixtures", "probes", "tasks"]) -> Path:
    """Return one of the folders that the configuration names, for commands without --config."""
    from eval_core.base.config import config_folder, load_config

    return config_folder(None) / str(getattr(load_config(None), field))


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def print_json(value: Any) -> None:
    from eval_core.base.files import pretty

    click.echo(pretty(value), nl=False)


class _OutputClosed(Exception):
    """Nobody reads our output any more; by another name than BrokenPipeError, which click makes exit code 1 of."""


@contextlib.contextmanager
def _closed_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as exc:
        if _reader_gone():
            raise _OutputClosed from None
        # click would end with 1, which is the code of a verdict.
        raise RuntimeError("a pipe that is not our output broke") from exc


class CommandGroup(click.Group):
    """A group that suggests what a mistyped command may have been, and lets a closed pipe be one."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the words; this is where help is printed."""
        with _closed_output():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _closed_output():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a name."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            if (command := f"{ctx.info_name} {name}") in COMMANDS:
                ctx.fail(f"{command} was removed. {COMMANDS[command]}")
            near = difflib.get_close_matches(name, known, n=2)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(known)}."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)


def run_command(root: CommandGroup) -> None:
    """Run a command; what goes wrong is one message and an exit code of its own, never a traceback.

    1 is left to what a command was asked to tell (a verdict, findings). Nothing that fails may end with it.
    """
    _check_streams()
    signal.signal(signal.SIGTERM, _like_interrupt)
    try:
        # What others wrote may be in any message. A file gets it as it is: the output may be data.
        out = Inert(sys.stdout) if sys.stdout.isatty() else sys.stdout
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(Inert(sys.stderr)):
            sys.exit(_run(root))
    except _OutputClosed:
        _end_like_a_filter()


def _check_streams() -> None:
    """Refuse to work where nobody could read the results; what else is closed reads and writes nothing.

    A closed descriptor would be given to the next file that is opened, and what is printed would end up in it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    closed = sys.stdout is None
    sys.stdin, sys.stdout = sys.stdin or os.fdopen(0, "r"), sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # half a character can be named, but not written
    if closed:
        _say("Error: standard output is closed; send it to a file, or to /dev/null")
        sys.exit(UserError.exit_code)


def _say(text: str) -> None:
    """Print a message; one that nobody can read changes no exit code."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def _like_interrupt(number: int, frame: FrameType | None) -> None:
    """End as on Ctrl-C, with a word, where a command has no better way to end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt  # as in what a script starts in the background
    signal.raise_signal(signal.SIGINT)


def _run(root: CommandGroup) -> int:
    """Run a command to its exit code; all that it printed is out before it ends."""
    try:
        try:
            return _code_of(root)
        finally:
            with _closed_output():
                sys.stdout.flush()  # here, and not when the interpreter ends and only a message can be printed
    except OSError as exc:
        return _environment_error(exc)


def _code_of(root: CommandGroup) -> int:
    try:
        root(standalone_mode=False)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort:
        _say("Stopped.")
        return 130
    except click.ClickException as exc:
        if isinstance(exc, click.NoSuchOption) and exc.option_name in FLAGS:
            exc = click.UsageError(f"{exc.option_name} was removed. {FLAGS[exc.option_name]}", exc.ctx)
        with contextlib.suppress(OSError):
            exc.show()
        return UserError.exit_code  # click uses 1 for some of them, and 1 is the code of a verdict
    except (UserError, IncompleteError) as exc:
        _say(f"Error: {exc}")
        return exc.exit_code
    except (_OutputClosed, OSError):
        raise
    except MemoryError:
        _say("Error: there is not enough memory for this; name fewer or smaller files, or use a larger machine")
        return UserError.exit_code
    except Exception as exc:
        return _unexpected(exc)
    return 0


def _environment_error(exc: OSError) -> int:
    """Tell what the machine refuses from what this program did wrong."""
    name = f"{str(exc.filename)[:200]}: " if exc.filename else ""
    if exc.errno in _FULL:
        # What is buffered cannot be written either, and the interpreter would try again at its end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _say(
            f"Error: {name}{exc.strerror}: a file, or the output, cannot be written. Make room and repeat the command; "
            "a run goes on with --resume"
        )
        return UserError.exit_code
    if name and exc.errno in _BAD_PATH:
        _say(f"Error: {name}{exc.strerror}; name another path")
        return UserError.exit_code
    return _unexpected(exc)


def _unexpected(exc: Exception) -> int:
    _say(unexpected(exc, os.environ))
    return UNEXPECTED


def _without_words(exc: BaseException) -> list[str]:
    """Return a traceback with the types of the errors alone."""
    earlier = exc.__cause__ or exc.__context__
    before = [*_without_words(earlier), "\n"] if earlier is not None else []
    return [*before, *traceback.format_tb(exc.__traceback__), f"{type(exc).__name__}\n"]


def unexpected(exc: Exception, environ: Mapping[str, str]) -> str:
    """Keep the traceback of an error of ours in a file, and return the sentence that says where."""
    from eval_core.base.sealing import holds_a_key
    from eval_core.models.settings import environment_secrets, redact

    # An error may quote what it failed on, and beside the key of private probes that may be one of them.
    private = holds_a_key(environ)
    parts = _without_words(exc) if private else traceback.format_exception(exc)
    trace = redact("".join(parts), environment_secrets(environ))
    if environ.get(DEBUG):
        return trace
    words = "" if private else f": {' '.join(str(exc).split())[:200]}"
    said = redact(f"{type(exc).__name__}{words}", environment_secrets(environ))
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
        f"Error: this is a bug in compression-eval: {said}. "
        f"Everything paid for so far is kept; {kept}. Please report it"
    )


def _reader_gone() -> bool:
    """Tell whether it is our own output that nobody reads; a pipe of something else that breaks is a bug."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            poll = select.poll()
            poll.register(stream.fileno(), 0)
            if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
                return True
    return False


def _end_like_a_filter() -> None:
    """Die of SIGPIPE, as `cat` does when `head` has had enough; only now, since a socket may break while we work."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
