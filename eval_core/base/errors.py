"""The errors a user can cause; everything else is a fault of ours, and ends with a code of its own."""

from __future__ import annotations

__all__ = ["IncompleteError", "UserError"]


class UserError(Exception):
    """Bad input or configuration: one message that says what, where, the value and the remedy. Exit 2."""

    exit_code = 2


class IncompleteError(Exception):
    """The run stopped early (budget, outage) with everything paid for kept. Exit 3."""

    exit_code = 3
