"""The description of a compressor under test: YAML in, a checked value out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from eval_core.base.errors import UserError
from eval_core.base.files import parse
from eval_core.base.strict_yaml import read_yaml
from eval_core.domain.record import Record

VARIABLES = (
    "MODEL", "LLM_BASE_URL", "LLM_ROOT_URL", "LLM_API_KEY", "FOCUS_TOPIC", "CONTEXT_LENGTH", "SEED", "RUN", "ADAPTER",
    "RUNTIME", "BUDGET",
)  # fmt: skip
"""All that `${...}` may name; a closed set, so that a spec cannot reach the environment."""

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"


def _references(value: Any) -> list[str]:
    """Return the names in `${...}` of a nested value."""
    if isinstance(value, str):
        return _REFERENCE.findall(value)
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    return [name for inner in value for name in _references(inner)] if isinstance(value, list) else []


def _unknown_variable(value: Any) -> str | None:
    """Return the first `${...}` name in a nested value that is not of the closed set."""
    return next((name for name in _references(value) if name not in VARIABLES), None)


class TargetSpec(BaseModel):
    """How to start and call one compressor: a Python class or function, or a command in any language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    python: Annotated[
        str | None, Field(description="Interpreter of the target's environment, relative to this file; default: ours.")
    ] = None
    pythonpath: Annotated[
        list[str], Field(description="Import roots: folders of the tree under test, relative to this file.")
    ] = ["."]
    compressor: Annotated[
        str | None,
        Field(pattern=rf"^{_DOTTED}:{_DOTTED}$", description="`module:Class` or `module:function`, for Python."),
    ] = None
    command: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            description="Instead of compressor: a program and its arguments, started in directory, that speaks "
            "JSON lines.",
        ),
    ] = None
    directory: Annotated[
        str,
        Field(description="With command: the folder of the tree under test to start it in, relative to this file."),
    ] = "."
    runtime: Annotated[
        str | None,
        Field(
            description="With command: a folder, relative to this file, whose bin, lib and node_modules the program "
            "may read; /usr and the tree under test are always there."
        ),
    ] = None
    adapter: Annotated[
        str | None,
        Field(
            description="File, relative to this one, that bridges another calling convention: Python for a compressor, "
            "anything for a command, which finds it at `${ADAPTER}`."
        ),
    ] = None
    init: Annotated[dict[str, Any], Field(description="Keywords of the constructor.")] = {}
    optional_init: Annotated[
        list[str], Field(description="Keywords of init or call that are left out where the signature lacks them.")
    ] = []
    method: Annotated[str, Field(pattern=rf"^{_DOTTED}$", description="The method that compresses.")] = "compress"
    call: Annotated[dict[str, Any], Field(description="Keywords of the method, beside the messages.")] = {}
    budgets: Annotated[
        list[Annotated[int, Field(gt=0)]],
        Field(
            max_length=4,
            description="Values of `${BUDGET}`, in whatever unit the compressor takes. The first is evaluated; each "
            "other compresses every fixture once, for the picture of facts by size.",
        ),
    ] = []
    keeps_tokens: Annotated[
        int | None,
        Field(
            gt=0,
            description="Tokens of the newest messages that it keeps word for word; the report names sessions that are "
            "smaller, which such an agent does not compress in use.",
        ),
    ] = None
    recall: Annotated[
        str | None,
        Field(
            pattern=rf"^{_DOTTED}(:{_DOTTED})?$",
            description="The agent's own search of what was removed: `module:function`, a method of the compressor, or "
            "`adapter`. Called with the removed messages and a query; asked in rounds for what a state has lost.",
        ),
    ] = None
    llm: Annotated[Literal["required", "none"], Field(description="Whether a normal run calls a model.")] = "required"
    env: Annotated[dict[str, str], Field(description="Environment variables; the target sees no others.")] = {}
    files: Annotated[dict[str, str], Field(description="Files written into the temporary home folder.")] = {}
    timeout_s: Annotated[float, Field(gt=0, le=3600, description="Seconds for the import, and for each step.")] = 400
    memory_mb: Annotated[int, Field(ge=256, le=65536, description="Memory of the whole process tree.")] = 2048
    watch: Annotated[
        list[str], Field(description="Paths whose change makes a pull request one that touches the compressor.")
    ] = []

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(f"write the program and its arguments as a list, for example {shlex.split(value)!r}")
        return value

    @field_validator("init", "call", "env", "files", "command")
    @classmethod
    def _variables_known(cls, value: Any) -> Any:
        if (name := _unknown_variable(value)) is not None:
            raise ValueError(f"${{{name}}} is not a variable; known are {', '.join(VARIABLES)}")
        return value

    @field_validator("pythonpath")
    @classmethod
    def _relative(cls, value: list[str]) -> list[str]:
        for path in value:
            if PurePosixPath(path).is_absolute():
                raise ValueError(f"{path!r} must be a relative path: import roots are folders of the tree under test")
        return value

    @field_validator("files")
    @classmethod
    def _inside(cls, value: Any) -> Any:
        for path in value:
            pure = PurePosixPath(path)
            if pure.is_absolute() or ".." in pure.parts:
                raise ValueError(f"{path!r} must be a relative path without '..'")
        return value

    @field_validator("env")
    @classmethod
    def _environment_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"{name!r} is not a name of an environment variable")
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> TargetSpec:
        if (self.compressor is None) == (self.command is None):
            raise ValueError("give either compressor (Python) or command (any language)")
        python_only = ("python", "pythonpath", "optional_init", "method", "call", "recall")
        if self.command is not None and (wrong := [name for name in python_only if name in self.model_fields_set]):
            raise ValueError(f"{wrong[0]} is for Python compressors and has no meaning beside command")
        if self.command is None and self.runtime is not None:
            raise ValueError("runtime goes with command; a Python compressor's environment is named by python")
        if self.command is None and "directory" in self.model_fields_set:
            raise ValueError("directory goes with command; a Python compressor's folders are named by pythonpath")
        return self

    @model_validator(mode="after")
    def _budget_used(self) -> TargetSpec:
        parts = [self.init, self.call, self.env, self.files, self.command or []]
        used = any("BUDGET" in _references(part) for part in parts)
        if used and not self.budgets:
            raise ValueError("${BUDGET} has no value; list some under budgets, for example [4000, 2000, 8000]")
        if self.budgets and not used:
            raise ValueError("budgets are given and ${BUDGET} is not used; write it where the compressor takes one")
        if len(set(self.budgets)) < len(self.budgets):
            raise ValueError(f"budgets: {self.budgets} holds a value twice")
        return self

    @model_validator(mode="after")
    def _optional_exist(self) -> TargetSpec:
        for name in self.optional_init:
            if name not in self.init and name not in self.call:
                raise ValueError(f"optional_init: {name!r} is in neither init nor call")
        return self

    @property
    def name(self) -> str:
        """How reports call it."""
        return self.compressor or shlex.join(self.command or ())


@dataclass(frozen=True)
class Builtin:
    """A reference compressor, by name, that runs inside the evaluator."""

    name: str


def target_from(value: Any, where: str) -> TargetSpec | Builtin:
    """Check a `target:` value: `builtin:NAME` or the keys of a spec."""
    if isinstance(value, str):
        if value.startswith("builtin:") and len(value) > len("builtin:"):
            return Builtin(value.removeprefix("builtin:"))
        raise UserError(f"{where}: {value!r} is neither builtin:NAME nor a mapping with the key compressor or command")
    if not isinstance(value, Mapping):
        raise UserError(
            f"{where}: a mapping with the key compressor or command was expected, not {type(value).__name__}"
        )
    return parse(TargetSpec, dict(value), where)


def read_target(path: Path) -> TargetSpec | Builtin:
    """Read a spec file: the keys themselves, or `target:` with `watch:`, `setup:` and `package:` beside it."""
    value = read_yaml(path)
    if isinstance(value, Mapping) and "target" in value:
        if extra := sorted(map(str, set(value) - {"target", "watch", "setup", "package"})):
            raise UserError(
                f"{path}: {extra[0]}: unknown field next to target; only watch, setup and package are allowed there"
            )
        if isinstance(value["target"], Mapping) and "watch" in value:
            if "watch" in value["target"]:
                raise UserError(f"{path}: watch is given twice, in target and beside it; keep one")
            value = {**value["target"], "watch": value["watch"]}
        else:
            value = value["target"]
    return target_from(value, str(path))


def substitute(value: Any, variables: Mapping[str, Any]) -> Any:
    """Replace `${NAME}`; a string that is only a reference takes the variable's own type, null included.

    A name without a value here is left as it stands (the base address is known only inside the child).
    """
    if isinstance(value, str):
        if (whole := _REFERENCE.fullmatch(value)) and whole[1] in variables:
            return variables[whole[1]]
        return _REFERENCE.sub(
            lambda match: (
                ("" if (known := variables[match[1]]) is None else str(known)) if match[1] in variables else match[0]
            ),
            value,
        )
    if isinstance(value, Mapping):
        return {key: substitute(inner, variables) for key, inner in value.items()}
    if isinstance(value, list):
        return [substitute(inner, variables) for inner in value]
    return value


_NAMED = 5
"""Changed parts of a compressor that a message lists."""


class CompressorSource(Record):
    """Digests and versions, by the name that a person would look for."""

    description: dict[str, str] = {}
    """Fields of the target, the adapter's by its content."""
    files: dict[str, str] = {}
    """Modules, what lies beside them, and watched files, by their path in the tree."""
    packages: dict[str, str] = {}
    """Of the interpreter, by name: the version."""

    @field_validator("files", "packages")
    @classmethod
    def _writable(cls, named: dict[str, str]) -> dict[str, str]:
        """Spell out bytes of a name that are not UTF-8: JSON cannot hold them, and what is read must be the same."""
        return {
            name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"): named[name] for name in named
        }


def changed_parts(before: CompressorSource, after: CompressorSource) -> list[str]:
    """Name what is not the same, for a message; a long list is cut short."""
    parts = [f"target.{name}" for name in _changed(before.description, after.description)]
    parts += _changed(before.files, after.files)
    for name in _changed(before.packages, after.packages):
        old, new = before.packages.get(name, "none"), after.packages.get(name, "none")
        parts.append(f"package {name} ({old} -> {new})")
    more = len(parts) - _NAMED
    return [*parts[:_NAMED], f"{more} more"] if more > 0 else parts


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
