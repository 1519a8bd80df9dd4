"""The real workflow file in a real workflow runner, on this machine: only the marketplace actions are stand-ins."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adopted
import small
import yaml
from loopback import LoopbackGitHub
from loopback.state import StoredPull, StoredRun

from bot.demo.journey import label_event
from bot.steps.comment import MARKER

_NOISE = re.compile(r"git re(?:vision|pository)|docker connection|LocalRepositoryCache")
STUBS = Path(__file__).parent / "stubs"
WORKFLOW = Path(".github/workflows/compression-eval.yml")


def find_act() -> str | None:
    """Return the workflow runner of this environment."""
    beside = Path(sys.executable).parent / "act"
    return str(beside) if beside.exists() else shutil.which("act")


@dataclass(frozen=True)
class Ran:
    """How a run ended and what its log says."""

    code: int
    log: str

    def result(self, job: str) -> str:
        """Return the end of a job: success, failure or, for one that did not run, skipped."""
        ends = re.findall(rf"^\[[^\]]*/{job}\s*\] 🏁  Job (\w+)", self.log, re.MULTILINE)
        return {"succeeded": "success", "failed": "failure"}[ends[-1]] if ends else "skipped"


@dataclass
class Runner:
    """Runs events against a loopback GitHub; each run gets the next id, and its artifacts are kept there."""

    act: str
    github: LoopbackGitHub
    folder: Path
    workflow: Path = small.REPOSITORY / WORKFLOW
    run_id: int = 9_000_000_000
    secrets: dict[str, str] = field(default_factory=dict)
    edits: dict[str, str] = field(default_factory=dict)
    """Texts of the workflow and what stands for them, where only GitHub could bring something about."""
    reviews: list[tuple[str, str, str, str]] = field(default_factory=list)
    """What reviewers of the environment said about the next run."""

    def seed(self, tree: adopted.Tree, sha: str | None = None) -> None:
        """Put a tree where a checkout of the commit (of the default branch: None) finds it."""
        into = self.folder / "trees" / (sha or "default")
        adopted.on_disk(tree, into)
        script = into / "scripts" / "install-action"
        script.parent.mkdir(exist_ok=True)
        shutil.copy(small.REPOSITORY / "scripts" / "install-action", script)

    def run(self, event: dict[str, Any], name: str = "pull_request_target") -> Ran:
        """Run the workflow for an event."""
        self.run_id += 1
        run_id = self.run_id
        here, artifacts = self.folder / f"run-{run_id}", self.folder / f"artifacts-{run_id}"
        artifacts.mkdir()
        run = self._begin(name, run_id)
        (here / "home").mkdir(parents=True)
        (here / "event.json").write_text(json.dumps(event), encoding="utf-8")
        (here / "workflow.yml").write_text(self._text(), encoding="utf-8")
        branch = f"heads/{self.github.state.default_branch}"
        variables = {
            "GITHUB_API_URL": self.github.url,
            "GITHUB_REPOSITORY": self.github.state.repo,
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_SHA": self.github.state.refs[branch],
            "STUB_TREES": str(self.folder / "trees"),
            "STUB_ARTIFACTS": str(artifacts),
            "STUB_PROGRAMS": str(Path(sys.executable).parent),
        }
        words = [self.act, name, "-P", "ubuntu-24.04=-self-hosted", "-W", "workflow.yml", "-e", "event.json"]
        words += [
            "--no-cache-server",
            "--no-skip-checkout",
            "--concurrent-jobs",
            "1",
            "-s",
            f"GITHUB_TOKEN={self.github.job_token()}",
        ]
        words += [word for key, value in self.secrets.items() for word in ("-s", f"{key}={value}")]
        words += [word for key, value in variables.items() for word in ("--env", f"{key}={value}")]
        words += [word for pin, stub in self._stubs().items() for word in ("--local-repository", f"{pin}={stub}")]
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        done = subprocess.run(
            words,
            cwd=here,
            env={**kept, "HOME": str(here / "home"), "XDG_CACHE_HOME": str(here / "cache")},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        self._keep(run, artifacts)
        log = (line for line in (done.stdout + done.stderr).splitlines() if not _NOISE.search(line))
        return Ran(done.returncode, "\n".join(log))

    def _stubs(self) -> dict[str, Path]:
        """Map every action that the workflow uses to its stand-in; the project's own action is the real one."""
        jobs = yaml.safe_load(self._text())["jobs"].values()
        used = {step["uses"] for job in jobs for step in job["steps"] if "uses" in step}
        own = self.folder / "action"
        for path in ("action.yml", "scripts/install-action"):
            (own / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(small.REPOSITORY / path, own / path)
        return {pin: own if pin == adopted.ACTION else STUBS / pin.split("@")[0].split("/")[1] for pin in used}

    def _text(self) -> str:
        text = self.workflow.read_text(encoding="utf-8")
        for old, new in self.edits.items():
            assert old in text, old
            text = text.replace(old, new)
        return text

    def _begin(self, event: str, run_id: int) -> StoredRun:
        """Let GitHub know of the run."""
        head = self.github.state.refs[f"heads/{self.github.state.default_branch}"]
        run = self.github.run(
            "compression-eval.yml",
            head,
            event=event,
            status="in_progress",
            conclusion=None,
            jobs={"evaluate": None},
            run_id=run_id,
        )
        run.reviews, self.reviews = self.reviews, []
        return run

    def _keep(self, run: StoredRun, artifacts: Path) -> None:
        """Let GitHub know that the run is over and what it left, as the next run will look for it."""
        run.status, run.conclusion = "completed", "success"
        for job in run.jobs:
            job.status, job.conclusion = "completed", "success"
        for folder in artifacts.iterdir():
            files = (path for path in folder.rglob("*") if path.is_file())
            contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
            self.github.artifact(run.id, folder.name, contents)


Start = Callable[..., tuple[Runner, StoredPull]]
"""Opens a pull request; the fixture `start` is one."""


def comment(runner: Runner, pull: StoredPull) -> str:
    """Return the one comment that the bot has on a pull request."""
    found = runner.github.comments(pull.number)
    assert [item.author for item in found] == ["github-actions[bot]"]
    assert found[0].body.startswith(MARKER)
    return found[0].body


def labelled(pull: StoredPull, sender: str = "maintainer") -> dict[str, object]:
    """Return the event of a label that starts an evaluation."""
    return label_event(adopted.REPO, pull, sender)
