"""Token counts with tiktoken and a table of our own copy, without ever reaching for the network."""

from __future__ import annotations

import gzip
from binascii import a2b_base64
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from importlib.resources import files
from threading import Lock
from typing import Any

from eval_core.base.messages import Message, said

TOKENIZER = "cl100k_base"
# How the encoding cuts text into words before it looks them up.
_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_PIECE = 20_000  # tiktoken is quadratic in runs without a word boundary; pieces bound the damage
_PER_MESSAGE = 4  # the role and its delimiters, as chat formats add them


_one_at_a_time = Lock()


def _encoding() -> Any:
    with _one_at_a_time:  # or the first calls of a run, each in a thread of its own, all read the table
        return _read_table()


@cache
def _read_table() -> Any:
    # tiktoken would look for the table in a folder that TIKTOKEN_CACHE_DIR may name, and download it from there on.
    import tiktoken

    packed = files("eval_core").joinpath("data", f"{TOKENIZER}.tiktoken.gz").read_bytes()
    words = gzip.decompress(packed).split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding(TOKENIZER, pat_str=_WORDS, mergeable_ranks=ranks, special_tokens={})


@lru_cache(maxsize=65_536)
def count_text(text: str) -> int:
    """Count the tokens of a text; special-token spellings count as ordinary text."""
    encoding = _encoding()
    return sum(len(encoding.encode_ordinary(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))


def count_bytes(text: str) -> int:
    """Count bytes: no text has more tokens, and the table, which takes a tenth of a second to read, is not needed."""
    return len(text.encode("utf-8", "surrogatepass"))


def count_messages(messages: Iterable[Message], count: Callable[[str], int] = count_text) -> int:
    """Count the tokens of what messages say, and a little for each message."""
    return sum(_PER_MESSAGE + sum(map(count, said(message).texts)) for message in messages)
