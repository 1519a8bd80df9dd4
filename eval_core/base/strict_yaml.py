"""Strict parsing of YAML that somebody else wrote: what JSON can express, within limits; all else is one error.

The general loader follows nesting until the stack ends, expands aliases until the memory does, takes the last of two
equal keys, and turns text into dates. None of this is wanted in a configuration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eval_core.base.errors import UserError
from eval_core.base.files import read_text

__all__ = ["parse_yaml", "read_yaml"]

MAX_CHARACTERS = 512 * 1024
MAX_DEPTH = 32
MAX_VALUES = 50_000
"""With every alias written out."""
MAX_DIGITS = 20

_SCALARS = ("str", "null", "bool", "int", "float")
_SURROGATE = re.compile("[\ud800-\udfff]")

_WORDS: dict[type[Node], str] = {MappingNode: "a mapping", SequenceNode: "a list", ScalarNode: "text"}
_KINDS: dict[str, type[Node]] = {
    f"tag:yaml.org,2002:{name}": kind
    for kind, names in ((MappingNode, ("map",)), (SequenceNode, ("seq",)), (ScalarNode, _SCALARS))
    for name in names
}
"""The node that each tag belongs to."""


def _problem(text: str, node: Node | None) -> ConstructorError:
    return ConstructorError(None, None, text, node.start_mark if node is not None else None)


class _StrictLoader(yaml.SafeLoader):
    """Nothing but mappings, lists, text, numbers, booleans and null."""

    # Without dates: `since: 2024-01-31` is text, as it is in JSON. Numbers are resolved by a pattern of their own.
    yaml_implicit_resolvers = {
        first: [
            (tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in ("timestamp", "int", "float")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _problem(f"nested deeper than {MAX_DEPTH} levels", parent)
        node: Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        # A tag may be written before any node; the constructors rely on theirs.
        wanted = _KINDS.get(node.tag, type(node))
        if not isinstance(node, wanted):
            raise _problem(f"{_WORDS[wanted]} was expected, not {_WORDS[type(node)]}", node)
        return super().construct_object(node, deep)

    def get_single_node(self) -> Node | None:
        node: Node | None = super().get_single_node()
        if node is not None:
            _check_size(node)
        return node


def _check_size(root: Node) -> None:
    """Refuse aliases that lead back to themselves or multiply; each node is measured once."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: Node) -> int:
        if id(node) in open_nodes:
            raise _problem("an alias contains itself", node)
        if id(node) not in sizes:
            open_nodes.add(id(node))
            inner: list[Node] = []
            if isinstance(node, MappingNode):
                inner = [part for pair in node.value for part in pair]
            elif isinstance(node, SequenceNode):
                inner = node.value
            sizes[id(node)] = 1 + sum(map(size, inner))
            open_nodes.discard(id(node))
            if sizes[id(node)] > MAX_VALUES:
                raise _problem(f"more than {MAX_VALUES:,} values, aliases written out", node)
        return sizes[id(node)]

    size(root)


def _mapping(loader: _StrictLoader, node: MappingNode) -> dict[Any, Any]:
    own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
    seen: set[Any] = set()
    for key in own:
        name = loader.construct_object(key, deep=True)
        if not isinstance(name, Hashable):
            raise _problem("a list or a mapping cannot be a key", key)
        if name in seen:
            raise _problem(f"the key {str(name)[:60]!r} is given twice", key)
        seen.add(name)
    loader.flatten_mapping(node)
    return {
        loader.construct_object(key, deep=True): loader.construct_object(value, deep=True) for key, value in node.value
    }


def _sequence(loader: _StrictLoader, node: SequenceNode) -> list[Any]:
    return [loader.construct_object(item, deep=True) for item in node.value]


# Numbers as JSON writes them, with a sign, and `.inf` and `.nan` so that they can be refused by name. YAML 1.1 knows
# more: `190:20:30` is 685230 there (base 60), `010` is 8, `1_000` is 1000 and `0x10` is 16; readers of YAML 1.2 differ
# about each. Nobody who writes a budget or a name means that by it, so these are refused rather than guessed.
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(
    r"[-+]?(?:(?:0|[1-9][0-9]*)?\.[0-9]+|(?:0|[1-9][0-9]*)\.)(?:[eE][-+]?[0-9]+)?\Z"
    r"|[-+]?(?:0|[1-9][0-9]*)[eE][-+]?[0-9]+\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)
_UNSURE = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[0-9_]+|0[xobXOB][0-9A-Fa-f_]+|[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?"
    r"|0[0-9]+\.[0-9]*|[0-9][0-9_]*\.[0-9]*_[0-9_]*)\Z"
)
_StrictLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_StrictLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_StrictLoader.add_implicit_resolver("!unsure-number", _UNSURE, list("-+0123456789"))


def _unsure(loader: _StrictLoader, node: ScalarNode) -> Any:
    shown = str(node.value)[:40]
    raise _problem(
        f"{shown} is a number in some versions of YAML and text in others; write the number with plain digits, "
        f"or put quotes around it if it is text",
        node,
    )


def _int(loader: _StrictLoader, node: ScalarNode) -> int:
    if len(str(node.value)) > MAX_DIGITS:
        raise _problem(f"a number of {len(str(node.value)):,} digits", node)
    if not _INT.match(str(node.value)):
        raise _problem(f"{str(node.value)[:40]!r} is not a whole number", node)
    return int(node.value)


def _float(loader: _StrictLoader, node: ScalarNode) -> float:
    if not _FLOAT.match(str(node.value)) and not _INT.match(str(node.value)):
        raise _problem(f"{str(node.value)[:40]!r} is not a number", node)
    value = float(loader.construct_yaml_float(node))
    if not math.isfinite(value):
        raise _problem(f"{str(node.value)[:20]} is not a finite number", node)
    return value


def _text(loader: _StrictLoader, node: ScalarNode) -> str:
    text = str(node.value)
    if _SURROGATE.search(text):
        raise _problem("half of a surrogate pair, which is no text", node)
    return text


def _unknown(loader: _StrictLoader, node: Node) -> Any:
    raise _problem(f"the tag {str(node.tag)[:60]!r} is not used here", node)


for _tag, _constructor in {
    "map": _mapping,
    "seq": _sequence,
    "str": _text,
    "null": yaml.SafeLoader.construct_yaml_null,
    "bool": yaml.SafeLoader.construct_yaml_bool,
    "int": _int,
    "float": _float,
}.items():
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _constructor)  # type: ignore[arg-type]
_StrictLoader.add_constructor("!unsure-number", _unsure)
_StrictLoader.add_constructor(None, _unknown)


def parse_yaml(text: str, where: str) -> Any:
    """Return the value of a document, or say in one sentence what is wrong with it and where."""
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"{where}: longer than {MAX_CHARACTERS:,} characters")
    try:
        loader = _StrictLoader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(exc, "problem", None) or str(exc).replace("\n", " ")
        raise UserError(f"{where}: {place}broken YAML: {problem}") from None
    except (ValueError, OverflowError, RecursionError, IndexError, KeyError) as exc:
        raise UserError(f"{where}: broken YAML: {exc}") from None


def read_yaml(path: Path) -> Any:
    """Return the value of a file."""
    return parse_yaml(read_text(path), str(path))
