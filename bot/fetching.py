"""Fetching what the evaluate job works on: the pull request's tree as data, and what was measured before."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from bot.artifact import unpack_artifact
from bot.github import GitHub
from bot.ticket import Ticket, evaluation_artifact
from bot.tree import fetch_tree
from bot.workflow_runs import WORKFLOW
from eval_core.errors import UserError

__all__ = ["ACCEPTED", "EARLIER", "SUBJECT", "fetch"]

SUBJECT = "subject"
EARLIER = "earlier"
"""Left by a run with the same ticket."""
ACCEPTED = "accepted"
"""Left by the evaluation of the pull request that a baseline is made after."""


def fetch(github: GitHub, ticket: Ticket, work: Path) -> None:
    """Bring the tree of the evaluated commit, and what was measured of it before, into the work folder."""
    if ticket.pr is not None:
        fetch_tree(github, ticket.sha, work / SUBJECT)
    _bring(github, ticket.artifact, work / EARLIER)
    if ticket.mode == "baseline" and ticket.pr is not None:
        _bring(github, evaluation_artifact(ticket.sha), work / ACCEPTED)


def _bring(github: GitHub, name: str, into: Path) -> None:
    """Fetch an artifact if there is one; one that cannot be used only costs its reuse."""
    found = github.workflow_runs.find_artifact(WORKFLOW, name)
    if found is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "artifact.zip"
        try:
            github.workflow_runs.download(found, archive)
            unpack_artifact(archive, into)
        except UserError as exc:
            shutil.rmtree(into, ignore_errors=True)
            print(f"Earlier results are not reused: {exc}", flush=True)
