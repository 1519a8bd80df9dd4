"""Token counts with tiktoken, without ever reaching for the network."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eval_core.base.messages import Message, call_arguments, call_name, content_text, tool_calls

__all__ = ["TOKENIZER", "count_messages", "count_text"]

TOKENIZER = "cl100k_base"
_PIECE = 20_000  # tiktoken is quadratic in runs without a word boundary; pieces bound the damage
_PER_MESSAGE = 4  # the role and its delimiters, as chat formats add them


@cache
def _encoding() -> Any:
    # tiktoken downloads its tables unless a cache folder holds them; litellm's wheel ships them.
    # find_spec only locates the package: importing litellm takes seconds.
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        spec = find_spec("litellm")
        if spec is not None and spec.origin is not None:
            folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
            if folder.is_dir():
                os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding(TOKENIZER)


@lru_cache(maxsize=65_536)
def count_text(text: str) -> int:
    """Count the tokens of a text; special-token spellings count as ordinary text."""
    encoding = _encoding()
    return sum(len(encoding.encode_ordinary(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))


def count_messages(messages: Iterable[Message]) -> int:
    """Count the tokens of messages: contents, tool names and arguments, and a little for each message."""
    total = 0
    for message in messages:
        total += _PER_MESSAGE + count_text(content_text(message))
        for call in tool_calls(message):
            total += count_text(call_name(call)) + count_text(call_arguments(call))
    return total
