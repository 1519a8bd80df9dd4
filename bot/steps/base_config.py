"""The configuration of a pull request's base, read through the API at one commit.

The gate's own checkout is the default branch, whatever branch a pull request is meant for; what judges it must be the
configuration of the branch that it would be merged into.
"""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath

from bot.github.repository import GitHub
from bot.pull_request.admission import check_target
from eval_core.base.config import CONFIG_FILE, Config, load_config
from eval_core.base.errors import UserError


def read_base_config(github: GitHub, sha: str) -> tuple[Config, str | None]:
    """Return the configuration at a commit, and why it is not fit for an evaluation, if it is not."""
    with tempfile.TemporaryDirectory(prefix="base-") as name:
        root = Path(name)
        _download(github, CONFIG_FILE, sha, root)
        try:
            config = load_config(None, root)
        except UserError as exc:
            return Config(), _without(root, exc)
        try:
            if isinstance(config.target, str) and not config.target.startswith("builtin:"):
                _download(github, config.target, sha, root)
            check_target(config, root)
        except UserError as exc:
            return config, _without(root, exc)
        return config, None


def _download(github: GitHub, path: str, sha: str, root: Path) -> None:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise UserError(f"target: {path} leads out of the repository; name a file inside it")
    found = github.contents.file(str(parts), sha)
    if found is not None:
        place = root / parts
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(found.content)


def _without(root: Path, exc: UserError) -> str:
    """Name files as they are called in the repository."""
    return str(exc).replace(f"{root}/", "")
