"""The ledger: what the comment on a pull request remembers (results, evaluations under way, the last failure).

`advance` is a pure function from ledger and event to ledger. A measured result is replaced only by a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from bot.pull_request.event import LOGIN, WorkflowRun

MOST_RESULTS = 5
# As many as the daily quota lets through unless it is raised; there must be room for them in the comment.
_MOST_RUNS = 20
_SHORT_NOTE = 160
_MOST_NOTICES = 3

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Asker = Annotated[str, Field(pattern=rf"^(?:{LOGIN})?$")]
Stage = Literal["approval", "queued", "evaluating"]
NoticeKind = Literal[
    "refused", "failed", "cancelled", "timed_out", "rejected", "vanished", "superseded",
    "retargeted", "merged",
]  # fmt: skip


class _Kept(BaseModel):
    """A part of the ledger, as it is kept in the comment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: int
    attempt: int
    at: datetime
    url: Annotated[str, Field(max_length=400, pattern=r"^https?://[^\s()<>\[\]`\\]+$")]

    @property
    def run(self) -> WorkflowRun:
        return WorkflowRun(self.run_id, self.attempt)


class LedgerResult(_Kept):
    """A measured result in one line; `at` is when it was measured."""

    sha: Sha
    outcome: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    headline: Annotated[str, Field(max_length=400)]
    asker: Asker = ""
    """Who asked for it and is mentioned; may be empty."""


class LedgerRun(_Kept):
    """An evaluation under way; `at` is when it entered its stage."""

    sha: Sha
    stage: Stage
    minutes: Annotated[int | None, Field(ge=0)] = None
    """How long it is expected to take."""
    note: Annotated[str, Field(max_length=600)] = ""
    """Models and estimated cost; shown as `why` is."""
    asker: Asker = ""


class LedgerNotice(_Kept):
    """A request that was refused, or an evaluation that ended without a result."""

    kind: NoticeKind
    why: Annotated[str, Field(max_length=1_500)]
    """A sentence with code spans; nothing else in it acts when it is shown."""
    sha: Sha | None = None
    asker: Asker = ""


class Ledger(BaseModel):
    """Everything that the comment says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    head: Sha | None = None
    """The last commit of the pull request, as far as the last writer knew."""
    shown: LedgerResult | None = None
    """The result whose report the comment holds."""
    results: tuple[LedgerResult, ...] = ()
    """The last measured results, newest first."""
    runs: tuple[LedgerRun, ...] = ()
    """Evaluations under way, oldest first."""
    notices: tuple[LedgerNotice, ...] = ()
    """What was refused or went wrong since the last result or request, newest first."""
    body: Annotated[str, Field(exclude=True)] = ""
    """The report of `shown`; it is kept in the comment's visible text."""


@dataclass(frozen=True, kw_only=True)
class _About:
    """What every event says."""

    run: WorkflowRun
    at: datetime
    url: str
    head: str | None = None
    """The pull request's last commit now; None if it is not known."""
    asker: str = ""
    """Who asked for the evaluation and is mentioned when it ends; may be empty."""

    @property
    def kept(self) -> dict[str, Any]:
        """What every entry of the ledger keeps of it."""
        run = {"run_id": self.run.id, "attempt": self.run.attempt}
        return {**run, "at": self.at, "url": self.url, "asker": self.asker}


@dataclass(frozen=True, kw_only=True)
class EvaluationQueued(_About):
    """The gate admitted an evaluation."""

    sha: str
    approval: bool = False
    """A reviewer of the environment has to approve it first."""
    minutes: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class EvaluationStarted(_About):
    """The reviewer approved, and the job runs."""

    sha: str
    again: bool = False
    """Its failed jobs are run again: what it ended with before is not its end any more."""


@dataclass(frozen=True, kw_only=True)
class RequestRefused(_About):
    """The gate refused, or could not decide."""

    why: str
    sha: str | None = None
    kind: NoticeKind = "refused"


@dataclass(frozen=True, kw_only=True)
class ResultMeasured(_About):
    """An evaluation left a result; `at` is when it was measured, even if it is recorded later."""

    sha: str
    outcome: str
    headline: str
    body: str


@dataclass(frozen=True, kw_only=True)
class EvaluationEnded(_About):
    """An evaluation ended without a result."""

    sha: str
    kind: NoticeKind
    why: str


@dataclass(frozen=True, kw_only=True)
class RunVanished(_About):
    """A run that the ledger lists as under way has ended without reporting."""


@dataclass(frozen=True, kw_only=True)
class HeadSeen(_About):
    """The pull request's last commit, and nothing else, is known."""


LedgerEvent: TypeAlias = (
    EvaluationQueued | EvaluationStarted | RequestRefused | ResultMeasured | EvaluationEnded | RunVanished | HeadSeen
)


def advance(ledger: Ledger, event: LedgerEvent) -> Ledger:
    """Return the ledger after an event; applying the same event again changes nothing."""
    if event.head is not None:
        ledger = ledger.model_copy(update={"head": event.head})
    match event:
        case EvaluationQueued():
            return _queued(ledger, event)
        case EvaluationStarted():
            return _started(ledger, event)
        case RequestRefused():
            return _noticed(ledger, event, event.kind, event.why, event.sha)
        case ResultMeasured():
            return _measured(ledger, event)
        case EvaluationEnded():
            return _ended(ledger, event)
        case RunVanished():
            return _vanished(ledger, event)
        case HeadSeen():
            return ledger


def holds(ledger: Ledger, event: LedgerEvent) -> bool:
    """Tell whether the event is in the ledger: a writer looks for its own after others may have written."""
    if isinstance(event, HeadSeen):
        return ledger.head == event.head
    again = advance(ledger, replace(event, head=None))
    return again == ledger


def _queued(ledger: Ledger, event: EvaluationQueued) -> Ledger:
    if _is_over(ledger, event.run) or any(run.run == event.run for run in ledger.runs):
        return ledger
    others = [run for run in ledger.runs if run.run_id != event.run.id]
    # One evaluation of a pull request runs at a time; the others wait for it.
    stage: Stage = "approval" if event.approval else "queued"
    note = event.note[:_SHORT_NOTE] if others else event.note
    entry = LedgerRun(**event.kept, sha=event.sha, stage=stage, minutes=event.minutes, note=note)
    # Beyond that, one that waits is not listed; never the one that is being evaluated.
    runs = _in_turn([*others[: _MOST_RUNS - 1], entry], event.at)
    notices = tuple(notice for notice in ledger.notices if notice.at > event.at)
    return ledger.model_copy(update={"runs": runs, "notices": notices})


def _started(ledger: Ledger, event: EvaluationStarted) -> Ledger:
    if event.again:
        ended = [notice for notice in ledger.notices if notice.run == event.run and notice.at <= event.at]
        left = tuple(notice for notice in ledger.notices if notice not in ended)
        ledger = ledger.model_copy(update={"notices": left})
    if _is_over(ledger, event.run):
        return ledger
    known = next((run for run in ledger.runs if run.run == event.run), None)
    if known is None:
        return _queued(
            ledger, EvaluationQueued(run=event.run, at=event.at, url=event.url, sha=event.sha, asker=event.asker)
        )
    if known.stage != "approval":
        return ledger
    moved = known.model_copy(update={"stage": "queued", "at": event.at})
    runs = _in_turn([moved if run is known else run for run in ledger.runs], event.at)
    return ledger.model_copy(update={"runs": runs})


def _measured(ledger: Ledger, event: ResultMeasured) -> Ledger:
    result = LedgerResult(**event.kept, sha=event.sha, outcome=event.outcome, headline=event.headline[:400])
    others = [known for known in ledger.results if known.run != result.run]
    results = sorted([result, *others], key=lambda known: (known.at, known.run), reverse=True)
    changed: dict[str, object] = {"results": tuple(results[:MOST_RESULTS]), "runs": _without(ledger, event)}
    shown = ledger.shown
    if shown is None or shown.run == result.run or _rank(result, ledger) >= _rank(shown, ledger):
        changed |= {"shown": result, "body": event.body}
    # A result answers what went wrong before it was measured, not what came after, even if it is recorded later.
    changed["notices"] = tuple(
        notice
        for notice in ledger.notices
        if notice.run_id != event.run.id and (notice.at > event.at or notice.sha not in (None, event.sha))
    )
    return ledger.model_copy(update=changed)


def _ended(ledger: Ledger, event: EvaluationEnded) -> Ledger:
    ledger = ledger.model_copy(update={"runs": _without(ledger, event)})
    if any(result.run == event.run for result in ledger.results):
        return ledger
    return _noticed(ledger, event, event.kind, event.why, event.sha)


def _vanished(ledger: Ledger, event: RunVanished) -> Ledger:
    lost = next((run for run in ledger.runs if run.run == event.run), None)
    if lost is None:
        return ledger
    ledger = ledger.model_copy(update={"runs": _without(ledger, event)})
    why = "Its run ended without reporting here; the log says why."
    return _noticed(ledger, replace(event, asker=lost.asker), "vanished", why, lost.sha)


def _noticed(ledger: Ledger, event: LedgerEvent, kind: NoticeKind, why: str, sha: str | None) -> Ledger:
    made = LedgerNotice(**event.kept, kind=kind, why=why[:1_500], sha=sha)
    # The new notice is always kept, even if the clock of its runner is behind those of the others.
    others = [notice for notice in ledger.notices if notice.run_id != made.run_id][: _MOST_NOTICES - 1]
    found = sorted([made, *others], key=lambda notice: (notice.at, notice.run), reverse=True)
    return ledger.model_copy(update={"notices": tuple(found)})


def _rank(result: LedgerResult, ledger: Ledger) -> tuple[bool, datetime, WorkflowRun]:
    """Order results: one of the present head before any other, then the one measured last."""
    return result.sha == ledger.head, result.at, result.run


def _without(ledger: Ledger, event: LedgerEvent) -> tuple[LedgerRun, ...]:
    """Return the runs that go on."""
    return _in_turn([run for run in ledger.runs if run.run_id != event.run.id], event.at)


def _in_turn(runs: Sequence[LedgerRun], at: datetime) -> tuple[LedgerRun, ...]:
    """Mark the oldest waiting run as being evaluated if no other is: GitHub starts it automatically."""
    if any(run.stage == "evaluating" for run in runs):
        return tuple(runs)
    waiting = next((run for run in runs if run.stage == "queued"), None)
    if waiting is None:
        return tuple(runs)
    begun = waiting.model_copy(update={"stage": "evaluating", "at": max(at, waiting.at)})
    return tuple(begun if run is waiting else run for run in runs)


def _is_over(ledger: Ledger, run: WorkflowRun) -> bool:
    return any(known.run == run for known in (*ledger.results, *ledger.notices))
