"""The status step: what happens to a pull request is marked beside its result; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bot.github.repository import GitHub
from bot.github.resources import Pull
from bot.pull_request.admission import nothing_to_measure
from bot.pull_request.event import StatusEvent, read_status_event
from bot.pull_request.ledger import HeadSeen, LedgerEvent, NoticeKind, RequestRefused
from bot.steps.base_config import read_base_config
from bot.steps.check import CHECK_NAME, NOTHING, Check
from bot.steps.comment import Sticky
from eval_core.base.markdown_text import inline

_QUEUE = "The merge queue tests a merge of pull requests that were evaluated, or not, before they entered it."


def mark(github: GitHub, name: str, payload: Any, env: Mapping[str, str]) -> str:
    """Mark the comment and answer the check as an event asks for; return what was done."""
    event = read_status_event(name, payload, env)
    if isinstance(event, str):
        return event
    if event.pr is None:
        Check(github, event.sha, event.run, event.run_url).finish(
            "not_evaluated", f"{NOTHING}: merge queue", _QUEUE, policy="neutral"
        )
        return "The merge queue's check is answered."
    pull = github.pull(event.pr)
    done = [_marked(github, event, pull), _answered(github, event, pull)]
    return " ".join(word for word in done if word) or "Nothing to mark."


def _marked(github: GitHub, event: StatusEvent, pull: Pull) -> str:
    """Write what happened into the comment, where there is one."""
    sticky = Sticky(github, pull.number)
    if sticky.find() is None:
        return ""
    # The head as it is now: events may arrive out of order.
    found: LedgerEvent = HeadSeen(run=event.run, at=datetime.now(UTC), url=event.run_url, head=pull.head_sha)
    kind: NoticeKind | None = None
    if event.retargeted:
        kind, why = "retargeted", f"It is meant for {inline(pull.base_ref)} now. Ask again to measure it against that."
    elif event.closed and pull.merged:
        kind, why = "merged", f"It was merged into {inline(pull.base_ref)}."
    if kind is not None:
        found = RequestRefused(
            run=event.run, at=found.at, url=event.run_url, head=pull.head_sha, sha=pull.head_sha, why=why, kind=kind
        )
    sticky.record(found)
    return "The comment is up to date."


def _answered(github: GitHub, event: StatusEvent, pull: Pull) -> str:
    """Conclude the check of a head that changes nothing that is measured: a required check would wait for ever."""
    if pull.state != "open" or github.check_runs(pull.head_sha, CHECK_NAME):
        return ""
    config, unfit = read_base_config(github, github.commit(pull.base_ref).sha)
    files = github.changed_files(pull.number)
    if unfit is not None or len(files) < pull.changed_files:
        return ""
    refused = nothing_to_measure(files, config)
    if refused is None:
        return ""
    check = Check(github, pull.head_sha, event.run, event.run_url)
    check.finish("not_evaluated", NOTHING, refused.why, policy="neutral")
    return "The check is answered: nothing to evaluate."
