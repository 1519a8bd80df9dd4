"""Putting a run together: which compressor, which models, or none at all."""

from __future__ import annotations

from eval_core.errors import UserError
from eval_core.judge.extractive import ExtractiveAnswerer
from eval_core.judge.fact_judge import FactJudge
from eval_core.run.roles import Roles
from eval_core.subject.builtin import BuiltinSubject

__all__ = ["offline_roles"]


def offline_roles(target: str) -> Roles:
    """Return the roles of a run without any model."""
    kind, _, name = target.partition(":")
    if kind != "builtin":
        raise UserError(f"--target {target!r}: not yet")
    return Roles(BuiltinSubject(name), ExtractiveAnswerer(), FactJudge(), offline=True)
