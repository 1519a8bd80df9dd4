"""An agent's tree with an environment of its own: the compressor imports a package that only that environment has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import small

CONFIG = """\
target:
  python: .venv/bin/python
  pythonpath: [.]
  compressor: agent.shorten:Shortener
  adapter: adapter.py
  llm: none
watch: [agent/**]
"""
CODE = """\
import only_in_the_environment


class Shortener:
    def compress(self, messages):
        return [{"role": "user", "content": "MARK with " + only_in_the_environment.NAME}]
"""
ADAPTER = """\
def compress(shortener, messages, call):
    return [*shortener.compress(messages), {"role": "assistant", "content": "through the adapter"}]
"""
RUN = ("run", "--runs", "1", "--set", "compress_runs=1", "--fixtures", "small-debug", "--quiet", "--compare-to", "none")


def make_environment(folder: Path) -> Path:
    """Make a virtual environment that holds one package of its own; return its folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    small.write(packages / "only_in_the_environment.py", 'NAME = "the dependency"\n')
    small.write(packages / "only_in_the_environment-1.0.dist-info" / "METADATA", "Name: only-in-the-environment\n")
    return folder


def write_agent(root: Path, mark: str = "base", *, environment: bool = True, suite: bool = True) -> Path:
    """Write the agent's tree; `mark` is what its compressor answers with."""
    if suite:
        small.write_suite(root)
    small.write(root / "agent" / "__init__.py", "")
    small.write(root / "agent" / "shorten.py", CODE.replace("MARK", mark))
    small.write(root / "adapter.py", ADAPTER)
    small.write(root / ".compression-eval.yml", CONFIG)
    small.write(root / "target.yml", CONFIG)
    if environment:
        make_environment(root / ".venv")
    return root


def kept(results: Path, fixture: str = "small-debug") -> list[str]:
    """Return what the compressor left of a session."""
    path = next(
        path
        for path in sorted(results.rglob(f"{fixture}-run-0.json"))
        if not {"latest", "base"} & set(path.relative_to(results).parts)
    )
    return [message["content"] for message in json.loads(path.read_text(encoding="utf-8"))["messages"]]


def link(path: Path, to: Path) -> Path:
    path.symlink_to(to)
    return path
