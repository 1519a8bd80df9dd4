"""A path in a target means one thing: from here or elsewhere, through links, with and without a sandbox."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import agent_tree
import pytest
import small
from agent_tree import RUN

from eval_core.base.errors import UserError
from eval_core.domain.target import TargetSpec
from eval_core.sandbox.targets import find_target

KEPT = ["base with the dependency", "through the adapter"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return agent_tree.write_agent(tmp_path_factory.mktemp("made") / "my-agent")


@pytest.fixture
def agent(made: Path, tmp_path: Path) -> Path:
    """A copy whose environment is its own: a link to it would hide what a link does."""
    agent = tmp_path / "my-agent"
    shutil.copytree(made, agent, symlinks=True)
    return agent


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another project, with sessions of its own and no compressor."""
    return small.write_suite(tmp_path / "elsewhere")


def ran_as(cli: small.Cli, results: Path, *arguments: str) -> list[str]:
    ran = cli(*RUN, *arguments)
    assert (ran.code, "setup_error" in ran.out) == (0, False), ran.out + ran.err
    return agent_tree.kept(results)


@pytest.mark.parametrize("sandbox", ["auto", "none"])
@pytest.mark.parametrize("words", [(), ("--target", "target.yml"), ("--target", "./agent/../target.yml")])
def test_the_environment_beside_the_file_is_used(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sandbox: str
) -> None:
    monkeypatch.chdir(agent)
    assert ran_as(cli, agent / "results", *words, "--sandbox", sandbox) == KEPT


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_target_file_means_the_same_from_another_folder(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    monkeypatch.chdir(elsewhere)
    assert ran_as(cli, elsewhere / "results", "--target", "../my-agent/target.yml", "--sandbox", sandbox) == KEPT


def test_a_configuration_means_the_same_from_another_folder(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(elsewhere / "fixtures")
    monkeypatch.chdir(elsewhere)
    assert ran_as(cli, agent / "results", "--config", "../my-agent/.compression-eval.yml") == KEPT
    assert not (elsewhere / "results").exists()


def test_inside_a_repository_the_configuration_above_is_used(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (agent / ".git").mkdir()
    monkeypatch.chdir(agent / "agent")
    assert ran_as(cli, agent / "results") == KEPT
    assert not (agent / "agent" / "results").exists()
    shown = cli("doctor").out
    assert f"configuration: {agent / '.compression-eval.yml'}" in shown


def test_a_configuration_above_the_repository_is_another_projects(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (agent / "other" / ".git").mkdir(parents=True)
    monkeypatch.chdir(agent / "other")
    assert "configuration: no .compression-eval.yml" in cli("doctor").out


def test_fixtures_and_probes_are_where_the_configuration_says(
    tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write_suite(tmp_path / "eval")
    small.write(tmp_path / ".compression-eval.yml", "fixtures: eval/fixtures\nprobes: eval/probes\n")
    monkeypatch.chdir(tmp_path)
    assert "small-debug" in cli("fixture", "list").out
    assert cli("fixture", "audit").code == 0
    assert "3 banks, 12 probes" in cli("probe", "lint").out
    assert "small-debug/" in cli("probe", "manifest").out
    log = str(small.REPOSITORY / "docs" / "examples" / "session.jsonl")
    assert cli("fixture", "import", log, "--name", "double-arrivals", "--yes").code == 0
    assert (tmp_path / "eval" / "fixtures" / "double-arrivals.json").is_file()


def test_a_configuration_may_name_a_target_file_relative_to_itself(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write(agent / "conf" / "eval.yml", "target: ../target.yml\nfixtures: ../fixtures\nprobes: ../probes\n")
    monkeypatch.chdir(elsewhere)
    words = ("--config", "../my-agent/conf/eval.yml", "--tree", "../my-agent")
    assert ran_as(cli, agent / "conf" / "results", *words) == KEPT


def test_folders_and_environments_may_be_links(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(agent / ".venv", elsewhere / "shared-environment")
    agent_tree.link(agent / ".venv", elsewhere / "shared-environment")
    agent_tree.link(elsewhere / "linked", agent)
    monkeypatch.chdir(elsewhere)
    assert ran_as(cli, elsewhere / "results", "--target", "linked/target.yml") == KEPT
    monkeypatch.chdir(elsewhere / "linked")
    assert ran_as(cli, agent / "results") == KEPT


def test_a_link_to_a_target_file_is_that_file(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_tree.link(elsewhere / "linked.yml", agent / "target.yml")
    monkeypatch.chdir(elsewhere)
    assert ran_as(cli, elsewhere / "results", "--target", "linked.yml") == KEPT
    small.write(elsewhere / ".compression-eval.yml", "target: linked.yml\n")
    assert ran_as(cli, elsewhere / "results", "--tree", "../my-agent") == KEPT


def test_a_target_file_in_a_folder_of_its_own_reaches_up(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = agent_tree.CONFIG.replace(".venv", "../.venv").replace("[.]", "[..]").replace(": adapter", ": ../adapter")
    small.write(agent / "eval" / "target.yml", text)
    monkeypatch.chdir(agent)
    assert ran_as(cli, agent / "results", "--target", "eval/target.yml") == KEPT


@pytest.mark.parametrize("words", [(), ("--target", "target.yml")])
def test_another_tree_brings_the_code_and_not_the_interpreter_or_the_adapter(
    agent: Path, tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    other = agent_tree.write_agent(tmp_path / "other", "other", environment=False, suite=False)
    small.write(other / "adapter.py", "raise RuntimeError('the tree under test must not bring its own judge')")
    monkeypatch.chdir(agent)
    assert ran_as(cli, agent / "results", *words, "--tree", "../other") == [
        "other with the dependency",
        "through the adapter",
    ]


def test_data_is_hidden_where_it_is_read_from_also_below_another_tree(
    agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration may lie in a folder of the tree that is under test."""
    small.write_suite(agent / "conf")
    text = agent_tree.CONFIG.replace(".venv", "../.venv").replace("[.]", "[..]").replace(": adapter", ": ../adapter")
    small.write(agent / "conf" / "eval.yml", text)
    looks = "import os\n" + agent_tree.CODE.replace(
        '"MARK with "', 'str(os.path.exists("conf/probes/small-debug.probes.json"))'
    )
    small.write(agent / "agent" / "shorten.py", looks)
    monkeypatch.chdir(agent)
    state = ran_as(cli, agent / "conf" / "results", "--config", "conf/eval.yml", "--tree", ".")
    assert state[0] == "Falsethe dependency"


def test_an_import_root_outside_the_tree_is_refused_with_the_user_s_path(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write(agent / "target.yml", agent_tree.CONFIG.replace("[.]", "[../elsewhere]"))
    monkeypatch.chdir(agent)
    ran = cli(*RUN, "--target", "target.yml")
    assert ran.code == 2
    assert f"target.yml: pythonpath: '../elsewhere' is {elsewhere}, which is outside the tree under test" in ran.err


def test_a_module_that_is_not_there_is_looked_for_in_the_user_s_folder(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write(agent / "target.yml", agent_tree.CONFIG.replace("agent.shorten", "agnt.shorten"))
    monkeypatch.chdir(elsewhere)
    ran = cli(*RUN, "--target", "../my-agent/target.yml")
    record = json.loads((elsewhere / "results" / "latest" / "small-debug-run-0.json").read_text(encoding="utf-8"))
    assert f"module 'agnt' was not found; did you mean 'agent'? Looked in {agent}" in record["detail"]
    assert "/subject" not in record["detail"] + ran.out + ran.err


def test_a_missing_interpreter_is_named_by_its_path_before_anything_is_measured(
    agent: Path, elsewhere: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(agent / ".venv")
    monkeypatch.chdir(elsewhere)
    ran = cli(*RUN, "--target", "../my-agent/target.yml")
    assert ran.code == 2
    assert ran.err.startswith(f"Error: target.python: {agent}/.venv/bin/python: no such file; create the environment")
    assert ran.err.count("\n") == 1


def test_a_tree_that_is_not_there_is_named(agent: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(agent)
    assert cli(*RUN, "--tree", "nowhere").err.startswith("Error: --tree nowhere: no such folder")


def test_the_link_that_makes_an_environment_is_not_followed(agent: Path) -> None:
    spec = find_target(str(agent / "target.yml"), "builtin:anchored", agent.parent, None, {}).spec
    assert isinstance(spec, TargetSpec)
    assert spec.python == str(agent / ".venv" / "bin" / "python")
    assert Path(spec.python).is_symlink()


def test_a_target_file_of_the_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"target: mine.yml: no such file in .*relative to the configuration"):
        find_target(None, "mine.yml", tmp_path, None, {})
