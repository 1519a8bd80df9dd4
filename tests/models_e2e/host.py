"""Starts the command again and again without importing it each time: one line of arguments, one process."""

from __future__ import annotations

import json
import os
import sys

from bot.cli import main
from eval_core.cli import report, run  # noqa: F401 - imported once, for all the processes that are forked
from eval_core.measuring import plan, session  # noqa: F401


def serve() -> None:
    """For each line of standard input, fork a process that runs the command; print its id, then how it ended."""
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.argv = ["compression-eval", *json.loads(line)]
            code = 0
            try:
                main()
            except SystemExit as exc:
                code = exc.code if isinstance(exc.code, int) else 1
            finally:
                sys.stderr.flush()
            os._exit(code)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
