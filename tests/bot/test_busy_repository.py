"""The bot's own steps against a GitHub on loopback, in any order and with anything failing: what a repository sees."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import adopted
from bot_gate import PLAN, environment
from bot_world import publish
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bot.demo import journey
from bot.demo.journey import label_event
from bot.github.repository import GitHub
from bot.github.rest import ApiRetries
from bot.pull_request.body import render
from bot.pull_request.event import WorkflowRun
from bot.pull_request.ledger import MOST_RESULTS, Ledger, RequestRefused, advance
from bot.pull_request.ticket import Ticket
from bot.steps.comment import MARKER, compose, read_comment
from bot.steps.gate import Admission, admit
from bot.steps.publish import begin
from bot.steps.render_result import render_result
from eval_core.base.config import Config, load_config
from eval_core.measuring.provenance import now
from eval_core.storage.results import ResultsFolder

PLACE = "1#1"
WORKFLOW = "compression-eval.yml"
ME = "github-actions[bot]"
# Each passes by itself: a fault that does not is a red job, which other tests look at.
FAULTS = st.sampled_from(["", "", "", "", "502", "lost answer", "dropped", "limit", "rival"])


@cache
def _world() -> tuple[Path, Path, Config]:
    """Return the base branch on disk, a measured result, and the configuration; once for all examples."""
    folder = Path(tempfile.mkdtemp(prefix="busy-"))
    root = adopted.on_disk(adopted.base_tree(), folder / "base")
    measured = folder / "measured"
    measured.mkdir()
    ResultsFolder(measured).write_measurement(adopted.measured("opaque"))
    config = load_config(None, root)
    bot = config.bot.model_copy(update={"looks_per_sha": 999, "runs_per_day": 999})
    return root, measured, config.model_copy(update={"bot": bot})


@dataclass
class Evaluation:
    """An admitted evaluation as GitHub knows it."""

    ticket: Ticket
    stage: Literal["approval", "evaluating", "over", "vanished"]


class BusyRepository(RuleBasedStateMachine):
    """One pull request, several people, and runs that overlap."""

    @initialize(reviewers=st.booleans())
    def open(self, reviewers: bool) -> None:
        self.github, _ = adopted.world(adopted.base_tree())
        self.github.__enter__()
        self.github.unlabel(1, adopted.LABEL)
        self.github.user("helper", "triage")
        self.github.user("boss", "admin")
        if reviewers:
            self.github.state.reviewers["compression-eval"] = ["boss"]
        self.empty = Path(tempfile.mkdtemp(prefix="busy-empty-"))
        self.evaluations: dict[WorkflowRun, Evaluation] = {}
        self.published: list[WorkflowRun] = []
        self.last_run = 100

    def teardown(self) -> None:
        if hasattr(self, "github"):
            self.github.__exit__(None, None, None)
            shutil.rmtree(self.empty, ignore_errors=True)

    # What people and machines do.

    @precondition(lambda self: len(self._runs("approval", "evaluating")) < 6)
    @rule(sender=st.sampled_from(["maintainer", "maintainer", "helper"]), fault=FAULTS)
    def label(self, sender: str, fault: str) -> None:
        """Add the label; it is consumed, and an answer comes, whoever adds it."""
        self.github.label(1, adopted.LABEL)
        self._enter(self._new_run(), label_event(adopted.REPO, self.github.state.pulls[1], sender), fault)
        assert self.github.state.pulls[1].labels == []

    @rule(fault=FAULTS)
    def a_label_event_whose_label_is_consumed(self, fault: str) -> None:
        decided = self._enter(
            self._new_run(), label_event(adopted.REPO, self.github.state.pulls[1], "maintainer"), fault
        )
        assert not isinstance(decided, Admission)

    @precondition(lambda self: len(self._runs("approval", "evaluating")) < 6)
    @rule(right=st.booleans(), short=st.booleans(), fault=FAULTS)
    def dispatch(self, right: bool, short: bool, fault: str) -> None:
        """Start by hand, with the head's SHA or a mistyped one."""
        sha = self.github.state.pulls[1].head_sha if right else "f" * 40
        inputs = {"pr": " #1", "sha": sha[:8] if short else sha}
        self._enter(self._new_run(), adopted.dispatch_event(**inputs), fault)

    @precondition(lambda self: self._runs("over", "vanished"))
    @rule(data=st.data(), fault=FAULTS)
    def re_run_all_jobs(self, data: st.DataObject, fault: str) -> None:
        """Re-run an old run: it asks for the commit that it was started for."""
        run = data.draw(st.sampled_from(self._runs("over", "vanished")))
        again = WorkflowRun(run.id, max(known.attempt for known in self.evaluations if known.id == run.id) + 1)
        stored = self.github.state.runs[run.id]
        stored.attempt, stored.status, stored.conclusion = again.attempt, "in_progress", None
        event = label_event(adopted.REPO, self.github.state.pulls[1], "maintainer")
        event["pull_request"]["head"]["sha"] = self.evaluations[run].ticket.sha
        self._enter(again, event, fault)

    @precondition(lambda self: self._runs("approval"))
    @rule(data=st.data(), fault=FAULTS)
    def approve(self, data: st.DataObject, fault: str) -> None:
        run = data.draw(st.sampled_from(self._runs("approval")))
        self._order(fault)
        assert begin(self._client(journey._BEGIN), self.evaluations[run].ticket) == ()
        self.evaluations[run].stage = "evaluating"

    @precondition(lambda self: self._runs("approval"))
    @rule(data=st.data(), fault=FAULTS)
    def reject(self, data: st.DataObject, fault: str) -> None:
        run = data.draw(st.sampled_from(self._runs("approval")))
        self.github.state.runs[run.id].reviews.append(("compression-eval", "rejected", "boss", "not today"))
        self._publish(run, self.empty, "failure", fault)

    @precondition(lambda self: self._runs("evaluating"))
    @rule(data=st.data(), result=st.sampled_from(["success", "success", "cancelled", "failure"]), fault=FAULTS)
    def finish_with_a_result(self, data: st.DataObject, result: str, fault: str) -> None:
        """Publish what was measured, however the job ended."""
        run = data.draw(st.sampled_from(self._runs("evaluating")))
        self._publish(run, _world()[1], result, fault)
        self.published.append(run)
        assert any(result.run == run for result in self._ledger().results)

    @precondition(lambda self: self._runs("evaluating"))
    @rule(data=st.data(), result=st.sampled_from(["cancelled", "failure", "skipped"]), fault=FAULTS)
    def finish_without_one(self, data: st.DataObject, result: str, fault: str) -> None:
        self._publish(data.draw(st.sampled_from(self._runs("evaluating"))), self.empty, result, fault)

    @precondition(lambda self: self._settled())
    @rule(data=st.data(), fault=FAULTS)
    def publish_again(self, data: st.DataObject, fault: str) -> None:
        """Re-run the publish job alone; GitHub does so only for a run's last attempt, once that has ended."""
        run = data.draw(st.sampled_from(self._settled()))
        self._publish(run, _world()[1], "success", fault)

    @precondition(lambda self: self._runs("evaluating", "approval"))
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """Force the cancellation of a run: it ends without a word."""
        run = data.draw(st.sampled_from(self._runs("evaluating", "approval")))
        self.evaluations[run].stage = "vanished"
        self._close_run(run)

    @rule(force=st.booleans())
    def push(self, force: bool) -> None:
        tree = adopted.worse_tree(adopted.base_tree())
        self.github.push_to_pull(1, {**tree, "README.md": str(self.github.state.new_id()).encode()}, force=force)

    @rule()
    def close_or_reopen(self) -> None:
        (self.github.close if self.github.state.pulls[1].state == "open" else self.github.reopen)(1)

    @rule()
    def somebody_copies_the_comment(self) -> None:
        """Post our own words, or a made-up result in our form, as another account."""
        ours = self._ours()
        self.github.comment(1, "contributor", ours[0] if ours else f"{MARKER}\nImproved!")

    def _settled(self) -> list[WorkflowRun]:
        """Return the published attempts that no later attempt of the same run has followed."""
        return [
            run
            for run in dict.fromkeys(self.published)
            if run.attempt == max(known.attempt for known in self.evaluations if known.id == run.id)
        ]

    # What must hold, always.

    @invariant()
    def there_is_never_more_than_one_comment(self) -> None:
        assert len(self._ours()) <= 1

    @invariant()
    def every_published_result_is_visible_or_gave_way_to_newer_ones(self) -> None:
        ledger = self._ledger()
        seen = {result.run for result in ledger.results}
        assert all(run in seen for run in self.published[-1:])
        assert len(seen & set(self.published)) == min(len(set(self.published)), MOST_RESULTS)
        assert (ledger.shown is None) == (not self.published)
        if ledger.shown is not None:
            assert ledger.shown.run in self.published
            assert "Facts kept: " in ledger.body

    @invariant()
    def the_state_line_tells_the_truth(self) -> None:
        ledger = self._ledger()
        said = {run.run: run.stage for run in ledger.runs}
        going_on = {run: one.stage for run, one in self.evaluations.items() if one.stage in ("approval", "evaluating")}
        assert set(going_on) <= set(said)
        assert all(self.evaluations[run].stage == "vanished" for run in set(said) - set(going_on))
        assert all((said[run] == "approval") == (stage == "approval") for run, stage in going_on.items())
        text = render(ledger)[0]
        assert all(self.evaluations[run].ticket.run_url in text for run in going_on)

    @invariant()
    def the_commit_has_a_check_for_every_evaluation_that_ends_with_it(self) -> None:
        checks = {check.external_id: check for check in self.github.state.checks.values()}
        assert len(checks) == len(self.github.state.checks)
        for run, one in self.evaluations.items():
            check = checks[f"{run.id}/{run.attempt}"]
            assert check.head_sha == one.ticket.sha
            if one.stage != "vanished":
                status = {"approval": "queued", "evaluating": "in_progress", "over": "completed"}[one.stage]
                assert check.status == status

    # How it is done.

    def _enter(self, run: WorkflowRun, event: dict[str, object], fault: str) -> object:
        """Let the gate decide, and see that whoever asked has an answer."""
        self._order(fault)
        name = "workflow_dispatch" if "inputs" in event else "pull_request_target"
        env = {**environment(run.id, run.attempt), "GITHUB_SHA": self.github.state.refs["heads/main"]}
        config = _world()[2]
        decided = admit(
            self._client(journey._GATE),
            name,
            event,
            env,
            read_config=lambda *_: (config, None),
            describe=lambda _: PLAN,
        )
        if isinstance(decided, Admission):
            waits = bool(self.github.state.reviewers)
            self.evaluations[run] = Evaluation(decided.ticket, "approval" if waits else "evaluating")
        else:
            note(f"refused: {decided}")
            self._close_run(run)
        assert f"/runs/{run.id}/attempts/{run.attempt}" in render(self._ledger())[0]
        # A gate takes evaluations off the comment that ended without a word.
        for known, one in self.evaluations.items():
            if one.stage == "vanished":
                assert known not in {item.run for item in self._ledger().runs}
        return decided

    def _publish(self, run: WorkflowRun, folder: Path, result: str, fault: str) -> None:
        root, _, config = _world()
        self._order(fault)
        ticket = self.evaluations[run].ticket
        posted = publish(
            self._client(journey._PUBLISH), ticket, config, root=root, folder=folder, result=result, write=render_result
        )
        assert posted.troubles == ()
        self.evaluations[run].stage = "over"
        self._close_run(run)

    def _order(self, fault: str) -> None:
        """Let the next write fail once; a rival writes after we have read and before we write."""
        self.github.faults._queue.clear()
        comment = r"/issues/(comments/\d+|1/comments)$"
        match fault:
            case "502":
                for verb in ("PATCH", "DELETE"):
                    self.github.fail(verb, "", 502)
                self.github.fail("GET", "/comments|/check-runs|/pulls/", 502)
            case "lost answer":
                for verb in ("POST", "PATCH", "DELETE"):
                    self.github.fail(verb, "", 502, takes_effect=True)
            case "dropped":
                self.github.fail("PATCH", "", kind="drop", takes_effect=True)
                self.github.fail("POST", comment, kind="drop", takes_effect=True)
            case "limit":
                self.github.secondary_limit("PATCH", "", status=429, retry_after=3)
                self.github.secondary_limit("POST", comment, status=403, retry_after=3)
            case "rival":
                for verb in ("POST", "PATCH"):
                    self.github.before(verb, comment, self._rival)

    def _rival(self) -> None:
        """Write a refusal as another gate does that has read the comment as it is now."""
        self.last_run += 1
        ours = [item for item in self.github.comments(1) if item.author == ME and item.body.startswith(MARKER)]
        ledger = read_comment(ours[0].body, PLACE) if ours else Ledger()
        url = f"https://github.com/acme/agent/actions/runs/{self.last_run}/attempts/1"
        event = RequestRefused(run=WorkflowRun(self.last_run, 1), at=now(), url=url, why="no.")
        text = compose(advance(ledger, event), PLACE)
        if ours:
            ours[0].body = text
        else:
            self.github.comment(1, ME, text)

    def _new_run(self) -> WorkflowRun:
        self.last_run += 1
        head = self.github.state.refs["heads/main"]
        self.github.run(WORKFLOW, head, status="in_progress", conclusion=None, run_id=self.last_run)
        return WorkflowRun(self.last_run, 1)

    def _close_run(self, run: WorkflowRun) -> None:
        stored = self.github.state.runs[run.id]
        stored.status, stored.conclusion = "completed", "success"

    def _runs(self, *stages: str) -> list[WorkflowRun]:
        latest = {run.id: run for run in sorted(self.evaluations)}
        return [run for run in latest.values() if self.evaluations[run].stage in stages]

    def _client(self, permissions: dict[str, str]) -> GitHub:
        token = self.github.job_token({"metadata": "read", **permissions})
        retry = ApiRetries(timeout=5, sleep=lambda seconds: None)
        return GitHub(adopted.REPO, token, api_url=self.github.url, retry=retry)

    def _ours(self) -> list[str]:
        found = (item for item in self.github.comments(1) if item.author == ME)
        return [item.body for item in found if item.body.startswith(MARKER)]

    def _ledger(self) -> Ledger:
        ours = self._ours()
        return read_comment(ours[0], PLACE) if ours else Ledger()


BusyRepository.TestCase.settings = settings(
    max_examples=int(os.environ.get("BUSY_EXAMPLES", "6")),
    # The same cases in every run: more of them, and others, are played with BUSY_EXAMPLES.
    derandomize="BUSY_EXAMPLES" not in os.environ,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[phase for phase in Phase if phase is not Phase.shrink],
)
TestBusyRepository = BusyRepository.TestCase
