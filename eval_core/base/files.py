"""Reading users' JSON and writing ours: precise errors in, whole files out."""

from __future__ import annotations

import difflib
import errno
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from eval_core.base.errors import UserError
from eval_core.base.strict_json import BadJson, parse_json

Model = TypeVar("Model", bound=BaseModel)
_MOST_PROBLEMS = 30
_LARGEST = 4 * 1024**3
"""Bytes: no session, result or journal is that large, and reading one that is would take all memory."""
_SLIP = 0.87  # "mesages" is "messages"; "note" is not "not"


def open_file(path: Path) -> BinaryIO:
    """Open a file to read; not a pipe, which may keep us waiting for ever, nor a device, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISREG(found.st_mode):
        raise OSError(errno.EFBIG, f"it holds {found.st_size:,} bytes, at most {_LARGEST:,} are read", str(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device; save what it holds in a file, and name that", str(path))


def read_text(path: Path) -> str:
    """Return the file as UTF-8 text or say in one sentence why not."""
    try:
        with open_file(path) as stream:
            return stream.read().decode("utf-8")
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
    return json_value(read_text(path), path)


def json_value(text: str, path: Path) -> Any:
    """Return the JSON value of a text that was read from this file."""
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


class ForeignRecord(BaseModel):
    """A record that other programs write too: fields unknown here are kept, misspelt ones are told."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _spelling(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = {spelling for name, field in cls.model_fields.items() for spelling in (field.alias or name, name)}
        # A name beside the one it resembles is a field of its own, not a slip of the pen.
        absent = sorted(known - set(value))
        slips = [
            f"{name}: unknown field; did you mean {near[0]!r}?"
            for name in map(str, value)
            if name not in known and (near := difflib.get_close_matches(name, absent, n=1, cutoff=_SLIP))
        ]
        if slips:
            raise ValueError("\n".join(slips))
        return value

    @property
    def unknown(self) -> dict[str, Any]:
        """The fields that only the other program knows."""
        return dict(self.model_extra or {})


def _resolve(value: Any, parts: tuple[int | str, ...]) -> tuple[tuple[int | str, ...], bool]:
    """Walk an error's place in the value; a part that is not there names a member of a union."""
    at: tuple[int | str, ...] = ()
    for part in parts:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return at, True
        at += (part,)
    return at, False


def _problems(errors: Sequence[ErrorDetails], value: Any) -> list[ErrorDetails]:
    """Return one error for each thing that is wrong, in the order of the file."""
    chosen: dict[Any, ErrorDetails] = {}
    for number, error in enumerate(errors):
        at, in_union = _resolve(value, error["loc"] if error["type"] != "missing" else error["loc"][:-1])
        # A union reports each member's complaint; the deepest one is about what the user meant to write.
        key = ("union", at) if in_union else number
        if key not in chosen or len(error["loc"]) > len(chosen[key]["loc"]):
            chosen[key] = error
    return list(chosen.values())


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation names, inside unions and containers too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _near_field(model: type[BaseModel], parts: tuple[int | str, ...]) -> str:
    """Return the field that a misspelt one, at this place of a model, was meant to be; empty if none is near."""
    models = [model]
    for part in parts[:-1]:
        fields = [found.model_fields[str(part)] for found in models if str(part) in found.model_fields]
        models = [inner for field in fields for inner in _models(field.annotation)] or models
    known = [name for found in models for name in found.model_fields]
    return next(iter(difflib.get_close_matches(str(parts[-1]), known, n=1, cutoff=0.7)), "")


def _field_names(model: type[BaseModel]) -> set[str]:
    """Return every name that a field of a model, or of a model inside it, goes by."""
    fields = model.model_fields
    inner = [_field_names(found) for field in fields.values() for found in _models(field.annotation)]
    return {*fields, *(field.alias for field in fields.values() if field.alias)}.union(*inner)


def _unquoted_line(error: ErrorDetails, known: set[str]) -> str:
    """Say where an error is and what is expected there, without a word of the value, its names included."""
    place = _location(tuple(part for part in error["loc"] if isinstance(part, int) or part in known))
    # A check of our own may quote what it refuses; pydantic's name only what they expect.
    own = error["type"] in ("value_error", "assertion_error")
    message = "cannot be used (what it holds is not shown)" if own else error["msg"]
    return f"{place}: {message}" if place else message


def _error_lines(error: ErrorDetails, model: type[BaseModel]) -> list[str]:
    place = _location(error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "literal_error":
        expected = str(error.get("ctx", {}).get("expected", "")).replace("'", "").replace(" or ", ", ")
        message = f"{error['input']!r} is not one of {expected}"
    elif error["type"] == "extra_forbidden":
        near = _near_field(model, error["loc"])
        message = f"unknown field; did you mean {near!r}?" if near else "unknown field; remove it or check its spelling"
    elif error["type"] != "value_error" and error["type"] != "missing":
        message = f"{message} (got {str(error['input'])[:80]!r})"
    return [f"{place}: {line}" if place else line for line in message.split("\n")]


def parse(model: type[Model], value: Any, where: str, *, quote: bool = True) -> Model:
    """Validate a value against a model; every error becomes one line with its place and, unless secret, its value."""
    try:
        return model.model_validate(value)
    except ValidationError as exc:
        errors = _problems(exc.errors(include_url=False), value)
        known = set() if quote else _field_names(model)
        lines = [_error_lines(error, model) if quote else [_unquoted_line(error, known)] for error in errors]
        problems = [line for some in lines for line in some]
        if len(problems) == 1:
            raise UserError(f"{where}: {problems[0]}") from None
        more = [f"  and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        shown = [f"{where}: {len(problems)} problems:", *(f"  {line}" for line in problems[:_MOST_PROBLEMS]), *more]
        raise UserError("\n".join(shown)) from None


def canonical(value: Any) -> bytes:
    """Return the one byte form of a JSON value that digests are taken of."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")  # logs do hold halves of characters


def digest(value: Any) -> str:
    """Return the sha256 of a JSON value's canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_key = lru_cache(4_096)(_encode)  # the same few names over and over


def _layout(value: Any, indent: str) -> str:
    if type(value) is int:  # not bool: most values are numbers, and asking the encoder takes ten times as long
        return str(value)
    if isinstance(value, dict) and value:
        inner = indent + "  "
        items = [f"{inner}{_key(key)}: {_layout(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and any(item and isinstance(item, (dict, list)) for item in value):
        inner = indent + "  "
        return "[\n" + ",\n".join([inner + _layout(item, inner) for item in value]) + f"\n{indent}]"
    text = _encode(value)
    # Half a character cannot be written as UTF-8; escaped it can, and reads back the same.
    return text if text.isascii() or text.encode("utf-8", "replace").decode() == text else json.dumps(value)


def pretty(value: Any) -> str:
    """Return JSON as people review it in a diff: indented, in the given key order, plain lists on one line."""
    return _layout(value, "") + "\n"


def pretty_parts(items: Iterable[tuple[str, Any]], indent: str = "") -> Iterator[str]:
    """Return what `pretty` makes of an object, member by member, without the last line break.

    A member that is an iterator of pairs is an object too, so that a large one never exists as a whole.
    """
    inner, first = indent + "  ", True
    for key, value in items:
        yield ("{\n" if first else ",\n") + f"{inner}{_key(key)}: "
        first = False
        if isinstance(value, Iterator):
            yield from pretty_parts(value, inner)
        else:
            yield _layout(value, inner)
    yield "{}" if first else f"\n{indent}}}"


def write_atomic(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Replace a file as a whole: a reader sees the old or the new one, never a part."""
    parts = [content] if isinstance(content, str | bytes) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                for part in parts:
                    stream.write(part if isinstance(part, bytes) else part.encode("utf-8", "backslashreplace"))
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as exc:
        raise UserError(f"{path}: cannot be written: {exc.strerror}") from None
