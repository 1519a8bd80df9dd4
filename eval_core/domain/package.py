"""The published package that a target describes: where it comes from, and what is installed with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from eval_core.base.errors import UserError
from eval_core.base.files import parse
from eval_core.base.strict_yaml import read_yaml

_NAME = r"^@?[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?$"
_REQUIREMENT = r"^@?[A-Za-z0-9][^\s;]*$"


class Package(BaseModel):
    """A package of PyPI or npm, of which two versions can be installed side by side."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    index: Annotated[Literal["pypi", "npm"], Field(description="Where it is published.")]
    name: Annotated[str, Field(pattern=_NAME, description="Its name there.")]
    extras: Annotated[list[str], Field(description="PyPI: extras to install, for example [openai].")] = []
    beside: Annotated[
        list[Annotated[str, Field(pattern=_REQUIREMENT)]],
        Field(alias="with", description="Further packages to install, for example [langchain-openai]."),
    ] = []
    python: Annotated[
        str | None, Field(pattern=r"^3\.\d+$", description="PyPI: the oldest Python that it runs on.")
    ] = None
    node: Annotated[str | None, Field(pattern=r"^\d+$", description="npm: the Node to install beside it.")] = None
    scripts: Annotated[bool, Field(description="npm: whether packages may run scripts while they are installed.")] = (
        True
    )
    compaction: Annotated[
        list[str],
        Field(description="Files of the package that compaction is made of, as patterns; to say whether they differ."),
    ] = []


def read_package(path: Path) -> Package:
    """Read `package:` of a target file."""
    value: Any = read_yaml(path)
    found = value.get("package") if isinstance(value, Mapping) else None
    if found is None:
        raise UserError(
            f"{path}: it has no `package:`, so releases of it cannot be installed; add, for example,\n"
            "  package: {index: pypi, name: my-agent}"
        )
    if not isinstance(found, Mapping):
        raise UserError(f"{path}: package: a mapping was expected, not {type(found).__name__}")
    return parse(Package, dict(found), f"{path}: package")
