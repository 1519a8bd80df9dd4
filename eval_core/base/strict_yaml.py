"""Strict parsing of YAML that somebody else wrote: what JSON can express, within limits; all else is one error.

The general loader follows nesting until the stack ends, expands aliases until the memory does, takes the last of two
equal keys, and turns text into dates. None of this is wanted in a configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eval_core.base.errors import UserError
from eval_core.base.files import read_text

MAX_CHARACTERS = 512 * 1024
MAX_DEPTH = 32
MAX_VALUES = 50_000
"""With every alias written out."""
MAX_DIGITS = 20

_TAGS = {ScalarNode: "str", SequenceNode: "seq", MappingNode: "map"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    **dict.fromkeys(("", "~", "null"), None),
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
# Numbers as JSON writes them, with a sign. YAML 1.1 knows more: `190:20:30` is 685230 there (base 60), `010` is 8,
# `1_000` is 1000 and `0x10` is 16; readers of YAML 1.2 differ about each. Nobody who writes a budget or a name means
# that by it, so these are refused rather than guessed.
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_UNSURE = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[0-9_]+|0[xobXOB][0-9A-Fa-f_]+|[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?"
    r"|0[0-9]+\.[0-9]*|[0-9][0-9_]*\.[0-9]*_[0-9_]*)"
)


def _problem(text: str, node: Node) -> ConstructorError:
    return ConstructorError(None, None, text, node.start_mark)


def _scalar(node: ScalarNode) -> Any:
    text = str(node.value)
    if _SURROGATE.search(text):
        raise _problem("half of a surrogate pair, which is no text", node)
    if node.style is not None:  # in quotes, or a block
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _UNSURE.fullmatch(text):
        raise _problem(
            f"{text[:40]} is a number in some versions of YAML and text in others; write the number with plain digits, "
            "or put quotes around it if it is text",
            node,
        )
    return _number(text, node) if _NUMBER.fullmatch(text) or _ENDLESS.fullmatch(text) else text


def _number(text: str, node: ScalarNode) -> int | float:
    if text.lstrip("+-").isdigit():
        if len(text) > MAX_DIGITS:
            raise _problem(f"a number of {len(text):,} digits", node)
        return int(text)
    if _ENDLESS.fullmatch(text) or abs(float(text)) == float("inf"):
        raise _problem(f"{text[:20]} is not a finite number", node)
    return float(text)


class _Values:
    """The values of nodes. What is counted is what a reader sees: an alias counts as often as it is used."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, node: Node, depth: int = 1) -> Any:
        self._count += 1
        if depth > MAX_DEPTH:
            raise _problem(f"nested deeper than {MAX_DEPTH} levels", node)
        if self._count > MAX_VALUES:
            raise _problem(f"more than {MAX_VALUES:,} values, aliases written out", node)
        if node.tag != f"tag:yaml.org,2002:{_TAGS[type(node)]}":
            raise _problem(f"the tag {str(node.tag)[:60]!r} is not used here", node)
        if isinstance(node, MappingNode):
            return self._mapping(node, depth + 1)
        return _scalar(node) if isinstance(node, ScalarNode) else [self.of(item, depth + 1) for item in node.value]

    def _mapping(self, node: MappingNode, depth: int) -> dict[Any, Any]:
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise _problem("a list or a mapping cannot be a key", key)
            if key.value == "<<" and key.style is None:
                for part in value.value if isinstance(value, SequenceNode) else [value]:
                    if not isinstance(part, MappingNode):
                        raise _problem("a mapping was expected", part)
                    merged = {**self.of(part, depth), **merged}
                continue
            name = self.of(key, depth)
            if name in own:
                raise _problem(f"the key {str(name)[:60]!r} is given twice", key)
            own[name] = self.of(value, depth)
        return {**merged, **own}


def parse_yaml(text: str, where: str) -> Any:
    """Return the value of a document, or say in one sentence what is wrong with it and where."""
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"{where}: longer than {MAX_CHARACTERS:,} characters")
    try:
        node = yaml.compose(text, yaml.BaseLoader)
        return None if node is None else _Values().of(node)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(exc, "problem", None) or str(exc).replace("\n", " ")
        raise UserError(f"{where}: {place}broken YAML: {problem}") from None
    except RecursionError:
        raise UserError(f"{where}: broken YAML: nested deeper than {MAX_DEPTH} levels") from None
    except (ValueError, OverflowError, IndexError, KeyError) as exc:
        raise UserError(f"{where}: broken YAML: {exc}") from None


def read_yaml(path: Path) -> Any:
    """Return the value of a file."""
    return parse_yaml(read_text(path), str(path))
