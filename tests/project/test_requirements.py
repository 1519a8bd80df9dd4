"""The locked requirements: complete, hashed, and in step with pyproject.toml."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("bot", "build", "evaluate", "gate")
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")


def locked(name: str) -> dict[str, Version]:
    """Return the pinned versions of a lock."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    pins = [match for line in lines if (match := _PIN.match(line))]
    return {canonicalize_name(pin["name"]): Version(pin["version"]) for pin in pins}


def requirements(lines: list[str]) -> list[Requirement]:
    """Parse requirement lines, without comments and options."""
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]


def test_the_lock_of_the_evaluation_satisfies_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = locked("evaluate")
    for wanted in requirements(project["dependencies"]):
        found = pins.get(canonicalize_name(wanted.name))
        assert found is not None, f"{wanted} is not locked: run scripts/lock"
        assert found in wanted.specifier, f"{wanted} against {found}: run scripts/lock"


@pytest.mark.parametrize("name", ["bot", "build", "gate"])
def test_a_lock_holds_what_its_source_asks_for(name: str) -> None:
    asked = requirements((ROOT / "requirements" / f"{name}.in").read_text(encoding="utf-8").splitlines())
    assert {canonicalize_name(wanted.name) for wanted in asked} <= set(locked(name)), "run scripts/lock"


@pytest.mark.parametrize("name", ["bot", "gate"])
def test_all_jobs_run_the_same_versions(name: str) -> None:
    whole = locked("evaluate")
    assert {name: version for name, version in locked(name).items() if whole.get(name) != version} == {}


def test_the_gate_installs_a_price_list_and_a_tokenizer_but_nothing_that_could_use_a_key() -> None:
    added = set(locked("gate")) - set(locked("bot"))
    assert {"litellm", "tiktoken"} <= added
    assert not {"openai", "httpx", "huggingface-hub", "tokenizers"} & added


@pytest.mark.e2e
def test_the_locks_are_what_the_script_would_write(tmp_path: Path) -> None:
    """Needs a package index. Versions that are locked already are kept, so a new release changes nothing."""
    copy = tmp_path / "project"
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts", "requirements"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name)
        else:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy / name)
    subprocess.run([str(copy / "scripts" / "lock")], check=True, capture_output=True)
    for name in LOCKS:
        path = f"requirements/{name}.txt"
        assert (copy / path).read_text(encoding="utf-8") == (ROOT / path).read_text(encoding="utf-8"), path


def test_jobs_that_hold_no_key_install_nothing_that_calls_models() -> None:
    assert not {"litellm", "openai", "tiktoken", "aiohttp", "huggingface-hub"} & set(locked("bot"))


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_hashed_and_no_index_is_named(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert not re.search(r"^(--index-url|--extra-index-url|--find-links|-i|-f)\b", text, re.MULTILINE)
