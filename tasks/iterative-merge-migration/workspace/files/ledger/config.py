"""Read config/ledger.toml."""

import tomllib
from pathlib import Path
from typing import Any


def load(path: str | Path = "config/ledger.toml") -> dict[str, Any]:
    settings = tomllib.loads(Path(path).read_text())
    settings["backfill"]["skip"] = settings["backfill"].pop("skip_currencies", [])
    return settings
