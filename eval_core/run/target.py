"""From what the user calls the target to a subject that can be run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.errors import UserError
from eval_core.model.offline import OFFLINE_MODEL, complete_offline
from eval_core.subject.builtin import BuiltinSubject, Complete
from eval_core.subject.outcome import Subject
from eval_core.subject.sandbox import Wanted, detect
from eval_core.subject.spec import Builtin, TargetSpec, read_target, target_from
from eval_core.subject.subject import ProcessSubject
from eval_core.tokens import count_messages

__all__ = ["Target", "find_target"]

_HERMES = Path(__file__).resolve().parents[2] / "docs" / "targets" / "hermes.yml"


@dataclass(frozen=True)
class Target:
    """A compressor, described, and the tree that holds its code."""

    spec: TargetSpec | Builtin
    base: Path
    tree: Path

    def subject(
        self, *, complete: Complete | None, model: str | None, max_tokens: int, sandbox: Wanted, hidden: tuple[str, ...]
    ) -> tuple[Subject, str]:
        """Return the subject and a word about the sandbox it runs in."""
        if isinstance(self.spec, Builtin):
            subject = BuiltinSubject(self.spec.name, complete=complete, model=model, max_tokens=max_tokens)
            return subject, "not needed: the reference compressor is our own code"
        choice = detect(sandbox)
        process = ProcessSubject(
            spec=self.spec,
            base=self.base,
            tree=self.tree,
            sandbox=choice,
            model=model or OFFLINE_MODEL,
            complete=complete or complete_offline,
            count=count_messages,
            hidden=hidden,
        )
        return process, choice.level


def find_target(
    given: str | None, configured: dict[str, Any] | str, root: Path, tree: Path, environ: Mapping[str, str] = os.environ
) -> Target:
    """Choose the target: the command line, an agent project's own runner, or the configuration."""
    hermes = environ.get("HERMES_AGENT_ROOT")
    if given is None and hermes:
        # That runner starts us in our own checkout and means its own tree, whatever is configured here.
        if not Path(hermes).is_dir():
            raise UserError(f"HERMES_AGENT_ROOT={hermes}: no such folder; it should hold the agent's source tree")
        return Target(_with_interpreter(read_target(_HERMES), Path(hermes)), _HERMES.parent, Path(hermes))
    value = given if given is not None else configured
    if isinstance(value, str) and not value.startswith("builtin:"):
        path = root / value
        if not path.exists():
            raise UserError(
                f"--target {value}: no such file; give builtin:anchored, builtin:opaque ... or a target file"
            )
        return Target(read_target(path), path.parent, tree)
    return Target(target_from(value, "target"), root, tree)


def _with_interpreter(spec: TargetSpec | Builtin, tree: Path) -> TargetSpec | Builtin:
    """Use the environment of the agent's own tree, or ours where it has none."""
    if isinstance(spec, Builtin) or spec.python is None:
        return spec
    python = tree / spec.python
    return spec.model_copy(update={"python": str(python.absolute()) if python.exists() else None})
