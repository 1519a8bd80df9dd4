"""When to compress: levels against the effective window, which the environment may set."""

from __future__ import annotations

import subprocess
import sys

import pytest
import small

from eval_core.compressors.context_compressor import ContextCompressor
from eval_core.compressors.thresholds import Level, Thresholds, effective_window


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (0, Level.FREE),
        (15_999, Level.FREE),
        (16_000, Level.DEFER),
        (95_999, Level.DEFER),
        (96_000, Level.WARNING),
        (111_999, Level.WARNING),
        (112_000, Level.COMPRESS),
        (143_999, Level.COMPRESS),
        (144_000, Level.CRITICAL),
        (500_000, Level.CRITICAL),
    ],
)
def test_levels_begin_at_10_60_70_and_90_percent_of_the_window(tokens: int, level: Level) -> None:
    assert Thresholds().level(tokens, 160_000) is level


def test_the_environment_sets_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_EFFECTIVE_CONTEXT", raising=False)
    assert effective_window() == 160_000
    monkeypatch.setenv("CLAUDE_EFFECTIVE_CONTEXT", "32000")
    assert ContextCompressor().window == 32_000
    assert ContextCompressor(context_length=8_000).window == 8_000


@pytest.mark.parametrize("value", ["", "0", "-5", "many", "1e5"])
def test_a_window_that_is_no_number_is_ignored(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CLAUDE_EFFECTIVE_CONTEXT", value)
    assert effective_window() == 160_000


def test_a_full_window_of_few_messages_is_left_alone() -> None:
    compressor = ContextCompressor(context_length=1_000)
    nine, ten = [small.user("x")] * 9, [small.user("x")] * 10
    assert not compressor.should_compress(nine, 950)
    assert compressor.should_compress(ten, 950)
    assert compressor.should_compress(ten, 700)
    assert not compressor.should_compress(ten, 699)


def test_tokens_are_estimated_where_nobody_counted_them() -> None:
    messages = [small.user("word " * 400)] * 10
    assert ContextCompressor(context_length=5_000).level(messages) is Level.CRITICAL
    assert ContextCompressor(context_length=500_000).level(messages) is Level.FREE


def test_the_package_can_be_lifted_out_whole() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import eval_core.compressors.strategies\n"
        "from pathlib import Path\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "foreign = new - set(sys.stdlib_module_names) - {'eval_core'}\n"
        "own = {name for name in sys.modules if name.startswith('eval_core.')}\n"
        "assert not foreign, foreign\n"
        "assert all(name.startswith('eval_core.compressors') for name in own), own\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
