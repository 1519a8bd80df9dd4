"""The ledger through everything that can happen to a pull request, in every order."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bot.pull_request.body import render
from bot.pull_request.event import WorkflowRun
from bot.pull_request.ledger import (
    MOST_RESULTS,
    EvaluationEnded,
    EvaluationQueued,
    EvaluationStarted,
    Ledger,
    LedgerEvent,
    RequestRefused,
    ResultMeasured,
    RunVanished,
    advance,
    holds,
)
from bot.steps.comment import LIMIT, MARKER, RESULT_BUDGET, compose, read_comment

PLACE = "acme/agent#1"
START = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
A, B = "a" * 40, "b" * 40


def url(run: WorkflowRun) -> str:
    return f"https://github.com/acme/agent/actions/runs/{run.id}/attempts/{run.attempt}"


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def queued(run: int, minute: int, sha: str = A, head: str | None = A, *, approval: bool = False) -> EvaluationQueued:
    who = WorkflowRun(run, 1)
    return EvaluationQueued(run=who, at=at(minute), url=url(who), sha=sha, head=head, approval=approval, minutes=5)


def measured(run: int, minute: int, sha: str = A, head: str | None = A, outcome: str = "regressed") -> ResultMeasured:
    who = WorkflowRun(run, 1)
    body = f"report of run {run} on {sha[:7]}"
    return ResultMeasured(
        run=who, at=at(minute), url=url(who), sha=sha, head=head, outcome=outcome, headline="Regressed: x.", body=body
    )


def refused(run: int, minute: int, head: str = A) -> RequestRefused:
    who = WorkflowRun(run, 1)
    return RequestRefused(run=who, at=at(minute), url=url(who), why="helper may not.", sha=head, head=head)


def ended(run: int, minute: int, kind: Literal["failed", "cancelled", "rejected"] = "failed") -> EvaluationEnded:
    who = WorkflowRun(run, 1)
    return EvaluationEnded(run=who, at=at(minute), url=url(who), sha=A, kind=kind, why="it broke.", head=A)


def told(*events: LedgerEvent) -> Ledger:
    ledger = Ledger()
    for event in events:
        ledger = advance(ledger, event)
    return ledger


def text(ledger: Ledger) -> str:
    return compose(ledger, PLACE)


@pytest.mark.parametrize(
    "after",
    [refused(9, 5), ended(9, 5), ended(9, 5, "cancelled"), ended(9, 5, "rejected"), queued(9, 5)],
    ids=["refusal", "failure", "cancellation", "rejection", "relabel"],
)
def test_nothing_but_a_newer_result_replaces_a_result(after: LedgerEvent) -> None:
    shown = text(told(queued(1, 0), measured(1, 3), after))
    assert "report of run 1" in shown
    assert "Regressed" in shown
    assert url(after.run) in shown


def test_a_result_that_comes_after_a_refusal_with_a_newer_run_id_is_shown() -> None:
    ledger = told(queued(1, 0), refused(2, 1), measured(1, 5))
    assert "report of run 1" in text(ledger)
    assert ledger.runs == ()
    assert ledger.notices == ()


def test_a_result_does_not_answer_what_went_wrong_with_another_commit() -> None:
    ledger = told(refused(1, 1, head=B), refused(2, 2, head=A), measured(3, 3, A))
    assert [(notice.run_id, notice.sha) for notice in ledger.notices] == [(1, B)]


def test_a_re_run_of_an_older_run_is_shown_where_the_head_has_no_result_and_listed_where_it_has() -> None:
    old = measured(1, 50, sha=A, head=B)
    assert told(measured(2, 5, sha=A, head=B), old).body == "report of run 1 on aaaaaaa"
    both = told(measured(2, 5, sha=B, head=B), old)
    assert both.body == "report of run 2 on bbbbbbb"
    assert [result.run_id for result in both.results] == [1, 2]
    assert text(both).count("([log](") == 2


def test_a_publication_that_comes_late_does_not_replace_what_was_measured_after_it() -> None:
    ledger = told(queued(1, 0), queued(2, 6), measured(2, 10), measured(1, 5))
    assert ledger.body == "report of run 2 on aaaaaaa"
    assert [result.run_id for result in ledger.results] == [2, 1]


def test_a_result_that_is_told_late_or_twice_leaves_what_went_wrong_after_it_was_measured() -> None:
    once = told(queued(1, 0), refused(2, 1), refused(3, 9), measured(1, 5))
    assert [notice.run_id for notice in once.notices] == [3]
    assert advance(once, measured(1, 5)) == once


@pytest.mark.parametrize("late", [refused(9, 0), ended(9, 0)], ids=["refusal", "failure"])
def test_a_runner_whose_clock_is_behind_is_not_silenced(late: LedgerEvent) -> None:
    shown = text(told(refused(1, 5), refused(2, 6), refused(3, 7), late))
    assert url(late.run) in shown
    assert url(WorkflowRun(3, 1)) in shown


def test_a_rejected_run_whose_failed_jobs_are_run_again_is_said_to_go_on() -> None:
    over = told(measured(7, 0), queued(1, 1, approval=True), ended(1, 2, "rejected"))
    again = EvaluationStarted(run=WorkflowRun(1, 1), at=at(9), url=url(WorkflowRun(1, 1)), sha=A, again=True)
    going = advance(over, again)
    assert ([run.stage for run in going.runs], going.notices) == (["evaluating"], ())
    assert advance(going, again) == going
    assert "report of run 7" in text(going)
    # Its first start, told late, does not make it go on.
    assert advance(over, replace(again, again=False)) == over
    assert advance(told(measured(1, 3)), again) == told(measured(1, 3))


def test_a_result_is_marked_when_its_commit_is_no_longer_the_head() -> None:
    assert "not for the last commit" not in text(told(measured(1, 5)))
    assert f"is for `{A[:7]}`, not for the last commit, `{B[:7]}`" in text(
        told(measured(1, 5), queued(2, 9, sha=B, head=B))
    )


def test_the_last_five_results_are_listed_and_the_sixth_gave_way_to_newer_ones() -> None:
    ledger = told(*(measured(run, run) for run in range(1, 8)))
    assert [result.run_id for result in ledger.results] == [7, 6, 5, 4, 3]
    assert "Last 5 results" in text(ledger)


def test_the_second_evaluation_waits_and_takes_its_turn() -> None:
    ledger = told(queued(1, 0), queued(2, 1))
    assert [run.stage for run in ledger.runs] == ["evaluating", "queued"]
    assert [run.stage for run in advance(ledger, measured(1, 5)).runs] == ["evaluating"]


def test_of_many_evaluations_under_way_the_one_that_runs_stays_listed_and_there_is_room_for_all() -> None:
    long = "x" * 600
    ledger = told(*(replace(queued(run, run), note=long) for run in range(1, 40)))
    assert (ledger.runs[0].run_id, ledger.runs[0].stage) == (1, "evaluating")
    assert len(ledger.runs) == 20
    assert ledger.runs[-1].run_id == 39
    assert len(text(ledger).encode()) < LIMIT - RESULT_BUDGET


def test_an_approval_is_awaited_then_given() -> None:
    ledger = told(queued(1, 0, approval=True))
    assert "Waiting for approval" in text(ledger)
    started = EvaluationStarted(run=WorkflowRun(1, 1), at=at(7), url=url(WorkflowRun(1, 1)), sha=A)
    assert "**Evaluating** `aaaaaaa` since 2026-01-02 03:11 UTC, expected to end by 03:16" in text(
        advance(ledger, started)
    )


def test_a_run_that_ended_unseen_is_not_said_to_go_on() -> None:
    gone = RunVanished(run=WorkflowRun(1, 1), at=at(90), url=url(WorkflowRun(1, 1)))
    ledger = told(queued(1, 0), gone)
    assert ledger.runs == ()
    assert "ended without a result" in text(ledger)
    assert advance(told(measured(1, 3)), gone) == told(measured(1, 3))


def test_the_comment_is_read_back_as_it_was_written() -> None:
    ledger = told(queued(1, 0), measured(1, 3), queued(2, 4, sha=B, head=B), refused(3, 5))
    for shown in (text(ledger), text(ledger).replace("\n", "\r\n"), text(ledger) + "\n\n"):
        assert read_comment(shown, PLACE) == ledger


@pytest.mark.parametrize(
    "tamper",
    [
        lambda shown: shown.replace('"outcome":"regressed"', '"outcome":"improved"'),
        lambda shown: f"{MARKER}\n" + "\n".join(shown.splitlines()[2:]),
        lambda shown: f"{MARKER}\n<!-- compression-eval:ledger {'0' * 64} {{}} -->\nImproved!",
    ],
    ids=["data", "no data", "made up"],
)
def test_a_ledger_that_was_tampered_with_is_not_believed_and_says_so(tamper: object) -> None:
    assert callable(tamper)
    shown = tamper(text(told(measured(1, 3))))
    ledger = read_comment(shown, PLACE)
    assert (ledger.shown, ledger.results) == (None, ())
    assert "edit history" in text(ledger)


@pytest.mark.parametrize(
    ("old", "new"), [("report of run 1", "report of nobody"), ("compression-eval:result", "compression-eval:other")]
)
def test_an_edited_report_is_dropped_and_the_results_stay(old: str, new: str) -> None:
    whole = told(measured(1, 3), measured(2, 4), measured(1, 5))
    assert old in text(whole)
    ledger = read_comment(text(whole).replace(old, new), PLACE)
    assert (ledger.results, ledger.shown) == (whole.results, whole.shown)
    assert "report of" not in text(ledger)
    assert "edit history" in text(ledger)
    assert read_comment(text(ledger), PLACE) == ledger


def test_a_comment_of_another_pull_request_is_not_believed_here() -> None:
    assert read_comment(text(told(measured(1, 3))), "acme/agent#2").shown is None


def test_a_report_cannot_end_its_own_block() -> None:
    evil = measured(1, 3)
    hostile = f"x <!-- compression-eval:end --> {MARKER} <!-- compression-eval:ledger {'0' * 64} {{}} -->"
    ledger = advance(Ledger(), ResultMeasured(**{**evil.__dict__, "body": hostile, "headline": f"--> {hostile}"}))
    shown = text(ledger)
    assert shown.count(MARKER) == 1
    again = read_comment(shown, PLACE)
    assert again.shown == ledger.shown
    assert text(again) == shown


@dataclass
class Job:
    """A workflow run as GitHub knows it."""

    sha: str
    attempt: int = 1
    state: Literal["approval", "working", "measured", "over"] = "working"
    measured_at: int | None = None
    told: bool = True
    """Its admission reached the comment."""


@dataclass
class Shown:
    """A result that was published."""

    run: WorkflowRun
    sha: str
    minute: int


@dataclass
class World:
    """What really happened."""

    head: int = 0
    open: bool = True
    clock: int = 0
    jobs: dict[int, Job] = field(default_factory=dict)
    published: list[Shown] = field(default_factory=list)

    @property
    def sha(self) -> str:
        return f"{self.head:040x}"


class PullRequestLife(RuleBasedStateMachine):
    """Labels, refusals, re-runs, cancellations, pushes, reviews and faults, interleaved at will."""

    @initialize()
    def opened(self) -> None:
        self.world = World()
        self.ledger = Ledger()
        self.late: list[LedgerEvent] = []
        self.skew = 0

    def tell(self, event: LedgerEvent, fault: str) -> bool:
        """Write an event as the bot does; return whether it arrived."""
        if fault == "outage":
            return False  # the job ends red
        before = self.ledger
        # Through the comment's own text, as the next writer will read it.
        self.ledger = read_comment(compose(advance(before, event), PLACE), PLACE)
        if fault == "lost answer":
            again = advance(self.ledger, event)
            assert again == self.ledger
        if fault == "overwritten":
            # Another writer had read before and writes a refusal now; we look again and find our words gone.
            rival = WorkflowRun(10_000 + self.world.clock, 1)
            other = RequestRefused(run=rival, at=at(self.world.clock), url=url(rival), why="no.", head=self.world.sha)
            self.ledger = advance(before, other)
            if not holds(self.ledger, event):
                self.ledger = advance(self.ledger, event)
        assert holds(self.ledger, event)
        return True

    faults = st.sampled_from(["", "", "", "lost answer", "overwritten", "outage"])

    def tick(self) -> int:
        self.world.clock += 1
        return self.world.clock

    def now(self) -> datetime:
        """Return the time by the clock of the machine that a job runs on."""
        return at(self.world.clock + self.skew)

    def running(self, *states: str) -> list[int]:
        return [number for number, job in self.world.jobs.items() if job.state in states]

    @rule(approval=st.booleans(), fault=faults)
    def label(self, approval: bool, fault: str) -> None:
        """Somebody with write permission adds the label; on a closed pull request that is refused."""
        self.tick()
        number = 100 + len(self.world.jobs)
        run = WorkflowRun(number, 1)
        if not self.world.open or len(self.running("approval", "working", "measured")) >= 4:
            self.refuse(fault)
            return
        self.world.jobs[number] = Job(self.world.sha, state="approval" if approval else "working")
        event = EvaluationQueued(
            run=run, at=self.now(), url=url(run), sha=self.world.sha, head=self.world.sha, approval=approval
        )
        self.world.jobs[number].told = self.tell(event, fault)
        if self.world.jobs[number].told:
            assert url(run) in render(self.ledger)[0]  # never silence after a label

    @rule(fault=faults)
    def refuse(self, fault: str) -> None:
        """Somebody without permission adds it, or the quota is used up, or the label is consumed already."""
        run = WorkflowRun(5_000 + self.tick(), 1)
        event = RequestRefused(run=run, at=self.now(), url=url(run), why="no.", sha=self.world.sha, head=self.world.sha)
        if self.tell(event, fault):
            assert self.ledger.notices
            assert url(run) in render(self.ledger)[0]

    @precondition(lambda self: self.running("over"))
    @rule(data=st.data(), allowed=st.booleans(), fault=faults)
    def re_run(self, data: st.DataObject, allowed: bool, fault: str) -> None:
        """Re-run all jobs of an older run; the gate decides anew."""
        number = data.draw(st.sampled_from(self.running("over")))
        job = self.world.jobs[number]
        self.tick()
        job.attempt += 1
        run = WorkflowRun(number, job.attempt)
        if not allowed:
            refusal = RequestRefused(run=run, at=self.now(), url=url(run), why="no.", sha=job.sha, head=self.world.sha)
            if self.tell(refusal, fault):
                assert url(run) in render(self.ledger)[0]
            return
        job.state, job.measured_at = "working", None
        event = EvaluationQueued(run=run, at=self.now(), url=url(run), sha=job.sha, head=self.world.sha)
        job.told = self.tell(event, fault)

    @precondition(lambda self: self.noticed())
    @rule(data=st.data(), fault=faults)
    def re_run_failed_jobs(self, data: st.DataObject, fault: str) -> None:
        """Re-run what a reviewer rejected, who approves now: the gate is not asked again."""
        number = data.draw(st.sampled_from(self.noticed()))
        job, run = self.world.jobs[number], WorkflowRun(number, self.world.jobs[number].attempt)
        self.world.clock += 60  # people are slower than clocks are wrong
        started = EvaluationStarted(run=run, at=self.now(), url=url(run), sha=job.sha, again=True)
        if self.tell(started, fault):
            job.state, job.told = "working", True
            assert url(run) in render(self.ledger)[0]

    def noticed(self) -> list[int]:
        """Return the evaluations that ended without a result, as the comment says."""
        known = {notice.run for notice in self.ledger.notices if notice.kind in ("rejected", "failed")}
        return [
            number for number in self.running("over") if WorkflowRun(number, self.world.jobs[number].attempt) in known
        ]

    @rule(minutes=st.sampled_from([0, 0, -20, 20]))
    def another_machine(self, minutes: int) -> None:
        """The next jobs run where the clock is wrong."""
        self.skew = minutes

    @precondition(lambda self: self.settled())
    @rule(data=st.data())
    def publish_again(self, data: st.DataObject) -> None:
        """Re-run the publish job alone: what went wrong after it was measured stays."""
        one = data.draw(st.sampled_from(self.settled()))
        later = {notice.run for notice in self.ledger.notices if notice.at > at(one.minute)} - {one.run}
        self.tell(self.result(one.run, one.sha, one.minute), "")
        assert later <= {notice.run for notice in self.ledger.notices}

    def settled(self) -> list[Shown]:
        """Return what was published by runs that have not been run again."""
        jobs = self.world.jobs
        return [
            one
            for one in self.world.published
            if jobs[one.run.id].state == "over" and jobs[one.run.id].attempt == one.run.attempt
        ]

    def result(self, run: WorkflowRun, sha: str, minute: int) -> ResultMeasured:
        return ResultMeasured(
            run=run,
            at=at(minute),
            url=url(run),
            sha=sha,
            head=self.world.sha,
            outcome="regressed",
            headline="Regressed.",
            body=f"report {run.id}/{run.attempt}",
        )

    @precondition(lambda self: self.running("approval"))
    @rule(data=st.data(), approve=st.booleans(), fault=faults)
    def review(self, data: st.DataObject, approve: bool, fault: str) -> None:
        """A reviewer approves or rejects."""
        number = data.draw(st.sampled_from(self.running("approval")))
        job, run = self.world.jobs[number], WorkflowRun(number, self.world.jobs[number].attempt)
        self.tick()
        if approve:
            job.state = "working"
            arrived = self.tell(EvaluationStarted(run=run, at=self.now(), url=url(run), sha=job.sha), fault)
            job.told = arrived or job.told
            return
        self.finish(number, "rejected", fault)

    @precondition(lambda self: self.running("working"))
    @rule(data=st.data())
    def measure(self, data: st.DataObject) -> None:
        """The evaluate job ends; its publication may come much later."""
        job = self.world.jobs[data.draw(st.sampled_from(self.running("working")))]
        job.state, job.measured_at = "measured", self.tick()

    @precondition(lambda self: self.running("measured"))
    @rule(data=st.data(), fault=faults)
    def publish(self, data: st.DataObject, fault: str) -> None:
        number = data.draw(st.sampled_from(self.running("measured")))
        job = self.world.jobs[number]
        run, minute = WorkflowRun(number, job.attempt), job.measured_at
        assert minute is not None
        event = self.result(run, job.sha, minute)
        if self.tell(event, fault):
            job.state = "over"
            self.world.published.append(Shown(run, job.sha, minute))
        # Else the publish job is red and can be run again: it stays measured.

    def finish(self, number: int, kind: Literal["cancelled", "timed_out", "failed", "rejected"], fault: str) -> None:
        job = self.world.jobs[number]
        run = WorkflowRun(number, job.attempt)
        self.tick()
        event = EvaluationEnded(
            run=run, at=self.now(), url=url(run), sha=job.sha, kind=kind, why="over.", head=self.world.sha
        )
        job.state = "over"
        if self.tell(event, fault):
            job.told = True
            assert kind == "cancelled" or url(run) in render(self.ledger)[0]
        elif job.told:
            self.late.append(RunVanished(run=run, at=at(self.world.clock), url=url(run)))

    @precondition(lambda self: self.running("working", "approval"))
    @rule(data=st.data(), kind=st.sampled_from(["cancelled", "timed_out", "failed"]), fault=faults)
    def end_without_result(self, data: st.DataObject, kind: str, fault: str) -> None:
        assert kind in ("cancelled", "timed_out", "failed")
        self.finish(data.draw(st.sampled_from(self.running("working", "approval"))), kind, fault)  # type: ignore[arg-type]

    @precondition(lambda self: self.late)
    @rule()
    def next_gate_clears_what_vanished(self) -> None:
        while self.late:
            self.ledger = advance(self.ledger, self.late.pop())

    @rule(force=st.booleans(), back=st.integers(0, 3))
    def push(self, force: bool, back: int) -> None:
        """A push moves the head on, a force-push anywhere; neither starts a run, so nobody is told."""
        self.world.head = max(self.world.head - back, 0) if force else self.world.head + 1

    @rule()
    def close_or_reopen(self) -> None:
        self.world.open = not self.world.open

    @invariant()
    def every_published_result_is_visible_or_gave_way_to_newer_ones(self) -> None:
        seen = {result.run for result in self.ledger.results}
        for one in self.world.published:
            newer = [result for result in self.ledger.results if result.at >= at(one.minute)]
            visible = one.run in seen or (self.ledger.shown is not None and self.ledger.shown.run == one.run)
            assert visible or len(newer) >= MOST_RESULTS, one

    @invariant()
    def the_report_is_of_the_shown_result_which_is_the_newest_unless_the_head_has_one(self) -> None:
        shown = self.ledger.shown
        assert (shown is not None) == bool(self.world.published)
        if shown is None:
            return
        assert self.ledger.body == f"report {shown.run_id}/{shown.attempt}"
        newest = max(self.world.published, key=lambda one: one.minute)
        assert shown.run == newest.run or shown.at <= at(newest.minute)

    @invariant()
    def the_state_line_tells_the_truth(self) -> None:
        under_way = {
            WorkflowRun(number, job.attempt)
            for number, job in self.world.jobs.items()
            if job.state != "over" and job.told
        }
        vanished = {event.run for event in self.late}
        said = {run.run for run in self.ledger.runs}
        assert under_way <= said
        assert said <= under_way | vanished
        waiting = {WorkflowRun(number, self.world.jobs[number].attempt) for number in self.running("approval")}
        assert {run.run for run in self.ledger.runs if run.stage == "approval"} >= waiting & said
        working = [run for run in self.ledger.runs if run.stage != "approval"]
        assert sum(run.stage == "evaluating" for run in working) == min(len(working), 1)
        lines = render(self.ledger)[0]
        assert all(run.url in lines for run in self.ledger.runs)

    @invariant()
    def the_comment_survives_being_written_and_read(self) -> None:
        assert read_comment(compose(self.ledger, PLACE), PLACE) == self.ledger


PullRequestLife.TestCase.settings = settings(
    max_examples=int(os.environ.get("LEDGER_EXAMPLES", "50")), stateful_step_count=40, deadline=None
)
TestPullRequestLife = PullRequestLife.TestCase
