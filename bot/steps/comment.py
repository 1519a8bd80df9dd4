"""The one comment of the bot on a pull request: found, read back and written without losing what others wrote."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from bot.github.api_error import ApiError, NotFound, Unavailable
from bot.github.repository import GitHub
from bot.github.resources import Comment
from bot.pull_request.body import render
from bot.pull_request.ledger import Ledger, LedgerEvent, advance, holds
from eval_core.base.errors import UserError

LIMIT = 65_536
"""The most that GitHub takes; counted in bytes to be on the safe side."""
RESULT_BUDGET = LIMIT - 20_000
"""Bytes that the report of one result may take; the rest is for the ledger and what is going on."""

MARKER = "<!-- compression-eval:sticky -->"
_PREFIX = "<!-- compression-eval:"
_RESULT, _END = "<!-- compression-eval:result -->", "<!-- compression-eval:end -->"
# Only at the very start: what a comment quotes further down is not its identity.
_HEAD = re.compile(rf"\s*{re.escape(MARKER)}(?:\s*<!-- compression-eval:ledger ([0-9a-f]{{64}}) (\{{.*\}}) -->)?")
_EDITED = (
    "_This comment was changed by something other than compression-eval, so what it said before is not carried on; "
    "its edit history has it._"
)
_REPORT_EDITED = (
    "_This report was changed by something other than compression-eval, so it is not carried on; the comment's edit "
    "history and the artifact have it._"
)
_BRIEF = 200
_TRIES = 5
_SETTLE = (0.5, 2.0)
"""Seconds to wait before looking whether another writer, who read before we wrote, has replaced our words."""
_LAG = 2.0
"""Seconds by which GitHub's lists may be behind what was written."""


@dataclass(frozen=True)
class Posted:
    """The comment says what it should."""

    comment: Comment
    ledger: Ledger
    action: Literal["created", "updated", "unchanged"]


class Sticky:
    """Finds, reads and writes the bot's comment on one pull request."""

    def __init__(self, github: GitHub, number: int) -> None:
        self._github = github
        self._number = number
        self._others: list[Comment] = []
        """Comments like ours by other accounts: left from an earlier token, or forged."""

    def find(self) -> Comment | None:
        """Return our comment: written by our account and beginning with our marker; the oldest of several."""
        return next(iter(self._ours()), None)

    def read(self) -> Ledger:
        """Return what the comment remembers; an empty ledger if there is none that can be trusted."""
        standing = self.find()
        return read_comment(standing.body, self._place) if standing else Ledger()

    def record(self, event: LedgerEvent) -> Posted:
        """Add an event to the comment, see to it that it stays there, and fold what another account of ours said."""
        posted = self._write(event)
        for pause in _SETTLE:
            if posted.action == "unchanged":
                break
            self._github.wait(pause)
            try:
                again = self._write(event, posted)
            except (ApiError, Unavailable):
                break  # it was written; looking again was caution
            if again.action == "unchanged":
                continue
            posted = again
        for other in self._others:
            with suppress(ApiError, Unavailable):  # our own words are written
                self._github.minimize_comment(other)
        return posted

    def _write(self, event: LedgerEvent, before: Posted | None = None) -> Posted:
        trouble: Unavailable | None = None
        for _ in range(_TRIES):
            standing = next(iter(ours := self._ours(before.comment if before else None)), None)
            if standing is None:
                try:
                    ledger = advance(Ledger(), event)
                    return Posted(self._github.create_comment(self._number, self._text(ledger)), ledger, "created")
                except Unavailable as exc:
                    if not exc.maybe_done:
                        raise
                    # It may be there although no answer came: look before writing a second one.
                    trouble = exc
                    self._github.wait(_LAG)
                    continue
            for double in ours[1:]:
                if before is not None and before.action == "created" and double.id == before.comment.id:
                    # Two first runs met: the older comment takes the event, and ours goes.
                    self._github.delete_comment(double.id)
            known = read_comment(standing.body, self._place)
            ledger = advance(known, event)
            text = self._text(ledger)
            if _same(standing.body, text) or (holds(known, event) and _is_untouched(standing.body, self._place)):
                return Posted(standing, known, "created" if trouble is not None else "unchanged")
            try:
                return Posted(self._github.update_comment(standing.id, text), ledger, "updated")
            except NotFound:
                # Deleted between reading and writing; the next round writes a new one.
                continue
        raise trouble or UserError(
            f"comment on #{self._number}: it is deleted whenever it is posted; find out what deletes it, then run again"
        )

    def _ours(self, written: Comment | None = None) -> list[Comment]:
        """Return our comments, oldest first, with the one that was just written: a list may not have it yet."""
        me = self._github.me.id
        comments = self._github.comments(self._number)
        like_ours = [one for one in comments if _HEAD.match(one.body)]
        ours = [one for one in like_ours if one.author is not None and one.author.id == me]
        self._others = [one for one in like_ours if one not in ours and _intact(one.body, self._place) is not None]
        if written is not None and all(one.id != written.id for one in ours):
            with suppress(NotFound):
                ours.append(self._github.comment(written.id))
        return sorted(ours, key=lambda one: one.id)

    @property
    def _place(self) -> str:
        return f"{self._github.repo_id}#{self._number}"

    def _text(self, ledger: Ledger) -> str:
        # What went wrong may be in somebody else's words, and long; the measured report gives way last.
        brief = _brief(ledger)
        bare = brief.model_copy(update={"body": "_The report does not fit here; the log and the artifact have it._"})
        texts = (compose(one, self._place) for one in (ledger, brief, bare))
        return next((text for text in texts if len(text.encode()) <= LIMIT), compose(bare, self._place))


def _brief(ledger: Ledger) -> Ledger:
    """Return the ledger with the long words of what went wrong, or is under way, left to the log."""
    notices = tuple(
        notice if len(notice.why) <= _BRIEF else notice.model_copy(update={"why": "The log says why."})
        for notice in ledger.notices
    )
    runs = tuple(run.model_copy(update={"note": ""}) for run in ledger.runs)
    return ledger.model_copy(update={"notices": notices, "runs": runs})


def compose(ledger: Ledger, place: str) -> str:
    """Return the comment's whole text: marker, hidden ledger with its digest, then what people read.

    The report has a digest of its own inside the ledger: an edited word costs the report and no result.
    """
    body = _harmless(ledger.body).strip()
    data = _data(ledger, place, body)
    above, below = (_harmless(part) for part in render(ledger))
    parts = [above, f"{_RESULT}\n{body}\n{_END}" if body else "", below]
    shown = "\n\n".join(part for part in parts if part)
    return f"{MARKER}\n<!-- compression-eval:ledger {_digest(data)} {data} -->\n{shown}"


def read_comment(text: str, place: str) -> Ledger:
    """Read the ledger back; one that does not match its digest, its place or its schema is rejected.

    `place` names the repository by its id, so that results outlive a new name or owner.
    """
    ledger = _intact(text, place)
    return ledger if ledger is not None else Ledger().model_copy(update={"body": _EDITED})


def _is_untouched(text: str, place: str) -> bool:
    found = _intact(text, place)
    return found is not None and found.body != _REPORT_EDITED


def _intact(text: str, place: str) -> Ledger | None:
    text = text.replace("\r\n", "\n")
    head = _HEAD.match(text)
    if head is None or head.group(1) is None:
        return None
    start, end = text.find(_RESULT, head.end()), text.find(_END, head.end())
    body = text[start + len(_RESULT) : end].strip() if 0 <= start < end else ""
    if _digest(head.group(2)) != head.group(1):
        return None
    try:
        value = json.loads(head.group(2))
        if value.pop("place", None) != place:
            return None
        unchanged = value.pop("report", None) == _digest(body)
        return Ledger.model_validate(value).model_copy(update={"body": body if unchanged else _REPORT_EDITED})
    except (ValueError, ValidationError, RecursionError):
        return None


def _data(ledger: Ledger, place: str, body: str) -> str:
    value = {"place": place, "report": _digest(body), **ledger.model_dump(mode="json")}
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    # Nothing in it can end the hidden block or begin another.
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _harmless(text: str) -> str:
    return text.replace(_PREFIX, "&lt;!-- compression-eval:")


def _same(standing: str, text: str) -> bool:
    """Compare as GitHub stores: line ends are its own affair, and it drops blanks at the end."""
    return standing.replace("\r\n", "\n").rstrip() == text.replace("\r\n", "\n").rstrip()
