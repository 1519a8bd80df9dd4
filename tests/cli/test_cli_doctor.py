"""`compression-eval doctor`: it says that something works only after it has worked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import agent_tree
import pytest
import small
from loopback import LoopbackGitHub

CONFIG = ".compression-eval.yml"
EXAMPLES = Path(__file__).parents[2] / "docs" / "targets" / "examples"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = agent_tree.write_agent(tmp_path / "my-agent")
    monkeypatch.chdir(root)
    return root


def reconfigure(root: Path, old: str, new: str) -> None:
    assert old in agent_tree.CONFIG
    small.write(root / CONFIG, agent_tree.CONFIG.replace(old, new))


def lines(ran: small.Ran, state: str) -> list[str]:
    start = f"  {state:8} "
    return [line.removeprefix(start) for line in ran.out.splitlines() if line.startswith(start)]


def test_what_the_compressor_made_of_a_session_is_shown(agent: Path, cli: small.Cli) -> None:
    ran = cli("doctor")
    assert ran.code == 0, ran.out
    assert lines(ran, "broken") == []
    assert f"target: agent.shorten:Shortener in {agent}, with {agent}/.venv/bin/python" in lines(ran, "ok")
    assert any(line.startswith("compressed small-") and " became 2 messages" in line for line in lines(ran, "ok"))
    assert "what came back: [user] base with the dependency" in ran.out
    assert "suite: 3 fixtures in fixtures, 12 probes" in lines(ran, "ok")


def test_a_target_file_from_elsewhere_is_tried_without_sessions_of_one_s_own(
    agent: Path, cli: small.Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    ran = cli("doctor", "--target", "../my-agent/target.yml")
    assert ran.code == 0, ran.out
    assert any(line.startswith("compressed short-session: ") for line in lines(ran, "ok"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shorten:Shortener", "shorten:Shortner", "agent.shorten has no 'Shortner'; did you mean 'Shortener'?"),
        ("agent.shorten", "agent.shrten", "module 'agent.shrten' was not found; did you mean 'shorten'?"),
        ("  adapter: adapter.py\n", "  method: shorten\n", "agent.shorten:Shortener has no method 'shorten'"),
        (".venv/bin/python", ".venv/bin/pyton", "/.venv/bin/pyton: no such file; create the environment"),
        ("adapter.py", "adaptor.py", "/adaptor.py: no such file"),
        ("  llm: none", "  init: {budget: 3}", "Shortener takes no keyword 'budget'"),
    ],
)
def test_a_mistake_in_the_target_is_one_sentence(agent: Path, cli: small.Cli, old: str, new: str, said: str) -> None:
    reconfigure(agent, old, new)
    ran = cli("doctor")
    assert ran.code == 2
    (broken,) = lines(ran, "broken")
    assert said in broken
    assert not [line for line in lines(ran, "ok") if line.startswith("target")]
    assert "/subject" not in ran.out


def test_a_compressor_that_calls_no_model_though_it_should_is_found_out(agent: Path, cli: small.Cli) -> None:
    reconfigure(agent, "llm: none", "llm: required")
    ran = cli("doctor")
    assert ran.code == 2
    assert "say `llm: none` under target" in ran.out


def test_a_program_that_the_sandbox_does_not_have_is_told_with_the_runtime_to_name(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Your shell may find another program under that name, or the only one, where the sandbox does not look."""
    own = tmp_path / "own-node"
    small.write(own / "bin" / "sh", "#!/bin/sh\nexit 1\n").chmod(0o755)
    monkeypatch.setenv("PATH", f"{own / 'bin'}:{os.environ['PATH']}")
    shutil.copy(EXAMPLES / "compress.sh", agent / "compress.sh")
    small.write(agent / CONFIG, "target: {command: [sh, compress.sh], llm: none}\n")
    (told,) = [line for line in lines(cli("doctor"), "warn") if line.startswith("target.command")]
    assert f"sh is {own}/bin/sh for you, which the sandbox does not show" in told
    assert f"runtime: {own}" in cli("doctor").out
    small.write(agent / CONFIG, f"target: {{command: [sh, compress.sh], llm: none, runtime: {own}}}\n")
    assert not [line for line in lines(cli("doctor"), "warn") if line.startswith("target.command")]


def test_what_a_compressor_writes_cannot_steer_the_terminal(agent: Path, cli: small.Cli) -> None:
    small.write(agent / "agent" / "shorten.py", agent_tree.CODE.replace("MARK", "\\x1b[2Jgone\\x07"))
    ran = cli("doctor")
    assert "gone" in ran.out
    assert "\x1b" not in ran.out


def test_without_a_configuration_the_reference_is_not_taken_for_the_user_s_compressor(
    project: Path, cli: small.Cli
) -> None:
    ran = cli("doctor")
    assert ran.code == 0
    assert "configuration: no .compression-eval.yml" in lines(ran, "missing")
    assert "target: builtin:anchored would be measured: the built-in reference, not your compressor" in lines(
        ran, "warn"
    )


def test_sessions_and_banks_are_loaded_and_every_broken_one_is_named(project: Path, cli: small.Cli) -> None:
    small.write(project / "fixtures" / "small-debug.json", "{")
    (project / "probes" / "small-plan.probes.json").unlink()
    ran = cli("doctor")
    assert ran.code == 2
    assert [line.partition(": ")[0] for line in lines(ran, "broken")] == [
        "fixtures/small-debug.json",
        "probes/small-plan.probes.json",
    ]


def test_a_broken_and_an_outdated_baseline_are_told(project: Path, cli: small.Cli) -> None:
    cli("baseline", "update", "--runs", "1", "--quiet")
    small.edit_json(project / "probes/small-plan.probes.json", lambda body: body["probes"][0].update(question="Which?"))
    assert any("probes/small-plan.probes.json changed" in line for line in lines(cli("doctor"), "warn"))
    small.write(project / "baselines" / "offline.json", "{}")
    ran = cli("doctor")
    assert ran.code == 2
    assert "baselines/offline.json: not a baseline file" in ran.out


@pytest.mark.parametrize(
    ("config", "key", "state", "said"),
    [
        (
            "models: {compressor: openai/gpt-4.1}\nbudget_usd: 0.001",
            "x",
            "warn",
            "the budget of $0.001 does not cover it",
        ),
        ("models: {compressor: openai/gpt-4.1}\nbudget_usd: 90", "x", "ok", "the budget of $90 covers it"),
        ("models: {compressor: openai/gpt-4.1}", "", "broken", "openai/gpt-4.1 needs OPENAI_API_KEY"),
        ("models: {compressor: openai/nobodys}", "x", "broken", "price of openai/nobodys: unknown, so the budget"),
    ],
)
def test_key_price_and_budget_are_held_against_an_estimate(
    project: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, config: str, key: str, state: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("COMPRESSION_EVAL_API_KEY", key)
    small.write(project / CONFIG, config)
    ran = cli("doctor")
    assert ran.code == (2 if state == "broken" else 0)
    assert any(said in line for line in lines(ran, state)), ran.out


@pytest.mark.parametrize(
    ("bound", "state", "said", "code"),
    [
        (["main"], "ok", "only workflows on main can use it", 0),
        (None, "broken", "workflows on any branch can use it", 2),
        (["main", "release/*"], "broken", "workflows on main, release/* can use it", 2),
        ("absent", "missing", "not there", 0),
    ],
)
def test_an_environment_that_other_branches_can_use_is_broken(
    bound: list[str] | str | None,
    state: str,
    said: str,
    code: int,
    agent: Path,
    cli: small.Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LoopbackGitHub("acme/agent") as gh:
        if bound != "absent":
            gh.state.reviewers["compression-eval"] = []
        if isinstance(bound, list):
            gh.state.branch_policies["compression-eval"] = bound
        monkeypatch.setenv("GITHUB_TOKEN", gh.job_token({"metadata": "read", "actions": "read"}))
        monkeypatch.setenv("GITHUB_API_URL", gh.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", "acme/agent")
        ran = cli("doctor", "--github")
    assert ran.code == code, ran.out
    (line,) = [line for line in lines(ran, state) if line.startswith("environment compression-eval of acme/agent: ")]
    assert said in line


def test_without_a_token_the_settings_on_github_are_not_called_good(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("GH_TOKEN", raising=False)
    ran = cli("doctor", "--github")
    assert ran.code == 2
    assert lines(ran, "broken") == ["GITHUB_TOKEN: not set"]
