"""`run --tasks` with a model on loopback that calls tools: controls, admission, both sides, a kill inside a rollout."""

from __future__ import annotations

import json
import os
import re
import shutil
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
from eval_core.base.messages import Message, content_text
from eval_core.domain.case import Case
from eval_core.sandbox.isolation import detect
from tests.model_provider import Asked, reply_to

from .world import ANSWER, ONE_RUN, Provider, done, tiny

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


def test_a_server_that_ignores_tools_is_spoken_to_in_json(shop: Path, provider: Provider, cli: small.Cli) -> None:
    def reply(messages: Sequence[Message]) -> str:
        if "To call a tool: " not in content_text(messages[0]):
            return reply_to(messages)
        turn = content_text(messages[-1]).startswith("[result of")
        if "notes.txt" in content_text(messages[-1]):
            return 'Sure: {"tool": "read_file", "arguments": {"path": "notes.txt"}}'
        knows = json.dumps(messages).count("401") > 1
        command = "true" if knows else "echo >> login.py"
        command += "; echo session_store > name.txt; sed -i 's/1/2/' ttl.py"
        said = {"say": "Done."} if turn else {"tool": "terminal", "arguments": {"command": command}}
        return json.dumps(said)

    provider.reply = reply
    assert cli(*arguments(provider, "--label", "a")).code == 0
    told = played(shop)
    assert told["tasks"] == [{"name": "small-debug/name", "admitted": True, "why": ""}]
    assert {len(one["actions"]) for one in told["rollouts"]} == {1}
    assert all("tools" not in asked.body for asked in provider.asked_of(ANSWER) if "To call a tool: " in asked.text)


def test_a_model_without_tools_is_asked_in_text_and_else_nothing_is_measured(
    shop: Path, provider: Provider, cli: small.Cli
) -> None:
    assert cli(*arguments(provider, "--label", "a")).code == 0
    told = played(shop)
    assert told["rollouts"] == []
    assert "made no obvious tool call" in told["not_measured"]


def test_an_outage_is_no_failed_task(shop: Path, provider: Provider, cli: small.Cli) -> None:
    provider.act = agent
    provider.behave = lambda asked: "402" if any(message["role"] == "tool" for message in asked.messages) else None
    cli(*arguments(provider, "--label", "a"))
    told = played(shop)
    assert told["rollouts"] == []
    assert "not measured: " in told["not_measured"]
    assert told["tasks"][0]["admitted"] is False


def test_fresh_rollouts_go_on_from_fresh_compressions(shop: Path, provider: Provider, cli: small.Cli) -> None:
    made = iter(range(1000))

    def reply(messages: Sequence[Message]) -> str:
        text = reply_to(messages)
        return f"{text}\nSummary number {next(made)}." if text.startswith("## ") else text

    def act(asked: Asked) -> Sequence[tuple[str, Mapping[str, Any]]]:
        number = re.search(r"Summary number (\d+)", asked.text)
        if number is None:
            return agent(asked)
        if any(message["role"] == "tool" for message in asked.messages):
            return []
        odd = int(number[1]) % 2  # which side compressed first is chance: one of the two is ruined
        return [("terminal", {"command": "echo >> login.py" if odd else "true"})]

    provider.reply, provider.act = reply, act
    assert cli(*arguments(provider, "--label", "a")).code == 0
    of = {arm: [one for one in played(shop)["rollouts"] if one["arm"] == arm] for arm in ("base", "candidate")}
    numbers = [
        int(found[1])
        for asked in provider.asked_of(ANSWER)
        if asked.last.startswith("Write the store's name") and (found := re.search(r"Summary number (\d+)", asked.text))
    ]
    assert [len([one for one in rollouts if one["stage"] == 2]) for rollouts in of.values()] == [5, 5]
    assert sorted(numbers.count(number) for number in set(numbers)) == [1] * 10 + [3, 3]
    assert all(one["compressor_input_tokens"] > 0 for rollouts in of.values() for one in rollouts)
    # Taken up, the run makes no compression and no rollout again.
    before = len(provider.server.asked)
    assert cli(*arguments(provider, "--label", "a", "--resume")).code == 0
    assert len(provider.server.asked) == before
    assert {len(rollouts) for rollouts in of.values()} == {8}


def test_an_edited_task_is_another_one_for_a_run_that_goes_on(shop: Path, provider: Provider, cli: small.Cli) -> None:
    provider.act = agent
    assert cli(*arguments(provider, "--label", "a")).code == 0
    path = next(shop.glob("tasks/*/name/task.yml"))
    path.write_text(path.read_text().replace("grep -qx session_store name.txt", "test -e never.txt"))
    assert cli(*arguments(provider, "--label", "a", "--resume")).code == 0
    assert played(shop)["tasks"][0]["why"] == "the full transcript finishes it in 0 of 3"


def test_a_shard_has_only_a_part_of_the_states(shop: Path, provider: Provider, cli: small.Cli) -> None:
    ran = cli("run", "--tasks", *ONE_RUN, *provider.options, "--label", "a", "--shard", "1/2")
    assert ran.code == 2
    assert "tasks need the states of both sides in one place" in ran.err


def test_without_a_workspace_next_actions_are_asked_and_the_full_transcript_is_asked_once(
    shop: Path, provider: Provider, cli: small.Cli
) -> None:
    shutil.rmtree(shop / "tasks")

    def reply(messages: Sequence[Message]) -> str:
        if "Which 3 tool calls do you make next?" not in content_text(messages[-1]):
            return reply_to(messages)
        file = "auth.py" if len(messages) > 10 else "elsewhere.py"
        calls = [
            {"tool": "read_file", "arguments": {"path": file}},
            {"tool": "terminal", "arguments": {"command": "ls"}},
        ]
        return f"```json\n{json.dumps(calls)}\n```"

    provider.reply = reply
    assert cli(*arguments(provider, "--label", "a")).code == 0
    told = played(shop)
    assert [one["arm"] for one in told["next_actions"]] == ["full"] * 3 + ["base", "candidate"]
    assert [call["tool"] for call in told["next_actions"][0]["calls"]] == ["read_file", "terminal"]
    strands = json.loads((shop / "results/a/report.json").read_text())["strands"]
    assert strands["next_actions"] == "same"
    report = (shop / "results/a/report.md").read_text()
    assert "Next actions" in report
    assert "as with the full transcript" in report

    def asked() -> int:
        return sum("Which 3 tool calls" in one.last and len(one.messages) > 10 for one in provider.server.asked)

    assert asked() == 3
    assert cli(*arguments(provider, "--label", "b")).code == 0
    assert asked() == 3, "another run with the same model knows them"


def test_tasks_need_a_model(shop: Path, cli: small.Cli) -> None:
    ran = cli("run", "--tasks")
    assert ran.code == 2
    assert "--tasks: an agent needs a model" in ran.err


def test_the_price_is_said_before(shop: Path, provider: Provider, cli: small.Cli) -> None:
    ran = cli(*arguments(provider, "--dry-run"))
    told = " ".join(ran.out.split())
    assert "1 task: 12 rollouts, controls included, and 9 calls for next actions: about $0." in told
    assert (
        "about 5 minutes; 10 rollouts more, from fresh compressions, for each task in which the sides differ." in told
    )
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
        host.wait(120)
        host.stdout.close()
    assert steps, "it was killed inside a rollout"
    # `date` prints something else each time, and the prompts are those that were paid for all the same.
    assert len(provider.server.asked) == done(journal) + lost
    assert lost <= 4
    assert len(played(shop)["rollouts"]) == 12
