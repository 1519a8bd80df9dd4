"""The one comment of the bot on a pull request, through its whole life."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bot.event import WorkflowRun
from bot.github.api_error import NotFound, Unavailable
from bot.github.repository import GitHub
from bot.github.resources import Comment
from eval_core.base.errors import UserError

__all__ = ["LIMIT", "MARKER", "Posted", "Sticky", "Superseded", "body_budget"]

LIMIT = 65_536
"""The most that GitHub takes; counted in bytes to be on the safe side."""

MARKER = "<!-- compression-eval:sticky -->"
_PREFIX = "<!-- compression-eval:"
# Only at the very start: what a comment quotes further down is not its identity.
_HEAD = re.compile(rf"\s*{re.escape(MARKER)}(?:\s*<!-- compression-eval:run id=([0-9]+) attempt=([0-9]+) -->)?")
_TRIES = 3


@dataclass(frozen=True)
class Posted:
    """The comment says what it should."""

    comment: Comment
    action: Literal["created", "updated", "unchanged"]


@dataclass(frozen=True)
class Superseded:
    """A newer run has spoken; its words were left standing."""

    comment: Comment
    by: WorkflowRun


def body_budget(run: WorkflowRun) -> int:
    """Return how many bytes of text fit beside the markers."""
    return LIMIT - len(_compose("", run).encode())


class Sticky:
    """Finds, writes and rewrites the bot's comment on one pull request."""

    def __init__(self, github: GitHub, number: int) -> None:
        self._github = github
        self._number = number

    def find(self) -> Comment | None:
        """Return our comment: written by our account and beginning with our marker; the oldest of several."""
        me = self._github.me.id
        for comment in self._github.comments(self._number):
            if comment.author is not None and comment.author.id == me and _HEAD.match(comment.body):
                return comment
        return None

    def put(self, body: str, run: WorkflowRun) -> Posted | Superseded:
        """Make the comment say this, unless a newer run has written it."""
        text = _compose(body, run)
        size = len(text.encode())
        if size > LIMIT:
            raise UserError(f"comment on #{self._number}: {size:,} bytes, GitHub takes {LIMIT:,}; shorten the report")
        trouble: Unavailable | None = None
        for _ in range(_TRIES):
            standing = self.find()
            if standing is None:
                try:
                    return Posted(self._github.create_comment(self._number, text), "created")
                except Unavailable as exc:
                    if not exc.maybe_done:
                        raise
                    # It may stand although no answer came: look before writing a second one.
                    trouble = exc
                    continue
            writer = _writer(standing.body)
            if writer is not None and writer > run:
                return Superseded(standing, writer)
            if _same(standing.body, text):
                return Posted(standing, "created" if trouble is not None else "unchanged")
            try:
                return Posted(self._github.update_comment(standing.id, text), "updated")
            except NotFound:
                # Deleted between reading and writing; the next round writes a new one.
                continue
        raise trouble or UserError(
            f"comment on #{self._number}: it is deleted as fast as it is written; look who deletes it, then run again"
        )


def _compose(body: str, run: WorkflowRun) -> str:
    harmless = body.replace(_PREFIX, "&lt;!-- compression-eval:")
    return f"{MARKER}\n<!-- compression-eval:run id={run.id} attempt={run.attempt} -->\n{harmless}"


def _writer(body: str) -> WorkflowRun | None:
    match = _HEAD.match(body)
    if match is None or match.group(1) is None:
        return None
    return WorkflowRun(int(match.group(1)), int(match.group(2)))


def _same(standing: str, text: str) -> bool:
    """Compare as GitHub stores: line ends are its own affair, and it drops blanks at the end."""
    return standing.replace("\r\n", "\n").rstrip() == text.replace("\r\n", "\n").rstrip()
