"""A changed prompt: not judged offline, with its lines shown, and judged by a model that does what it is told."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import prompted
import pytest
import small

from eval_core.sandbox.isolation import detect

from .world import Provider, served_at

ADAPTER = """
import json
import os
import urllib.request


def complete(messages):
    body = {"model": "any", "messages": messages}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def create(spec):
    return spec["target"](complete)


def compress(compressor, messages, call):
    return compressor.compress(messages)
"""
SPEC = """
compressor: hermes_like:HermesLike
adapter: adapter.py
llm: required
env: {OPENAI_BASE_URL: "${LLM_BASE_URL}", OPENAI_API_KEY: "${LLM_API_KEY}"}
timeout_s: 60
"""
PATHS = (prompted.RULE, f'{prompted.RULE}\n        prompt = "Keep every path word for word.\\n" + prompt')
SESSION = "debug-session-feishu-id-model"
EDITS = {
    "two sentences": prompted.REWRITTEN,
    "a line removed": ("Keep every path word for word.\\n", ""),
}


def obey(messages: Any) -> str:
    spec = importlib.util.spec_from_file_location("obeying", small.REPOSITORY / "bench" / "obeying.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.obey(messages)
    return text


def tree(folder: Path, source: str) -> None:
    small.write(folder / "hermes_like.py", source)
    small.write(folder / "adapter.py", ADAPTER)
    small.write(folder / "target.yml", SPEC)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One shipped session, and the base's compressor in `base`."""
    if not detect("auto").confined:
        pytest.skip("no sandbox on this machine")
    for folder, end in (("fixtures", "json"), ("probes", "probes.json"), ("probes", "ledger.json")):
        (tmp_path / folder).mkdir(exist_ok=True)
        shutil.copy(small.REPOSITORY / folder / f"{SESSION}.{end}", tmp_path / folder)
    tree(tmp_path / "base", prompted.edited(PATHS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(project: Path, cli: small.Cli, *options: str) -> tuple[int, dict[str, Any]]:
    command = (
        "run",
        "--target",
        "target.yml",
        "--compare-to",
        "rerun",
        "--base-tree",
        "base",
        "--label",
        "a",
        "--quiet",
    )
    ran = cli(*command, "--fail-on", "regressed", *options)
    assert ran.code in (0, 1, 3), ran.out + ran.err
    assert "Incomplete" not in ran.err
    verdict: dict[str, Any] = json.loads((project / "results" / "a" / "verdict.json").read_text(encoding="utf-8"))
    return ran.code, verdict


def details(verdict: dict[str, Any]) -> list[str]:
    (asks,) = (strand for strand in verdict["strands"] if strand["name"] == "asks")
    found: list[str] = asks["details"]
    return found


def test_the_same_prompt_is_no_change(project: Path, cli: small.Cli) -> None:
    tree(project, prompted.edited(PATHS).replace('"""Return head, summary and tail."""', '"""Return it."""'))
    code, verdict = run(project, cli, "--runs", "1", "--set", "compress_runs=3")
    assert (code, verdict["kind"]) == (0, "no_detectable_change")


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_prompt_is_not_judged_offline_and_passes_no_gate(
    project: Path, cli: small.Cli, edit: tuple[str, str]
) -> None:
    source = prompted.edited(PATHS)
    assert edit[0] in source
    tree(project, source.replace(*edit))
    code, verdict = run(project, cli, "--runs", "1", "--set", "compress_runs=3")
    assert (code, verdict["kind"]) == (3, "not_judged")
    assert "- Keep every path word for word." in details(verdict) or "two sentences" in str(details(verdict))
    assert "--judge offline" in verdict["next_step"]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_it_is_judged_with_a_model_that_does_as_it_is_told(
    project: Path, cli: small.Cli, provider: Provider, edit: tuple[str, str]
) -> None:
    provider.reply = obey
    tree(project, prompted.edited(PATHS).replace(*edit))
    model = ("--model", "openai/m", *served_at(provider.server.base_url, "openai/m"))
    code, verdict = run(project, cli, "--runs", "1", "--set", "compress_runs=5", *model, "--judge", "offline")
    assert (code, verdict["kind"]) == (1, "regressed"), verdict["headline"]
    assert details(verdict)
