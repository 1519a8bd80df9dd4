"""The workflow file itself: what it must never do."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import small
import yaml

from bot.demo import journey
from bot.init import APPROVAL, adoption
from bot.steps.evaluate import minutes_left

REAL = small.REPOSITORY / ".github" / "workflows" / "compression-eval.yml"
SECRET = "COMPRESSION_EVAL_API_KEY"
SCHEMA = "vendor.github-workflows"
PROVIDERS = ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")
PROBES = "COMPRESSION_EVAL_PROBES_KEY"


@pytest.fixture(scope="module")
def text() -> str:
    return REAL.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def workflow(text: str) -> dict[Any, Any]:
    return dict(yaml.safe_load(text))


def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_it_starts_on_a_label_or_by_hand_and_never_on_a_push(workflow: dict[Any, Any]) -> None:
    triggers = workflow[True]  # YAML reads the key `on` as a truth value
    assert set(triggers) == {"pull_request_target", "workflow_dispatch"}
    assert triggers["pull_request_target"] == {"types": ["labeled"]}
    assert set(triggers["workflow_dispatch"]["inputs"]) == {"pr", "sha", "mode", "runs", "shards", "force"}


@pytest.mark.parametrize(
    "word", ["synchronize", "head.ref", "head_ref", "id-token", "actions/cache", "secrets: inherit"]
)
def test_a_word_that_opens_a_hole_is_not_in_it(text: str, word: str) -> None:
    assert word not in text


def test_no_expression_is_pasted_into_a_script(workflow: dict[Any, Any]) -> None:
    scripts = [step["run"] for step in steps(workflow) if "run" in step]
    assert len(scripts) >= 8
    assert not [script for script in scripts if "${{" in script]
    assert all("\n" not in script for script in scripts)  # logic belongs where it is tested


def test_the_model_keys_are_in_the_environment_of_exactly_one_step(workflow: dict[Any, Any], text: str) -> None:
    keys = (SECRET, *PROVIDERS)
    assert all(text.count(f"secrets.{name} ") == 1 for name in keys)
    # The other secret opens the baseline's pull request; the gate learns only whether there is one.
    assert text.count(f"secrets.{PROBES}") == 1
    others = [
        line.split(": ", 1)[1]
        for line in text.splitlines()
        if "secrets." in line and not any(name in line for name in (*keys, PROBES))
    ]
    known = "${{ secrets.COMPRESSION_EVAL_TOKEN != '' }}"
    assert sorted(others) == sorted([known, known, "${{ secrets.COMPRESSION_EVAL_TOKEN || github.token }}"])
    users = {name for name, job in workflow["jobs"].items() if "COMPRESSION_EVAL_TOKEN ||" in str(job)}
    assert users == {"propose"}
    holders = [step for step in steps(workflow) if set(keys) & set(step.get("env", {}))]
    assert set(keys) <= set(holders[0]["env"])
    assert [step["run"] for step in holders] == ["compression-eval bot evaluate --deadline 80"]
    assert "GITHUB_TOKEN" not in holders[0]["env"]
    assert all("env" not in job for job in workflow["jobs"].values())
    assert "env" not in workflow


def test_permissions_are_named_job_by_job_and_are_those_that_the_journey_is_tested_with(
    workflow: dict[Any, Any],
) -> None:
    assert workflow["permissions"] == {}

    def of(job: str) -> dict[str, str]:
        return {name.replace("-", "_"): level for name, level in workflow["jobs"][job]["permissions"].items()}

    assert of("gate") == journey._GATE
    assert of("evaluate") == journey._EVALUATE
    assert of("begin") == journey._BEGIN
    assert of("publish") == journey._PUBLISH
    assert of("merge") == {"contents": "read"}
    assert of("propose") == {"contents": "write", "pull_requests": "write"}


def test_shards_hold_the_key_once_each_and_the_job_that_joins_them_has_none(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    evaluate, merge = jobs["evaluate"], jobs["merge"]
    assert evaluate["strategy"]["matrix"]["include"].startswith("${{ fromJSON(needs.gate.outputs.shards || ")
    assert evaluate["strategy"]["fail-fast"] is False
    # Shards of one evaluation must not wait for each other: GitHub would drop all but the last that waits.
    assert evaluate["concurrency"]["group"].endswith("${{ matrix.suffix }}")
    assert "secrets." not in str(merge)
    assert "GITHUB_TOKEN" not in str(merge)
    assert "environment" not in merge
    assert "strategy" not in merge
    assert merge["if"] == "always() && needs.gate.outputs.sharded == 'true'"


def test_the_job_with_the_key_can_write_nothing(workflow: dict[Any, Any]) -> None:
    evaluate = workflow["jobs"]["evaluate"]
    assert set(evaluate["permissions"].values()) == {"read"}
    assert evaluate["environment"] == "compression-eval"


def test_every_action_is_pinned_by_its_full_commit_with_the_version_beside_it(text: str) -> None:
    used = re.findall(r"uses: (.+)", text)
    assert len(used) >= 6
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in used)
    assert len(set(used)) == len({use.split("@")[0] for use in used})


def test_no_checkout_keeps_its_token_or_takes_the_pull_requests_code(workflow: dict[Any, Any]) -> None:
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == len(workflow["jobs"])
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    refs = {name: job["steps"][0]["with"].get("ref") for name, job in workflow["jobs"].items()}
    assert {name for name, ref in refs.items() if ref is None} == {"gate"}
    assert {ref for ref in refs.values() if ref} == {"${{ needs.gate.outputs.base_sha }}"}


def test_later_jobs_wait_for_the_gates_word_and_a_crash_is_published(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    assert jobs["evaluate"]["if"] == "needs.gate.outputs.allowed == 'true'"
    assert jobs["publish"]["if"].startswith("always() && needs.gate.outputs.allowed == 'true'")
    # A merge that is skipped, because one job did all, must not skip the proposal.
    assert jobs["propose"]["if"].split(" && ") == [
        "!cancelled()",
        "needs.gate.outputs.mode == 'baseline'",
        "needs.evaluate.result == 'success'",
        "needs.merge.result != 'failure'",
    ]
    assert all(job["timeout-minutes"] <= 90 and job["runs-on"] == "ubuntu-24.04" for job in jobs.values())
    passed = set(re.findall(r"needs\.gate\.outputs\.(\w+)", REAL.read_text(encoding="utf-8")))
    assert passed == set(jobs["gate"]["outputs"])


def test_two_evaluations_of_one_pull_request_wait_for_each_other(workflow: dict[Any, Any]) -> None:
    concurrency = workflow["jobs"]["evaluate"]["concurrency"]
    assert "needs.gate.outputs.pr" in concurrency["group"]
    assert workflow["jobs"]["gate"]["outputs"]["pr"] == "${{ steps.gate.outputs.pr }}"
    assert concurrency["cancel-in-progress"] is False


def test_baselines_wait_for_nobody_since_github_keeps_only_one_of_those_that_wait(workflow: dict[Any, Any]) -> None:
    assert (
        "needs.gate.outputs.mode == 'baseline' && github.run_id" in workflow["jobs"]["evaluate"]["concurrency"]["group"]
    )
    assert [name for name, job in workflow["jobs"].items() if "concurrency" in job] == ["evaluate"]


def test_the_command_in_a_comment_is_off_and_one_line_turns_it_on(text: str, workflow: dict[Any, Any]) -> None:
    assert "issue_comment" not in workflow[True]
    turned_on = yaml.safe_load(text.replace("  # issue_comment:", "  issue_comment:"))
    assert turned_on[True]["issue_comment"] == {"types": ["created"]}
    assert "startsWith(github.event.comment.body, '/eval-compression')" in workflow["jobs"]["gate"]["if"]


def test_an_approving_review_is_off_and_one_line_turns_it_on(
    text: str, workflow: dict[Any, Any], tmp_path: Path
) -> None:
    assert "workflow_run" not in workflow[True]
    turned_on = yaml.safe_load(text.replace("  # workflow_run:", "  workflow_run:"))
    (other,) = turned_on[True]["workflow_run"]["workflows"]
    path = REAL.with_name("compression-eval-approval.yml")
    template = files("bot").joinpath(f"templates/{path.name}").read_text(encoding="utf-8")
    half = yaml.safe_load(template)
    assert half["name"] == other
    assert half[True] == {"pull_request_review": {"types": ["submitted"]}}
    assert half["permissions"] == {} == half["jobs"]["approved"]["permissions"]
    assert "secrets." not in template
    (tmp_path / path.name).write_text(template, encoding="utf-8")
    for words in (("zizmor", "--offline", "--no-progress"), ("check-jsonschema", "--builtin-schema", SCHEMA)):
        done = tool(*words, str(tmp_path / path.name))
        assert done.returncode == 0, done.stdout + done.stderr
    small.write(tmp_path / "agent/context_compressor.py", "class C:\n    def compress(self, messages): ...\n")
    assert adoption(tmp_path / "agent", "acme/x@1", None, beside=[APPROVAL]).files[str(APPROVAL)] == template


def test_the_evaluation_ends_by_itself_ten_minutes_before_the_job_would_be_cut_off(workflow: dict[Any, Any]) -> None:
    job = workflow["jobs"]["evaluate"]
    (command,) = [step["run"] for step in job["steps"] if "bot evaluate" in step.get("run", "")]
    assert command.split() == ["compression-eval", "bot", "evaluate", "--deadline", str(job["timeout-minutes"] - 10)]


def test_the_checkout_is_not_the_release_that_refuses_forks_wrongly(text: str) -> None:
    assert "actions/checkout@" in text
    assert "# v7.0.0" not in text


def test_the_template_is_the_file_that_runs_here(text: str) -> None:
    assert files("bot").joinpath("templates/compression-eval.yml").read_text(encoding="utf-8") == text


BOT_INSTALL = "      - run: scripts/install-action bot # no key here, so nothing that calls models\n"
GATE_INSTALL = (
    "      - run: scripts/install-action gate # no key here: of the model libraries only what an estimate reads\n"
)


def test_an_adopter_gets_the_same_file_but_for_the_lines_that_install(text: str, tmp_path: Path) -> None:
    small.write(tmp_path / "context_compressor.py", "class C:\n    def compress(self, messages): ...\n")
    action = f"acme/compression-eval@{'5' * 40}"
    given = adoption(tmp_path, action, None).files[".github/workflows/compression-eval.yml"]
    uses = f"      - uses: {action}\n"
    bot, gate = (f"{uses}        with:\n          job: {job}\n" for job in ("bot", "gate"))
    counts = (given.count(bot), given.count(gate), given.count(uses))
    assert counts == (3, 1, text.count("run: scripts/install-action"))
    back = (
        given.replace(bot, BOT_INSTALL)
        .replace(gate, GATE_INSTALL)
        .replace(uses, "      - run: scripts/install-action\n")
    )
    assert back == text


def test_only_the_jobs_that_need_models_install_them(text: str) -> None:
    jobs = yaml.safe_load(text)["jobs"]
    installs = {
        name: step["run"]
        for name, job in jobs.items()
        for step in job["steps"]
        if "install-action" in step.get("run", "")
    }
    assert installs == {
        "gate": "scripts/install-action gate",
        "begin": "scripts/install-action bot",
        "evaluate": "scripts/install-action",
        "merge": "scripts/install-action",
        "publish": "scripts/install-action bot",
        "propose": "scripts/install-action bot",
    }


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / words[0]
    assert program.exists(), f"{words[0]} is not installed: pip install -e '.[dev]'"
    return subprocess.run([str(program), *words[1:]], capture_output=True, text=True, check=False, cwd=small.REPOSITORY)


def test_the_security_linter_finds_nothing_but_the_one_thing_that_is_justified(text: str) -> None:
    status = REAL.with_name("compression-eval-status.yml")
    done = tool("zizmor", "--offline", "--no-progress", *map(str, (REAL, status, small.REPOSITORY / "action.yml")))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"zizmor: ignore\[([^\]]*)\]", text) == ["dangerous-triggers"]
    reason = text[: text.index("zizmor: ignore")].splitlines()[-3:-1]
    assert all(line.strip().startswith("#") for line in reason)


@pytest.mark.parametrize("name", ["test.yml", "release.yml"])
def test_the_security_linter_finds_nothing_in_our_other_workflows(name: str) -> None:
    path = small.REPOSITORY / ".github/workflows" / name
    done = tool("zizmor", "--offline", "--no-progress", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "zizmor: ignore" not in path.read_text(encoding="utf-8")


def test_the_files_fit_githubs_schemas() -> None:
    ours = small.REPOSITORY / ".github"
    workflows = sorted((ours / "workflows").glob("*.yml"))
    actions, updates = [small.REPOSITORY / "action.yml"], [ours / "dependabot.yml"]
    for schema, paths in (("github-workflows", workflows), ("github-actions", actions), ("dependabot", updates)):
        done = tool("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, paths))
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_installs_once_and_puts_the_program_on_the_path(tmp_path: Path) -> None:
    programs = tmp_path / "temp" / "compression-eval" / "bin"
    programs.mkdir(parents=True)
    small.write(programs / "compression-eval", "#!/bin/sh\n").chmod(0o755)
    small.write(tmp_path / "commands" / "bwrap", "#!/bin/sh\n").chmod(0o755)
    path, variables = tmp_path / "path", tmp_path / "env"
    done = subprocess.run(
        ["bash", str(small.REPOSITORY / "scripts" / "install-action")],
        env={
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "GITHUB_PATH": str(path),
            "GITHUB_ENV": str(variables),
            "PATH": f"{tmp_path / 'commands'}:{Path(sys.executable).parent}:/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert path.read_text(encoding="utf-8") == f"{programs}\n"
    name, _, began = variables.read_text(encoding="utf-8").partition("=")
    assert minutes_left(80, {name: began.strip()}, int(began) + 600) == 70
    assert [item.name for item in programs.iterdir()] == ["compression-eval"]
