"""What the bot may measure: a compressor that lives in the repository."""

from __future__ import annotations

from pathlib import Path

from eval_core.config import Config
from eval_core.errors import UserError
from eval_core.subject.spec import Builtin, read_target, target_from

__all__ = ["check_target"]


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
