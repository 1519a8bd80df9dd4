"""Tokens are counted without the network and in time that grows with the text."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import small
import tiktoken

from eval_core.base.messages import render
from eval_core.base.tokens import TOKENIZER, count_messages, count_text


def test_known_texts_have_known_counts() -> None:
    assert count_text("") == 0
    assert count_text("hello world") == 2


def test_spellings_of_special_tokens_are_ordinary_text() -> None:
    assert count_text("<|endoftext|>") > 1


def test_a_long_run_without_a_word_boundary_is_counted_in_pieces() -> None:
    assert 10_000 < count_text("a" * 200_000) < 200_000


def test_tool_names_and_arguments_count() -> None:
    with_call = small.calls(("c", "terminal", {"command": "ls"}))
    assert count_messages([with_call]) > count_messages([{"role": "assistant", "content": None}])


def test_every_message_costs_a_little() -> None:
    assert count_messages([{"role": "user", "content": ""}] * 3) == 3 * count_messages(
        [{"role": "user", "content": ""}]
    )
    assert count_messages([]) == 0


def test_the_counts_are_those_of_the_published_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm ships the table as it is published; tiktoken checks its hash."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    tables = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tables))
    published = tiktoken.get_encoding(TOKENIZER)
    texts = [render(case.fixture.messages) for case in small.cases()]
    for text in [*texts, "caf\u00e9 \u4f60\u597d \U0001f680  \n\n\tx = {1234567: 'don't'}  "]:
        assert count_text(text) == len(published.encode_ordinary(text))


@pytest.mark.parametrize("cache", [None, "empty", "wrong", "nowhere"])
def test_counting_needs_neither_network_nor_litellm_nor_a_cache(tmp_path: Path, cache: str | None) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from eval_core.base.tokens import count_text\n"
        "assert count_text('hello world') == 2\n"
        "assert 'litellm' not in sys.modules\n"
    )
    small.write(tmp_path / "wrong" / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "not a table")
    (tmp_path / "empty").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "TIKTOKEN_CACHE_DIR"}
    if cache:
        environment["TIKTOKEN_CACHE_DIR"] = str(tmp_path / cache)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
