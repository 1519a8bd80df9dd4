"""Tokens are counted without the network and in time that grows with the text."""

from __future__ import annotations

import os
import subprocess
import sys

import small

from eval_core.base.tokens import count_messages, count_text


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


def test_counting_needs_neither_network_nor_litellm() -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from eval_core.base.tokens import count_text\n"
        "assert count_text('hello world') == 2\n"
        "assert 'litellm' not in sys.modules\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TIKTOKEN_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
