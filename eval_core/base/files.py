"""Reading users' JSON and writing ours: precise errors in, whole files out."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from eval_core.base.errors import UserError
from eval_core.strict_json import BadJson, parse_json

__all__ = ["canonical", "digest", "parse", "pretty", "read_json", "read_text", "write_atomic"]

Model = TypeVar("Model", bound=BaseModel)


def read_text(path: Path) -> str:
    """Return the file as UTF-8 text or say in one sentence why not."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder, a file was expected") from None
    except UnicodeDecodeError as exc:
        raise UserError(f"{path}: not UTF-8 (byte {exc.start}); save the file as UTF-8") from None
    except OSError as exc:
        raise UserError(f"{path}: cannot be read: {exc.strerror}") from None


def read_json(path: Path) -> Any:
    """Return the file's JSON value or name the line at which it breaks."""
    text = read_text(path)
    try:
        return parse_json(text)
    except BadJson as exc:
        place = f"{exc.place}: " if exc.place else ""
        raise UserError(f"{path}: {place}broken JSON: {exc.problem}") from None


def _location(parts: tuple[int | str, ...]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def parse(model: type[Model], value: Any, where: str) -> Model:
    """Validate a value against a model; the first error becomes one line with its place and value."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        errors = exc.errors(include_url=False)
        # A union reports each member's complaint; the deepest one is about what the user meant to write.
        error = max(errors, key=lambda item: len(item["loc"]))
        place = _location(error["loc"])
        message = error["msg"].removeprefix("Value error, ")
        if error["type"] == "literal_error":
            expected = str(error.get("ctx", {}).get("expected", "")).replace("'", "").replace(" or ", ", ")
            message = f"{error['input']!r} is not one of {expected}"
        elif error["type"] == "extra_forbidden":
            message = "unknown field; remove it or check its spelling"
        elif error["type"] != "value_error" and error["type"] != "missing":
            message = f"{message} (got {str(error['input'])[:80]!r})"
        prefix = f"{where}: {place}" if place else where
        raise UserError(f"{prefix}: {message}") from None


def canonical(value: Any) -> bytes:
    """Return the one byte form of a JSON value that digests are taken of."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")  # logs do hold halves of characters


def digest(value: Any) -> str:
    """Return the sha256 of a JSON value's canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _layout(value: Any, indent: str) -> str:
    if isinstance(value, dict) and value:
        inner = indent + "  "
        items = (f"{inner}{_encode(key)}: {_layout(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) and item for item in value):
        inner = indent + "  "
        return "[\n" + ",\n".join(inner + _layout(item, inner) for item in value) + f"\n{indent}]"
    text = _encode(value)
    # Half a character cannot be written as UTF-8; escaped it can, and reads back the same.
    return text if text.isascii() or text.encode("utf-8", "replace").decode() == text else json.dumps(value)


def pretty(value: Any) -> str:
    """Return JSON as people review it in a diff: indented, in the given key order, plain lists on one line."""
    return _layout(value, "") + "\n"


def write_atomic(path: Path, text: str) -> None:
    """Replace a file as a whole: a reader sees the old or the new one, never a part."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as exc:
        raise UserError(f"{path}: cannot be written: {exc.strerror}") from None
