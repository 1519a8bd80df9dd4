"""Adding to a YAML file: new keys and list items are inserted as text, so that comments and layout survive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node

from eval_core.base.errors import UserError
from eval_core.base.strict_yaml import parse_yaml

Addition = Mapping[str, Any]
"""Mappings of mappings, and lists of text at the ends."""


def merged(old: Any, addition: Any) -> Any:
    """Return a value with what is added to it: keys to mappings, items that are not there yet to lists."""
    if isinstance(addition, Mapping):
        before = old or {}
        return {**before, **{key: merged(before.get(key), value) for key, value in addition.items()}}
    return [*(old or []), *(item for item in addition if item not in (old or []))]


def _quoted(text: str) -> str:
    """Write text in double quotes; what cannot be seen is escaped."""
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def _key(name: str) -> str:
    plain = name.replace("-", "").replace("_", "").isalnum() and name.isascii() and name[0].isalpha()
    return name if plain and parse_yaml(name, "key") == name else _quoted(name)


def block_yaml(value: Any, indent: int = 0) -> str:
    """Write mappings and lists of text in block style, one line each, ending without a line break."""
    pad = " " * indent
    if isinstance(value, Mapping):
        return "\n".join(f"{pad}{_key(key)}:\n{block_yaml(item, indent + 2)}" for key, item in value.items())
    return "\n".join(f"{pad}- {_quoted(item)}" for item in value)


def _flow(value: Any) -> str:
    """Write the inside of a collection in flow style."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_key(key)}: {{{_flow(item)}}}" if isinstance(item, Mapping) else f"{_key(key)}: [{_flow(item)}]"
            for key, item in value.items()
        )
    return ", ".join(map(_quoted, value))


def _last(node: CollectionNode) -> Node:
    found: Node = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
    return found


def _end(node: Node) -> int:
    """Return where the text of a node ends; a block is said to end where the next one begins."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        return _end(_last(node))
    return int(node.end_mark.index)


class _Editor:
    """Collects insertions into one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[tuple[int, int, str]] = []

    def add(self, node: Node, addition: Any, column: int) -> None:
        """Insert an addition into a node whose block items begin at a column."""
        if not isinstance(node, CollectionNode):  # null: the key is there and nothing is under it
            start = int(node.start_mark.index)
            self.edits.append((start, int(node.end_mark.index), "\n" + block_yaml(addition, column)))
        elif isinstance(node, MappingNode):
            self._add_keys(node, addition)
        elif new := [item for item in addition if item not in [child.value for child in node.value]]:
            self._insert(node, new)

    def _add_keys(self, node: MappingNode, addition: Addition) -> None:
        known = {key.value: (key, value) for key, value in node.value}
        for name in addition.keys() & known.keys():
            key, value = known[name]
            self.add(value, addition[name], key.start_mark.column + 2)
        if new := {name: value for name, value in addition.items() if name not in known}:
            self._insert(node, new)

    def _insert(self, node: CollectionNode, new: Addition | Sequence[str]) -> None:
        if node.flow_style:
            at = _end(_last(node)) if node.value else int(node.start_mark.index) + 1
            self.edits.append((at, at, (", " if node.value else "") + _flow(new)))
            return
        end = len(self.text[: _end(node)].rstrip())
        at = self.text.find("\n", end)
        at = len(self.text) if at < 0 else at - (self.text[at - 1] == "\r")
        self.edits.append((at, at, "\n" + block_yaml(new, node.start_mark.column)))

    @property
    def result(self) -> str:
        """The text with every insertion; of several in one place the first one comes first."""
        text = self.text
        order = sorted(range(len(self.edits)), key=lambda at: (self.edits[at][0], at), reverse=True)
        for start, end, new in (self.edits[at] for at in order):
            text = text[:start] + new + text[end:]
        return text


def add_to_yaml(text: str, addition: Addition, where: str) -> str:
    """Return the text of a YAML file with an addition; refuse where that is not possible without a loss."""
    wanted = merged(parse_yaml(text, where), addition)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    line = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        plain = text.rstrip()
        written = (f"{plain}\n" if plain else "") + block_yaml(addition)
    else:
        editor = _Editor(text)
        editor.add(root, addition, 0)
        written = editor.result
    written = (written if written.endswith("\n") else f"{written}\n").replace("\r\n", "\n").replace("\n", line)
    try:
        fits = parse_yaml(written, where) == wanted
    except UserError:
        fits = False
    if not fits:
        raise UserError(f"{where}: its layout is too unusual to be edited; add this by hand:\n{block_yaml(addition)}")
    return written
