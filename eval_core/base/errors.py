"""Errors that a user can cause. Everything else is a bug of ours and ends with an exit code of its own."""

from __future__ import annotations

import traceback
from pathlib import PurePath


class UserError(Exception):
    """Bad input or configuration: one message that says what, where, the value and the remedy. Exit 2."""

    exit_code = 2


class IncompleteError(Exception):
    """The run stopped early (budget, outage) with everything paid for kept. Exit 3."""

    exit_code = 3


def bug_message(exc: Exception) -> str:
    """Say in public that this program failed: what and where, without the error's own words, which may quote a key."""
    frames = traceback.extract_tb(exc.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return (
        f"this is a bug in compression-eval: {type(exc).__name__}{where}; "
        "everything paid for so far is kept, and the job's log says more. Please report it"
    )
