"""The whole journey on loopback: a labelled pull request becomes a comment, through the real commands.

Each step is the same process call that the workflow makes, with the same variables and a token with that job's
permissions, against a GitHub on this machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from eval_core.base.errors import UserError

_GATE = {"contents": "read", "pull_requests": "write", "checks": "write", "actions": "read"}
_EVALUATE = {"contents": "read", "actions": "read"}
_BEGIN = {"contents": "read", "pull_requests": "write", "checks": "write"}
_PUBLISH = {"contents": "read", "pull_requests": "write", "checks": "write", "actions": "read"}
_PROGRESS = re.compile(r"\d+ fixture-runs to measure|\d+ of \d+: ")
_WITHOUT_SANDBOX = (
    "from functools import partial; from bot.steps import evaluate as step; "
    "step.evaluate = partial(step.evaluate, sandbox='none'); from bot.cli import main; main()"
)
"""The command line, with a step that runs what it measures as it is."""
_KEPT = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "PYTHONPATH", "TMPDIR")


def package_source(folder: Path, into: str) -> dict[str, bytes]:
    """Return the modules of a package as files of another tree."""
    return {f"{into}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}


def write_tree(tree: Mapping[str, bytes], into: Path) -> None:
    """Write a tree of files to disk, as a checkout would."""
    for name, content in tree.items():
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Host(Protocol):
    """A GitHub with one repository."""

    @property
    def url(self) -> str:
        """The address to use as GITHUB_API_URL."""

    @property
    def repo(self) -> str:
        """The repository's name, with its owner's."""

    @property
    def tip(self) -> str:
        """The last commit of the default branch."""

    def job_token(self, permissions: Mapping[str, str]) -> str:
        """Return a token as a job has it that asks for these permissions."""


class LabelledPull(Protocol):
    """A pull request, as far as an event tells of it."""

    number: int
    head_sha: str


def label_event(repo: str, pull: LabelledPull, sender: str, label: str = "eval-compression") -> dict[str, Any]:
    """Return what GitHub sends when a label is added."""
    return {
        "action": "labeled",
        "number": pull.number,
        "label": {"name": label},
        "pull_request": {"number": pull.number, "head": {"sha": pull.head_sha}},
        "repository": {"full_name": repo},
        "sender": {"login": sender},
    }


@dataclass
class Journey:
    """Plays gate, fetch, setup, evaluate and publish for one event."""

    github: Host
    checkout: Path
    """The base branch on disk; every command runs here."""
    work: Path
    run_id: int = 1001
    attempt: int = 1
    say: Callable[[str], None] = lambda line: None
    servers: Mapping[str, str] = field(default_factory=dict)
    """Addresses that a runner of one's own sets."""
    sandboxed: bool = True
    """Otherwise the compressor runs as it is, which is for our own."""

    def play(self, event: dict[str, Any], name: str = "pull_request_target") -> dict[str, str]:
        """Take an event all the way; return the gate's outputs."""
        outputs = self.gate(event, name)
        if outputs.get("allowed") == "true":
            self.step("fetch", _EVALUATE, outputs, "--work", str(self.work))
            self.step("setup", {}, outputs, "--work", str(self.work))
            done = self.step("evaluate", {}, outputs, "--work", str(self.work), check=False)
            result = "success" if done.returncode == 0 else "failure"
            folder = self._results(outputs)
            self.step("publish", _PUBLISH, outputs, "--work", str(folder), EVALUATE_RESULT=result)
            if done.returncode:
                self.say(f"  bot evaluate ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-1500:]}")
        return outputs

    def gate(self, event: dict[str, Any], name: str = "pull_request_target") -> dict[str, str]:
        """Run the gate and read what it hands on."""
        self.work.mkdir(parents=True, exist_ok=True)
        payload, output = self.work / "event.json", self.work / f"output-{self.run_id}-{self.attempt}"
        payload.write_text(json.dumps(event), encoding="utf-8")
        output.write_text("", encoding="utf-8")
        self.step("gate", _GATE, {}, GITHUB_EVENT_PATH=str(payload), GITHUB_EVENT_NAME=name, GITHUB_OUTPUT=str(output))
        lines = output.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def _results(self, outputs: Mapping[str, str]) -> Path:
        from bot.pull_request.ticket import read_ticket

        return self.work / "results" / read_ticket(outputs["ticket"]).label

    def step(
        self,
        command: str,
        permissions: Mapping[str, str],
        outputs: Mapping[str, str],
        *words: str,
        check: bool = True,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run one step as the workflow does."""
        self.say(f"compression-eval bot {command}")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {
            "GITHUB_API_URL": self.github.url,
            "GITHUB_REPOSITORY": self.github.repo,
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "GITHUB_SHA": self.github.tip,
            "TICKET": outputs.get("ticket", ""),
            **self.servers,
            **env,
        }
        if permissions:
            environment["GITHUB_TOKEN"] = self.github.job_token({"metadata": "read", **permissions})
        bare = command == "evaluate" and not self.sandboxed
        program = ["-c", _WITHOUT_SANDBOX] if bare else ["-m", "bot"]
        done = self._run([sys.executable, *program, "bot", command, *words], environment)
        if check and done.returncode:
            raise UserError(
                f"bot {command} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-1500:]}"
            )
        return done

    def _run(self, command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; what it says about its progress is passed on while it works."""
        said: list[str] = []
        with subprocess.Popen(
            command,
            cwd=self.checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            complaints = process.stderr
            listener = threading.Thread(target=lambda: said.extend(complaints), daemon=True)
            listener.start()
            output = []
            for line in process.stdout:
                output.append(line)
                if _PROGRESS.match(line):
                    self.say(f"  {line.rstrip()}")
            listener.join()
        return subprocess.CompletedProcess(command, process.returncode, "".join(output), "".join(said))
