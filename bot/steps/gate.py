"""The gate step: gather the facts from GitHub, decide, consume the label, tell the pull request."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.github.api_error import Conflict, NotFound
from bot.github.repository import WORKFLOW, GitHub
from bot.github.resources import Pull
from bot.pull_request.admission import EVALUATOR, Allowed, Facts, Refused, Why, decide, label_gone
from bot.pull_request.body import asker
from bot.pull_request.event import EvaluationRequest, Ignored, Trigger, read_event
from bot.pull_request.ledger import (
    EvaluationQueued,
    LedgerNotice,
    LedgerResult,
    LedgerRun,
    RequestRefused,
    RunVanished,
)
from bot.pull_request.ticket import Ticket
from bot.steps.check import CHECK_NAME, FAILED, INCOMPLETE, NOTHING, Check
from bot.steps.comment import Sticky
from bot.steps.estimate import RunEstimate
from eval_core.base.config import BotConfig, Config, SuiteName
from eval_core.base.errors import IncompleteError, UserError, bug_message
from eval_core.base.globs import matches
from eval_core.base.markdown_text import inline
from eval_core.models.credentials import require_handed_over
from eval_core.models.settings import ModelFlags, resolve

# Asking GitHub for what the gate has to know.

PACKAGE = "compression-eval"
_JOB = "evaluate"
"""The job that costs money."""

# Checks that were called off show nobody a result, as those that failed or are incomplete do not: the label again
# completes the same look.
_NOT_A_LOOK = frozenset({"cancelled", "skipped", "stale"})
_NO_RESULT = (FAILED, INCOMPLETE, NOTHING)


def gather(github: GitHub, request: EvaluationRequest, config: BotConfig, *, pull: Pull | None, base_sha: str) -> Facts:
    """Collect the facts about a request."""
    files = () if pull is None else github.changed_files(pull.number)
    return Facts(
        permission=github.permission(request.sender),
        base_sha=base_sha,
        looks=_looks(github, request.sha) if len(request.sha) == 40 else 0,
        runs_today=_runs_today(github, request, config),
        pull=pull,
        files=files,
        own_repository=any(matches(file.path, EVALUATOR) for file in files) and _is_own(github, base_sha),
    )


def _is_own(github: GitHub, base_sha: str) -> bool:
    """Tell whether the repository is the evaluator's own, by the name that its base branch installs under."""
    found = github.contents.file("pyproject.toml", base_sha)
    if found is None:
        return False
    try:
        project = tomllib.loads(found.content.decode("utf-8", "replace")).get("project")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(project, dict) and project.get("name") == PACKAGE


def _looks(github: GitHub, sha: str) -> int:
    try:
        runs = github.check_runs(sha, CHECK_NAME)
    except (Conflict, NotFound):
        # GitHub does not know the commit: the gate or the download will say so in better words.
        return 0
    return sum(run.conclusion not in _NOT_A_LOOK and not run.title.startswith(_NO_RESULT) for run in runs)


def _runs_today(github: GitHub, request: EvaluationRequest, config: BotConfig) -> int:
    """Count what was paid for; runs that the gate refused do not use up the quota of others."""
    count = 0
    for run in github.workflow_runs.of(WORKFLOW, since=datetime.now(UTC) - timedelta(hours=24)):
        if run.conclusion == "skipped":
            continue
        # Our own costly job may be listed as queued already.
        count += github.workflow_runs.times_run(run.id, _JOB, finished=run.id == request.run.id)
        if count >= config.runs_per_day:
            break
    return count


ENVIRONMENT = "compression-eval"
"""The environment that holds the model key, and whose reviewers approve a run."""

_SHOWN = 3
_DEPENDABOT = "dependabot[bot]"
_HANDED_OVER = re.compile(r"^ +([A-Z_][A-Z0-9_]*): \$\{\{ *secrets\.", re.MULTILINE)
"""A variable of a step that holds a secret."""

ReadConfig = Callable[[GitHub, str], tuple[Config, str | None]]
Describe = Callable[[Config], RunEstimate]


def _suite(request: EvaluationRequest, config: Config) -> SuiteName:
    """Return what is played beside the fixtures: rounds cost nothing offline, where a baseline need not hold them."""
    if request.label is not None and request.label.lower() == config.bot.long_label.lower():
        return "long"
    free = resolve(ModelFlags(), os.environ, config.models) is None and request.mode == "evaluate"
    return config.bot.suite or ("rounds" if free else "quick")


_UNANSWERED: Mapping[Trigger, frozenset[Why]] = {
    # Anybody may comment; only those who may ask for an evaluation get an answer in the comment.
    "comment": frozenset({"permission"}),
    # Nobody has asked: a review is about more than the compressor.
    "review": frozenset(
        {"permission", "not-watched", "base-only", "looks", "head-moved", "closed", "merged", "locked"}
    ),
}


def _tasks(request: EvaluationRequest, config: Config) -> bool:
    """Tell whether tasks are played: for the label that asks for them, or always where configured; with models only."""
    if request.mode != "evaluate" or resolve(ModelFlags(), os.environ, config.models) is None:
        return False
    asked = request.label is not None and request.label.lower() == config.bot.tasks_label.lower()
    return asked or config.bot.tasks


@dataclass(frozen=True)
class Admission:
    """The evaluation may begin."""

    ticket: Ticket
    awaits: bool = False
    """A reviewer may have to approve it first, so that its start has to be told."""


@dataclass(frozen=True)
class NotAdmitted:
    """Nothing is evaluated, and why."""

    why: str
    post_error: str = ""
    """Why the reason could not be posted on the pull request; the job has to print it instead."""


def admit(
    github: GitHub,
    name: str,
    payload: Any,
    env: Mapping[str, str],
    *,
    read_config: ReadConfig,
    describe: Describe,
    own_token: bool = False,
) -> Admission | NotAdmitted:
    """Read the event, ask GitHub, decide, and post what was decided.

    `own_token` says that the baseline's pull request will be opened with a token other than the job's.
    """
    event = read_event(name, payload, env)
    if isinstance(event, Ignored):
        return NotAdmitted(event.why)
    if event.head is not None:
        number = github.approved_pull(event.head, event.sha, event.sender)
        if number is None:
            return NotAdmitted(f"{event.sender} has approved no open pull request at {event.sha[:7]}")
        event = replace(event, pr=number)
    try:
        return _Gate(github, event, read_config, describe, own_token, env.get("GITHUB_WORKFLOW_SHA", "")).run()
    except (UserError, IncompleteError) as exc:
        _tell_failure(github, event, f"GitHub returned an unexpected response: {inline(str(exc), 600)}.")
        raise
    except Exception as exc:
        # Whoever added the label waits for an answer, also where the fault is ours.
        _tell_failure(github, event, f"The gate failed: {inline(bug_message(exc), 600)}.")
        raise


@dataclass
class _Gate:
    """One request and what is needed to decide it."""

    github: GitHub
    request: EvaluationRequest
    read_config: ReadConfig
    describe: Describe
    own_token: bool
    workflow_sha: str = ""
    """The commit that the running workflow file is of."""
    base_moved: bool = False
    """Whether the base branch has changed watched files since the pull request left it."""

    def run(self) -> Admission | NotAdmitted:
        if self.request.sender == _DEPENDABOT:
            return NotAdmitted(
                "GitHub gives a run that Dependabot starts a token that can only read, and no secrets: someone with "
                "write permission has to remove the label and add it again."
            )
        pull = None if self.request.pr is None else self.github.pull(self.request.pr)
        head_sure = pull is None or self._head_was_meant(pull)
        request = self.request = _pinned(self.request, pull)
        # Everything but the subject comes from the tip of the base branch, not from where the PR once left it.
        base_sha = self.github.commit(pull.base_ref if pull is not None else request.sha).sha
        config, unfit = self.read_config(self.github, base_sha)
        # GitHub tells labels apart without regard to case, and so does the workflow's condition.
        ours = {label.lower() for label in (config.bot.label, config.bot.long_label, config.bot.tasks_label)}
        if request.label is not None and request.label.lower() not in ours:
            return NotAdmitted(f"the label {inline(request.label)} is not {inline(config.bot.label)}")
        facts = replace(gather(self.github, request, config.bot, pull=pull, base_sha=base_sha), head_sure=head_sure)
        decision = self._decision(facts, config, unfit)
        if request.label is not None and request.pr is not None:
            # Consumed whatever was decided: a label that stays on would look like a promise.
            consumed = self.github.remove_label(request.pr, request.label)
            if not consumed and request.run.attempt == 1 and isinstance(decision, Allowed):
                # Of two gates that saw the label only one has taken it off: one label, one evaluation.
                decision = label_gone(request.label)
        if isinstance(decision, Refused):
            quiet = _UNANSWERED.get(request.trigger, frozenset())
            if decision.code in quiet:
                return NotAdmitted(decision.why)
            return NotAdmitted(decision.why, self._tell(decision.why, pull))
        ticket = Ticket.of(request, decision, config.bot.shards, _suite(request, config), _tasks(request, config))
        if pull is not None and request.mode == "evaluate":
            found = self._against(ticket, pull, facts, config)
            if isinstance(found, Refused):
                return NotAdmitted(found.why, self._tell(found.why, pull))
            ticket = found
        return self._announced(ticket, config, pull)

    def _head_was_meant(self, pull: Pull) -> bool:
        """Tell whether the head is the commit that a comment meant: named in full, or there when it was written.

        The first digits of a SHA are no name: commits with the same ones can be made.
        """
        asked = self.request.asked_at
        if asked is None or len(self.request.sha) == 40 or pull.updated <= asked:
            return True
        known = Sticky(self.github, pull.number).read()
        ours: tuple[LedgerResult | LedgerRun | LedgerNotice, ...] = (*known.results, *known.runs, *known.notices)
        return any(
            item.sha == pull.head_sha and (item.at <= asked or item.run_id == self.request.run.id) for item in ours
        )

    def _against(self, ticket: Ticket, pull: Pull, facts: Facts, config: Config) -> Ticket | Refused:
        """Let the pull request be measured against what it branched from: what others did since is not its doing."""
        try:
            # From the head to the tip: the files are those that the base branch has changed since.
            since = self.github.compare(ticket.sha, ticket.base_sha)
        except NotFound:
            return Refused(
                f"GitHub finds no commit that {ticket.sha[:7]} and {inline(pull.base_ref)} share: rebase the pull "
                "request, then add the label again.",
                "no-merge-base",
            )
        self.base_moved = any(matches(name, config.watch) for name in since.files)
        mine = {name for file in facts.files for name in (file.path, file.previous)}
        both = sorted({name for name in since.files if name in mine and matches(name, config.watch)})
        warnings = [] if not both else [_both_changed(both, pull.base_ref)]
        return ticket.against(pull.base_ref, since.merge_base, since.ahead, warnings)

    def _decision(self, facts: Facts, config: Config, unfit: str | None) -> Allowed | Refused:
        decision = decide(self.request, facts, config)
        if isinstance(decision, Refused):
            return decision
        if unfit is not None:
            why = f"The base branch is not ready for an evaluation: {inline(unfit, 600)}"
            return Refused(why, "unfit")
        if (trouble := self._key_trouble(config, facts.base_sha)) is not None:
            return Refused(f"The models cannot be reached: {inline(trouble, 600)}", "unfit")
        return self._baseline_decision(decision) if self.request.mode == "baseline" else decision

    def _key_trouble(self, config: Config, base_sha: str) -> str | None:
        """Say which key the workflow would not hand over, or would have to send to two providers."""
        found = self.github.contents.file(f".github/workflows/{WORKFLOW}", self.workflow_sha or base_sha)
        if found is None:
            return None
        names = _HANDED_OVER.findall(found.content.decode("utf-8", "replace"))
        try:
            require_handed_over(config.models, names)
        except UserError as exc:
            return str(exc)
        return None

    def _baseline_decision(self, decision: Allowed) -> Allowed | Refused:
        """Refuse a baseline that could not be proposed, before anything is paid for."""
        branch = self.github.default_branch()
        if self.github.compare(branch, decision.base_sha).ahead:
            return Refused(
                f"{decision.base_sha[:7]} is not on {branch}, which the baseline is proposed to: "
                f"merge first, or start the workflow on {branch}.",
                "not-default",
            )
        if not self.own_token and self.github.may_open_pulls(branch) is False:
            return Refused(
                "GitHub does not let this workflow open the pull request that would propose the baseline, so nothing "
                'was measured. Turn on Settings, Actions, General, "Allow GitHub Actions to create and approve pull '
                'requests", or store a token as the secret COMPRESSION_EVAL_TOKEN; then start again.',
                "pull-requests-off",
            )
        return decision

    def _announced(self, ticket: Ticket, config: Config, pull: Pull | None) -> Admission:
        """Show on the commit and in the comment that the evaluation is coming; none of this decides anything."""
        if pull is not None:
            _try("react", lambda: self.github.react(pull.number, "eyes"))
        if pull is None or ticket.mode != "evaluate":
            return Admission(ticket)
        waits = self.github.reviewers_of(ENVIRONMENT)
        config = config.model_copy(update={"suite": ticket.suite, "play_tasks": ticket.tasks})
        plan = self.describe(_with_whole_base(config) if self.base_moved else config)
        check = Check(self.github, ticket.sha, ticket.run, ticket.run_url)
        title = "Waiting for approval" if waits else "Evaluating"
        summary = f"{title}. [Live log]({ticket.run_url}); expected: {plan.minutes}. Estimated cost: {plan.cost}."
        _try("post the check run", lambda: (check.queue if waits else check.start)(title, summary))
        sticky = Sticky(self.github, pull.number)
        _try("look for runs that ended unseen", lambda: self._clear_vanished(sticky))
        event = EvaluationQueued(
            run=ticket.run,
            at=datetime.now(UTC),
            url=ticket.run_url,
            head=pull.head_sha,
            sha=ticket.sha,
            approval=bool(waits),
            minutes=plan.most_minutes,
            note=_note(plan, ticket),
            asker=asker(ticket.sender, config.bot),
        )
        quiet = config.bot.comment == "changes"
        _try("post the comment", lambda: None if quiet and sticky.find() is None else sticky.record(event))
        return Admission(ticket, awaits=waits is not False)

    def _clear_vanished(self, sticky: Sticky) -> None:
        """Take evaluations off the comment whose run has ended without a word, as after a forced cancellation."""
        for run in sticky.read().runs:
            # An earlier attempt of this very run is over as well.
            over = run.run != self.request.run and self.github.workflow_runs.is_over(run.run_id, run.attempt)
            if over:
                sticky.record(RunVanished(run=run.run, at=datetime.now(UTC), url=run.url))
                check = Check(self.github, run.sha, run.run, run.url)
                if (standing := check.find()) is not None and standing.conclusion is None:
                    check.finish("vanished", "The evaluation ended without a result", "See its log.", policy="neutral")

    def _tell(self, why: str, pull: Pull | None) -> str:
        """Post a refusal where it can be read; return what was in the way."""
        if pull is None:
            return ""
        event = RequestRefused(
            run=self.request.run,
            at=datetime.now(UTC),
            url=self.request.run_url,
            head=pull.head_sha,
            why=why,
            sha=self.request.sha if len(self.request.sha) == 40 else None,
        )
        sticky = Sticky(self.github, pull.number)
        _try("look for runs that ended unseen", lambda: self._clear_vanished(sticky))
        return _try("post the refusal", lambda: sticky.record(event))


def _try(what: str, call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as exc:
        # The decision is made and the label is gone: nothing that goes wrong here may undo that.
        why = str(exc) if isinstance(exc, UserError | IncompleteError) else bug_message(exc)
        print(f"::warning::Could not {what}: {why}", flush=True)
        return why
    return ""


def _pinned(request: EvaluationRequest, pull: Pull | None) -> EvaluationRequest:
    """Complete the first digits of the head's SHA; a comment without any means the head."""
    if pull is None or len(request.sha) == 40:
        return request
    return replace(request, sha=pull.head_sha) if pull.head_sha.startswith(request.sha) else request


def _both_changed(names: Sequence[str], branch: str) -> str:
    """Say which files will meet in the merge, which nobody has measured."""
    shown = ", ".join(inline(name, 100) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"{inline(branch)} has changed {shown}{more} as well since this pull request left it. The two together are not "
        f"measured: merge {inline(branch)} into the pull request and add the label again for that."
    )


def _with_whole_base(config: Config) -> Config:
    """Return the configuration of a run that has to measure its base: a stored baseline would be of other files."""
    if config.baseline.control == "never":
        return config
    return config.model_copy(update={"baseline": config.baseline.model_copy(update={"control": "always"})})


def _note(plan: RunEstimate, ticket: Ticket) -> str:
    lines = [f"Models: {plan.models}.", f"Estimated cost: {plan.cost}."]
    if ticket.runs:
        lines.append(f"{ticket.runs} graded runs, as requested.")
    if ticket.parts:
        lines.append(f"{ticket.shards} jobs share the work.")
    if ticket.fixtures:
        lines.append(f"Only {', '.join(ticket.fixtures)}, as requested.")
    return " ".join(lines)[:600]


def _tell_failure(github: GitHub, request: EvaluationRequest, what: str) -> None:
    """Consume the label and say that nothing was decided; what fails here is added to the red job's log."""
    if request.pr is None:
        return
    number, label = request.pr, request.label
    if label is not None:
        _try("remove the label", lambda: github.remove_label(number, label))
    why = f"{what} Nothing was evaluated or paid for. Try again."
    event = RequestRefused(run=request.run, at=datetime.now(UTC), url=request.run_url, why=why, kind="failed")
    _try("post the failure", lambda: Sticky(github, number).record(event))
