"""Admission: may this request spend money? Decided from plain facts, watched globs included."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bot.github.resources import ChangedFile, Pull
from bot.pull_request.event import COMMAND, EvaluationRequest
from eval_core.base.config import CONFIG_FILE, Config
from eval_core.base.errors import UserError
from eval_core.base.globs import matches
from eval_core.domain.target import Builtin, read_target, target_from

# Which changed files make an evaluation worth its cost, and which are never taken from a pull request.

EVALUATOR = ("eval_core/**", "bot/**", "scripts/**", "action.yml", "action.yaml")
"""The evaluator's own code, in the evaluator's own repository and nowhere else."""

_DEPENDENCIES = (
    "**/pyproject.toml",
    "**/setup.py",
    "**/setup.cfg",
    "**/requirements*.txt",
    "**/requirements/*.txt",
    "**/constraints*.txt",
    "**/environment.y*ml",
    "**/Pipfile",
    "**/*.lock",
    "**/package.json",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/pnpm-lock.yaml",
    "**/.python-version",
)


def base_only(path: str, config: Config, evaluator: Sequence[str] = ()) -> str | None:
    """Say what a changed file is if its version on the base branch is used instead; None if the PR's counts."""
    folders = {"fixture": config.fixtures, "probe": config.probes, "baseline": config.baselines}
    for kind, folder in folders.items():
        if matches(path, [f"{folder.strip('/')}/**"]):
            return kind
    if path == CONFIG_FILE:
        return "configuration"
    if isinstance(config.target, str):
        if path == posixpath.normpath(config.target):
            return "target"
    elif (adapter := config.target.get("adapter")) and path == posixpath.normpath(str(adapter)):
        return "adapter"
    if matches(path, [".github/**"]):
        return "workflow"
    if matches(path, _DEPENDENCIES):
        return "dependencies"
    # The subject itself may live inside the evaluator's packages; the watch list says so.
    if matches(path, evaluator) and not matches(path, config.watch):
        return "evaluator"
    return None


def is_measured(path: str, config: Config) -> bool:
    """Tell whether a change of this file is part of what is measured."""
    return base_only(path, config) is None and (not config.watch or matches(path, config.watch))


Why = Literal[
    "permission",
    "no-pull-request",
    "closed",
    "merged",
    "not-merged",
    "locked",
    "label-gone",
    "head-moved",
    "head-unsure",
    "not-watched",
    "base-only",
    "looks",
    "daily-quota",
    "unfit",
    "no-merge-base",
    "not-default",
    "command",
    "pull-requests-off",
]

_MAY_SPEND = frozenset({"write", "maintain", "admin"})
_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What GitHub says at the moment of the decision."""

    permission: str | None
    """The sender's permission on the repository; None if GitHub knows no such collaborator."""
    base_sha: str
    """The commit that everything but the subject is taken from."""
    looks: int
    """Evaluations of this very commit so far."""
    runs_today: int
    """Evaluations of the whole repository in the last 24 hours."""
    pull: Pull | None = None
    head_sure: bool = True
    """The commit is the one that was meant; not where something happened between a comment and the gate."""
    files: tuple[ChangedFile, ...] = ()
    own_repository: bool = False
    """This is the evaluator's own repository: its packages come from the base branch. Elsewhere a folder that happens
    to have the same name is the adopter's code."""


@dataclass(frozen=True)
class IgnoredFile:
    """A changed file whose version on the base branch is used, and what it is."""

    path: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """Go ahead, with exactly these commits."""

    pr: int | None
    sha: str
    base_sha: str
    looks: int
    """Which look at this commit this will be; 1 for the first."""
    stale: bool
    """The pull request has moved on since the request; the pinned commit is evaluated all the same."""
    ignored_files: tuple[IgnoredFile, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """Stop here: one sentence with the remedy."""

    why: str
    code: Why


def decide(request: EvaluationRequest, facts: Facts, config: Config) -> Allowed | Refused:
    """Allow or refuse a request; the first thing in the way is named."""
    pull = facts.pull
    refused = (
        _sender(request, facts, config)
        or _command(request)
        or (_pull(request, facts) if pull is not None or request.pr is not None else None)
        or _quota(request, facts, config)
    )
    if refused is not None:
        return refused
    ignored = _ignored(facts.files, config, EVALUATOR if facts.own_repository else ())
    warnings: list[str] = []
    stale = pull is not None and pull.head_sha != request.sha
    if pull is not None and request.mode == "evaluate":
        listed_all = len(facts.files) >= pull.changed_files
        nothing = _nothing_to_measure(facts.files, ignored, config)
        if nothing is not None and listed_all and not request.force:
            return nothing
        if nothing is not None:
            warnings.append("No file of this pull request that GitHub lists is part of what is measured.")
        if not listed_all:
            warnings.append(
                f"GitHub lists only {len(facts.files)} of the {pull.changed_files} changed files; "
                "the list of ignored files may be incomplete."
            )
        if pull.draft:
            warnings.append("The pull request is a draft.")
    return Allowed(
        pr=request.pr,
        sha=request.sha,
        base_sha=facts.base_sha,
        looks=facts.looks + 1,
        stale=stale,
        ignored_files=ignored,
        warnings=tuple(warnings),
    )


def _sender(request: EvaluationRequest, facts: Facts, config: Config) -> Refused | None:
    # What an app writes in a comment may be a stranger's words.
    listed = request.sender in config.bot.apps and request.trigger in ("label", "dispatch")
    if listed or facts.permission in _MAY_SPEND:
        return None
    if request.sender.endswith("[bot]"):
        return Refused(
            f"{request.sender} is an app, and an evaluation costs money: name it under bot.apps on the base branch, or "
            "ask someone with write permission to start it.",
            "permission",
        )
    has = "no access of their own" if facts.permission in (None, "", "none") else f"only {facts.permission} permission"
    return Refused(
        f"{request.sender} has {has} to {request.repo}, and an evaluation costs money: "
        "ask someone with write permission to start it.",
        "permission",
    )


def _command(request: EvaluationRequest) -> Refused | None:
    return None if request.mistake is None else Refused(f"{request.mistake}.", "command")


def _pull(request: EvaluationRequest, facts: Facts) -> Refused | None:
    pull = facts.pull
    if pull is None or pull.number != request.pr:
        return Refused(
            f"There is no pull request #{request.pr} in {request.repo}: check the number.", "no-pull-request"
        )
    # A baseline is made from what was merged; an evaluation can no longer change anything there.
    if pull.merged and request.mode == "evaluate":
        return Refused(
            f"Pull request #{pull.number} is already merged: start the workflow in baseline mode "
            "to store its result as the new baseline.",
            "merged",
        )
    if request.mode == "baseline" and not pull.merged:
        return Refused(
            f"Pull request #{pull.number} is not merged, and a baseline is measured on the base branch: "
            "merge it first.",
            "not-merged",
        )
    if pull.state != "open" and not pull.merged:
        return Refused(f"Pull request #{pull.number} is closed: reopen it, then ask again.", "closed")
    if pull.locked:
        return Refused(
            f"The conversation of pull request #{pull.number} is locked, so no result could be posted: "
            "unlock it, then ask again.",
            "locked",
        )
    if not facts.head_sure and request.mode == "evaluate":
        return Refused(
            f"Something happened on pull request #{pull.number} after the command was written, perhaps a push, so it "
            f"is not certain which commit was meant: look at the last one, then comment "
            f"`{COMMAND} sha={pull.head_sha}`.",
            "head-unsure",
        )
    if request.trigger != "label" and pull.head_sha != request.sha:
        return Refused(
            f"{request.sha[:7]} is not the last commit of pull request #{pull.number}: "
            f"start again with its head, {pull.head_sha}.",
            "head-moved",
        )
    # A re-run finds its label consumed by the first attempt; a first attempt without it was called off.
    if request.label is not None and request.run.attempt == 1 and not _has(pull, request.label):
        return label_gone(request.label)
    return None


def _has(pull: Pull, label: str) -> bool:
    return label.lower() in {name.lower() for name in pull.labels}


def label_gone(label: str) -> Refused:
    """Refuse a request whose label another run has used, or somebody has taken back."""
    return Refused(
        f"The label {label} was removed before the evaluation began: add it again to start one.", "label-gone"
    )


def _quota(request: EvaluationRequest, facts: Facts, config: Config) -> Refused | None:
    if request.trigger == "review" and facts.looks:
        return Refused(f"{request.sha[:7]} was evaluated already: add the label to look again.", "looks")
    if request.mode == "evaluate" and facts.looks >= config.bot.looks_per_sha:
        return Refused(
            f"{request.sha[:7]} was evaluated {_times(facts.looks)}, and repeating until it looks good proves "
            "nothing: push a change, or raise bot.looks_per_sha on the base branch.",
            "looks",
        )
    if facts.runs_today >= config.bot.runs_per_day:
        return Refused(
            f"{facts.runs_today} of {config.bot.runs_per_day} evaluations in the last 24 hours are used up: "
            "wait, or raise bot.runs_per_day on the base branch.",
            "daily-quota",
        )
    return None


def _ignored(files: Sequence[ChangedFile], config: Config, evaluator: Sequence[str]) -> tuple[IgnoredFile, ...]:
    found = {}
    for path in _paths(files):
        kind = base_only(path, config, evaluator)
        if kind is not None:
            found[path] = IgnoredFile(path, kind)
    return tuple(found.values())


def _paths(files: Sequence[ChangedFile]) -> list[str]:
    """List new and old names: a file moved out of a folder changes that folder too."""
    return [path for file in files for path in (file.path, file.previous) if path]


def nothing_to_measure(files: Sequence[ChangedFile], config: Config) -> Refused | None:
    """Say why a pull request with these files is not evaluated; None where it may be."""
    return _nothing_to_measure(files, _ignored(files, config, ()), config)


def _nothing_to_measure(files: Sequence[ChangedFile], ignored: Sequence[IgnoredFile], config: Config) -> Refused | None:
    taken_from_base = {file.path for file in ignored}
    counted = [path for path in _paths(files) if path not in taken_from_base]
    if files and not counted:
        kinds = ", ".join(sorted({file.kind for file in ignored}))
        return Refused(
            f"Every file that this pull request changes is taken from the base branch ({kinds}), so there is nothing "
            "to measure: start the workflow manually with force to evaluate it anyway.",
            "base-only",
        )
    if not config.watch or any(matches(path, config.watch) for path in counted):
        return None
    globs = ", ".join(config.watch[:_SHOWN]) + (", ..." if len(config.watch) > _SHOWN else "")
    return Refused(
        f"No changed file is watched ({globs}): if this pull request does change the compressor, start the workflow "
        "by hand with force, and add its path to watch on the base branch.",
        "not-watched",
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# What the bot may measure: a compressor that lives in the repository.


def check_target(config: Config, root: Path) -> None:
    """Refuse a target that is not in the pull request: its result would say nothing about the change."""
    value = config.target
    is_file = isinstance(value, str) and not value.startswith("builtin:")
    spec = read_target(root / str(value)) if is_file else target_from(value, "target")
    if isinstance(spec, Builtin):
        raise UserError(
            f"target: builtin:{spec.name} is compression-eval's own code, so no pull request can change what is "
            "measured; name your compressor under target in .compression-eval.yml on the base branch "
            "(`compression-eval init` writes it)"
        )
