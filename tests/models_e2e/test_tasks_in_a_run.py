"""`run --tasks` with a model on loopback that calls tools: controls, admission, both sides, a kill inside a rollout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.domain.case import Case
from eval_core.sandbox.isolation import detect
from tests.model_provider import Asked

from .world import ONE_RUN, Provider, done, tiny

TASK = """
folder: /home/user/shop
instruction: Write the store's name into name.txt and raise TTL in ttl.py to 2.
limits: {turns: 12, call_seconds: 30}
facts: [{id: rule, lost: rule}, {id: store, lost: lookup}]
checks:
  - {name: the name, kind: done, run: "grep -qx session_store name.txt"}
  - {name: the time, kind: done, run: "grep -q 'TTL = 2' ttl.py"}
  - {name: the login page stays, kind: rule, same: login.py}
"""
SOLUTION = """
steps:
  - {knows: rule, then: [], else: [{tool: terminal, command: echo >> login.py}]}
  - {knows: store, then: [], else: [{tool: search_files, pattern: store}]}
  - {call: {tool: terminal, command: "echo session_store > name.txt; sed -i 's/1/2/' ttl.py"}}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one session, one question and one task."""
    try:
        detect()
    except UserError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(f"workspaces need a sandbox: {exc}")
        pytest.skip(f"no sandbox: {exc}")
    case = tiny("recall-error")
    name = case.fixture.name
    monkeypatch.chdir(small.write_suite(tmp_path, [Case(case.fixture, case.bank)]))
    lines = [
        {"id": "rule", "kind": "rule", "anchors": ["401"], "text": "Keep 401.", "speaker": "user", "said": [1],
         "polarity": "do_not", "strength": "must"},
        {"id": "store", "kind": "value", "anchors": ["session_store"], "text": "It is session_store.",
         "speaker": "user", "said": [1]},
    ]  # fmt: skip
    small.write(tmp_path / f"probes/{name}.ledger.json", json.dumps({"fixture": name, "lines": lines}))
    task = tmp_path / "tasks" / name / "name"
    small.write(task / "task.yml", TASK)
    small.write(task / "solution.yml", SOLUTION)
    (task / "checks").mkdir()
    for file, text in (("login.py", "CODE = 401\n"), ("ttl.py", "TTL = 1\n")):
        small.write(task.parent / "workspace" / "files" / file, text)
    return tmp_path


def agent(asked: Asked) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Do the job in three steps; without the session in the prompt, break the rule on the way."""
    text = json.dumps(asked.messages)
    if "notes.txt" in asked.last:
        return [("read_file", {"path": "notes.txt"})]
    turn = sum(message["role"] == "tool" for message in asked.messages)
    knows = text.count("401") > 1 or "Session so far" in text
    steps = [
        ("terminal", {"command": "date +%N; ls"}),
        ("terminal", {"command": "true" if knows else "echo >> login.py"}),
        ("terminal", {"command": "echo session_store > name.txt; sed -i 's/1/2/' ttl.py"}),
    ]
    return steps[turn : turn + 1]


def arguments(provider: Provider, *more: str) -> list[str]:
    return [
        "run", "--tasks", *ONE_RUN, *provider.options, "--set", "models.trust_judge=true", "--compare-to", "rerun",
        "--quiet", *more,
    ]  # fmt: skip


def played(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / "results/a/summary.json").read_text())["extra"]["tasks"]
    return found


def test_a_run_plays_its_tasks_behind_controls(shop: Path, provider: Provider, cli: small.Cli) -> None:
    provider.act = agent
    ran = cli(*arguments(provider, "--label", "a"))
    assert ran.code == 0, ran.err
    told = played(shop)
    assert told["tasks"] == [{"name": "small-debug/name", "admitted": True, "why": ""}]
    arms = {
        arm: [one for one in told["rollouts"] if one["arm"] == arm] for arm in ("full", "nothing", "base", "candidate")
    }
    assert {arm: len(found) for arm, found in arms.items()} == {"full": 3, "nothing": 3, "base": 3, "candidate": 3}
    assert all(one["ended"] == "stopped" and one["turns"] == 4 for one in told["rollouts"])
    assert [check["passed"] for check in arms["full"][0]["checks"]] == [True, True, True]
    assert [check["passed"] for check in arms["nothing"][0]["checks"]] == [True, True, False]
    assert "Tasks finished" in (shop / "results/a/report.md").read_text()


def test_a_model_without_tools_is_asked_in_text_and_else_nothing_is_measured(
    shop: Path, provider: Provider, cli: small.Cli
) -> None:
    assert cli(*arguments(provider, "--label", "a")).code == 0
    told = played(shop)
    assert told["rollouts"] == []
    assert "made no obvious tool call" in told["not_measured"]


def test_tasks_need_a_model(shop: Path, cli: small.Cli) -> None:
    ran = cli("run", "--tasks")
    assert ran.code == 2
    assert "--tasks: an agent needs a model" in ran.err


def test_the_price_is_said_before(shop: Path, provider: Provider, cli: small.Cli) -> None:
    ran = cli(*arguments(provider, "--dry-run"))
    assert "1 task: 12 rollouts, controls included, about $" in " ".join(ran.out.split())
    assert provider.server.asked == []


def test_a_run_killed_inside_a_rollout_pays_for_no_call_twice(shop: Path, provider: Provider) -> None:
    provider.act = agent
    line = json.dumps(arguments(provider, "--label", "a", "--resume")) + "\n"
    journal = shop / "results/a/journal.jsonl"
    reached = threading.Event()

    def behave(asked: Asked) -> str | None:
        if sum(message["role"] == "tool" for message in asked.messages) == 2:
            reached.set()
        return None

    provider.behave = behave
    host = subprocess.Popen(
        [sys.executable, "-m", "models_e2e.host"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": f"{small.REPOSITORY}{os.pathsep}{small.REPOSITORY / 'tests'}"},
    )  # fmt: skip
    assert host.stdin is not None
    assert host.stdout is not None
    try:
        assert host.stdout.readline() == "ready\n"
        host.stdin.write(line)
        host.stdin.flush()
        child = int(host.stdout.readline())
        assert reached.wait(120)
        os.kill(child, signal.SIGKILL)
        assert int(host.stdout.readline()) == -signal.SIGKILL
        lost = len(provider.server.asked) - done(journal)
        steps = (shop / "results/a/rollouts.jsonl").read_text().count('"step"')
        provider.behave = lambda asked: None
        host.stdin.write(line)
        host.stdin.flush()
        host.stdout.readline()
        assert int(host.stdout.readline()) == 0
    finally:
        host.stdin.close()
        host.wait(60)
        host.stdout.close()
    assert steps, "it was killed inside a rollout"
    # `date` prints something else each time, and the prompts are those that were paid for all the same.
    assert len(provider.server.asked) == done(journal) + lost
    assert lost <= 4
    assert len(played(shop)["rollouts"]) == 12
