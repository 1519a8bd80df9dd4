"""The check run of an evaluated commit: queued, in progress, concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bot.github.api_error import Unavailable
from bot.github.repository import GitHub
from bot.github.resources import CheckRun
from bot.pull_request.event import WorkflowRun

CHECK_NAME = "compression-eval"
FAILED = "The evaluation failed"
"""The title of a check that shows nobody a result: by it, later runs tell it from a result that is neutral."""
NOTHING = "Nothing to evaluate"
"""The title of a check that answers for a commit which nobody evaluated."""
INCOMPLETE = "Incomplete"
"""How the title of an incomplete result begins; written here, because the gate must not load what compares results."""
FIRST_RESULT = "first_result"
"""The outcome of the first compressor of a repository: measured, and nothing to compare with."""
SUMMARY_LIMIT = 65_535
_TITLE_LIMIT = 255
_CUT = "\n\n*(cut here; the comment and the artifact have the rest)*"

Conclusion = Literal["success", "failure", "neutral", "cancelled", "action_required", "skipped"]
Policy = Literal["neutral", "verdict"]

_BY_VERDICT: dict[str, Conclusion] = {
    "improved": "success",
    "no_detectable_change": "success",
    # The compressor does not work any more.
    "broken": "failure",
    "regressed": "failure",
    # Something got worse, even if something else got better.
    "mixed": "failure",
    # Quality for size, either way: for people to decide.
    "trade": "neutral",
    # Measured, and nothing was shown either way: not a pass, and not the author's fault.
    "inconclusive": "neutral",
    # Only a model could have judged it, and there was none.
    "not_judged": "neutral",
    # It compressed every session, and there is no earlier compressor that it could be worse than.
    FIRST_RESULT: "neutral",
    # No answer at all. GitHub counts neutral as passed for a required check, and a gate must not pass on nothing.
    "incomplete": "action_required",
    "not_comparable": "action_required",
    "failed": "action_required",
    "timed_out": "action_required",
}
# How an evaluation can end that nobody wanted to go on.
_BY_END: dict[str, Conclusion] = {
    "refused": "skipped",
    "cancelled": "cancelled",
    "rejected": "cancelled",
    "vanished": "cancelled",
    "superseded": "cancelled",
}


def conclude(outcome: str, policy: Policy) -> Conclusion:
    """Map a verdict, or the way an evaluation ended without one, to the check's conclusion."""
    if outcome in _BY_END:
        return _BY_END[outcome]
    conclusion = _BY_VERDICT.get(outcome, "neutral")
    return conclusion if policy == "verdict" or conclusion == "success" else "neutral"


class Check:
    """The check run that one workflow run keeps on one commit."""

    def __init__(self, github: GitHub, sha: str, run: WorkflowRun, details_url: str, name: str = CHECK_NAME) -> None:
        self._github = github
        self._sha = sha
        self._name = name
        self._details_url = details_url
        # Finds the check again after a lost answer, and in the job that publishes.
        self._external_id = f"{run.id}/{run.attempt}"

    def queue(self, title: str, summary: str) -> CheckRun:
        """Show that the evaluation was asked for."""
        return self._put({"status": "queued"}, title, summary)

    def start(self, title: str, summary: str) -> CheckRun:
        """Show that the evaluation is under way."""
        return self._put({"status": "in_progress"}, title, summary)

    def finish(
        self, outcome: str, title: str, summary: str, *, policy: Policy, annotations: Sequence[Mapping[str, Any]] = ()
    ) -> CheckRun:
        """Show how it ended, with notes beside lines of the diff."""
        fields = {"status": "completed", "conclusion": conclude(outcome, policy)}
        return self._put(fields, title, summary, annotations)

    def find(self) -> CheckRun | None:
        """Return this run's check, if it was created already."""
        for check in self._github.check_runs(self._sha, self._name):
            if check.external_id == self._external_id:
                return check
        return None

    def _put(
        self, fields: dict[str, Any], title: str, summary: str, annotations: Sequence[Mapping[str, Any]] = ()
    ) -> CheckRun:
        output: dict[str, Any] = {"title": title[:_TITLE_LIMIT], "summary": _fit(summary)}
        standing = self.find()
        # An update adds annotations to those that are there: a job that runs again would say everything twice.
        if annotations and not (standing and standing.annotations):
            output["annotations"] = list(annotations)
        fields = {**fields, "details_url": self._details_url, "output": output}
        if standing is None:
            identity = {"name": self._name, "head_sha": self._sha, "external_id": self._external_id}
            try:
                return self._github.create_check({**identity, **fields})
            except Unavailable as exc:
                standing = self.find() if exc.maybe_done else None
                if standing is None:
                    raise
        return self._github.update_check(standing.id, fields)


def _fit(summary: str) -> str:
    if len(summary.encode()) <= SUMMARY_LIMIT:
        return summary
    room = SUMMARY_LIMIT - len(_CUT.encode())
    return summary.encode()[:room].decode(errors="ignore") + _CUT
