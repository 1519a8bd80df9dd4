"""The reference pages of the documentation, written from the code: configuration and commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
from pydantic import BaseModel

from bot.cli import root
from eval_core.base.config import (
    AcceptConfig,
    BotConfig,
    Config,
    ModelConfig,
    ModelParams,
    Price,
    PrivateProbesConfig,
    TaskConfig,
)
from eval_core.domain.target import TargetSpec

__all__ = ["command_page", "configuration_page"]

_CONFIGURATION = """\
# Configuration

<!-- Written by scripts/export-schemas from the code; change it there. -->

A repository is configured by `.compression-eval.yml` in its root. Every field has a default, and a misspelt field is an
error. Paths are relative to the file, wherever you run the command from. The bot reads the file of the base branch,
never that of the pull request. Editors can check it against [the JSON schema](schema/config.schema.json).

```yaml
target:
  compressor: agent.context_compressor:ContextCompressor
  llm: none
watch: [agent/context_compressor.py]
```
"""

_ENVIRONMENT = """\
## Environment variables

Flags come before these, these before the file.

| variable | what it sets |
|---|---|
| `COMPRESSION_EVAL_MODEL` | the model of all three roles |
| `COMPRESSION_EVAL_COMPRESSOR_MODEL`, `..._ANSWER_MODEL`, `..._JUDGE_MODEL` | the model of one role |
| `COMPRESSION_EVAL_API_BASE` | base URL of an OpenAI-compatible provider |
| `COMPRESSION_EVAL_API_KEY` | the key; without it, or with two providers: `OPENAI_API_KEY` and the like |
"""

_COMMANDS = """\
# Commands

<!-- Written by scripts/export-schemas from the code; change it there. -->

`compression-eval COMMAND --help` says the same. Progress goes to stderr, results to stdout.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | `--fail-on` applies; `fixture audit` found something; `target check` or `judge calibrate` failed |
| 2 | bad input or configuration, or output that cannot be written (closed, disk full): one message, no traceback |
| 3 | incomplete (budget, outage; `--resume` completes it), or not comparable or not judged under `--fail-on` |
| 70 | a bug in compression-eval: one sentence, the traceback in a file; `COMPRESSION_EVAL_DEBUG=1` prints it |
| 130, 141 | interrupted with Ctrl-C; the reader of the output closed the pipe |
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _type(schema: dict[str, Any]) -> str:
    """Say in words what a JSON schema accepts."""
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"] if part.get("type") != "null")
    if "$ref" in schema:
        return "a section"
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object":
        return "table"
    low, high = schema.get("minimum"), schema.get("maximum")
    above = schema.get("exclusiveMinimum")
    bounds = [f"at least {low}"] if low is not None else [f"above {above}"] if above is not None else []
    bounds += [f"at most {high}"] if high is not None else []
    return ", ".join([names.get(kind, kind), *bounds])


def _default(schema: dict[str, Any], required: bool) -> str:
    if required:
        return "(required)"
    value = schema.get("default")
    if value is None or value in ([], {}, ""):
        return "-"
    return f"`{', '.join(value) if isinstance(value, list) else value}`"


def _fields(schema: dict[str, Any], skip: frozenset[str] = frozenset()) -> str:
    needed = set(schema.get("required", ()))
    lines = ["| field | value | default | |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        if name not in skip:
            what = _cell(field.get("description", ""))
            lines.append(f"| `{name}` | {_cell(_type(field))} | {_default(field, name in needed)} | {what} |")
    return "\n".join(lines)


def _section(title: str, model: type[BaseModel], skip: frozenset[str] = frozenset()) -> str:
    return f"## {title}\n\n{inspect.cleandoc(model.__doc__ or '')}\n\n{_fields(model.model_json_schema(), skip)}\n"


def configuration_page() -> str:
    """Return docs/configuration.md."""
    parts = [
        _CONFIGURATION,
        _section("Top level", Config, frozenset({"models", "bot", "accept", "task"})),
        _section("`models:`", ModelConfig),
        _section("`models.prices:`", Price),
        _section("`models.params:`", ModelParams),
        _section("`accept:`", AcceptConfig),
        _section("`task:`", TaskConfig),
        _section("`bot:`", BotConfig),
        _section("`private_probes:`", PrivateProbesConfig),
        _section("`target:`", TargetSpec) + "\nHow to describe a compressor: [Your compressor](your-compressor.md).\n",
        _ENVIRONMENT,
    ]
    return "\n".join(parts)


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    choices = " ".join(option.type.choices) if isinstance(option.type, click.Choice) else ""
    default = option.default if option.show_default and not option.is_flag else None
    if isinstance(option.show_default, str):
        default = option.show_default  # in words, where it is found only when the command runs
    notes = [
        option.help or "",
        f"One of: {choices}." if choices else "",
        f"Default: {default}." if default is not None else "",
    ]
    return f"| {names} | {_cell(' '.join(note for note in notes if note)) or '-'} |"


def _argument(argument: click.Argument) -> str:
    name = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _prose(text: str) -> Iterator[str]:
    """Yield a help text's paragraphs; those that keep their line breaks become blocks."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if not paragraph.startswith("\b"):
            yield " ".join(paragraph.split())
            continue
        lines = paragraph.splitlines()[1:]
        if lines and lines[0].endswith(":") and not lines[0].startswith(" "):
            lines = lines[1:]
        yield "```text\n" + inspect.cleandoc("\n".join(lines)) + "\n```"


def _command(words: list[str], command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    arguments = [_argument(param) for param in command.params if isinstance(param, click.Argument)]
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    yield f"{'#' * (len(words) + 1)} {' '.join([*words, *arguments])}"
    yield from _prose(command.help or "")
    if options:
        yield "\n".join(["| option | |", "|---|---|", *map(_option, options)])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _command([*words, name], inner)


def command_page() -> str:
    """Return docs/commands.md."""
    context = click.Context(root)
    parts = [_COMMANDS.rstrip()]
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None
        parts.extend(_command([name], command))
    return "\n\n".join(parts) + "\n"
