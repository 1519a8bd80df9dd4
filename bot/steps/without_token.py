"""Start a subprocess without the job's tokens: for cost estimates, and for reading untrusted results."""

from __future__ import annotations

import os
import subprocess
import sys

_SECRETS = frozenset({"GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"})


def start_without_token(module: str) -> subprocess.Popen[str]:
    """Start a module of ours with pipes on both sides and without the job's tokens in its environment."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],  # -P: a package of the same name in the checkout is not ours
        env={name: value for name, value in os.environ.items() if name not in _SECRETS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
