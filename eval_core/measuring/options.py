"""Options: what a user, or the bot, asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.globs import watched_digest
from eval_core.base.sealing import SealingKey
from eval_core.domain.case import Case
from eval_core.domain.shard import Shard
from eval_core.domain.target import Builtin, CompressorSource, TargetSpec
from eval_core.measuring.base_branch import BranchPoint
from eval_core.measuring.compare_with_base import load_cases
from eval_core.models.settings import ModelFlags, Models, resolve
from eval_core.sandbox.compressor_source import source_of
from eval_core.sandbox.isolation import Wanted
from eval_core.sandbox.targets import Target, find_target


@dataclass(frozen=True)
class RunOptions:
    """One run of the eval, as asked for on the command line or by the bot."""

    settings: Config
    root: Path = field(default_factory=Path)
    """The configuration's folder, with fixtures, probes and baselines: the base branch."""
    tree: Path | None = None
    """The code under test; by default the root, or where a target file from outside the root lies."""
    names: tuple[str, ...] | None = None
    runs: int | None = None
    compress_runs: int | None = None
    target: str | None = None
    moved_to: TargetSpec | None = None
    """A description of where the tree under test has the compressor; all else about it is the configured target's."""
    flags: ModelFlags = field(default_factory=ModelFlags)
    budget_usd: float | None = None
    deadline_minutes: float | None = None
    """No model call starts later than this after the beginning of the run."""
    focus_topic: str | None = None
    sandbox: Wanted = "auto"
    seed: int = 0
    resume: bool = False
    looks: int = 1
    """Which of the planned looks at this candidate it is: a later one has more graded runs."""
    compare_to: str = "auto"
    baseline: Literal["stored", "rerun"] = "stored"
    """rerun: measure the base beside the candidate instead of reading a stored result."""
    base_tree: Path | None = None
    base_point: BranchPoint | None = None
    """The commit of `base_tree` and its branch, where they are known."""
    every_private_probe: bool = False
    """Ask all private probes and not the drawn share: a baseline must serve every draw."""
    shard: Shard | None = None
    """The part of the plan that is measured here; its results are merged with those of the others."""

    @property
    def models(self) -> Models | None:
        """The models of this run; None is offline."""
        return resolve(self.flags, os.environ, self.settings.models)

    @property
    def topic(self) -> str | None:
        """The focus topic."""
        return self.focus_topic or self.settings.focus_topic

    @property
    def budget(self) -> float:
        """What all of the run may cost, in dollars."""
        return self.budget_usd or self.settings.budget_usd

    @property
    def deadline_s(self) -> float | None:
        """Seconds from the beginning of the run after which no model call starts."""
        minutes = self.deadline_minutes or self.settings.deadline_minutes
        return None if minutes is None else 60 * minutes

    @property
    def sealing(self) -> SealingKey | None:
        """The key of the private probes, where it is at hand."""
        private = self.settings.private_probes
        return None if private is None else SealingKey.of_environment(private.key_env, os.environ)

    @property
    def results(self) -> Path:
        """Where results are written to, unless the command names another folder."""
        return self.root / self.settings.results

    @property
    def baselines(self) -> Path:
        """The folder of the stored baselines."""
        return self.root / self.settings.baselines

    @property
    def hidden(self) -> tuple[str, ...]:
        """What the compressor under test must not see."""
        names = (self.settings.fixtures, self.settings.probes, self.settings.baselines, self.settings.results)
        # At the same place in the tree, which may be another commit's, and where they are read from.
        return (*names, *(str((self.root / name).resolve()) for name in names))

    def load_cases(self) -> list[Case]:
        """Read the suite."""
        return load_cases(self.settings, self.root, self.names, every_private=self.every_private_probe)

    def load_target(self) -> Target:
        """Find the compressor under test."""
        target = find_target(self.target, self.settings.target, self.root, self.tree)
        return target if self.moved_to is None else target.moved_to(self.moved_to)

    def load_base_target(self) -> Target:
        """Find the compressor of the base, which is measured in the same run."""
        target = self.load_target()
        if self.base_tree is None:
            if isinstance(target.spec, Builtin):
                return target
            raise UserError("--compare-to rerun: give the tree of the base with --base-tree")
        if not self.base_tree.is_dir():
            raise UserError(f"--base-tree {self.base_tree}: no such folder; it holds the tree of the base commit")
        return find_target(self.target, self.settings.target, self.root, self.base_tree)

    def source(self, target: Target) -> CompressorSource:
        """Read what a target is made of now."""
        return source_of(target, watch=self.settings.watch, hidden=self.hidden)

    def digest_of(self, tree: Path | None) -> str | None:
        """Return the digest of the watched files of a tree; the tree under test may lie inside the base's."""
        if tree is None:
            return None
        skipped = [self.results]
        if self.tree is not None and tree.resolve() != self.tree.resolve():
            skipped.append(self.tree)
        return watched_digest(tree, self.settings.watch, skipped)
