"""Prompt templates: files beside this module, identified by the hash of their content."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

__all__ = ["render", "template_digest"]

_FOLDER = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    # No escaping: prompts are text for models. Values are never parsed as templates.
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # noqa: S701
        auto_reload=False,  # or each prompt asks the disk whether its template changed
    )


def render(name: str, **values: Any) -> str:
    """Fill a template in."""
    return _environment().get_template(name).render(**values).strip()


@cache
def template_digest(*names: str) -> str:
    """Return what identifies the wording of these templates."""
    hasher = hashlib.sha256()
    for name in names:
        # Line endings depend on how the repository was checked out; the wording does not.
        hasher.update((_FOLDER / name).read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return hasher.hexdigest()
